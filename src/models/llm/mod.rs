//! One client for chat endpoints that speak OpenAI's protocol.
//!
//! In: an [`LlmRequest`], which has one of six contracts, the text to read, what that text was taken from, and a
//! deadline. Out: a value that matches the contract's schema and that the caller accepted, or an [`LlmError`]. A reply
//! that does not match is repaired once: the model learns what was wrong. A paid response is cached by bank and
//! content, so nothing is paid for twice. The text is data: no reply is ever executed, and the model is never offered a
//! tool.
//!
//! The files, from the outside in:
//! - `extractor`, `planner`, `answer`: what the model is asked: to extract units, to plan, to answer in words.
//! - `client`: cache, repair, and eviction when turns change; `request`, `error`: its input and failures.
//! - `contract`: prompts and schemas; `reply`: a response checked against its schema (`schema_check`); `stream_field`:
//!   a field of a reply that is still being written; `thought_filter`: the thoughts that a model writes before it;
//!   `repetition`: stops a reply that repeats itself; `model_time_span`: times as models write them.
//! - `response_cache`: responses on disk; `in_flight_requests`: one request at a time for the same content.
//! - `lone_chat_request`: whether a text or the endpoint is the cause of a failure.
//! - `transport`: retries and backoff; `endpoint_outage`: failing fast while the endpoint is down; `limits`:
//!   concurrency, tokens per minute, and caps on spending; `chat_completions`: the protocol.
//! - `cost`: what was spent; `tokens`: what a text will cost, and whether it fits into the model's context.

mod answer;
mod chat_completions;
mod client;
mod contract;
mod cost;
mod endpoint_outage;
mod error;
pub mod extractor;
mod in_flight_requests;
mod limits;
mod lone_chat_request;
mod model_time_span;
mod planner;
mod repetition;
mod reply;
mod request;
mod response_cache;
mod schema_check;
mod stream_field;
mod thought_filter;
mod tokens;
mod transport;

pub use answer::{Citation, LlmAnswer, answer};
pub use client::{LlmClient, remove_cache};
pub use contract::Contract;
pub use cost::{ContractExpense, UsageMeter, WindowExpense};
pub use error::LlmError;
pub use extractor::LlmExtractor;
pub use model_time_span::ModelTimeSpan;
pub use planner::LlmPlanner;
pub use request::{LlmRequest, ReplyPiece, RequestDependency};
pub use tokens::{fits, prompt_tokens, tokens};
