//! What an open memory forgets for good.
//!
//! In: an open memory. Out: receipts of operations, what was forgotten between two points, and erasing passes.

use super::{Memory, PipelineError};
use erasure::{Eraser, ErasureReport, ForgetOperationTracker, Receipt};
use replica::compare_points;
use snapshots::{AsOf, BankDiff};
use types::model::Bank;

impl Memory {
    /// The receipt of each operation that forgot turns, the latest first.
    ///
    /// # Errors
    /// As [`ForgetOperationTracker::receipts`].
    pub fn receipts(&self) -> Result<Vec<Receipt>, PipelineError> {
        self.forget_operations().receipts()
    }

    /// The receipt of an operation; `None` if this log never had it.
    ///
    /// # Errors
    /// As [`ForgetOperationTracker::receipts`].
    pub fn receipt(&self, operation: &str) -> Result<Option<Receipt>, PipelineError> {
        self.forget_operations().receipt(operation)
    }

    /// What was added to and removed from a bank between two points of its past; see [`replica::Replica::diff`]. On a
    /// log in a directory, also how many turns were forgotten since.
    ///
    /// # Errors
    /// As [`replica::Replica::diff`].
    pub fn diff(&self, bank: &Bank, from: AsOf, to: AsOf) -> Result<BankDiff, PipelineError> {
        compare_points(&self.replica, &*self.log, bank, [from, to])
    }

    fn forget_operations(&self) -> ForgetOperationTracker<'_> {
        let waiting_for_model = match &self.background {
            Some(background) => Some(background.status().waiting_for_model),
            // Another process may extract.
            None => (!self.is_read_by_model).then_some(0),
        };
        ForgetOperationTracker { log: &*self.log, settings: &self.forget, replica: &self.replica, waiting_for_model }
    }

    /// Erases the words of all deleted turns that no answer reflects any more, now. Questions and writes continue
    /// meanwhile. Rewrites all turns of the log.
    ///
    /// # Errors
    /// [`PipelineError::NotEmbedded`] on Kafka; after any other error, the next pass covers what is left.
    pub fn erase(&self) -> Result<ErasureReport, PipelineError> {
        let orders = self.extraction_orders().ok_or(PipelineError::NotEmbedded)?;
        let eraser = Eraser::new(&self.replica, &self.log, &self.forget, orders).ok_or(PipelineError::NotEmbedded)?;
        eraser.erase(self.status().waiting_for_model)
    }
}
