//! The interface that each platform's module implements: messages as they come, and the position after them.

use std::time::Duration;

use serde_json::Value;

use super::{abandoned_part::AbandonedPart, error::LiveError};
use crate::chat::{ChatItem, UnreadCounts};
use types::model::{DeadLetter, TurnEvent};

/// What has arrived.
#[derive(Debug, Default)]
pub(super) struct FeedArrival {
    /// Messages of a chat platform, in order.
    pub(super) items: Vec<ChatItem>,
    /// Events that arrived as turn events.
    pub(super) events: Vec<TurnEvent>,
    /// Records that cannot be read.
    pub(super) rejects: Vec<DeadLetter>,
    /// What the user should know.
    pub(super) notices: Vec<String>,
    /// Fields of messages that were not read.
    pub(super) unread: UnreadCounts,
    /// Whether there is anything to commit: something came, or the position has moved.
    pub(super) moved: bool,
}

impl FeedArrival {
    /// Notes a part of the platform that is given up, once: `what` names the request, without words of anybody.
    pub(super) fn give_up(&mut self, origin: &str, given_up: AbandonedPart, what: &str) {
        if given_up.is_new {
            let reason = format!("{}; an export has what is missing", given_up.problem);
            self.rejects.push(DeadLetter::new(origin.to_owned(), reason, what.as_bytes()));
        }
    }
}

/// A connection to one platform.
///
/// Contract: a feed is created with the position that was committed last, and returns what comes after that position.
/// Anything that was returned but not committed is returned again by the next feed. A message is confirmed to the
/// platform in [`LiveFeed::committed`] or later, never before. A record that cannot be read is a reject, never an
/// error.
pub(super) trait LiveFeed: Send {
    /// Waits up to `wait` for what comes next.
    ///
    /// # Errors
    /// [`LiveError`]; after it, create a new feed.
    fn next(&mut self, wait: Duration) -> Result<FeedArrival, LiveError>;

    /// The position after everything that was returned.
    fn cursor(&self) -> Value;

    /// Everything that was returned is durable.
    ///
    /// # Errors
    /// [`LiveError`], as [`LiveFeed::next`].
    fn committed(&mut self) -> Result<(), LiveError> {
        Ok(())
    }
}
