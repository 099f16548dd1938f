//! One front for every transport: questions wait here, are answered fairly, or are refused.
//!
//! In: a question with its deadline, from any transport. Out: evidence, or the error that says why
//! there is none. Banks take turns, and a bank's questions are answered in their order. A question
//! that waits for a turn, asks about the past or is long occupies no thread of the usual ones. What
//! nobody waits for any more costs nothing. Never: a wait without a bound, or a panic that ends more
//! than its question.
//!
//! - `asked`: a question as a transport hands it over.
//! - `fair_queue`: whose question is next.
//! - `bank_order`: answers of a bank that were computed side by side, in order.
//! - `waiting`: all questions that wait, under one lock.
//! - `answering`: the threads that answer.
//! - `refusal`: what a transport tells the one who asked.

mod answering;
mod asked;
mod bank_order;
mod fair_queue;
mod refusal;
mod waiting;

use super::{Cancellation, Ended, PipelineError, replica::Replica};

pub use answering::{Front, FrontLoad};
pub use asked::{Asked, parse_after, parse_as_of};
pub use refusal::refusal;

#[cfg(test)]
mod tests;
