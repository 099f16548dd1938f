//! What a log reads and writes: records, batches of them, and transactions (decision 3).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::{ReadProgress, partition_of};
use types::model::{Bank, DeadLetter, TurnEvent, WriteVerdict};

/// The largest record that a topic takes, in bytes.
pub const MAX_RECORD_BYTES: usize = 8 << 20;
/// The largest value of a record: together with its key and headers, it fits into the largest record.
pub const MAX_VALUE_BYTES: usize = MAX_RECORD_BYTES - (64 << 10);

/// One record as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRecord {
    /// Its offset.
    pub offset: u64,
    /// When it was appended, in milliseconds since 1970.
    pub append_ms: i64,
    /// Its key; empty in a topic without keys.
    pub key: Vec<u8>,
    /// Its value; `None` deletes the key.
    pub value: Option<Vec<u8>>,
}

/// A record with its headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawRecord {
    /// The record.
    pub record: LogRecord,
    /// Its headers, in order.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

/// The records of one read, and the input that they cover.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadBatch {
    /// Records in offset order.
    pub records: Vec<LogRecord>,
    /// Memory topics only: how far each turns partition is covered as of the end of this batch, where known.
    pub covers: Vec<(u32, ReadProgress)>,
    /// The offset at which the next read starts.
    pub next: u64,
}

/// What the extraction stage commits at once: records, and the input that they cover.
#[derive(Debug, Clone, Default)]
pub struct Transaction {
    /// The partition of the turns topic that was read, and of the memory topic to write.
    /// A turns partition beyond the memory topic's partitions has turns to forward, but no records.
    pub partition: u32,
    /// The first offset of that turns partition that is not covered, except for the banks in `behind`.
    pub next_offset: u64,
    /// The banks with turns before `next_offset` that are not covered: for each, the offset of the first.
    pub behind: BTreeMap<Bank, u64>,
    /// Memory records in order.
    pub memory: Vec<KeyedValue>,
    /// Rejected input.
    pub dead_letters: Vec<DeadLetter>,
    /// Events read from the wrong partition, to be appended to their banks' partitions.
    pub forwards: Vec<TurnEvent>,
    /// Groups of conditional records of the turns partition that were decided.
    pub decided: Vec<DecidedGroup>,
}

/// A group of conditional records that was decided. A log in a directory puts what stands in the place of each record;
/// on Kafka it is appended, with the verdict behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecidedGroup {
    /// The verdict.
    pub verdict: WriteVerdict,
    /// The records by offset: the turn or the deletion that stands; `None` for one that wrote nothing.
    pub records: Vec<(u64, Option<TurnEvent>)>,
}

impl DecidedGroup {
    /// What stands in the place of each record: the verdict, without the versions, for one that wrote nothing.
    pub fn in_place(&self) -> impl Iterator<Item = (u64, TurnEvent)> {
        self.records.iter().map(|(offset, event)| {
            let verdict = || TurnEvent::Verdict(WriteVerdict { written: Vec::new(), ..self.verdict.clone() });
            (*offset, event.clone().unwrap_or_else(verdict))
        })
    }

    /// What is appended: every turn and deletion that stands, and then the verdict.
    pub fn behind_it(&self) -> impl Iterator<Item = TurnEvent> {
        let written = self.records.iter().filter_map(|(_, event)| event.clone());
        written.chain(std::iter::once(TurnEvent::Verdict(self.verdict.clone())))
    }
}

/// The key of a memory record, and its value; `None` deletes the key.
pub type KeyedValue = (Vec<u8>, Option<Vec<u8>>);

/// The key of a live memory record, and the record's offset.
pub type LiveKey = (Vec<u8>, u64);

/// The end of a partition's last complete transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionEnd {
    /// The first offset after it.
    pub end: u64,
    /// How far it covers the turns partition, where known.
    pub position: Option<ReadProgress>,
}

