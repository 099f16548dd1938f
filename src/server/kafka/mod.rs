//! The service on Kafka.
//!
//! In: a pipeline whose log is on Kafka. Out: what its roles produce. `extract` makes memory records of the partitions
//! that the group assigns to it; `serve` follows the memory topic of every partition and answers questions; `replay`
//! writes topics as Parquet. They run together in one process, or in several that share only the topics. Work that is
//! in flight when a service stops stays in the topics, and another instance does it.
//!
//! `service` starts a thread for each of: the extraction, `follow`, `questions` (with `request`, the form of a
//! question's record, `in_flight`, which of them are answered, `forwarded`, those about turns of other partitions,
//! `pauses`, `reply_topics` and `replies`), `forgets` (requests to forget turns), `retention` (its rules), `hold` (the
//! shards that the group assigns), `instances` (which instance answers HTTP requests about each bank), `edges`,
//! `replay`, `leases` (the live sources that the group assigns); `cluster_retry` is how they retry. `client` asks a
//! running service.

mod client;
mod cluster_retry;
mod edges;
mod follow;
mod forgets;
mod forwarded;
mod hold;
mod in_flight;
mod instances;
mod leases;
mod pauses;
mod questions;
mod replay;
mod replies;
mod reply_topics;
mod request;
mod retention;
mod service;

use super::{api, error, platforms, request_trace::question_span, state, v1};

pub use client::{AskError, ask};
pub(super) use service::run;
