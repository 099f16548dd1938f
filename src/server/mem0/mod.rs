//! The routes of Mem0's platform that its client calls, on a memory of ours.
//!
//! In: requests of `MemoryClient(host=…)`. Out: answers in its forms; a memory there is a turn here. What cannot
//! be the same answers 501 and never pretends; a request that names no entity is refused. A write is answered
//! once reads see it. Rights are those of our tokens. `docs/mem0.md` says what each call does.
//!
//! - `routes`: which path is which call.
//! - `calls`: the calls, on [`super::api`].
//! - `fields`: what a request says, field by field.
//! - `ids`: entities as banks, memories as turns.
//! - `metadata`: what a client notes beside a memory, as an attachment of its turn.
//! - `failure`: why a request fails.

mod calls;
mod failure;
mod fields;
mod ids;
mod metadata;
mod routes;

pub(super) use routes::{problems_as_json, routes};
