//! Why a live source stopped reading, and whether a retry helps.
//!
//! Lost connections, limits and refusals are pauses: the source is opened again at the durable position, and catches
//! up.

use std::time::Duration;

use crate::SourceError;

/// Why a live source cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// A setting is wrong; retrying does not help.
    #[error("source {name:?}: {problem}")]
    Settings {
        /// The source.
        name: String,
        /// The key or the file, and what is wrong with it.
        problem: String,
        /// The operating system's error, if a file cannot be read.
        #[source]
        cause: Option<std::io::Error>,
    },
    /// A secret's variable is not set.
    #[error("source {name:?}: the environment variable {variable} is not set; {key} names it")]
    Secret {
        /// The source.
        name: String,
        /// The environment variable.
        variable: String,
        /// The key of the source that names it.
        key: &'static str,
    },
    /// The position that an earlier run stored cannot be read.
    #[error(
        "source {name:?}: its stored position cannot be read ({problem}); use the build that wrote it, or see `ripplemem repair`"
    )]
    Position {
        /// The source.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The connection was lost, or the platform is not available. A retry may succeed.
    #[error("{0}")]
    Lost(String),
    /// The platform asks for a pause.
    #[error("{problem}; waiting {:.0} s, as the platform asked", after.as_secs_f64().ceil())]
    Limited {
        /// The request that was limited.
        problem: String,
        /// How long to wait.
        after: Duration,
    },
    /// The platform refuses, until its settings or ours change.
    #[error("{problem}; {remedy}")]
    Refused {
        /// What it said.
        problem: String,
        /// What to do.
        remedy: String,
    },
}

impl LiveError {
    /// The error for a wrong setting of the source with this name.
    pub(super) fn of_settings(name: &str, error: SourceError) -> Self {
        let problem = match &error {
            SourceError::Settings { key, problem } => format!("{key}: {problem}"),
            other => other.to_string(),
        };
        let cause = match error {
            SourceError::Read { source, .. } => Some(source),
            _ => None,
        };
        Self::Settings { name: name.to_owned(), problem, cause }
    }

    /// Whether a retry may succeed, immediately or after a change on the platform.
    #[must_use]
    pub fn is_pause(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Limited { .. } | Self::Refused { .. })
    }
}
