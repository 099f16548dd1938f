//! Why a call of a memory failed.
//!
//! In: a problem of a call. Out: a sentence for the agent that says what is wrong, where, and what to do. It names no
//! other bank.

use crate::{
    MemoryHttpError,
    api::{ApiProblem, ProblemCode},
};

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ToolCallError {
    /// The call is wrong, or the memory cannot answer it.
    #[error("{0}")]
    Refused(String),
    /// The process that had the directory open has ended; another process may have it open now.
    #[error("{0}")]
    Gone(String),
}

impl From<ApiProblem> for ToolCallError {
    fn from(problem: ApiProblem) -> Self {
        let then = match problem.code {
            ProblemCode::UnknownBank => "; store something with remember, or name another bank",
            _ => "",
        };
        Self::Refused(format!("{}{then}", problem.detail))
    }
}

impl From<MemoryHttpError> for ToolCallError {
    fn from(error: MemoryHttpError) -> Self {
        match error {
            MemoryHttpError::Problem(problem) => problem.into(),
            MemoryHttpError::Gone { .. } => Self::Gone(error.to_string()),
            MemoryHttpError::Form { .. } => Self::Refused(error.to_string()),
        }
    }
}
