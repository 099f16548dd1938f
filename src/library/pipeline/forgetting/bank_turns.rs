//! The records of a bank in the turns log.
//!
//! In: a log and a bank. Out: each record of the bank, in the order of the log. Reads the bank's partition whole.

use super::PipelineError;
use crate::log::{Log, Record, Topic, partition_of};
use nouns::model::Bank;

/// Records that are read at once.
const READ_AT_ONCE: usize = 1_024;

/// Calls `each` with every record of a bank.
pub(super) fn each_record(log: &dyn Log, bank: &Bank, each: &mut dyn FnMut(&Record)) -> Result<(), PipelineError> {
    let (partition, mut at) = (partition_of(bank, log.partitions()), 0);
    loop {
        let batch = log.read(Topic::Turns, partition, at, READ_AT_ONCE)?;
        batch.records.iter().filter(|record| record.key == bank.as_str().as_bytes()).for_each(&mut *each);
        if batch.next == at {
            return Ok(());
        }
        at = batch.next;
    }
}
