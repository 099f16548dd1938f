//! What the tools ask of a memory.
//!
//! In: turns, questions. Out: proof that turns are durable, evidence, counts. The calls block, and each
//! runs on a thread of its own. An error is a sentence for the agent: where, what, and what to do. It
//! never names another bank.

use std::time::Duration;

use crate::{
    model::{Bank, Evidence, Question, TurnEvent},
    pipeline::{Cancellation, PipelineError, refusal},
    recall::Answer,
};

use super::tools::Counts;

/// A memory, in this process or in another.
pub(super) trait MemoryAccess: Send + Sync {
    /// Stores turns and deletions of one bank, and waits until answers reflect them.
    ///
    /// # Errors
    /// [`ToolError`]; nothing was stored, or the log failed.
    fn put(&self, events: Vec<TurnEvent>, wait: Duration) -> Result<Stored, ToolError>;

    /// The evidence for a question.
    ///
    /// # Errors
    /// [`ToolError`].
    fn ask(&self, asked: AskedOfMemory) -> Result<Evidence, ToolError>;

    /// The language model's answer from the evidence for a question.
    ///
    /// # Errors
    /// [`ToolError`], without a language model too.
    fn answer(&self, asked: AskedOfMemory) -> Result<(Evidence, Answer), ToolError>;

    /// The banks that hold something.
    ///
    /// # Errors
    /// [`ToolError`].
    fn banks(&self) -> Result<Vec<Bank>, ToolError>;

    /// How much a bank holds.
    ///
    /// # Errors
    /// [`ToolError`] for a bank that holds nothing.
    fn counts(&self, bank: &Bank) -> Result<Counts, ToolError>;

    /// How the memory is.
    ///
    /// # Errors
    /// [`ToolError`].
    fn state(&self) -> Result<MemoryState, ToolError>;

    /// Writes what makes the next start faster. The memory goes on until it is dropped.
    fn close(&self) {}
}

/// A question, and what its answer must reflect.
#[derive(Debug, Clone)]
pub(super) struct AskedOfMemory {
    pub(super) question: Question,
    /// What [`Stored::after`] said.
    pub(super) after: Option<String>,
    /// A time, or an offset.
    pub(super) as_of: Option<String>,
    /// Until when somebody waits.
    pub(super) cancellation: Cancellation,
}

/// What became of turns.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    /// Whether answers reflect them.
    pub(super) included: bool,
    /// What a question names to reflect them.
    pub(super) after: String,
}

/// How a memory is.
#[derive(Debug, Clone)]
pub(super) struct MemoryState {
    pub(super) language_model: Option<String>,
    pub(super) behind: u64,
    pub(super) waiting_for_model: u64,
    pub(super) problem: Option<String>,
}

/// Why a tool failed, in words for the agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct ToolError(pub(super) String);

impl From<PipelineError> for ToolError {
    fn from(error: PipelineError) -> Self {
        Self(match &error {
            PipelineError::UnknownBank { bank, .. } => {
                format!("bank {bank}: nothing is stored in it; store something with remember, or name another bank")
            }
            _ => refusal(&error).message,
        })
    }
}
