//! How the embedded stores hold what was written lately: the log, and the caches of vectors and responses.
//!
//! In: nothing. Out: the options of keyspaces by how they are read, and the limit of a journal. Pure.

use fjall::{KeyspaceCreateOptions, config::FilterPolicy};

/// Bytes of a keyspace that lie in memory before they become a file. The library's own 64 MiB would be
/// hundreds for the dozen keyspaces that a memory writes while it takes in turns.
const UNWRITTEN_BYTES: u64 = 512 << 10;

/// Upper limit of the journals of a cache, in bytes: the least that the library takes, an eighth of its own.
pub const CACHE_JOURNAL_BYTES: u64 = 64 << 20;

/// The options of a keyspace that is asked for single keys, which it may not have: its filters know most of those
/// without a look. A keyspace keeps the options with which it was made.
pub fn keyspace_options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default().max_memtable_size(UNWRITTEN_BYTES)
}

/// The options of a keyspace that is read by ranges alone, which no filter serves.
pub fn ranges_only() -> KeyspaceCreateOptions {
    keyspace_options().filter_policy(FilterPolicy::disabled())
}

/// The options of a keyspace that is asked for single keys, all of which it has: the level that holds nine of ten needs
/// no filter.
pub fn known_keys() -> KeyspaceCreateOptions {
    keyspace_options().expect_point_read_hits(true)
}
