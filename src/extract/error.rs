//! Why a window gives no units.
//!
//! Out: the language model's error, or the turn at which a window breaks its own contract.

use crate::llm::LlmError;

/// Why a window gives no units.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    /// The language model failed.
    #[error(transparent)]
    Model(#[from] LlmError),
    /// The window's turns are not in order.
    #[error(
        "window {start} of session {session:?}: turn {turn:?} at ordinal {ordinal} does not follow the one before; \
         order the turns by ordinal, each once"
    )]
    OutOfOrder {
        /// The session.
        session: String,
        /// The ordinal that identifies the window.
        start: u32,
        /// The turn.
        turn: String,
        /// Its ordinal.
        ordinal: u32,
    },
}
