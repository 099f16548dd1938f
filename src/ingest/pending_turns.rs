//! The turns of a partition that were read and are not covered, by bank, and which bank is next.
//!
//! In: the records of the turns topic in order, each read once. Out: events of one bank in the order of the log, and
//! how far the partition is covered. Banks take turns, so a bank with much to do delays no other. Of a bank with many
//! turns, only the first are kept here; the others are read from the log again. At most [`MAX_BEHIND`] banks wait at
//! once; beyond that, nothing more is read.

use std::collections::{HashMap, VecDeque};

use super::{PipelineError, turn_record::read_event};
use logs::{Log, ReadProgress, Topic, partition_of};
use types::model::{Bank, DeadLetter, InputPosition, TurnEvent};

/// Most bytes of a bank's records that are kept.
const KEPT_BYTES: usize = 64 << 10;
/// Records that are read at once, each of which may have a megabyte.
const READ_AT_ONCE: usize = 16;
/// Most bytes and records that are read before other work.
const READ_BYTES: usize = 16 << 20;
const READ_RECORDS: usize = 4_096;
/// Most banks that wait. Every transaction lists each of them.
const MAX_BEHIND: usize = 1_024;

/// An event that was read.
pub(super) struct ReadEvent {
    pub(super) offset: u64,
    pub(super) append_ms: i64,
    /// The bytes of its record.
    pub(super) bytes: usize,
    pub(super) event: TurnEvent,
}

/// The turns that were read and are not covered.
pub(super) struct PendingTurns {
    partition: u32,
    /// The first offset that was not read.
    through: u64,
    queues: HashMap<Bank, BankTurnQueue>,
    /// The banks that wait for their turn, each once.
    order: VecDeque<Bank>,
}

/// The events that wait of one bank.
struct BankTurnQueue {
    /// The first offset that is not covered.
    from: u64,
    events: VecDeque<ReadEvent>,
    /// The bytes of their records.
    bytes: usize,
    /// The first offset of the bank's events that are not kept here, if any.
    rest: Option<u64>,
}

/// The read events that belong to no bank of the partition.
#[derive(Default)]
pub(super) struct StrayEvents {
    /// Events that were read, rejected ones included.
    pub(super) events: u64,
    /// When the last of them was appended, in milliseconds since 1970.
    pub(super) append_ms: Option<i64>,
    /// Events of other partitions' banks.
    pub(super) forwards: Vec<TurnEvent>,
    /// Events that were rejected.
    pub(super) dead_letters: Vec<DeadLetter>,
}

/// The index of the first record of the first group that lacks its last record.
fn first_open_group(events: &[ReadEvent]) -> Option<usize> {
    let mut open: Vec<(&str, usize)> = Vec::new();
    for (index, read) in events.iter().enumerate() {
        let TurnEvent::Conditional(write) = &read.event else { continue };
        if write.index + 1 == write.count {
            open.retain(|(request, _)| *request != write.request);
        } else if !open.iter().any(|(request, _)| *request == write.request) {
            open.push((&write.request, index));
        }
    }
    open.first().map(|(_, index)| *index)
}

impl PendingTurns {
    /// The pending turns after a restart.
    pub(super) fn new(partition: u32, progress: ReadProgress) -> Self {
        let ReadProgress { through, behind } = progress;
        let order = behind.keys().cloned().collect();
        let queue = |from| BankTurnQueue { from, events: VecDeque::new(), bytes: 0, rest: Some(from) };
        let queues = behind.into_iter().map(|(bank, from)| (bank, queue(from))).collect();
        Self { partition, through, queues, order }
    }

    /// How far the partition is covered.
    pub(super) fn progress(&self) -> ReadProgress {
        let behind = self.queues.iter().map(|(bank, queue)| (bank.clone(), queue.from)).collect();
        ReadProgress { through: self.through, behind }
    }

    /// The first offset that was not read.
    pub(super) fn through(&self) -> u64 {
        self.through
    }