/// Where the written turns are in the log: proof that they are durable, and what an answer must include. As text it
/// names the last offset of each partition: `2:17`, or `0:5,2:17`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WritePosition {
    partitions: u32,
    /// By turns partition: the first offset after the last turn that was written.
    next: BTreeMap<u32, u64>,
    /// The banks of the turns, if known: other banks are not waited for.
    banks: BTreeSet<Bank>,
}

impl Transaction {
    /// The events that it appends on Kafka: those of other partitions, and what stands of conditional records.
    #[must_use]
    pub fn appended_turns(&self) -> Vec<TurnEvent> {
        let decided = self.decided.iter().flat_map(DecidedGroup::behind_it);
        self.forwards.iter().cloned().chain(decided).collect()
    }

    /// How far it covers its turns partition.
    #[must_use]
    pub fn progress(&self) -> ReadProgress {
        ReadProgress { through: self.next_offset, behind: self.behind.clone() }
    }
}

impl WritePosition {
    /// Nothing written yet, in a log with this number of partitions.
    #[must_use]
    pub fn nothing(partitions: u32) -> Self {
        Self { partitions, next: BTreeMap::new(), banks: BTreeSet::new() }
    }

    /// Parses the text form; `None` for any other text.
    #[must_use]
    pub fn parse(text: &str, partitions: u32) -> Option<Self> {
        let mut written = Self::nothing(partitions);
        for place in text.trim().split(',') {
            let (partition, offset) = place.trim().split_once(':')?;
            written.extend(partition.parse().ok()?, offset.parse::<u64>().ok()?.checked_add(1)?);
        }
        Some(written)
    }

    /// The turns partition of a bank, and the first offset after its turns; `None` if nothing was written to it.
    #[must_use]
    pub fn of(&self, bank: &Bank) -> Option<(u32, u64)> {
        let partition = partition_of(bank, self.partitions);
        Some((partition, *self.next.get(&partition)?))
    }

    /// Each turns partition, and the first offset after what was written to it.
    pub fn partition_ends(&self) -> impl Iterator<Item = (u32, u64)> {
        self.next.iter().map(|(partition, next)| (*partition, *next))
    }

    /// The same positions, for the turns of this bank alone.
    #[must_use]
    pub fn of_bank(mut self, bank: &Bank) -> Self {
        self.banks = [bank.clone()].into();
        self
    }

    /// Notes the banks whose turns were written.
    pub fn name_banks<'b>(&mut self, banks: impl IntoIterator<Item = &'b Bank>) {
        for bank in banks {
            if !self.banks.contains(bank) {
                self.banks.insert(bank.clone());
            }
        }
    }

    /// Whether all of it is covered; `by` returns the first uncovered offset of a partition, for a bank or for any.
    pub fn is_covered(&self, by: impl Fn(u32, Option<&Bank>) -> Option<u64>) -> bool {
        self.partition_ends().all(|(partition, next)| {
            let is_there = |bank| by(partition, bank).is_some_and(|at| at >= next);
            if self.banks.is_empty() { is_there(None) } else { self.banks.iter().all(|bank| is_there(Some(bank))) }
        })
    }

    /// Adds what was written to a partition.
    pub fn extend(&mut self, partition: u32, next_offset: u64) {
        let next = self.next.entry(partition).or_default();
        *next = next_offset.max(*next);
    }
}

impl fmt::Display for WritePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (partition, next)) in self.partition_ends().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{partition}:{}", next.saturating_sub(1))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_as_it_is_displayed() {
        let mut written = WritePosition::nothing(4);
        assert_eq!(written.to_string(), "");
        written.extend(2, 18);
        written.extend(0, 6);
        written.extend(2, 3);
        assert_eq!(written.to_string(), "0:5,2:17");
        assert_eq!(WritePosition::parse(" 0:5, 2:17", 4), Some(written));
        for wrong in ["", "2", "2:", ":1", "a:1", "2:-1", "0:5,", "0:18446744073709551615"] {
            assert_eq!(WritePosition::parse(wrong, 4), None, "{wrong}");
        }
    }
}
