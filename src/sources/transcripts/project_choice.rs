//! Which projects are read.
//!
//! In: the lists `only` and `except` of a source, and what is known of a message: its program, its project, the
//! directory in which its session began and the one in which it was said. Out: why it is left out, if it is. A word of
//! a list names a program, a project with or without the digits of its name, or a directory with all below it. A file
//! `.ripplemem-ignore` in a directory, or in one above it, keeps out what was said there, whatever the lists say.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    path::Path,
};

use super::project::{directory_name, is_absolute};
use crate::chat::Conversation;

/// The file that keeps a directory out.
pub(super) const MARK: &str = ".ripplemem-ignore";

/// Why a message is left out.
const NOT_CHOSEN: &str = "project not chosen";
const EXCEPTED: &str = "excepted project";
const MARKED: &str = "project with .ripplemem-ignore";

/// What a message belongs to.
#[derive(Clone, Copy)]
pub(super) struct MessageOrigin<'a> {
    /// The program, by the name of its format.
    pub(super) agent: &'a str,
    /// Where its session began, or the name of what it belongs to.
    pub(super) place: Option<&'a str>,
    /// Where it was said.
    pub(super) directory: Option<&'a str>,
}

/// The lists of a source.
#[derive(Default)]
pub(super) struct ProjectChoice {
    only: Vec<String>,
    except: Vec<String>,
    /// The words that have named something.
    named: BTreeSet<String>,
    /// Why each program, place and directory is left out, if it is.
    known: HashMap<[String; 3], Option<&'static str>>,
    /// Whether each directory has a mark.
    marks: HashMap<String, bool>,
}

impl ProjectChoice {
    /// The choice of these lists. `~/` at the beginning of a word is the user's home directory: no shell has read the
    /// words of a file, and of a list behind one comma a shell reads the first alone.
    pub(super) fn new(only: &[String], except: &[String]) -> Self {
        let home = std::env::home_dir();
        let whole = |word: &String| match (word.strip_prefix("~/"), &home) {
            (Some(rest), Some(home)) => home.join(rest).display().to_string(),
            _ => word.clone(),
        };
        let [only, except] = [only, except].map(|list| list.iter().map(whole).collect());
        Self { only, except, ..Self::default() }
    }

    /// Whether no list names anything, so that only marks leave something out.
    pub(super) fn has_no_lists(&self) -> bool {
        self.only.is_empty() && self.except.is_empty()
    }

    /// Why a message is left out; `None` if it is read.
    pub(super) fn left_out(&mut self, project: &Conversation, origin: MessageOrigin<'_>) -> Option<&'static str> {
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let key = [origin.agent.to_owned(), text(origin.place), text(origin.directory)];
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let reason = self.decide(project, origin);
        self.known.insert(key, reason);
        reason
    }

    /// The words that named nothing, each with the key of its list.
    pub(super) fn unknown(&self) -> Vec<(&'static str, String)> {
        let all = self.only.iter().map(|word| ("only", word)).chain(self.except.iter().map(|word| ("except", word)));
        all.filter(|(_, word)| !self.named.contains(*word)).map(|(key, word)| (key, word.clone())).collect()
    }

    fn decide(&mut self, project: &Conversation, origin: MessageOrigin<'_>) -> Option<&'static str> {
        let found = |list: &[String]| -> Vec<String> {
            list.iter().filter(|word| is_meant(word, project, origin)).cloned().collect()
        };
        let (only, except) = (found(&self.only), found(&self.except));
        let (is_only, is_excepted) = (!only.is_empty() || self.only.is_empty(), !except.is_empty());
        self.named.extend(only.into_iter().chain(except));
        let places = [origin.place, origin.directory, Some(project.id.as_str())];
        if places.into_iter().flatten().any(|place| self.is_marked(place)) {
            return Some(MARKED);
        }
        match (is_excepted, is_only) {
            (true, _) => Some(EXCEPTED),
            (false, false) => Some(NOT_CHOSEN),
            (false, true) => None,
        }
    }

    /// Whether a directory or one above it has the mark.
    pub(super) fn is_marked(&mut self, directory: &str) -> bool {
        if let Some(known) = self.marks.get(directory) {
            return *known;
        }
        let path = Path::new(directory);
        // A path of another machine is not looked up, and neither is one of the network.
        let is_here = path.is_absolute() && !directory.starts_with("\\\\") && !directory.starts_with("//");
        let is_marked = is_here && path.ancestors().any(|above| fs::symlink_metadata(above.join(MARK)).is_ok());
        self.marks.insert(directory.to_owned(), is_marked);
        is_marked
    }
}

/// Whether a word of a list names where a message belongs. Case is ignored, but in directories.
fn is_meant(word: &str, project: &Conversation, origin: MessageOrigin<'_>) -> bool {
    if is_absolute(word) {
        let word = word.trim_end_matches(['/', '\\']);
        let places = [origin.place, origin.directory, Some(project.id.as_str())];
        return places.into_iter().flatten().any(|place| {
            place.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '\\']))
        });
    }
    let word = word.to_lowercase();
    let names = [Some(origin.agent), Some(project.name.as_str()), directory_name(project)];
    names.into_iter().flatten().any(|name| name.to_lowercase() == word)
}

