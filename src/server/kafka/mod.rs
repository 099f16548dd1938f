//! The service on Kafka.
//!
//! In: a pipeline whose log is on Kafka. Out: what its roles say. `extract` makes memory records of
//! the partitions that the group assigns to it; `serve` follows the memory topic of every partition
//! and answers questions; `replay` writes topics as Parquet. They run side by side in one process,
//! or in several that share nothing but the topics. What is in flight when a service stops stays in
//! the topics, and another instance does it.
//!
//! `service` starts a thread for each of: `extraction`, `follow`, `questions` (with `request`, the
//! form of a question's record, `pauses`, `reply_topics` and `replies`), `hold` (the shards that the
//! group assigns), `instances` (where each bank is asked over HTTP), `edges`, `snapshots`, `replay`, `leases`
//! (the live sources that the group assigns), `http` (how the service is, and how a route is added), `admin`
//! (orders) with `admin_files`; `state` is what they share, `cluster_retry` how they retry. `client` asks a running service.

mod admin;
mod admin_files;
mod client;
mod cluster_retry;
mod edges;
mod extraction;
mod follow;
mod hold;
mod http;
mod instances;
mod leases;
mod pauses;
mod questions;
mod replay;
mod replies;
mod reply_topics;
mod request;
mod service;
mod snapshots;
mod state;

use super::{api, error, hosts, platforms, v1, webhooks};

pub use client::{AskError, ask};
pub use service::run;
