//! Shards, and the threads that step them.
//!
//! In: what callers send through a `handle`. Out: its answers. `threads` steps the shards; a `worker` does what its
//! `schedule` asks for, in slices of work.

pub(super) mod handle;
pub(super) mod schedule;
pub(super) mod threads;
pub(super) mod worker;
