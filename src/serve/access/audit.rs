//! The audit log: who did what, when, and with which result, without any content.
//!
//! In: a request that has ended. Out: a line of JSON in a file. A file that cannot be written refuses no
//! request: the problem is told.

use std::{
    fs::{File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    sync::Mutex,
};

use jiff::Timestamp;
use serde::Serialize;

use super::{AccessError, Right};
use crate::{model::Bank, sync};

/// The audit log.
pub struct Audit {
    path: PathBuf,
    file: Mutex<File>,
}

/// A request that has ended.
#[derive(Debug, Clone, Serialize)]
pub struct AuditEntry<'r> {
    /// When.
    pub time: Timestamp,
    /// The token's name; absent where none was needed or shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<&'r str>,
    /// The method and the route's pattern, or the tool.
    pub action: &'r str,
    /// What it needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<Right>,
    /// The bank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bank: Option<&'r Bank>,
    /// The status of the response.
    pub status: u16,
}

impl Audit {
    /// Opens a file to append to; nobody but its owner may read a new one.
    ///
    /// # Errors
    /// [`AccessError::File`].
    pub fn open(path: &Path) -> Result<Self, AccessError> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(|e| AccessError::File {
            path: path.to_owned(),
            problem: format!("{e}; name a file that can be written, or none"),
        })?;
        Ok(Self { path: path.to_owned(), file: Mutex::new(file) })
    }

    /// Appends a line.
    ///
    /// # Errors
    /// [`AccessError::File`], such as for a full disk.
    pub fn note(&self, entry: &AuditEntry<'_>) -> Result<(), AccessError> {
        let failed = |problem: String| AccessError::File { path: self.path.clone(), problem };
        let mut line = serde_json::to_vec(entry).map_err(|e| failed(e.to_string()))?;
        line.push(b'\n');
        // One write for each line, so that lines of several processes do not mix.
        sync::lock(&self.file).write_all(&line).map_err(|e| failed(format!("{e}; make room on the disk")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_who_did_what_and_is_appended() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("audit.jsonl");
        let bank = Bank::parse("acme").unwrap();
        for status in [200, 403] {
            let entry = AuditEntry {
                time: Timestamp::UNIX_EPOCH,
                token: Some("agent"),
                action: "POST /v1/ask",
                right: Some(Right::Read),
                bank: Some(&bank),
                status,
            };
            Audit::open(&path).unwrap().note(&entry).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let first = text.lines().next().unwrap();
        assert_eq!(
            first,
            r#"{"time":"1970-01-01T00:00:00Z","token":"agent","action":"POST /v1/ask","right":"read","bank":"acme","status":200}"#
        );
        assert_eq!(text.lines().count(), 2);
        assert!(Audit::open(home.path()).is_err());
    }
}
