//! Why an evaluation stopped.
//!
//! In: the errors of the crates and modules below. Out: one enum. Every message says where it happened and what to do;
//! causes are in `source`.

use super::dataset::DatasetError;
use logs::LogError;
use models::{embed::EmbedError, llm::LlmError};
use pipeline::PipelineError;
use sources::SourceError;

/// Why an evaluation stopped.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// The file holds no questions.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// The file's turns could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The memory failed.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// The memory did not answer a question.
    #[error("question {id}")]
    Question {
        /// The question's id in the file.
        id: String,
        /// Why.
        #[source]
        source: Box<PipelineError>,
    },
    /// The language model cannot be called.
    #[error(transparent)]
    Llm(#[from] LlmError),
    /// The language model did not answer a question, or did not judge the answer.
    #[error("question {id}")]
    Answer {
        /// The question's id in the file.
        id: String,
        /// Why.
        #[source]
        source: LlmError,
    },
    /// The language model did not read every window, so the figures would describe an incomplete memory.
    #[error(
        "the language model did not read {left} windows: {problem}; run the evaluation again when the model answers: \
         its responses so far are cached"
    )]
    Unread {
        /// Windows that were not read.
        left: u64,
        /// Why.
        problem: String,
    },
    /// The log could not be read back.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A question or a turn could not be embedded.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// A record of the memory topic cannot be parsed.
    #[error("memory partition {partition}, offset {offset}: {problem}; this is a defect, please report it")]
    Record {
        /// The partition.
        partition: u32,
        /// The offset.
        offset: u64,
        /// What the parser found.
        problem: String,
    },
    /// The model that answers would judge itself.
    #[error(
        "model {model:?} answers the questions, so it cannot also judge the answers; in --judge, name a pipeline file with another model"
    )]
    SameJudge {
        /// The model.
        model: String,
    },
    /// The temporary directory of the memory could not be created.
    #[error("cannot create a temporary directory for the memory; free some space, or set TMPDIR")]
    Directory(#[source] std::io::Error),
    /// The settings have no JSON form.
    #[error("the settings could not be written as JSON")]
    Settings(#[source] serde_json::Error),
}
