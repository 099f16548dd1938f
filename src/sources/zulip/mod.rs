//! Zulip's export: an archive or a folder with `realm.json` and `messages-*.json`.
//!
//! In: a folder, a `.tar.gz`, a `.tar`, a zip archive or one file of messages; also the replies of the `messages`
//! endpoint of Zulip's API. Out: the messages of channels and the direct messages, oldest first. A topic is a thread.
//! Without `realm.json`, accounts and channels are named by their ids, and it is not known which channels are private:
//! only a single file that the user named is read as open.
//!
//! `realm` reads accounts and channels, `message` reads a message of the export or of the API, `reader` puts messages
//! together.

mod message;
mod reader;
mod realm;
#[cfg(test)]
mod tests;

pub(super) use reader::FORMAT;
