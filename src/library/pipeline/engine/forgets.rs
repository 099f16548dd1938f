//! Operations, receipts and erasing of an open memory.
//!
//! In: what the memory reflects. Out: receipts, operations that are finished after a crash, passes on request, and what
//! two points of the past say of what was forgotten.

use super::{
    Erased, Forgets, Memory, PipelineError, Receipt, Replica, Settled, compare_points, eraser::Eraser, receipts,
    settled, unreadable_entries,
};
use crate::{
    log::Log,
    snapshot::{AsOf, BankDiff},
};
use nouns::{config::ForgetSettings, model::Bank};

/// The operations of a log, as a memory that follows it settles them.
pub struct ForgetOperations<'m> {
    /// The log.
    pub log: &'m dyn Log,
    /// `[forget]`.
    pub settings: &'m ForgetSettings,
    /// The memory.
    pub replica: &'m Replica,
    /// Closed windows that wait for the language model; none where another process knows that, and then no operation is
    /// noted as rebuilt.
    pub waiting_for_model: Option<u64>,
}

impl ForgetOperations<'_> {
    /// What became of each operation, the latest first.
    ///
    /// # Errors
    /// [`PipelineError`] where the log failed, or the key file cannot be read.
    pub fn receipts(&self) -> Result<Vec<Receipt>, PipelineError> {
        self.settled(&mut |forgets, settled| receipts(forgets, settled, self.settings.key_file.as_deref()))
    }

    /// What became of an operation; none where this log has not had it.
    ///
    /// # Errors
    /// As [`Self::receipts`].
    pub fn receipt(&self, operation: &str) -> Result<Option<Receipt>, PipelineError> {
        self.settle()?;
        let operation = Forgets::of(self.log, self.settings).known(operation)?;
        let leaving = self.log.leaving()?;
        let receipt = |operation| Receipt::of(&operation, self.settings.key_file.as_deref(), leaving.as_ref());
        operation.map(receipt).transpose()
    }

    /// Notes which stages the operations have reached.
    ///
    /// # Errors
    /// [`PipelineError`] where the log failed.
    pub fn settle(&self) -> Result<(), PipelineError> {
        self.settled(&mut |forgets, settled| forgets.settle(settled).map(drop))
    }

    /// How many entries of operations cannot be read, and are passed over.
    ///
    /// # Errors
    /// [`PipelineError`] where the log failed.
    pub fn unreadable(&self) -> Result<usize, PipelineError> {
        unreadable_entries(self.log)
    }

    /// Writes what a crash left over of operations in banks that pass. Returns how many operations it finished.
    ///
    /// # Errors
    /// [`PipelineError`] where the log failed, or the ledger cannot be read.
    pub fn resume(&self, passes: &dyn Fn(&Bank) -> bool) -> Result<usize, PipelineError> {
        Forgets::of(self.log, self.settings).resume(passes)
    }

    fn settled<T>(&self, with: &mut dyn FnMut(Forgets<'_>, &Settled<'_>) -> T) -> T {
        let forgets = Forgets::of(self.log, self.settings);
        settled(self.replica, self.waiting_for_model, &mut |settled| with(forgets, settled))
    }
}

impl Memory {
    /// What became of each operation that forgot turns, the latest first.
    ///
    /// # Errors
    /// As [`ForgetOperations::receipts`].
    pub fn receipts(&self) -> Result<Vec<Receipt>, PipelineError> {
        self.forget_operations().receipts()
    }

    /// What became of an operation; none where this log has not had it.
    ///
    /// # Errors
    /// As [`ForgetOperations::receipts`].
    pub fn receipt(&self, operation: &str) -> Result<Option<Receipt>, PipelineError> {
        self.forget_operations().receipt(operation)
    }

    /// What came and went in a bank between two points of its past; see [`Replica::diff`]. On a log in a directory also
    /// how many turns were forgotten since.
    ///
    /// # Errors
    /// As [`Replica::diff`].
    pub fn diff(&self, bank: &Bank, from: AsOf, to: AsOf) -> Result<BankDiff, PipelineError> {
        compare_points(&self.replica, &*self.log, bank, [from, to])
    }

    fn forget_operations(&self) -> ForgetOperations<'_> {
        let waiting_for_model = match &self.upkeep {
            Some(upkeep) => Some(upkeep.status().waiting_for_model),
            // Another process may extract.
            None => (!self.is_read_by_model).then_some(0),
        };
        ForgetOperations { log: &*self.log, settings: &self.forget, replica: &self.replica, waiting_for_model }
    }

    /// Erases the words of all turns that were deleted and that no answer reflects any more, now. Questions and turns
    /// go on meanwhile. Writes all turns of the log again.
    ///
    /// # Errors
    /// [`PipelineError::NotEmbedded`] on Kafka; any other leaves what it did not reach to the next pass.
    pub fn erase(&self) -> Result<Erased, PipelineError> {
        let orders = self.orders().ok_or(PipelineError::NotEmbedded)?;
        let eraser = Eraser::new(&self.replica, &self.log, &self.forget, orders).ok_or(PipelineError::NotEmbedded)?;
        eraser.erase(self.status().waiting_for_model)
    }
}
