//! A running service: turns in, memory kept, questions answered, until stopped.
//!
//! In: a pipeline. Out: a memory that others reach, until the service is told to stop.
//!
//! `service` runs it, on a log in a directory (`embedded`, with the memory that is `served` there) or on Kafka
//! (`kafka`; `without_kafka` stands in for it in a build without that feature); `state` is what its threads share.
//! `api` has the calls, whatever carries them, `v1` carries them over HTTP, `access` says who may do what, `quota` how
//! much at once, `hosts` checks for whom a request is, `open_routes` has what asks for no token, `console` the page for
//! people and the server of a report, `manager` tells systemd that it has started, and `address` tells the commands of
//! the same machine where it listens; they call it through `reached`, and read its log through `reached_topic`.
//! `platforms` are the chat platforms that it follows, `webhooks` what they send. `subscriptions` are questions that
//! stay. `mcp` gives agents tools on such a memory, `mem0` the routes that Mem0's client calls.
//! `request_trace` has the spans of log lines, `telemetry` the metrics, `recent_questions` how long questions take now,
//! `log_ends` how far the log is, `looks` what is known while it does not answer, and `tap` shows records to people.

pub mod access;
mod address;
pub mod api;
#[cfg(feature = "console")]
mod console;
mod embedded;
mod error;
mod hosts;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(not(feature = "kafka"))]
#[path = "without_kafka.rs"]
mod kafka;
mod log_ends;
mod looks;
mod manager;
mod mcp;
mod mem0;
mod open_routes;
mod platforms;
mod query;
pub mod quota;
mod reached;
mod reached_topic;
mod recent_questions;
mod request_trace;
mod served;
mod service;
mod source_status;
mod state;
pub mod subscriptions;
mod tap;
pub mod telemetry;
mod tls;
mod v1;
mod webhooks;

pub use address::{HttpAddress, address_of, running_address};
#[cfg(feature = "console")]
pub use console::{ReportError, ReportServer, serve_report};
pub use error::ServeError;
#[cfg(feature = "kafka")]
pub use kafka::AskError;
pub use kafka::ask;
pub use mcp::{McpError, McpOptions, serve_stdio};
pub use reached::{ReachError, Reached};
pub use reached_topic::{ReachedBank, reached_bank, reached_topic};
pub use service::run;
pub use tap::{Lag, TOPICS, TappedRecord, lag, tap};
pub use v1::{Needs, RequiredRight, openapi, required_rights};
