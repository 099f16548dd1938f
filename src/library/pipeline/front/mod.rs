//! One front for all transports: here questions wait, and are answered fairly or refused.
//!
//! In: a question with its deadline, from any transport. Out: evidence, or the error that says why
//! there is none. Tokens take turns, and banks, and a bank's questions are answered in their order. A question that waits for a
//! turn, asks about the past or is long occupies none of the usual threads. A question that no one waits for any more
//! costs nothing. Never waits without a bound, and never lets a panic end more than its question.
//!
//! - `asked`: a question as a transport hands it over.
//! - `fair_queue`: decides which question is next.
//! - `fair_places`: places for reads that are not questions, shared in the same way.
//! - `bank_order`: hands over a bank's answers in order.
//! - `waiting`: all questions that wait, under one lock.
//! - `answering`: the threads that answer questions.
//! - `refusal`: what a transport tells the caller.

mod answering;
mod asked;
mod bank_order;
mod fair_places;
mod fair_queue;
mod refusal;
mod waiting;

use super::{
    AnswerStage, Cancellation, Ended, PipelineError, StageTimes, forgetting::forgotten_since, replica::Replica,
    stage_times::timed,
};

pub use answering::{Front, FrontLoad};
pub use asked::{Asked, parse_after, parse_as_of};
pub use fair_places::{FairPlaces, ReadPlace};
pub use fair_queue::Lane;
pub use refusal::refusal;

#[cfg(test)]
mod tests;
