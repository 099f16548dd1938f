//! The log in a local directory, for one process at a time.
//!
//! In: turn events and transactions. Out: records by offset. Guarantees:
//! - A write is atomic, also across `kill -9` and power cuts.
//! - With `fsync = "commit"` a write is synced to the disk before it is acknowledged. Appends that wait for a
//!   write share the next one. With `"system"` the operating system syncs later: a killed process loses nothing,
//!   a power cut may lose the writes of the last seconds, the newest first.
//! - If a write fails, its outcome is unknown: the next start finds it whole or not at all. Until then the log refuses
//!   writes.
//! - Loss is never silent. Every write has a number; the log refuses to open if a number in between is
//!   missing, or if there are fewer writes than the file `synced_write_count` counts (with `"system"`: than
//!   at the last orderly close). Deleting that file accepts the loss of the last writes.
//! - A second writer, another partition count and another format are refused.
//!
//! Layout: `store/` (fjall), `synced_write_count`, `writer.lock`. Keyspaces of the store: `turns`,
//! `memory`, `dead_letters` (partition and offset to record), `memory_index` (partition and key to
//! the offset of the key's record), `positions` (ends, read positions, and entries beside the records), `writes`
//! (numbers of the latest writes), `meta`. Long records of the memory lie apart from the tables, in files of `blobs`.
//! The transaction that supersedes a memory record also removes it. A deletion stays as a marker for readers that lag,
//! until the next start at most. A log that stays open is cleaned after writes, some rows at a time. Each later
//! generation of the memory has separate keyspaces, such as `memory-2` and `memory_index-2`; `meta` holds the number of
//! the current generation.
//!
//! - `embedded_log`: [`EmbeddedLog`], the implementation of [`super::Log`]
//! - `append_queue`: the queue of appends that the next write takes together
//! - `marker_cleaner`: which markers may be removed while the log is open
//! - `erasing`: replaces records in place, and removes old bytes from the disk; `journal`: reads and empties a journal
//! - `store`: opens and checks the store; `store_manifest`: checks the keyspaces' manifests first
//! - `synced_write_count`: the count of synced writes
//! - `embedded_topic`: one topic as a view shows it
//! - `record_encoding`: how records, keys and index entries are encoded

mod append_queue;
mod embedded_log;
mod embedded_topic;
mod erasing;
#[cfg(test)]
mod erasing_tests;
mod file_sentinels;
mod journal;
mod marker_cleaner;
mod record_encoding;
mod source_writer;
mod store;
mod store_manifest;
mod synced_write_count;

#[cfg(test)]
mod tests;

pub use embedded_log::EmbeddedLog;
pub(super) use embedded_topic::EmbeddedTopic;
pub use journal::next_item as next_journal_item;
pub(super) use source_writer::{embedded_salt, made_embedded_salt};
