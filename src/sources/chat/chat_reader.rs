//! The interface that each chat platform's module implements.
//!
//! In: an export. Out: its messages in the order in which they were said in each conversation,
//! one by one, in memory that does not grow with the export.

use std::collections::BTreeMap;

use super::chat_item::ChatItem;
use crate::{SourceError, trimmed_text::TrimmedText, turn_source::SourceProgress};

/// Words in `only` and `except` that named nothing, each with its key.
pub(crate) type UnknownNames = Vec<(&'static str, String)>;

/// A reader of one platform's export.
///
/// Contract: conversations may follow each other or interleave; inside one, messages come oldest first. The same export
/// always gives the same items, and a later export of the same conversation gives the same ids. A record that cannot be
/// read is a [`ChatItem::Reject`] whose origin is `FILE:LINE` if the format has lines, and reading continues after it.
pub trait ChatReader: Send {
    /// The next item; `None` at the end and from then on.
    ///
    /// # Errors
    /// [`SourceError`] when the export itself can no longer be read.
    fn next(&mut self) -> Result<Option<ChatItem>, SourceError>;

    /// The export in a few words, for messages: its path.
    fn describe(&self) -> String;

    /// How much has been read, in bytes of the export if they are known.
    fn progress(&self) -> SourceProgress;

    /// What a user should know before the first message: the time zone or the order of day and month that was assumed,
    /// and why.
    fn notice(&self) -> Option<String> {
        None
    }

    /// The bank template if the user names none; `None` puts each conversation behind the format's name.
    fn default_bank(&self) -> Option<&'static str> {
        None
    }

    /// What is replaced in texts if the user names nothing.
    fn default_redaction(&self) -> Option<&'static str> {
        None
    }

    /// For a reader that applies `only` and `except` itself: the words in them that named nothing so far.
    fn chosen(&self) -> Option<UnknownNames> {
        None
    }

    /// The unread parts of messages that were otherwise read, counted by name.
    fn unread(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }

    /// What was cut off from messages as quotation, signature or notice.
    fn trimmed(&self) -> TrimmedText {
        TrimmedText::default()
    }
}
