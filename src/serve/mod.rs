//! A running service: turns in, memory kept, questions answered, until stopped.
//!
//! `embedded` is the service on a log in a directory, which is reached over HTTP: `api` has the calls,
//! whatever carries them, `v1` carries them over HTTP, `hosts` checks for whom a request is, and `address`
//! tells the commands of the same directory where it listens. `sources` are the chat platforms that a service
//! on either log follows, `webhooks` what they send. `subscriptions` are questions that stay. `mcp` gives
//! agents tools on such a memory, `mem0` the routes that Mem0's client calls. All other files are the service
//! on Kafka.
//!
//! In: a pipeline whose log is on Kafka. Out: what its roles say. `extract` makes memory records of
//! the partitions that the group assigns to it; `serve` follows the memory topic of every partition
//! and answers questions; `replay` writes topics as Parquet. They run side by side in one process,
//! or in several that share nothing but the topics. What is in flight when a service stops stays in
//! the topics, and another instance does it.
//!
//! `service` starts a thread for each of: `extraction`, `follow`, `questions` (with `request`, the
//! form of a question's record, `pauses`, `reply_topics` and `replies`), `hold` (the shards that the
//! group assigns), `edges`, `snapshots`, `replay`, `leases` (the live sources that the group assigns),
//! `http` (how the service is, and how a route is added), `admin` (orders, with `admin_token`), `access`
//! (who may do what); `state` is what they share, `backoff` how they retry. `client` asks a running
//! service, `tap` shows records to people. `without_kafka` and `without_live` stand in for the service and the
//! sources in a build without these features.

pub mod access;
mod address;
#[cfg(feature = "kafka")]
mod admin;
mod admin_token;
pub mod api;
#[cfg(feature = "kafka")]
mod backoff;
#[cfg(feature = "kafka")]
mod client;
#[cfg(feature = "kafka")]
mod edges;
mod embedded;
mod error;
#[cfg(feature = "kafka")]
mod extraction;
#[cfg(feature = "kafka")]
mod follow;
#[cfg(feature = "kafka")]
mod hold;
mod hosts;
#[cfg(feature = "kafka")]
mod http;
#[cfg(feature = "kafka")]
mod instances;
#[cfg(all(feature = "kafka", feature = "live"))]
mod leases;
#[cfg(feature = "mcp")]
mod mcp;
mod mem0;
#[cfg(feature = "kafka")]
mod pauses;
#[cfg(feature = "kafka")]
mod questions;
mod reached;
#[cfg(feature = "kafka")]
mod replay;
#[cfg(feature = "kafka")]
mod replies;
#[cfg(feature = "kafka")]
mod reply_topics;
#[cfg(feature = "kafka")]
mod request;
mod served;
#[cfg(feature = "kafka")]
mod service;
#[cfg(feature = "kafka")]
mod snapshots;
#[cfg(feature = "live")]
mod sources;
#[cfg(feature = "kafka")]
mod state;
pub mod subscriptions;
mod tap;
mod tls;
mod v1;
#[cfg(feature = "live")]
mod webhooks;
#[cfg(not(feature = "kafka"))]
mod without_kafka;
#[cfg(not(feature = "live"))]
mod without_live;

pub use address::{HttpAddress, address_of};
pub use admin_token::{AdminAccess, AdminError, admin_access};
#[cfg(feature = "kafka")]
pub use client::{AskError, ask};
pub use embedded::run_embedded;
pub use error::ServeError;
#[cfg(feature = "mcp")]
pub use mcp::{McpError, McpOptions, serve_stdio};
pub use reached::{ReachError, Reached};
#[cfg(feature = "kafka")]
pub use service::run;
pub use tap::{Lag, TOPICS, Tapped, lag, tap};
pub use v1::openapi;
#[cfg(not(feature = "kafka"))]
pub use without_kafka::{ask, run};
