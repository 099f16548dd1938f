//! Shards, and the threads that step them.
//!
//! In: what callers send through a `shard_handle`. Out: its answers. `shard_thread_pool` steps the shards; a
//! `shard_worker` does what its `shard_schedule` asks for, in slices of work.

pub(super) mod shard_handle;
pub(super) mod shard_schedule;
pub(super) mod shard_thread_pool;
pub(super) mod shard_worker;
