//! The bank of a directory, for those who ask what was said in it.
//!
//! In: a directory, and the bank template of the source that follows transcripts. Out: the bank to which that source
//! stores what is said there, or that it stays out. Reads the same small files as the reader, and nothing else.

use super::{project::Projects, project_choice::ProjectChoice, transcript_reader::DEFAULT_BANK};
use crate::{SourceError, chat::project_bank};
use types::model::Bank;

/// What becomes of what is said in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryBank {
    /// It is stored in this bank.
    Stored(Bank),
    /// A file `.ripplemem-ignore` keeps it out.
    KeptOut,
}

/// The bank of a directory. An empty template is the default one.
///
/// # Errors
/// [`SourceError::Settings`] when the template does not form a valid bank name.
pub fn bank_of_directory(directory: &str, template: &str) -> Result<DirectoryBank, SourceError> {
    let project = Projects::default().project("", Some(directory));
    let mut choice = ProjectChoice::default();
    if choice.is_marked(directory) || choice.is_marked(&project.id) {
        return Ok(DirectoryBank::KeptOut);
    }
    let template = if template.is_empty() { DEFAULT_BANK } else { template };
    project_bank(template, &project).map(DirectoryBank::Stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_the_bank_of_its_project() {
        let home = tempfile::TempDir::new().unwrap();
        for folder in ["kite/.git", "kite/tail", "reel"] {
            std::fs::create_dir_all(home.path().join(folder)).unwrap();
        }
        let bank = |name: &str, template: &str| {
            bank_of_directory(&home.path().join(name).display().to_string(), template).unwrap()
        };
        let DirectoryBank::Stored(kite) = bank("kite", "") else { panic!("stored") };
        assert!(kite.as_str().starts_with("kite-") && kite.as_str().len() == 11, "{kite}");
        assert_eq!(bank("kite/tail", "{project}"), DirectoryBank::Stored(kite.clone()));
        let DirectoryBank::Stored(work) = bank("kite", "work/{project}") else { panic!("stored") };
        assert_eq!(work.as_str(), format!("work/{kite}"));
        std::fs::write(home.path().join("reel/.ripplemem-ignore"), "").unwrap();
        assert_eq!(bank("reel", ""), DirectoryBank::KeptOut);
        assert!(bank_of_directory("/x", "{").is_err());
    }
}
