//! iMessage: what imessage-exporter writes as text.
//!
//! In: `imessage-exporter -f txt`'s folder, or one of its files. Out: messages, edits as versions,
//! deletions, and skips. Apple's database itself (`chat.db`) is never read: the error names the program
//! that does.
//!
//! `time` reads the exporter's dates and spans of time, `block` tells what the lines of one message are,
//! `reader` splits files into messages.

mod block;
mod reader;
mod time;

#[cfg(test)]
mod tests;

pub(super) use reader::FORMAT;
