//! How a hook reaches the service.
//!
//! In: what `install` decided. Out: a file that only its owner may read, since a token is in it. The address is in the
//! directory of the memory, where the service writes it at each start.

use std::{collections::BTreeMap, fs, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::places::AgentPlaces;

/// Variables that say where the models are and where programs keep their files. Neither systemd nor most programs pass
/// on those of a user's shell.
const VARIABLES: [&str; 8] = [
    "RIPPLEMEM_HOME",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "COPILOT_HOME",
    "GEMINI_CLI_HOME",
    "PI_CODING_AGENT_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];

/// How long a hook may take, in milliseconds, from its start to its answer.
const DEADLINE_MS: u64 = 300;

/// What a hook needs to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServiceFile {
    /// The directory of the memory.
    pub(super) memory: PathBuf,
    /// The bank template of the source that follows transcripts; empty for the default one.
    #[serde(default)]
    pub(super) bank: String,
    /// The token that a hook shows. It may only read.
    pub(super) token: String,
    /// Our program.
    pub(super) program: PathBuf,
    /// The environment variables that the service is started with, beside those of the process that starts it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) variables: BTreeMap<String, String>,
    /// Whether systemd starts the service; else the first hook does.
    pub(super) by_systemd: bool,
    /// How long a hook may take, in milliseconds.
    #[serde(default = "deadline_ms")]
    pub(super) deadline_ms: u64,
}

fn deadline_ms() -> u64 {
    DEADLINE_MS
}

fn is_path(value: &str) -> bool {
    !value.is_empty() && !value.contains(char::is_control)
}

impl ServiceFile {
    /// Reads it; `None` where there is none that can be read.
    pub(super) fn read(places: &AgentPlaces) -> Option<Self> {
        serde_json::from_slice(&fs::read(places.service_file()).ok()?).ok()
    }

    /// The address of the service; `None` if no process of this machine has it. A killed service leaves its address
    /// behind, and another program may listen there by now: it is not shown a token.
    pub(super) fn address(&self) -> Option<String> {
        let text = fs::read_to_string(self.memory.join("http.address")).ok()?;
        let (process, rest) = text.split_once('\n')?;
        let process = process.strip_prefix("process ")?.parse().ok()?;
        is_alive(process).then(|| rest.lines().next().map(str::to_owned)).flatten()
    }

    /// A new one.
    pub(super) fn new(places: &AgentPlaces, program: PathBuf, token: String, by_systemd: bool) -> Self {
        Self {
            memory: places.memory(),
            bank: String::new(),
            token,
            program,
            variables: VARIABLES
                .into_iter()
                .filter_map(|name| Some((name.to_owned(), std::env::var(name).ok().filter(|value| is_path(value))?)))
                .collect(),
            by_systemd,
            deadline_ms: DEADLINE_MS,
        }
    }
}

#[cfg(unix)]
fn is_alive(process: i32) -> bool {
    // A process of another user is none of ours.
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(process), None).is_ok()
}

#[cfg(not(unix))]
fn is_alive(_process: i32) -> bool {
    true
}
