//! The service on Kafka.
//!
//! In: a pipeline whose log is on Kafka. Out: what its roles produce. `extract` makes memory records of the partitions
//! that the group assigns to it; `serve` follows the memory topic of every partition and answers questions; `replay`
//! writes topics as Parquet. They run together in one process, or in several that share only the topics. Work that is
//! in flight when a service stops stays in the topics, and another instance does it.
//!
//! `kafka_service` starts a thread for each of: the extraction, `follow_memory`, `question_topic` (with
//! `question_record`, the form of a question's record, `in_flight_questions`, which of them are answered,
//! `forward_wait_list`, those about turns of other partitions, `question_pauses`, `reply_topics` and `reply_sender`),
//! `forget_requests` (requests to forget turns), `apply_retention` (its rules), `shard_assignment` (the shards that the
//! group assigns), `listed_partitions` (where their records lie, for banks that sleep), `instance_announcements` (which
//! instance answers HTTP requests about each bank), `edge_topic`, `replay_topic`, `source_leases` (the live sources that
//! the group assigns); `cluster_retry` is how they retry. `question_client` asks a running service.

mod apply_retention;
mod cluster_retry;
mod edge_topic;
mod follow_memory;
mod forget_requests;
mod forward_wait_list;
mod in_flight_questions;
mod instance_announcements;
mod kafka_service;
mod listed_partitions;
mod log_events;
mod question_client;
mod question_pauses;
mod question_record;
mod question_topic;
mod replay_topic;
mod reply_sender;
mod reply_topics;
mod shard_assignment;
mod source_leases;

use super::{api, error, followed_source, request_trace::question_span, service_state, v1};

pub(super) use kafka_service::run;
pub use question_client::{AskError, ask};
