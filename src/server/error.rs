//! Errors that end a service.

use std::{fmt, io, path::PathBuf};

use super::access::AccessError;
use logs::LogError;
use models::embed::EmbedError;
use pipeline::PipelineError;
use ripplemem::ReplayError;

/// Why a service ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The log, a model, the memory or a snapshot failed.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// A topic could not be written as Parquet.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// An address is taken or not of this machine.
    #[error("{key}: cannot listen on {listen}: {problem}; choose another address")]
    Listen {
        /// The setting.
        key: &'static str,
        /// The address.
        listen: String,
        /// Why.
        problem: String,
    },
    /// The address of the service cannot be written beside the log.
    #[error("{directory}: cannot write the address of this service there: {problem}; check the directory")]
    Address {
        /// `log.directory`.
        directory: PathBuf,
        /// Why.
        problem: io::Error,
    },
    /// The tokens or the audit log cannot be used.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The certificate or its key cannot be used.
    #[error("http.certificate, http.key: {0}")]
    Tls(String),
    /// The questions topic does not have as many partitions as the memory.
    #[error(
        "topic {topic}: it has {found} partition(s), and the memory {needed}; with serve.hold = \"assigned\" they must be as \
         many: stop all instances, `kafka-topics.sh --delete --topic {topic}`, and start again, which creates it (it keeps \
         questions for an hour only); or set serve.hold = \"all\""
    )]
    Questions {
        /// Its full name.
        topic: String,
        /// Its partitions.
        found: u32,
        /// The memory's.
        needed: u32,
    },
    /// A thread cannot be started.
    #[error("a thread cannot be started: {0}; the system has too many threads")]
    Thread(std::io::Error),
    /// A thread ended without an error.
    #[error("{0} has stopped; start again, the topics hold everything")]
    Ended(&'static str),
}

impl From<LogError> for ServeError {
    fn from(error: LogError) -> Self {
        Self::Pipeline(error.into())
    }
}

impl From<EmbedError> for ServeError {
    fn from(error: EmbedError) -> Self {
        Self::Pipeline(error.into())
    }
}

impl ServeError {
    /// The address of a setting cannot be listened on.
    pub(super) fn cannot_listen(key: &'static str, listen: &str, problem: &dyn fmt::Display) -> Self {
        Self::Listen { key, listen: listen.to_owned(), problem: problem.to_string() }
    }
}
