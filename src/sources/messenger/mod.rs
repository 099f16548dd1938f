//! Facebook Messenger and Instagram: the chats of an account, as «Download your information» exports
//! them to JSON or HTML.
//!
//! In: `message_1.json` and its siblings, one chat's folder, a whole account, or the files of end-to-end encrypted
//! chats. Out: messages, oldest first; unsent ones as deletions. Messages have no ids: `PositionalIds` makes them from
//! milliseconds and author, so that a message keeps its id in an export in which it is unsent. Pages state times to the
//! minute or second, in the account's language and zone, so a JSON export of the same chat produces different turns. A
//! chat that is present in both forms is read from the JSON.
//!
//! `record` reads the two JSON schemas, `html_page` reads the HTML layouts, `mojibake` repairs texts, `reader` makes
//! messages from them.

mod html_page;
mod mojibake;
mod reader;
mod record;
#[cfg(test)]
mod tests;

pub(super) use reader::FORMAT;
