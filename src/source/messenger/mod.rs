//! Facebook Messenger and Instagram: the chats of an account, as «Download your information» exports
//! them to JSON.
//!
//! In: `message_1.json` and its siblings, one chat's folder, a whole account, or the files of chats
//! that are encrypted end to end. Out: messages, oldest first; unsent ones as deletions. Messages have
//! no ids: they get those of `positional_id` by their milliseconds and author, so that an export in
//! which a message is unsent names the same one. Exports in HTML have times in the account's language
//! and zone, and are refused.
//!
//! `record` is the two schemas, `mojibake` repairs their texts, `reader` makes messages of them.

mod mojibake;
mod reader;
mod record;
#[cfg(test)]
mod tests;

pub(super) use reader::FORMAT;
