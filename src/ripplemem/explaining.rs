//! The calls of an open memory that explain an answer.
//!
//! In: a question with a turn or a unit. Out: the twelve steps between them. The question waits in the query queue;
//! what the log shows is read afterwards, on the caller's thread.

use super::{Memory, PipelineError, QueryRequest};
use ::memory::recall::RecallExplanation;
use replica::complete_explanation;
use types::model::{Bank, Explanation, ExplanationQuery};

impl Memory {
    /// Explains what the answer to a question does with a turn, from its unit on; [`Self::complete`] adds what the log
    /// shows of it. Dropping the future cancels the question.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn explain(
        &self,
        asked: QueryRequest,
        subject: ExplanationQuery,
    ) -> Result<RecallExplanation, PipelineError> {
        self.query_queue().explain(asked, subject).await
    }

    /// The whole explanation. Reads the log.
    ///
    /// # Errors
    /// [`PipelineError::Log`].
    pub fn complete(&self, bank: &Bank, explained: RecallExplanation) -> Result<Explanation, PipelineError> {
        complete_explanation(&**self.log(), self.replica(), bank, explained)
    }

    /// As [`Self::explain`] and [`Self::complete`], for a caller without a runtime.
    ///
    /// # Errors
    /// As [`Self::explain`].
    pub fn explain_and_wait(
        &self,
        asked: QueryRequest,
        subject: ExplanationQuery,
    ) -> Result<Explanation, PipelineError> {
        let bank = asked.question.bank.clone();
        let explained = self.query_queue().explain_and_wait(asked, subject)?;
        self.complete(&bank, explained)
    }
}
