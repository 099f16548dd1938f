//! A running service on Kafka: turns in, memory kept, questions answered, until stopped.
//!
//! In: a pipeline whose log is on Kafka. Out: what its roles say. `extract` makes memory records of
//! the partitions that the group assigns to it; `serve` follows the memory topic of every partition
//! and answers questions; `replay` writes topics as Parquet. They run side by side in one process,
//! or in several that share nothing but the topics. What is in flight when a service stops stays in
//! the topics, and another instance does it.
//!
//! `service` starts a thread for each of: `extraction`, `follow`, `questions` (with `request`, the
//! form of a question's record, `reply_topics` and `replies`), `edges`, `snapshots`, `replay`, `sources`
//! (with `webhooks`, what platforms send), `http` (how the service is, and how a route is added), `admin`
//! (orders, with `admin_token`); `state` is what they share, `backoff` how they retry. `client` asks a
//! running service, `tap` shows records to people.

mod admin;
mod admin_token;
mod backoff;
mod client;
mod edges;
mod error;
mod extraction;
mod follow;
mod http;
mod questions;
mod replay;
mod replies;
mod reply_topics;
mod request;
mod service;
mod snapshots;
#[cfg(feature = "live")]
mod sources;
mod state;
mod tap;
#[cfg(feature = "live")]
mod webhooks;

pub use admin_token::{AdminAccess, AdminError, admin_access};
pub use client::{AskError, ask};
pub use error::ServeError;
pub use request::{parse_after, parse_as_of};
pub use service::run;
pub use tap::{Lag, TOPICS, Tapped, lag, tap};
