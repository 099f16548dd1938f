//! Matrix rooms, as Element exports them to JSON: one room per file, alone or with its media in an archive.
//!
//! In: `{"room_name", …, "messages": [event]}`, or a bare array or a `/messages` page of events. Out: messages of each
//! room, oldest first, each as last edited; redacted ones as deletions. Encrypted events that the exporting client
//! could not read are counted. HTML exports have neither ids nor edits and are refused.
//!
//! `event` defines the protocol's records, `reader` makes messages from them, and `final_message` makes chat items from
//! the messages. `live_rooms` reads the events of rooms live.

mod event;
mod final_message;
mod live_rooms;
mod reader;
#[cfg(test)]
mod tests;

pub(super) use live_rooms::{MatrixEventOutcome, MatrixLiveRooms};
pub(super) use reader::FORMAT;
