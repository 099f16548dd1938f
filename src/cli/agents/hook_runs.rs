//! What became of a program's hooks, the last run of each.
//!
//! In: a run. Out: a file that `status` reads. Never holds a word of what was said.

use std::{collections::BTreeMap, fs, path::Path};

use serde::{Deserialize, Serialize};

use super::given_files::replace;

/// A run of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HookRun {
    /// When it ended, in milliseconds since 1970.
    pub(super) at_ms: i64,
    /// How long it took, in milliseconds.
    pub(super) took_ms: u64,
    /// How many quotes it gave.
    pub(super) quotes: usize,
    /// How many tokens they have, at most.
    pub(super) tokens: usize,
    /// Why it gave nothing; empty if it gave something.
    pub(super) reason: String,
}

/// The last run of each moment of a program, by its name.
pub(super) type HookRuns = BTreeMap<String, HookRun>;

/// The runs in a file.
pub(super) fn read_runs(path: &Path) -> HookRuns {
    let read = || serde_json::from_slice(&fs::read(path).ok()?).ok();
    read().unwrap_or_default()
}

/// Notes a run. Two hooks at once may lose one of the two.
pub(super) fn note_run(path: &Path, event: &str, run: HookRun) {
    let mut runs = read_runs(path);
    runs.insert(event.chars().take(64).collect(), run);
    // Without the file, `status` knows less; a hook never fails.
    drop(serde_json::to_vec(&runs).map(|bytes| replace(path, &bytes)));
}
