//! Facebook Messenger and Instagram: the chats of an account, as «Download your information» exports
//! them to JSON or HTML.
//!
//! In: `message_1.json` and its siblings, one chat's folder, a whole account, or the files of chats
//! that are encrypted end to end. Out: messages, oldest first; unsent ones as deletions. Messages have
//! no ids: they get those of `positional_id` by their milliseconds and author, so that an export in
//! which a message is unsent names the same one.
//! Pages have times to the minute or second, in the account's language and zone, so that an export as JSON gives other
//! turns; a chat that is there in both forms is read from the JSON.
//!
//! `record` is the two schemas of JSON, `page` the layouts of HTML, `mojibake` repairs their texts, `reader` makes
//! messages of them.

mod mojibake;
mod page;
mod reader;
mod record;
#[cfg(test)]
mod tests;

pub(super) use reader::FORMAT;
