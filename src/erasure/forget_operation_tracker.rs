//! Operations, receipts and erasing of an open memory.
//!
//! In: what the memory reflects. Out: receipts, operations that are finished after a crash, passes on request, and the
//! number of turns that were forgotten since points of the past.

use super::{
    ForgetOperationStore, MemoryProgress, PipelineError, Receipt, Replica, receipts,
    unreadable_operations::unreadable_entries, with_memory_progress,
};
use logs::Log;
use types::{config::ForgetSettings, model::Bank};

/// The operations of a log, settled by a memory that follows it.
pub struct ForgetOperationTracker<'m> {
    /// The log.
    pub log: &'m dyn Log,
    /// `[forget]`.
    pub settings: &'m ForgetSettings,
    /// The memory.
    pub replica: &'m Replica,
    /// Closed windows that wait for the language model; `None` if only another process knows that: then no operation is
    /// noted as rebuilt.
    pub waiting_for_model: Option<u64>,
}

impl ForgetOperationTracker<'_> {
    /// The receipt of each operation, the latest first.
    ///
    /// # Errors
    /// [`PipelineError`] if the log failed, or the key file cannot be read.
    pub fn receipts(&self) -> Result<Vec<Receipt>, PipelineError> {
        self.settled(&mut |forgets, settled| receipts(forgets, settled, self.settings.key_file.as_deref()))
    }

    /// The receipt of an operation; `None` if this log never had it.
    ///
    /// # Errors
    /// As [`Self::receipts`].
    pub fn receipt(&self, operation: &str) -> Result<Option<Receipt>, PipelineError> {
        self.settle()?;
        let operation = ForgetOperationStore::of(self.log, self.settings).find(operation)?;
        let leaving = self.log.topic_retention()?;
        let receipt = |operation| Receipt::of(&operation, self.settings.key_file.as_deref(), leaving.as_ref());
        operation.map(receipt).transpose()
    }

    /// Notes which stages the operations have reached.
    ///
    /// # Errors
    /// [`PipelineError`] if the log failed.
    pub fn settle(&self) -> Result<(), PipelineError> {
        self.settled(&mut |forgets, settled| forgets.settle(settled).map(drop))
    }

    /// How many entries of operations cannot be read, and are skipped.
    ///
    /// # Errors
    /// [`PipelineError`] if the log failed.
    pub fn unreadable(&self) -> Result<usize, PipelineError> {
        unreadable_entries(self.log)
    }

    /// Writes what a crash left unwritten of operations in banks that pass. Returns how many operations it finished.
    ///
    /// # Errors
    /// [`PipelineError`] if the log failed, or the ledger cannot be read.
    pub fn resume(&self, passes: &dyn Fn(&Bank) -> bool) -> Result<usize, PipelineError> {
        ForgetOperationStore::of(self.log, self.settings).resume(passes)
    }

    fn settled<T>(&self, with: &mut dyn FnMut(ForgetOperationStore<'_>, &MemoryProgress<'_>) -> T) -> T {
        let forgets = ForgetOperationStore::of(self.log, self.settings);
        with_memory_progress(self.replica, self.waiting_for_model, &mut |settled| with(forgets, settled))
    }
}
