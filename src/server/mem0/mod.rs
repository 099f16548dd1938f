//! The routes of Mem0's platform that its client calls, on our memory.
//!
//! In: requests of `MemoryClient(host=…)`. Out: answers in its forms; a memory there is a turn here. A call that cannot
//! work the same way here answers 501 and never pretends to work; a request that names no entity is refused. A write is
//! answered once reads see it. Rights are those of our tokens. `docs/mem0.md` says what each call does.
//!
//! - `routes`: maps paths to calls.
//! - `mem0_calls`: the calls, on [`super::api`].
//! - `request_fields`: reads a request, field by field.
//! - `entity_ids`: entities as banks, memories as turns.
//! - `filters`: filters as alternatives of entities and conditions.
//! - `metadata`: a memory's metadata, which earlier builds kept in an attachment of its turn.
//! - `mem0_failure`: why a request fails.

mod entity_ids;
mod filters;
mod mem0_calls;
mod mem0_failure;
mod metadata;
mod request_fields;
mod routes;

pub(super) use routes::{problems_as_json, routes};
