//! `[forget]`: how soon words of deleted turns leave the disk, and what proves it.

use std::path::{Component, Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::retention::LegalHoldSettings;
use crate::model::Bank;

/// What follows a deletion, on a log in a directory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgetSettings {
    /// By when the words of a deleted turn are out of every stored byte, after the request. A running service
    /// erases after half of this time at the latest, everything that waits at once, because erasing writes the log
    /// again. 0: only `ripplemem forget --erase-now` erases.
    #[schemars(range(min = 0, max = 100_000))]
    pub erase_within_hours: u64,
    /// What becomes of what was said before an edit, on a log in a directory.
    pub edits: EditPolicy,
    /// A file outside the log's directory, relative to the pipeline file, to which each request to forget adds a line
    /// with the ids of the turns. Every start applies it, so that a restored backup forgets again.
    #[serde(default)]
    pub ledger: Option<PathBuf>,
    /// A file with a secret, relative to the pipeline file: receipts then carry an HMAC-SHA256 made with it.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// A directory outside the log's, relative to the pipeline file: each request to forget writes fingerprints of the
    /// words into it, made with the secret of `key_file`, by which `ripplemem forget --verify` finds what is left of
    /// them. Those of an operation are removed once it is erased and nothing of it is found.
    #[serde(default)]
    pub fingerprints: Option<PathBuf>,
    /// What `[[hold]]` says, which stands outside this section in a file.
    #[serde(skip)]
    pub holds: Vec<LegalHoldSettings>,
}

/// What becomes of earlier versions of edited turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Edits")]
pub enum EditPolicy {
    /// They stay in the log, and answers about the past show what was said then.
    #[default]
    Keep,
    /// Their words are erased like those of deleted turns, within `erase_within_hours`. Answers about the past leave
    /// them out from the next snapshot on.
    Erase,
}

impl ForgetSettings {
    /// Whether earlier versions of edited turns of a bank are erased: not while a hold covers it, or some of its turns.
    #[must_use]
    pub fn erases_edits_of(&self, bank: &Bank) -> bool {
        self.edits == EditPolicy::Erase && self.hold_of(bank).is_none()
    }

    /// The paths that must lie outside the log's directory, because restoring a backup replaces that directory; each
    /// with the name of its key.
    pub fn paths_outside_log(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let paths = [("forget.fingerprints", &self.fingerprints), ("forget.ledger", &self.ledger)];
        paths.into_iter().filter_map(|(key, path)| Some((key, path.as_deref()?)))
    }

    pub(super) fn check(&self, log_directory: &Path) -> Result<(), String> {
        if self.fingerprints.is_some() && self.key_file.is_none() {
            return Err("forget.fingerprints: they are made with a secret; set forget.key_file, too".to_owned());
        }
        match self.paths_outside_log().find(|(_, path)| lies_within(path, log_directory)) {
            Some((key, _)) => Err(format!("{key}: it lies in log.directory; name a place outside of it")),
            None => Ok(()),
        }
    }

    /// A hold that covers a bank, or some of its turns; `None` if all of them may be deleted.
    #[must_use]
    pub fn hold_of(&self, bank: &Bank) -> Option<&LegalHoldSettings> {
        self.holds.iter().find(|hold| hold.covers(bank))
    }

    /// The holds that cover a bank, or some of its turns.
    pub fn holds_of<'s>(&'s self, bank: &'s Bank) -> impl Iterator<Item = &'s LegalHoldSettings> {
        self.holds.iter().filter(move |hold| hold.covers(bank))
    }
}

fn lies_within(path: &Path, directory: &Path) -> bool {
    path.is_absolute() == directory.is_absolute() && normalised_path(path).starts_with(normalised_path(directory))
}

/// A path without `.`, and without `..` after a name.
fn normalised_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        let follows_name = matches!(plain.components().next_back(), Some(Component::Normal(_)));
        match part {
            Component::CurDir => {}
            Component::ParentDir if follows_name => {
                plain.pop();
            }
            _ => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use crate::config::Pipeline;

    #[test]
    fn fingerprints_need_a_key_and_lie_outside_the_log_as_the_ledger_does() {
        let parse =
            |keys: &str| Pipeline::parse(&format!("version = 1\nlog.directory = \"log\"\nforget = {{ {keys} }}\n"));
        assert!(parse("fingerprints = \"prints\", key_file = \"key\"").is_ok());
        assert!(parse("fingerprints = \"prints\"").unwrap_err().contains("forget.key_file"));
        let inside = parse("fingerprints = \"log/prints\", key_file = \"key\"").unwrap_err();
        assert!(inside.starts_with("forget.fingerprints:"), "{inside}");
        for inside in ["log/ledger", "./log/ledger", "log/../log/ledger", "x/../log/ledger"] {
            let refused = parse(&format!("ledger = {inside:?}")).unwrap_err();
            assert!(refused.starts_with("forget.ledger:"), "{inside}: {refused}");
        }
        for outside in ["ledger", "logs/ledger", "log/../ledger", "../log/ledger", "/log/ledger"] {
            assert!(parse(&format!("ledger = {outside:?}")).is_ok(), "{outside}");
        }
    }
}
