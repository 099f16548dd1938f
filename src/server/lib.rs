//! A running service: turns in, memory kept, questions answered, until stopped.
//!
//! In: a pipeline. Out: a memory that others reach, until the service is told to stop.
//!
//! `embedded` is the service on a log in a directory, which is reached over HTTP, and `kafka` the service on
//! Kafka. `api` has the calls, whatever carries them, `v1` carries them over HTTP, `access` says who may do
//! what, `quota` how much at once, `hosts` checks for whom a request is, and `address` tells the commands of the same directory where
//! it listens. `platforms` are the chat platforms that a service on either log follows, `webhooks` what they
//! send. `subscriptions` are questions that stay. `mcp` gives agents tools on such a memory, `mem0` the routes
//! that Mem0's client calls. `admin_token` guards orders, and `tap` shows records to people. `without_kafka`
//! stands in for the service in a build without that feature.

pub mod access;
mod address;
mod admin_token;
pub mod api;
mod embedded;
mod error;
mod hosts;
#[cfg(feature = "kafka")]
mod kafka;
mod mcp;
mod mem0;
mod platforms;
pub mod quota;
mod reached;
mod served;
pub mod subscriptions;
mod tap;
pub mod telemetry;
mod tls;
mod v1;
mod webhooks;
#[cfg(not(feature = "kafka"))]
mod without_kafka;

pub use address::{HttpAddress, address_of};
pub use admin_token::{AdminAccess, AdminError, admin_access};
pub use embedded::run_embedded;
pub use error::ServeError;
#[cfg(feature = "kafka")]
pub use kafka::{AskError, ask, run};
pub use mcp::{McpError, McpOptions, serve_stdio};
pub use reached::{ReachError, Reached};
pub use tap::{Lag, TOPICS, Tapped, lag, tap};
pub use v1::openapi;
#[cfg(not(feature = "kafka"))]
pub use without_kafka::{ask, run};
