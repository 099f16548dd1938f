//! Reads turns; each origin has a module of its own.
//!
//! In: a file, a stream, or a platform. Out: turn events in the origin's order, and dead letters for records that were
//! rejected; both in batches. A bad record never ends a source or causes a panic, and its dead letter says where it
//! was; only an origin that cannot be read at all is an error. Only `live` reads a clock or a socket.
//!
//! `jsonl` reads one format and describes it in a constant `FORMAT`; so does `slack`, which reads a chat platform's
//! export and builds on `chat`, the part that all such platforms share. `formats` lists these constants and recognises
//! the format of a file. `turn_source` is the interface; `summary` says what a source holds; `turn_queue` holds a file
//! that is read whole; `lines` splits a file into lines; `compression` unpacks it; `utf16` decodes it; `live` follows
//! platforms live; `sqlite_copy` opens
//! a copy of a database; `end_mark` closes a finished origin; `zone` reads times without a time zone.

mod chat;
mod compression;
mod end_mark;
mod error;
mod format;
mod formats;
mod lines;
pub mod live;
#[cfg(any(feature = "imessage", feature = "opencode"))]
mod sqlite_copy;
mod summary;
mod trimmed_text;
mod turn_queue;
mod turn_source;
mod utf16;
mod zone;

mod discord;
mod gitter;
mod imessage;
mod irc;
mod jsonl;
mod matrix;
mod mattermost;
mod mbox;
mod messenger;
mod signal;
mod slack;
mod teams;
mod telegram;
mod transcripts;
mod whatsapp;
mod zulip;

#[cfg(test)]
mod tests;

pub use chat::{FileSample, has_json_keys};
pub use end_mark::end_mark;
pub use error::{SourceError, unreadable};
pub use format::{SourceFormat, TurnSourceOpener};
pub use formats::{AGENTS, AUTO, FORMATS, format, format_names, open, open_as};
pub use jsonl::JsonlSource;
pub use summary::{BankSummary, SourceSummary};
pub use transcripts::{AgentPauses, DirectoryBank, bank_of_directory};
pub use trimmed_text::{TrimmedKind, TrimmedText};
pub use turn_queue::{TurnQueue, text_of};
pub use turn_source::{SourceBatch, SourceCounts, SourceProgress, TurnSource};
pub use zone::{Zone, zone_notice};
