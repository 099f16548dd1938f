//! Why the rules find no units in a window.
//!
//! Out: the turn at which a window breaks its own contract.

/// A window whose turns are not in order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "window {start} of session {session:?}: turn {turn:?} at ordinal {ordinal} does not follow the turn before it; \
     order the turns by ordinal, and include each only once"
)]
pub struct TurnOrderError {
    /// The session.
    pub session: String,
    /// The ordinal that identifies the window.
    pub start: u32,
    /// The turn.
    pub turn: String,
    /// Its ordinal.
    pub ordinal: u32,
}