#[cfg(test)]
mod tests {
    use super::{super::project::Projects, *};

    #[test]
    fn words_name_programs_projects_and_directories() {
        let kite = MessageOrigin {
            agent: "codex",
            place: Some("/home/odalys/kite"),
            directory: Some("/home/odalys/kite/tail"),
        };
        let project = Projects::default().project("codex", kite.place);
        for (word, is_meant) in [
            ("codex", true),
            ("Kite", true),
            (project.name.as_str(), true),
            ("/home/odalys/kite", true),
            ("/home/odalys", true),
            ("/home/odalys/kite/tail/", true),
            ("/home/odalys/kit", false),
            ("/home/odalys/kite/tail/knots", false),
            ("kit", false),
            ("pi", false),
        ] {
            let list = [word.to_owned()];
            let only = ProjectChoice::new(&list, &[]).left_out(&project, kite);
            let except = ProjectChoice::new(&[], &list).left_out(&project, kite);
            let expected = if is_meant { (None, Some(EXCEPTED)) } else { (Some(NOT_CHOSEN), None) };
            assert_eq!((only, except), expected, "{word}");
        }
        let home = std::env::home_dir().expect("a home directory").join("kite").display().to_string();
        let of_home = MessageOrigin { agent: "codex", place: Some(&home), directory: None };
        for (word, is_meant) in [("~/kite", true), ("~/kite/", true), ("~/kit", false)] {
            let mut choice = ProjectChoice::new(&[], &[word.to_owned()]);
            assert_eq!(choice.left_out(&project, of_home).is_some(), is_meant, "{word}");
        }
        let mut choice = ProjectChoice::new(&["kite".to_owned()], &["reel".to_owned()]);
        choice.left_out(&project, kite);
        assert_eq!(choice.unknown(), [("except", "reel".to_owned())]);
    }

    #[test]
    fn a_mark_keeps_out_what_is_below_it() {
        let home = tempfile::TempDir::new().unwrap();
        fs::create_dir_all(home.path().join("kite/tail")).unwrap();
        fs::write(home.path().join("kite").join(MARK), "").unwrap();
        let left_out = |name: &str, directory: &str| {
            let [place, directory] = [name, directory].map(|name| home.path().join(name).display().to_string());
            let project = Projects::default().project("pi", Some(&place));
            let origin = MessageOrigin { agent: "pi", place: Some(&place), directory: Some(&directory) };
            ProjectChoice::new(&["kite".to_owned(), "reel".to_owned()], &[]).left_out(&project, origin)
        };
        assert_eq!(left_out("kite", "kite"), Some(MARKED));
        assert_eq!(left_out("kite/tail", "kite/tail"), Some(MARKED));
        assert_eq!(left_out("kite/gone", "kite/gone"), Some(MARKED), "the directory itself may be gone");
        assert_eq!(left_out("reel", "kite/tail"), Some(MARKED), "where it was said counts, too");
        assert_eq!(left_out("reel", "reel"), None);
    }
}
