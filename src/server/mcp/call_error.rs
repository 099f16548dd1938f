//! Why a call of a memory failed.
//!
//! In: a problem of a call. Out: a sentence for the agent that says what is wrong, where, and what to do. It names no
//! other bank.

use crate::{
    ReachError,
    api::{Code, Problem},
};

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum CallError {
    /// The call is wrong, or the memory cannot answer it.
    #[error("{0}")]
    Refused(String),
    /// The process that had the directory open has ended; another process may have it open now.
    #[error("{0}")]
    Gone(String),
}

impl From<Problem> for CallError {
    fn from(problem: Problem) -> Self {
        let then = match problem.code {
            Code::UnknownBank => "; store something with remember, or name another bank",
            _ => "",
        };
        Self::Refused(format!("{}{then}", problem.detail))
    }
}

impl From<ReachError> for CallError {
    fn from(error: ReachError) -> Self {
        match error {
            ReachError::Problem(problem) => problem.into(),
            ReachError::Gone { .. } => Self::Gone(error.to_string()),
            ReachError::Form { .. } => Self::Refused(error.to_string()),
        }
    }
}
