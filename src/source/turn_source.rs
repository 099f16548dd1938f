//! The interface of a source.
//!
//! In: a limit. Out: turn events in the origin's order, and dead letters for records that were
//! rejected; both in batches, since a reject is data on its way to the dead-letter topic. A bad
//! record never ends a source.

use super::error::SourceError;
use crate::model::{DeadLetter, TurnEvent};

/// What was read at once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// What can go to the turns topic, in order.
    pub events: Vec<TurnEvent>,
    /// What cannot, with its place and what to do.
    pub rejects: Vec<DeadLetter>,
}

/// How far a source is, for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is behind us.
    pub done: u64,
    /// All there is, where that is known.
    pub total: Option<u64>,
    /// What is counted: `bytes` or `turns`.
    pub unit: &'static str,
}

/// An origin of turns.
///
/// Resume contract: a source always starts from its beginning and keeps no position of
/// its own. Reading it again is harmless, because its turn ids are stable and a turn
/// that is identical to the one known changes nothing (decision 4). So a process that
/// was killed in the middle simply reads the whole source again.
pub trait Source: Send {
    /// The next events and rejects: at least one, and at most `limit` together
    /// (0 counts as 1). None at the end, and from then on.
    ///
    /// # Errors
    /// [`SourceError`] when the origin itself can no longer be read.
    fn next(&mut self, limit: usize) -> Result<Option<Batch>, SourceError>;
    /// The origin in a few words, for messages.
    fn describe(&self) -> String;
    /// How far it is.
    fn progress(&self) -> Progress;
    /// What a user should know before the first record, to be said once; such as the
    /// zone that is assumed where the format names none (decision 7).
    fn notice(&self) -> Option<String> {
        None
    }
}
