//! Which banks of a stage may have no windows in memory.
//!
//! In: banks whose events wait. Out: which of them are to be woken. Pure.

use std::collections::BTreeSet;

use types::model::Bank;

/// Which banks a stage has no windows of.
#[derive(Debug, Default)]
pub(super) struct DroppedWindows {
    /// Whether the windows of a bank that is not known may have been dropped.
    pub(super) may_sleep: bool,
    /// The banks with events that wait for their windows.
    pub(super) waited_for: BTreeSet<Bank>,
    /// The banks that were restored and have no record.
    pub(super) without_records: BTreeSet<Bank>,
}

impl DroppedWindows {
    /// Notes that events of a bank were applied: it has windows now, or none again.
    pub(super) fn note_applied(&mut self, bank: &Bank) {
        self.without_records.remove(bank);
    }

    /// Whether a bank waits for its windows.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.waited_for.is_empty()
    }
}
