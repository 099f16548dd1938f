//! How the embedded stores hold what was written lately: the log, and the caches of vectors and responses.
//!
//! In: nothing. Out: the options of a keyspace, and the limit of a journal. Pure.

use fjall::KeyspaceCreateOptions;

/// Bytes of a keyspace that lie in memory before they become a file. The library's own 64 MiB would be
/// hundreds for the dozen keyspaces that a memory writes while it takes in turns.
const UNWRITTEN_BYTES: u64 = 512 << 10;

/// Upper limit of the journals of a cache, in bytes: the least that the library takes, an eighth of its own.
pub const CACHE_JOURNAL_BYTES: u64 = 64 << 20;

/// The options of every keyspace. A keyspace keeps those with which it was made.
pub fn keyspace_options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default().max_memtable_size(UNWRITTEN_BYTES)
}
