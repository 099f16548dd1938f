//! Changes of a program's files: shown, and written.
//!
//! In: a file before and after. Out: the lines that differ, for people; and the file, replaced as a whole, with the mode
//! that it had, also behind a symbolic link.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// A change of a file.
pub(super) struct FileChange {
    pub(super) path: PathBuf,
    /// What of it changes, in words.
    pub(super) about: &'static str,
    pub(super) before: Option<String>,
    /// `None`: no file is left.
    pub(super) after: Option<String>,
    pub(super) is_program: bool,
}

/// The text of a file; `None` if there is none.
pub(super) fn text_of(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{}: cannot be read", path.display())),
    }
}

impl FileChange {
    /// Whether anything changes.
    pub(super) fn is_any(&self) -> bool {
        self.before != self.after
    }

    /// The change for people: the lines that come and go. Other lines may hold secrets, and are not shown.
    pub(super) fn text(&self) -> String {
        let path = self.path.display();
        if !self.is_any() {
            return format!("  {path}: {} as it should be\n", self.about);
        }
        let (before, after) = (self.before.as_deref().unwrap_or_default(), self.after.as_deref().unwrap_or_default());
        let head = match (&self.before, &self.after) {
            (None, _) => format!("  {path}: new file, {}\n", self.about),
            (_, None) => return format!("  {path}: removed\n"),
            _ => format!("  {path}: {}\n", self.about),
        };
        let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
        let first = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
        let rest = before.len().min(after.len()) - first;
        let behind = before.iter().rev().zip(after.iter().rev()).take(rest).take_while(|(one, other)| one == other);
        let last = behind.count();
        let part = |lines: &[&str], mark: char| -> String {
            let lines = lines.get(first..lines.len() - last).unwrap_or_default();
            lines.iter().map(|line| format!("    {mark} {line}\n")).collect()
        };
        format!("{head}{}{}", part(&before, '-'), part(&after, '+'))
    }

    /// Writes the file.
    pub(super) fn write(&self) -> Result<()> {
        let Some(after) = &self.after else {
            return fs::remove_file(&self.path).with_context(|| format!("{}: cannot be removed", self.path.display()));
        };
        let failed = || format!("{}: cannot be written", self.path.display());
        // A link to a file of dotfiles stays one.
        let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).with_context(failed)?;
        let draft = tempfile::NamedTempFile::new_in(folder).with_context(failed)?;
        fs::write(draft.path(), after).with_context(failed)?;
        if let Ok(metadata) = fs::metadata(&path) {
            fs::set_permissions(draft.path(), metadata.permissions()).with_context(failed)?;
        } else if self.is_program {
            make_program(draft.path()).with_context(failed)?;
        }
        draft.persist(&path).with_context(failed)?;
        Ok(())
    }
}

#[cfg(unix)]
fn make_program(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn make_program(_path: &Path) -> io::Result<()> {
    Ok(())
}
