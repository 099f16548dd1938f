//! A running service: turns in, memory kept, questions answered, until stopped.
//!
//! In: a pipeline. Out: a memory that others reach, until the service is told to stop.
//!
//! `embedded` is the service on a log in a directory, which is reached over HTTP, and `kafka` the service on
//! Kafka. `api` has the calls, whatever carries them, `v1` carries them over HTTP, `access` says who may do
//! what, `quota` how much at once, `hosts` checks for whom a request is, and `address` tells the commands of the same directory where
//! it listens. `sources` are the chat platforms that a service on either log follows, `webhooks` what they
//! send. `subscriptions` are questions that stay. `mcp` gives agents tools on such a memory, `mem0` the routes
//! that Mem0's client calls. `admin_token` guards orders, and `tap` shows records to people. `without_kafka`
//! and `without_live` stand in for the service and the sources in a build without these features.

pub mod access;
mod address;
mod admin_token;
pub mod api;
mod embedded;
mod error;
mod hosts;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "mcp")]
mod mcp;
mod mem0;
pub mod quota;
mod reached;
mod served;
#[cfg(feature = "live")]
mod sources;
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
pub use embedded::run_embedded;
pub use error::ServeError;
#[cfg(feature = "kafka")]
pub use kafka::{AskError, ask, run};
#[cfg(feature = "mcp")]
pub use mcp::{McpError, McpOptions, serve_stdio};
pub use reached::{ReachError, Reached};
pub use tap::{Lag, TOPICS, Tapped, lag, tap};
pub use v1::openapi;
#[cfg(not(feature = "kafka"))]
pub use without_kafka::{ask, run};
