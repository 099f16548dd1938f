//! Matrix rooms, as Element exports them to JSON: one room a file, alone or with its media in an
//! archive.
//!
//! In: `{"room_name", …, "messages": [event]}`, or a bare array or a `/messages` page of events. Out:
//! messages of each room, oldest first, each in its last wording; redacted ones as deletions.
//! Encrypted events that the exporting client could not read are counted, never guessed at. The
//! export in HTML has neither ids nor edits and is refused.
//!
//! `event` is the protocol's records, `reader` makes messages of them, and `spoken` chat items of these.
//! `followed` reads the events of rooms as they come.

mod event;
mod followed;
mod reader;
mod spoken;
#[cfg(test)]
mod tests;

pub(super) use followed::{Followed, Rooms};
pub(super) use reader::FORMAT;
