//! iMessage: the text files that imessage-exporter writes, and Messages' database itself.
//!
//! In: `imessage-exporter -f txt`'s folder, or one of its files; or `chat.db`. Out: messages, edits as
//! versions, deletions, and skips. The user's database is never written to: a copy of it is read.
//!
//! `reader` recognises what a path holds and splits texts into messages, `time` reads the exporter's dates and time
//! spans, `block` reads the lines of one message. `database` reads `chat.db`; a build without the feature `imessage`
//! refuses it in `without_database`.

mod block;
#[cfg(feature = "imessage")]
mod database;
mod reader;
mod time;
#[cfg(not(feature = "imessage"))]
mod without_database;

#[cfg(test)]
mod tests;

pub(super) use reader::FORMAT;
