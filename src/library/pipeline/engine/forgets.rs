//! Operations, receipts and erasing of an open memory.
//!
//! In: what the memory reflects. Out: receipts, and passes on request.

use super::{Erased, Forgets, Memory, PipelineError, Receipt, eraser::Eraser, receipts, settled};

impl Memory {
    /// What became of each operation that forgot turns, the latest first; none on Kafka.
    ///
    /// # Errors
    /// [`PipelineError`] where the log failed, or the key file cannot be read.
    pub fn receipts(&self) -> Result<Vec<Receipt>, PipelineError> {
        let Some(forgets) = Forgets::of(&*self.log, &self.forget) else { return Ok(Vec::new()) };
        let waiting_for_model = self.status().waiting_for_model;
        settled(&self.replica, waiting_for_model, &mut |settled| {
            receipts(forgets, settled, self.forget.key_file.as_deref())
        })
    }

    /// What became of an operation; none where this log has not had it.
    ///
    /// # Errors
    /// As [`Self::receipts`].
    pub fn receipt(&self, operation: &str) -> Result<Option<Receipt>, PipelineError> {
        let Some(forgets) = Forgets::of(&*self.log, &self.forget) else { return Ok(None) };
        settled(&self.replica, self.status().waiting_for_model, &mut |settled| forgets.settle(settled).map(drop))?;
        let operation = forgets.known(operation)?;
        operation.map(|operation| Receipt::of(&operation, self.forget.key_file.as_deref())).transpose()
    }

    /// Erases the words of all turns that were deleted and that no answer reflects any more, now. Questions and turns
    /// go on meanwhile. Writes the log again, so it takes as long as copying it.
    ///
    /// # Errors
    /// [`PipelineError::NotEmbedded`] on Kafka; any other leaves what it did not reach to the next pass.
    pub fn erase(&self) -> Result<Erased, PipelineError> {
        let orders = self.orders().ok_or(PipelineError::NotEmbedded)?;
        let eraser = Eraser::new(&self.replica, &self.log, &self.forget, orders).ok_or(PipelineError::NotEmbedded)?;
        eraser.erase(self.status().waiting_for_model)
    }
}
