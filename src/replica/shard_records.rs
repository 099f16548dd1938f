//! What a shard holds: the banks with live records, their names, and those that are quarantined.
//!
//! In: the records that were taken, in log order. Out: whether a bank can be asked, and why not. A record whose turns
//! are all deleted stays live, so that no redelivery brings them back; a bank with no other record holds nothing.
//! Nothing is read or parsed here: the lock is held only for a few map operations.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::PipelineError;
use memory::index::{RecordHash, RecordKey};
use snapshots::UnreadableMemoryRecord;
use types::{
    model::{Bank, BankKey, MemoryKey, ModelRef},
    shrinkable_collection::ShrinkableCollection,
};

/// The live records of a shard.
#[derive(Default)]
pub(super) struct ShardRecords {
    banks: BTreeMap<Bank, LiveBankRecords>,
    /// The banks that sleep.
    asleep: BTreeMap<Bank, SleepingBankRecords>,
    names: HashMap<BankKey, Bank>,
    /// The unreadable records of each quarantined bank.
    quarantined: BTreeMap<Bank, BTreeMap<RecordKey, UnreadableMemoryRecord>>,
    /// The model of the vectors.
    model: Option<ModelRef>,
}

/// What is held of a live record.
#[derive(Debug, Clone, Copy)]
pub(super) struct LiveRecordState {
    /// Whether it has a turn that is not deleted, or a unit.
    pub(super) filled: bool,
    /// Whether its window is to be extracted again.
    pub(super) in_part: bool,
    /// When it was appended, in milliseconds since 1970.
    pub(super) append_ms: i64,
}

/// The live records of a bank that can be read.
#[derive(Default)]
struct LiveBankRecords {
    /// Those with a turn that is not deleted, or a unit.
    filled: HashSet<RecordHash>,
    /// Those with only deleted turns.
    emptied: HashSet<RecordHash>,
    /// Those whose windows are to be extracted again.
    in_part: HashSet<RecordHash>,
    /// When the last of them was appended, in milliseconds since 1970.
    last_append_ms: i64,
}

/// What is kept of a bank that sleeps. None of its windows are to be extracted again.
#[derive(Debug)]
struct SleepingBankRecords {
    /// Where its records are, on a log to which other processes write; empty on any other.
    offsets: Box<[u64]>,
    /// Whether it has a record with a turn that is not deleted, or a unit.
    is_filled: bool,
    /// When its last record was appended, in milliseconds since 1970.
    last_append_ms: i64,
}

impl ShardRecords {
    /// Forgets the records of a bank that falls asleep, except these offsets and when the last was appended.
    /// [`Self::wake`] takes them back.
    pub(super) fn fall_asleep(&mut self, bank: &Bank, offsets: Box<[u64]>) {
        if let Some(LiveBankRecords { filled, last_append_ms, .. }) = self.banks.remove(bank) {
            let is_filled = !filled.is_empty();
            self.asleep.insert(bank.clone(), SleepingBankRecords { offsets, is_filled, last_append_ms });
        }
    }

    /// Where the records of a bank that sleeps are, on a log to which other processes write.
    pub(super) fn offsets(&self, bank: &Bank) -> Vec<u64> {
        self.asleep.get(bank).map(|of_bank| of_bank.offsets.to_vec()).unwrap_or_default()
    }

    /// How many live records of a bank that is awake can be read.
    pub(super) fn count(&self, bank: &Bank) -> usize {
        self.banks.get(bank).map_or(0, |of_bank| of_bank.filled.len() + of_bank.emptied.len())
    }

    /// Whether a bank is held and can be read, and no window of it is to be extracted again.
    pub(super) fn may_sleep(&self, bank: &Bank) -> bool {
        self.banks.contains_key(bank) && !self.is_in_part(bank) && !self.quarantined.contains_key(bank)
    }

    /// Notes a record of a bank that sleeps from the beginning: it has been read, and not loaded. [`Self::place_asleep`]
    /// says where its records are.
    pub(super) fn note_asleep(&mut self, bank: &Bank, record: LiveRecordState) {
        self.names.entry(bank.key()).or_insert_with(|| bank.clone());
        let new = SleepingBankRecords { offsets: Box::default(), is_filled: false, last_append_ms: record.append_ms };
        let of_bank = self.asleep.entry(bank.clone()).or_insert(new);
        of_bank.is_filled |= record.filled;
        of_bank.last_append_ms = of_bank.last_append_ms.max(record.append_ms);
    }

    /// Notes where the records of a bank that sleeps are, on a log to which other processes write.
    pub(super) fn place_asleep(&mut self, bank: &Bank, offsets: impl IntoIterator<Item = u64>) {
        if let Some(of_bank) = self.asleep.get_mut(bank) {
            of_bank.offsets = offsets.into_iter().collect();
        }
    }

    /// Takes back the records of a bank that wakes.
    pub(super) fn wake(&mut self, bank: &Bank, records: impl IntoIterator<Item = (MemoryKey, LiveRecordState)>) {
        let slept = self.asleep.remove(bank);
        records.into_iter().for_each(|(key, state)| self.insert(&key, state));
        // After a restore, the end of a read is known, and not when each record was appended.
        if let (Some(slept), Some(of_bank)) = (slept, self.banks.get_mut(bank)) {
            of_bank.last_append_ms = of_bank.last_append_ms.max(slept.last_append_ms);
        }
    }

