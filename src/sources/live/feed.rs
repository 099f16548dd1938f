//! What each platform's file implements: messages as they come, and the position behind them.

use std::time::Duration;

use serde_json::Value;

use super::error::LiveError;
use crate::chat::ChatItem;
use nouns::model::{DeadLetter, TurnEvent};

/// What came.
#[derive(Debug, Default)]
pub(super) struct Arrival {
    /// Messages of a chat platform, in order.
    pub(super) items: Vec<ChatItem>,
    /// Turns that came as turns.
    pub(super) events: Vec<TurnEvent>,
    /// Records that cannot be read.
    pub(super) rejects: Vec<DeadLetter>,
    /// What the user should know.
    pub(super) notices: Vec<String>,
    /// Whether there is anything to commit: something came, or the position has moved.
    pub(super) moved: bool,
}

/// A connection to one platform.
///
/// Contract: a feed is made with the position that was committed last, and what it returns follows
/// that position; what was returned and not committed comes again from the next feed. A message is
/// confirmed to the platform in [`Feed::committed`] or later, never before. A record that cannot be
/// read is a reject, never an error.
pub(super) trait Feed: Send {
    /// Waits up to `wait` for what comes next.
    ///
    /// # Errors
    /// [`LiveError`]; make a new feed then.
    fn next(&mut self, wait: Duration) -> Result<Arrival, LiveError>;

    /// The position behind everything that was returned.
    fn cursor(&self) -> Value;

    /// Everything that was returned is durable.
    ///
    /// # Errors
    /// [`LiveError`], as [`Feed::next`].
    fn committed(&mut self) -> Result<(), LiveError> {
        Ok(())
    }
}
