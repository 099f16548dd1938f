//! What a program's files were before our entries came.
//!
//! In: a file before and after. Out: a receipt that only its owner may read, by which `remove` restores the file to the
//! byte, as long as nobody else has written it since.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::given_files::replace;

/// The receipt of a program.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InstallReceipt {
    /// Each file with entries of ours.
    pub(super) files: BTreeMap<PathBuf, FileBefore>,
}

/// What a file was.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileBefore {
    /// Its text; absent where there was none.
    pub(super) before: Option<String>,
    /// The hash of its text with our entries.
    pub(super) after: String,
}

impl FileBefore {
    /// Whether a text is the one that we left.
    pub(super) fn is_untouched(&self, text: &str) -> bool {
        self.after == hash(text)
    }
}

/// The hash of a text.
pub(super) fn hash(text: &str) -> String {
    agents::text_mark(text)
}

impl InstallReceipt {
    /// Reads a receipt; `None` if there is none.
    pub(super) fn read(path: &Path) -> Result<Option<Self>> {
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .with_context(|| format!("{}: not a receipt; delete it", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    /// Writes it.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        replace(path, &serde_json::to_vec_pretty(self)?)
            .with_context(|| format!("{}: cannot be written", path.display()))
    }
}
