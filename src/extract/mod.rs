//! Window to units.
//!
//! In: a window's turns. Out: drafts of units without vectors or ids. No two drafts of a
//! window are equal; every draft names its source turns, at least one of them outside
//! the leading overlap (decision 6). Never guesses: what the dialogue does not ground is empty.

mod draft;
pub mod llm;
pub mod plain;
pub mod rules;

use crate::{
    llm::LlmError,
    model::{Cues, EventTime, Marks, Window},
};

/// Why a window gives no units at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    /// The language model gave none.
    #[error(transparent)]
    Model(#[from] LlmError),
    /// The window breaks its own contract.
    #[error(
        "window {start} of session {session:?}: turn {turn:?} at ordinal {ordinal} does not follow the one before; \
         order the turns by ordinal, each once"
    )]
    OutOfOrder {
        /// The session.
        session: String,
        /// Ordinal that names the window.
        start: u32,
        /// The turn.
        turn: String,
        /// Its ordinal.
        ordinal: u32,
    },
}

/// A unit before it is embedded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftUnit {
    /// A text that stands alone.
    pub restatement: String,
    /// What it can be cued by; names canonical, sorted, without repetition.
    pub cues: Cues,
    /// When it was said: the time of its last source.
    pub said_at: EventTime,
    /// The turns that it was made from, in ordinal order; never empty.
    pub sources: Vec<String>,
    /// Ordinal of its first source.
    pub ordinal: u32,
    /// The turn before its first source in the session, where the window holds it.
    pub before: Option<DraftPart>,
    /// Its pieces, in ordinal order; never empty. They are what is embedded.
    pub parts: Vec<DraftPart>,
    /// Whether its one part holds the restatement instead of what was said: it is embedded
    /// as it stands, not as somebody's words.
    pub restated: bool,
}

/// A piece of a unit before it is embedded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftPart {
    /// The turn that it was taken from.
    pub turn: String,
    /// Ordinal, in its session, of that turn.
    pub ordinal: u32,
    /// Who said it.
    pub speaker: String,
    /// When it was said.
    pub said_at: EventTime,
    /// The words, captions included.
    pub text: String,
    /// What stands out in the words.
    pub marks: Marks,
}

/// Makes units of a window.
pub trait Extractor: Send {
    /// Name and version, recorded with every unit: `rules/3`.
    fn name(&self) -> &str;
    /// The units of a window.
    fn extract(&self, window: &Window) -> Result<Vec<DraftUnit>, ExtractError>;
}
