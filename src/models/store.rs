//! How the embedded stores keep recent writes: the log, and the caches of vectors and responses.
//!
//! In: nothing. Out: the options of keyspaces by how they are read, and the limit of a journal. Pure.

use fjall::{KeyspaceCreateOptions, config::FilterPolicy};

/// Bytes of a keyspace that are kept in memory before they are written to a file. The library's default of 64 MiB would
/// add up to hundreds of MiB for the dozen keyspaces that a memory writes while it reads turns.
const UNWRITTEN_BYTES: u64 = 512 << 10;

/// Upper limit of a cache's journals, in bytes: the smallest that the library accepts, an eighth of its default.
pub const CACHE_JOURNAL_BYTES: u64 = 64 << 20;

/// The options of a keyspace that is read by single keys, some of which it may not have: its filters recognise most
/// missing keys without a read. A keyspace keeps the options with which it was created.
pub fn keyspace_options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default().max_memtable_size(UNWRITTEN_BYTES)
}

/// The options of a keyspace that is read only by ranges, for which filters are useless.
pub fn ranges_only() -> KeyspaceCreateOptions {
    keyspace_options().filter_policy(FilterPolicy::disabled())
}

/// The options of a keyspace that is read by single keys, all of which it has: the level that holds nine keys of ten
/// needs no filter.
pub fn known_keys() -> KeyspaceCreateOptions {
    keyspace_options().expect_point_read_hits(true)
}