    /// Reads more records. Returns whether it reached the end of the log.
    pub(super) fn read_on(&mut self, log: &dyn Log, strays: &mut StrayEvents) -> Result<bool, PipelineError> {
        let (mut left, mut bytes) = (READ_RECORDS, 0);
        while left > 0 && bytes < READ_BYTES && self.queues.len() < MAX_BEHIND {
            let at_once = left.min(READ_AT_ONCE);
            let records = log.read(Topic::Turns, self.partition, self.through, at_once)?.records;
            let is_end = records.len() < at_once;
            for record in records {
                (left, bytes) = (left - 1, bytes + record.value.as_ref().map_or(0, Vec::len));
                self.through = record.offset + 1;
                let (offset, append_ms) = (record.offset, record.append_ms);
                match read_event(&record) {
                    Ok(event) if partition_of(event.bank(), log.partitions()) == self.partition => {
                        let bytes = record.value.as_ref().map_or(0, Vec::len);
                        self.add(ReadEvent { offset, append_ms, bytes, event });
                        continue;
                    }
                    Ok(event) => strays.forwards.push(event),
                    Err(reason) => {
                        let position = InputPosition { partition: self.partition, offset };
                        let value = record.value.as_deref().unwrap_or_default();
                        strays.dead_letters.push(DeadLetter::of_turn(position, reason, value));
                    }
                }
                strays.events += 1;
                strays.append_ms = Some(append_ms);
            }
            if is_end {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn add(&mut self, read: ReadEvent) {
        let bank = read.event.bank();
        if !self.queues.contains_key(bank) {
            let queue = BankTurnQueue { from: read.offset, events: VecDeque::new(), bytes: 0, rest: None };
            self.queues.insert(bank.clone(), queue);
            self.order.push_back(bank.clone());
        }
        let Some(queue) = self.queues.get_mut(bank) else { return };
        if queue.rest.is_none() && queue.bytes + read.bytes <= KEPT_BYTES {
            queue.bytes += read.bytes;
            queue.events.push_back(read);
        } else {
            queue.rest.get_or_insert(read.offset);
        }
    }

    /// Whether turns of a bank are not covered.
    pub(super) fn holds(&self, bank: &Bank) -> bool {
        self.queues.contains_key(bank)
    }

    /// How many banks wait for their turn.
    pub(super) fn waiting(&self) -> usize {
        self.order.len()
    }

    /// Takes the next bank out of the queue, with the bytes of its events, if they are known.
    pub(super) fn next(&mut self) -> Option<(Bank, Option<usize>)> {
        let bank = self.order.pop_front()?;
        let bytes = self.queues.get(&bank).filter(|queue| queue.rest.is_none()).map(|queue| queue.bytes);
        Some((bank, bytes))
    }

    /// Makes a bank wait again, behind the others.
    pub(super) fn put_back(&mut self, bank: Bank) {
        self.order.push_back(bank);
    }

    /// The next events of a bank, at least one if there is any. They count as pending until [`Self::cover`].
    pub(super) fn take(
        &mut self,
        log: &dyn Log,
        bank: &Bank,
        most_bytes: usize,
        most: usize,
    ) -> Result<Vec<ReadEvent>, PipelineError> {
        let Some(queue) = self.queues.get_mut(bank) else { return Ok(Vec::new()) };
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while taken.len() < most && (taken.is_empty() || bytes < most_bytes) {
            if let Some(read) = queue.events.pop_front() {
                queue.bytes -= read.bytes;
                bytes += read.bytes;
                taken.push(read);
                continue;
            }
            let Some(from) = queue.rest else { break };
            let records = log.read(Topic::Turns, self.partition, from, READ_AT_ONCE)?.records;
            let next = records.last().map_or(self.through, |last| last.offset + 1);
            queue.rest = Some(next).filter(|next| *next < self.through);
            for record in records.iter().filter(|record| record.offset < self.through) {
                // A record that cannot be read is a dead letter already.
                let Ok(event) = read_event(record) else { continue };
                if event.bank() == bank {
                    let (offset, append_ms) = (record.offset, record.append_ms);
                    let bytes = record.value.as_ref().map_or(0, Vec::len);
                    queue.bytes += bytes;
                    queue.events.push_back(ReadEvent { offset, append_ms, bytes, event });
                }
            }
        }
        Ok(taken)
    }

    /// As [`Self::take`], but ends behind a group of conditional records, and never inside: more events are taken until
    /// the group has its last record. If that was not read yet, the group waits with everything behind its first
    /// record; at the end of the log, `is_end`, there is none.
    pub(super) fn take_whole_groups(
        &mut self,
        log: &dyn Log,
        bank: &Bank,
        most_bytes: usize,
        most: usize,
        is_end: bool,
    ) -> Result<Vec<ReadEvent>, PipelineError> {
        let mut taken = self.take(log, bank, most_bytes, most)?;
        while let Some(first) = first_open_group(&taken) {
            let more = self.take(log, bank, 1, READ_AT_ONCE)?;
            if more.is_empty() {
                if !is_end {
                    let waits = taken.split_off(first);
                    self.give_back(bank, waits);
                }
                break;
            }
            taken.extend(more);
        }
        Ok(taken)
    }

    /// Takes back the events that were taken last.
    pub(super) fn give_back(&mut self, bank: &Bank, events: Vec<ReadEvent>) {
        let Some(queue) = self.queues.get_mut(bank) else { return };
        for read in events.into_iter().rev() {
            queue.bytes += read.bytes;
            queue.events.push_front(read);
        }
    }

    /// Notes that the events taken of a bank are covered, and makes it wait again if there are more.
    pub(super) fn cover(&mut self, bank: &Bank) {
        let Some(queue) = self.queues.get_mut(bank) else { return };
        match queue.events.front().map(|read| read.offset).or(queue.rest) {
            Some(from) => {
                queue.from = from;
                self.order.push_back(bank.clone());
            }
            None => drop(self.queues.remove(bank)),
        }
    }
}
