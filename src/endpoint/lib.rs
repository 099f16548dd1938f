//! One request to an endpoint that speaks OpenAI's protocol, and what its failure means.
//!
//! In: the body of a request, and a timeout. Out: what the caller reads in the reply, or a [`RequestFailure`]:
//! transient (429, 5xx, a timeout, a broken connection) with the endpoint's `Retry-After`; rejected, which concerns
//! this request alone (too long, filtered); or permanent (a wrong key, a wrong model). Retrying is up to the caller.
//! Redirects are never followed, so that the key reaches no other host, and no error ever shows the key.
//!
//! `agent` is the HTTP client. `client` sends a request, and is the one place that decides what a failure means, for
//! chat, its streams and embeddings alike. `request_failure` says what went wrong, and `suspect_texts` whether a text
//! or its endpoint is the cause; `reply_text` decodes a reply, and `reply_problem` says what is wrong with one of
//! status 200; `backoff` says how long to wait, and `retry_after_gate` until when the endpoint asks not to be called;
//! `endpoint_wait` says whether a thread is waiting. `docs/models.md` has a table of unusual replies.

mod agent;
mod backoff;
mod client;
mod endpoint_wait;
mod reply_problem;
mod reply_text;
mod request_failure;
mod retry_after_gate;
mod suspect_texts;

pub use agent::agent;
pub use backoff::{backoff, retry_after};
pub use client::Endpoint;
pub use endpoint_wait::{EndpointWaitGuard, join_threads};
pub use reply_problem::ReplyProblem;
pub use reply_text::reply_text;
pub use request_failure::{RequestFailure, TextSuspicion, says_too_long};
pub use retry_after_gate::RetryAfterGate;
pub use suspect_texts::{AcceptedReply, LoneText, LoneTextFailure, ProbeOutcome, SuspectTexts, TextHash, TryLimits};
