//! One client for chat endpoints that speak OpenAI's protocol.
//!
//! In: an [`LlmRequest`], which has one of six contracts, the text to read, what that text was taken from, and a
//! deadline. Out: a value that matches the contract's schema and that the caller accepted, or an [`LlmError`]. A reply
//! that does not match is repaired once: the model is told what was wrong. A paid response is cached by bank and
//! content, so nothing is paid for twice. The text is data: no reply is ever executed, and the model is never offered a
//! tool.
//!
//! The files, from the outside in:
//! - `extractor`, `planner`, `answer`: what the model is asked: to extract units, to plan, to answer in words.
//! - `client`: cache, repair, and eviction when turns change; `request`, `error`: its input and failures.
//! - `contract`: prompts and schemas; `reply`: a response checked against its schema (`schema_check`); `stream_field`:
//!   a field of a reply that is still being written; `thoughts`: the thoughts that a model writes before it;
//!   `repetition`: stops a reply that repeats itself; `span`: times as models write them.
//! - `cache`: responses on disk; `in_flight`: one request at a time for the same content.
//! - `lone_request`: whether a text or the endpoint is the cause of a failure.
//! - `transport`: retries and backoff; `outage`: failing fast while the endpoint is down; `limits`: concurrency, tokens
//!   per minute, and caps on spending; `wire`: the protocol.
//! - `cost`: what was spent; `tokens`: what a text will cost, and whether it fits into the model's context.

mod answer;
mod cache;
mod client;
mod contract;
mod cost;
mod error;
pub mod extractor;
mod in_flight;
mod limits;
mod lone_request;
mod outage;
mod planner;
mod repetition;
mod reply;
mod request;
mod schema_check;
mod span;
mod stream_field;
mod thoughts;
mod tokens;
mod transport;
mod wire;

pub use answer::{Answer, Citation, answer};
pub use client::{Llm, remove_cache};
pub use contract::Contract;
pub use cost::{Expense, Meter, WindowExpense};
pub use error::LlmError;
pub use extractor::LlmExtractor;
pub use planner::LlmPlanner;
pub use request::{DependsOn, LlmRequest, Streamed};
pub use span::TimeSpan;
pub use tokens::{fits, prompt_tokens, tokens};
