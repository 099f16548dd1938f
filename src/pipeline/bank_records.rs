//! The records of a bank in the turns log.
//!
//! In: a log, a bank, and an offset. Out: each record of the bank before it, in the order of the log. Reads the bank's
//! partition up to that offset, and stops once no one waits for the answer.

use super::{Cancellation, PipelineError};
use logs::{Log, LogRecord, Topic, partition_of};
use types::model::Bank;

/// Records that are read at once.
const READ_AT_ONCE: usize = 1_024;

/// Calls `each` with every record of a bank before the offset `end`. Fails once no one waits any more.
pub fn each_record(
    log: &dyn Log,
    bank: &Bank,
    end: u64,
    cancellation: &Cancellation,
    each: &mut dyn FnMut(&LogRecord),
) -> Result<(), PipelineError> {
    let (partition, mut at) = (partition_of(bank, log.partitions()), 0);
    while at < end {
        cancellation.check()?;
        let batch = log.read(Topic::Turns, partition, at, READ_AT_ONCE)?;
        let of_bank = |record: &&LogRecord| record.offset < end && record.key == bank.as_str().as_bytes();
        batch.records.iter().filter(of_bank).for_each(&mut *each);
        if batch.next == at {
            break;
        }
        at = batch.next;
    }
    Ok(())
}
