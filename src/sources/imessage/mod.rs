//! iMessage: what imessage-exporter writes as text, and Messages' database itself.
//!
//! In: `imessage-exporter -f txt`'s folder, or one of its files; or `chat.db`. Out: messages, edits as
//! versions, deletions, and skips. The user's database is never written to: a copy of it is read.
//!
//! `reader` says what a path is and splits texts into messages, `time` reads the exporter's dates and spans
//! of time, `block` tells what the lines of one message are. `database` reads `chat.db`; a build without the
//! feature `imessage` refuses it in `without_database`.

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
