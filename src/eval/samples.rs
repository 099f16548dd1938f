//! The units of a memory, as its topic holds them.
//!
//! In: a log. Out: every live unit's vectors, by bank; an unreadable record is an error
//! with its partition and offset, never skipped. Writes nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::calibrate::Sample;
use crate::{
    log::{Log, LogError, Topic},
    model::{Bank, MemoryRecord, UnitId},
};

/// Records read at once.
const READ_RECORDS: usize = 64;

/// Why the units could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A record of the memory topic cannot be used.
    #[error("memory partition {partition}, offset {offset}: not a memory record; restore the log from a copy")]
    Record {
        /// The partition.
        partition: u32,
        /// The offset.
        offset: u64,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
}

/// Reads the live units of every bank.
///
/// # Errors
/// [`SampleError`] when the log cannot be read.
pub fn samples(log: &dyn Log) -> Result<BTreeMap<Bank, Vec<Sample>>, SampleError> {
    let mut banks: BTreeMap<Bank, Vec<Sample>> = BTreeMap::new();
    for partition in 0..log.partitions() {
        let mut seen: BTreeSet<(Bank, UnitId)> = BTreeSet::new();
        let mut next = 0;
        loop {
            let records = log.read(Topic::Memory, partition, next, READ_RECORDS)?.records;
            let Some(last) = records.last() else { break };
            next = last.offset + 1;
            for record in &records {
                let Some(value) = &record.value else { continue };
                let held: MemoryRecord = serde_json::from_slice(value).map_err(|source| SampleError::Record {
                    partition,
                    offset: record.offset,
                    source,
                })?;
                for unit in &held.units {
                    if seen.insert((held.bank.clone(), unit.id)) {
                        banks.entry(held.bank.clone()).or_default().push(Sample::from(unit));
                    }
                }
            }
        }
    }
    Ok(banks)
}
