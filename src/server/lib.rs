//! A running service: turns in, memory kept, questions answered, until stopped.
//!
//! In: a pipeline. Out: a memory that others reach, until the service is asked to stop.
//!
//! `service` runs it, on a log in a directory (`embedded_service`, whose open memory is a `served_memory`) or on Kafka
//! (`kafka`; `without_kafka` replaces it in a build without that feature). `service_state` is what its threads share.
//! `api` has the calls of every interface: `v1` serves them over HTTP, `mcp` as tools for agents, `mem0` as the routes
//! of Mem0's client. `access` decides who may do what, `quota` limits how much is in use at once, `allowed_hosts`
//! checks a request's Host and Origin, `public_routes` has the routes without a token, `console` the page for people
//! and the server of a report. `systemd_notify` tells systemd that the service has started. `http_address` tells the
//! commands on the same machine where it listens; they call it through `memory_http_client`, and read its log through
//! `http_topic_reader`. `followed_source` follows chat platforms, and `webhooks` takes what they send. `subscriptions`
//! are questions and banks that are followed. `request_trace` has the spans of log lines, `telemetry` the metrics,
//! `recent_questions` the times of recent questions, `log_ends` how far the log is, `single_flight` what is known while
//! it does not answer, and `topic_tap` shows records to people.

pub mod access;
mod allowed_hosts;
pub mod api;
#[cfg(feature = "console")]
mod console;
mod embedded_service;
mod error;
mod followed_source;
mod http_address;
mod http_topic_reader;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(not(feature = "kafka"))]
#[path = "without_kafka.rs"]
mod kafka;
mod log_ends;
mod log_events;
mod mcp;
mod mem0;
mod memory_http_client;
mod public_routes;
mod query_string;
pub mod quota;
mod recent_questions;
mod request_trace;
mod served_memory;
mod service;
mod service_state;
mod single_flight;
mod source_status;
pub mod subscriptions;
mod systemd_notify;
pub mod telemetry;
mod tls;
mod topic_tap;
mod v1;
mod webhooks;

#[cfg(feature = "console")]
pub use console::{ReportServer, ReportServerError, serve_report};
pub use error::ServeError;
pub use http_address::{HttpAddress, address_of, running_address};
pub use http_topic_reader::{HttpBankReader, open_http_bank, open_http_topic};
#[cfg(feature = "kafka")]
pub use kafka::AskError;
pub use kafka::ask;
pub use mcp::{McpError, McpOptions, serve_stdio};
pub use memory_http_client::{MemoryHttpClient, MemoryHttpError};
pub use service::run;
pub use topic_tap::{ExtractionLag, TOPICS, TappedRecord, lag, tap};
pub use v1::{RequiredRight, RouteRight, openapi, required_rights};
