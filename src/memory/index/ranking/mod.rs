//! How familiar the parts of a bank are to a question.
//!
//! In: a bank's `bank_parts`, and a question. Out: the best parts with the terms of their score (`scoring`).

pub(super) mod bank_parts;
pub(super) mod scoring;
#[cfg(test)]
mod tests;
