//! What this crate writes to the log: one function per event, with its level, its fields and its words.
//!
//! In: what happened. Out: a log line. No line holds a word of what was said.

use tracing::{debug, error, info, warn};

use super::access::AccessError;

/// A line of the audit log cannot be written.
pub(crate) fn audit_log_failed(problem: &AccessError) {
    error!("the audit log: {problem}");
}

/// The memory reflects its log, on a log in a directory.
pub(crate) fn memory_ready(seconds: f64, directory: std::path::Display<'_>) {
    info!(seconds, %directory, "ready: the memory reflects its log");
}

/// A source of the pipeline file cannot be read further.
pub(crate) fn source_failed(source: std::path::Display<'_>, problem: &str) {
    error!(%source, problem, "the source is not read to its end");
}

/// A source reports a warning about its input.
pub(crate) fn source_noticed(source: &str, notice: &str) {
    warn!(source, "{notice}");
}

/// The service stopped while it read a source.
pub(crate) fn source_left_unread(source: &str, turns: usize) {
    info!(source, turns, "stopped before the end of the source; the next run reads it again");
}

/// A source was read to its end.
pub(crate) fn source_read(source: &str, turns: usize, rejects: usize) {
    info!(source, turns, rejects, "the source is read to its end");
}

/// A live source is followed from now on.
pub(crate) fn source_followed(source: &str) {
    info!(source, "the source is followed");
}

/// A live source has something to say.
pub(crate) fn live_source_noticed(source: &str, notice: &str) {
    warn!(source, "{notice}");
}

/// A live source was interrupted; said once per problem.
pub(crate) fn source_interrupted(source: &str, problem: &str, seconds: f64) {
    warn!(source, problem, seconds, "the source is interrupted; it is opened again");
}

/// A client of the tools sends more than it reads.
pub(crate) fn client_slow(requests: usize) {
    warn!(requests, "the client sends more than it reads; its next message waits");
}

/// A message of a client of the tools was refused for its length.
pub(crate) fn message_too_long(bytes: usize) {
    warn!(bytes, "a message of the client is too long, and was refused");
}

/// The service ended while a request ran.
pub(crate) fn request_left_open() {
    warn!("the service ended while a request ran; what that request acknowledged is kept");
}

/// A question was refused. `ripplemem_questions_total` and `ripplemem_answer_seconds` count it.
pub(crate) fn question_refused(outcome: &str, seconds: f64) {
    debug!(outcome, seconds, "question refused");
}

/// A question was answered.
pub(crate) fn question_answered(outcome: &str, seconds: f64, supported: bool, units: usize, tokens: u64) {
    debug!(outcome, seconds, supported, units, tokens, "question answered");
}

/// systemd cannot be notified of the start.
pub(crate) fn notification_failed(problem: &std::io::Error) {
    warn!(%problem, "NOTIFY_SOCKET is set and cannot be written to; systemd does not hear of the start");
}

/// A token file cannot be used.
pub(crate) fn request_denied(problem: &str) {
    warn!("{problem}");
}

/// The limit on open files lowers the limits of subscriptions.
pub(crate) fn file_limit_low(connections: usize, subscriptions: usize, subscriptions_of_token: usize) {
    warn!(
        connections,
        subscriptions,
        subscriptions_of_token,
        "the limit on open files allows fewer than http.subscriptions and http.subscriptions_of_token; raise \
             `ulimit -n`, or lower them"
    );
}

/// No request can be allowed.
pub(crate) fn no_token_valid() {
    warn!("access.token_file holds no valid token: every request is refused until `ripplemem token add` makes one");
}

/// The listener takes requests.
pub(crate) fn listening(address: std::net::SocketAddr, url: String) {
    info!(%address, url, "listening");
}

/// The memory of the tools on standard output cannot be opened or closed.
pub(crate) fn tools_failed(problem: &str) {
    error!("{problem}");
}

/// Another process has the directory open, and the tools on standard output ask it.
pub(crate) fn directory_held(directory: std::path::Display<'_>, address: &str, holder: &str) {
    info!(%directory, address, "{holder} has the directory open; it is asked");
}

/// A service begins to start.
pub(crate) fn service_starting(pipeline: &str, on_kafka: bool, directory: std::path::Display<'_>) {
    info!(version = env!("CARGO_PKG_VERSION"), pipeline, on_kafka, %directory, "starting");
}
