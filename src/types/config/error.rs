//! What is wrong with a pipeline file: which file, which key, and what to write instead.

use std::path::PathBuf;

/// What is wrong with a pipeline file.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("{path}: cannot be read; check the path")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file holds a wrong key or value.
    #[error("{path}: {problem}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The key, what is wrong with it and what to write.
        problem: String,
    },
}

/// For an unknown key, serde lists the known ones; the message names the one that was probably meant.
pub(super) fn with_nearest_key(error: &toml::de::Error) -> String {
    let message = error.message();
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let Some((unknown, known)) = quoted.split_first().filter(|_| message.starts_with("unknown field")) else {
        return message.to_owned();
    };
    let nearest =
        known.iter().max_by(|a, b| strsim::jaro_winkler(a, unknown).total_cmp(&strsim::jaro_winkler(b, unknown)));
    match nearest {
        Some(key) => format!("unknown key {unknown:?}; did you mean {key:?}?"),
        None => message.to_owned(),
    }
}