    /// Adds a record that can be read.
    pub(super) fn insert(&mut self, key: &MemoryKey, LiveRecordState { filled, in_part, append_ms }: LiveRecordState) {
        self.remove(key);
        self.names.entry(key.bank.key()).or_insert_with(|| key.bank.clone());
        let of_bank = self.banks.entry(key.bank.clone()).or_default();
        of_bank.last_append_ms = of_bank.last_append_ms.max(append_ms);
        let records = if filled { &mut of_bank.filled } else { &mut of_bank.emptied };
        let hash = RecordHash::from(&RecordKey::from(key));
        records.insert(hash);
        if in_part {
            of_bank.in_part.insert(hash);
        }
    }

    /// Adds a record that cannot be read, in place of what its key held.
    pub(super) fn quarantine(&mut self, record: UnreadableMemoryRecord) {
        self.remove(&record.key);
        self.names.entry(record.key.bank.key()).or_insert_with(|| record.key.bank.clone());
        let of_bank = self.quarantined.entry(record.key.bank.clone()).or_default();
        of_bank.insert(RecordKey::from(&record.key), record);
    }

    /// Removes a record.
    pub(super) fn remove(&mut self, key: &MemoryKey) {
        let id = RecordKey::from(key);
        if let Some(LiveBankRecords { filled, emptied, in_part, .. }) = self.banks.get_mut(&key.bank) {
            let hash = RecordHash::from(&id);
            for records in [&mut *filled, emptied, in_part] {
                records.remove(&hash);
                records.give_room_back();
            }
            if filled.is_empty() && emptied.is_empty() {
                self.banks.remove(&key.bank);
            }
        }
        if let Some(records) = self.quarantined.get_mut(&key.bank) {
            records.remove(&id);
            if records.is_empty() {
                self.quarantined.remove(&key.bank);
            }
        }
    }

    /// Whether a record of this key is live, readable or not.
    pub(super) fn holds(&self, key: &MemoryKey) -> bool {
        let id = RecordKey::from(key);
        let (of_bank, hash) = (self.banks.get(&key.bank), RecordHash::from(&id));
        of_bank.is_some_and(|of_bank| of_bank.filled.contains(&hash) || of_bank.emptied.contains(&hash))
            || self.quarantined.get(&key.bank).is_some_and(|records| records.contains_key(&id))
    }

    /// Notes the model of the vectors.
    pub(super) fn set_model(&mut self, model: Option<&ModelRef>) {
        if self.model.as_ref() != model {
            self.model = model.cloned();
        }
    }

    /// The model of the vectors.
    pub(super) fn model(&self) -> Option<&ModelRef> {
        self.model.as_ref()
    }

    /// Whether the bank holds something; an error while it is quarantined.
    pub(super) fn has(&self, bank: &Bank, partition: u32) -> Result<bool, PipelineError> {
        if let Some(UnreadableMemoryRecord { offset, problem, .. }) =
            self.quarantined.get(bank).and_then(|records| records.values().next())
        {
            let (bank, offset, problem) = (bank.clone(), *offset, problem.clone());
            return Err(PipelineError::Quarantined { bank, partition, offset, problem });
        }
        let is_awake = self.banks.get(bank).is_some_and(|of_bank| !of_bank.filled.is_empty());
        Ok(is_awake || self.asleep.get(bank).is_some_and(|of_bank| of_bank.is_filled))
    }

    /// Whether windows of a bank are to be extracted again.
    pub(super) fn is_in_part(&self, bank: &Bank) -> bool {
        self.banks.get(bank).is_some_and(|of_bank| !of_bank.in_part.is_empty())
    }

    /// When the last record of a bank was appended, in milliseconds since 1970; after a restore, the end of the read
    /// that brought it. `None` if no record of it can be read.
    pub(super) fn last_append_ms(&self, bank: &Bank) -> Option<i64> {
        let asleep = || self.asleep.get(bank).map(|of_bank| of_bank.last_append_ms);
        self.banks.get(bank).map(|of_bank| of_bank.last_append_ms).or_else(asleep)
    }

    /// The name of a bank that has or had a live record.
    pub(super) fn bank(&self, key: BankKey) -> Option<Bank> {
        self.names.get(&key).cloned()
    }

    /// The banks that hold something.
    pub(super) fn banks(&self) -> impl Iterator<Item = &Bank> {
        let awake = self.banks.iter().filter(|(_, of_bank)| !of_bank.filled.is_empty()).map(|(bank, _)| bank);
        awake.chain(self.asleep.iter().filter(|(_, of_bank)| of_bank.is_filled).map(|(bank, _)| bank))
    }

    /// The banks that hold something, and those that are quarantined; a bank may come twice.
    pub(super) fn all_banks(&self) -> impl Iterator<Item = &Bank> {
        self.banks().chain(self.quarantined.keys())
    }

    /// The live records that cannot be read.
    pub(super) fn unreadable(&self) -> impl Iterator<Item = &UnreadableMemoryRecord> {
        self.quarantined.values().flat_map(BTreeMap::values)
    }

    /// How many banks are quarantined.
    pub(super) fn quarantined_banks(&self) -> usize {
        self.quarantined.len()
    }
}
