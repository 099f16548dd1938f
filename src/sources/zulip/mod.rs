//! Zulip's export: an archive or a folder with `realm.json` and `messages-*.json`.
//!
//! In: a folder, a `.tar.gz`, a `.tar`, a zip archive or one file of messages; also what the
//! messages call of Zulip's API returns. Out: the messages of channels and the direct messages, oldest
//! first. A topic is a thread. Without `realm.json` accounts and channels keep their numbers as
//! names, and which channels are private is not known: only a file that is named alone is read as
//! open.
//!
//! `realm` reads accounts and channels, `message`
//! is a message of the export or of the API, `reader` puts them together.

mod message;
mod reader;
mod realm;
#[cfg(test)]
mod tests;

pub(super) use reader::FORMAT;
