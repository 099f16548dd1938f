//! The query queue of all transports: questions wait here, and are answered fairly or refused (decision 32).
//!
//! In: a question with its deadline, from any transport. Out: evidence, or the error that says why there is none.
//! Tokens take turns, and so do banks; a bank's questions are answered in order. A question that waits for a turn, asks
//! about the past or is long occupies none of the usual threads. A question that no one waits for any more costs
//! nothing. Never waits without a bound, and never lets a panic end more than its question.
//!
//! - `query_request`: a question as a transport submits it.
//! - `fair_queue`: decides which question is next.
//! - `fair_read_limiter`: permits for reads that are not questions, shared in the same way.
//! - `answer_order`: delivers a bank's answers in order.
//! - `query_queue_state`: all questions that wait, under one lock.
//! - `answer_threads`: the threads that answer questions.
//! - `refusal`: the refusal that a transport sends.

mod answer_order;
mod answer_threads;
mod fair_queue;
mod fair_read_limiter;
mod query_queue_state;
mod query_request;
mod refusal;

use super::{
    AnswerStage, AnswerStageTimes, Cancellation, CancellationReason, PipelineError, Replica, bank_sleep::charged_to,
    forgotten_since::count_forgotten_since, timed,
};

pub use answer_threads::{QueryQueue, QueryQueueLoad};
pub use fair_queue::QueueKey;
pub use fair_read_limiter::{FairReadLimiter, ReadPermit};
pub use query_request::{QueryRequest, parse_after, parse_as_of};
pub use refusal::refusal;

#[cfg(test)]
mod tests;
