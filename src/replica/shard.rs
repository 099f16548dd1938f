//! The shard of one partition: its dataflow, its reader, and what it holds (decision 39).
//!
//! In: the partition's part of a snapshot, its records. Out: a memory that answers for the banks of the
//! partition. Reading and parsing delay no question: `reader` is locked to follow the log, `held` to answer a question.
//! It knows no other shard.

use std::{
    collections::{BTreeSet, HashSet},
    sync::{
        Mutex, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use crossbeam_channel::Receiver;

use super::{
    PipelineError,
    bank_sleep::BankSleep,
    shard_reader::{LoadTarget, RestoredPartition, ShardLoadLimits, ShardReader, VectorSpace},
    shard_records::ShardRecords,
    snapshot_recorder::ShardId,
};
use logs::{Log, REMOVALS_KEPT_MS, ReadProgress, Topic};
use memory::index::{ChoiceChanges, RecordKey, RecordLoad, ShardHandle};
use snapshots::{MemoryLogRead, SnapshotError};
use types::{
    model::{Bank, MemoryKey, MemoryRecord, ModelRef},
    sync,
};

const DAY_MS: u64 = 24 * 3_600_000;
/// No offset: the shard waits before no record.
const NOWHERE: u64 = u64::MAX;

/// A partition of the memory that this process holds.
pub(super) struct ReplicaShard {
    pub(super) id: ShardId,
    pub(super) partition: u32,
    pub(super) memory: ShardHandle,
    pub(super) held: RwLock<ShardRecords>,
    pub(super) reader: Mutex<ShardReader>,
    /// The form of its vectors, once it is known: apart from the reader, which is locked while it loads.
    pub(super) vectors: RwLock<Option<VectorSpace>>,
    /// Which of its banks sleep; `None` if none does.
    pub(super) sleep: Option<BankSleep>,
    /// The changes to the choices, if they are recorded: one message for each load.
    choices: Option<Receiver<ChoiceChanges>>,
    /// The first offset that was not read.
    next: AtomicU64,
    /// Whether it has not reached the end of its log yet.
    loading: AtomicBool,
    /// The offset of the record before which it waits, because only another build reads it; [`NOWHERE`] without one.
    waits_before: AtomicU64,
}

/// The result of restoring a shard.
pub(super) struct RestoredShard {
    /// The choices that changed during the restore; there are none if the settings are the same.
    pub(super) choices: ChoiceChanges,
    /// Removals that compaction has erased from the log since the snapshot, with their choices.
    pub(super) removed: Option<(MemoryLogRead, ChoiceChanges)>,
}

impl ReplicaShard {
    /// An empty shard. `asks` is the model that embeds the questions, if known.
    pub(super) fn new(
        id: ShardId,
        partition: u32,
        memory: ShardHandle,
        choices: Option<Receiver<ChoiceChanges>>,
        asks: Option<ModelRef>,
        has_sleep: bool,
    ) -> Self {
        Self {
            id,
            partition,
            memory,
            held: RwLock::default(),
            reader: Mutex::new(ShardReader::new(partition, asks)),
            vectors: RwLock::default(),
            sleep: has_sleep.then(BankSleep::default),
            choices,
            next: AtomicU64::new(0),
            loading: AtomicBool::new(true),
            waits_before: AtomicU64::new(NOWHERE),
        }
    }

    /// The first offset that was not read.
    pub(super) fn next(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Whether it has not reached the end of its log yet.
    pub(super) fn is_loading(&self) -> bool {
        self.loading.load(Ordering::Acquire)
    }

    /// The offset of the record before which it waits, because only another build reads it.
    pub(super) fn waits_before(&self) -> Option<u64> {
        Some(self.waits_before.load(Ordering::Relaxed)).filter(|offset| *offset != NOWHERE)
    }

    /// Notes that the shard has caught up with its log, or got as far as it can.
    pub(super) fn set_loaded(&self) {
        self.loading.store(false, Ordering::Release);
    }

    /// Reads the next records and passes the read on, in the order of the loads; `None` at the end.
    pub(super) fn follow(
        &self,
        log: &dyn Log,
        each: impl FnMut(&MemoryKey, Option<&MemoryRecord>, u64),
        hand_on: impl FnOnce(MemoryLogRead, &Receiver<ChoiceChanges>),
    ) -> Result<Option<Vec<(u32, ReadProgress)>>, PipelineError> {
        let mut reader = sync::lock(&self.reader);
        let limits = if self.is_loading() { ShardLoadLimits::OF_LOG } else { ShardLoadLimits::BESIDE_QUESTIONS };
        let wake = |bank: &Bank, offset| self.wake_for_record(log, bank, offset);
        let to = LoadTarget { wake: &wake, ..self.target() };
        let read = reader.read(log, &to, limits, self.choices.is_some(), each);
        self.keep_vectors(&reader);
        self.next.store(reader.next(), Ordering::Relaxed);
        match &read {
            Err(PipelineError::Waits { offset, .. }) => self.waits_before.store(*offset, Ordering::Relaxed),
            // A read may find nothing because the broker has not yet delivered the record again.
            _ if self.waits_before().is_some_and(|offset| reader.next() > offset) => {
                self.waits_before.store(NOWHERE, Ordering::Relaxed);
            }
            _ => {}
        }
        let Some(read) = read? else { return Ok(None) };
        let covers = if read.covers.is_empty() { Vec::new() } else { reader.covers().to_vec() };
        if let Some(choices) = &self.choices {
            hand_on(read, choices);
        }
        Ok(Some(covers))
    }

    fn target(&self) -> LoadTarget<'_> {
        LoadTarget { memory: &self.memory, held: &self.held, sleep: self.sleep.as_ref(), wake: &|_, _| Ok(()) }
    }

    fn keep_vectors(&self, reader: &ShardReader) {
        if self.sleep.is_some() && sync::read(&self.vectors).as_ref() != reader.vectors() {
            *sync::write(&self.vectors) = reader.vectors().cloned();
        }
    }

    /// Reads records whose banks stay asleep, as [`ShardReader::read_asleep`].
    pub(super) fn read_asleep(&self, log: &dyn Log) -> Result<bool, PipelineError> {
        let mut reader = sync::lock(&self.reader);
        let read = reader.read_asleep(log, &self.memory);
        self.keep_vectors(&reader);
        self.next.store(reader.next(), Ordering::Relaxed);
        read
    }

    /// Leaves banks asleep, as [`ShardReader::leave_asleep`].
    pub(super) fn leave_asleep(&self, log: &dyn Log) -> BTreeSet<Bank> {
        sync::lock(&self.reader).leave_asleep(log, &self.target())
    }

    /// How far its records cover the turns.
    pub(super) fn covers(&self) -> Vec<(u32, ReadProgress)> {
        sync::lock(&self.reader).covers().to_vec()
    }

    /// Loads what a snapshot holds of the partition.
    pub(super) fn restore(&self, snapshot: &RestoredPartition<'_>) -> Result<(), PipelineError> {
        let mut reader = sync::lock(&self.reader);
        reader.restore(snapshot, &self.target())?;
        self.keep_vectors(&reader);
        self.next.store(reader.next(), Ordering::Relaxed);
        Ok(())
    }

    /// Compares what was restored with the log, removes what the log no longer holds, and waits until
    /// everything is visible.
    pub(super) fn check_restored(
        &self,
        log: &dyn Log,
        place: &str,
        snapshot: &RestoredPartition<'_>,
    ) -> Result<RestoredShard, PipelineError> {
        let removed = self.removed(log, place, snapshot)?;
        if let Some(removed) = &removed {
            let keys: Vec<MemoryKey> = removed.records.iter().map(|(key, _)| key.clone()).collect();
            let _reader = sync::lock(&self.reader);
            let changes = keys.iter().map(|key| (RecordKey::from(key), None)).collect();
            self.memory.load(RecordLoad { changes, ..RecordLoad::default() })?;
            let mut held = sync::write(&self.held);
            for key in &keys {
                if let Some(sleep) = &self.sleep {
                    sleep.note_record(key.bank.key(), None, held.holds(key));
                }
                held.remove(key);
            }
        }
        self.memory.wait_for_loads()?;
        let mut choices: Vec<ChoiceChanges> = self.choices.iter().flat_map(Receiver::try_iter).collect();
        let of_removed = if removed.is_some() { choices.pop().unwrap_or_default() } else { ChoiceChanges::new() };
        let removed = removed.map(|removed| (removed, of_removed));
        Ok(RestoredShard { choices: choices.into_iter().flatten().collect(), removed })
    }

    /// The removals that compaction has erased from the log since the snapshot.
    fn removed(
        &self,
        log: &dyn Log,
        place: &str,
        snapshot: &RestoredPartition<'_>,
    ) -> Result<Option<MemoryLogRead>, PipelineError> {
        let (partition, restored) = (self.partition, snapshot.restored);
        let Some(at) = restored.manifest.reached.iter().find(|at| at.partition == partition) else { return Ok(None) };
        let ahead = |problem| SnapshotError::Ahead { place: place.to_owned(), problem };
        let end = log.end(Topic::Memory, partition)?;
        if end < at.next_offset {
            let problem = format!("it reaches offset {} of partition {partition}", at.next_offset);
            return Err(ahead(format!("{problem}, the log ends at {end}")).into());
        }
        let Some((offset, append_ms)) = at.last else { return Ok(None) };
        let found = log.read(Topic::Memory, partition, offset, 1)?.records.into_iter().next();
        if found.is_some_and(|found| found.offset == offset && found.append_ms != append_ms) {
            return Err(ahead(format!("the log has another record at offset {offset} of it")).into());
        }
        let Some(keys_of_log) = log.live_keys(partition)? else {
            let age_ms = jiff::Timestamp::now().as_millisecond().saturating_sub(restored.manifest.taken_ms);
            let age_ms = age_ms.unsigned_abs();
            if age_ms > REMOVALS_KEPT_MS - DAY_MS {
                return Err(SnapshotError::Old { place: place.to_owned(), days: age_ms / DAY_MS }.into());
            }
            return Ok(None);
        };
        let mut live = HashSet::with_capacity(keys_of_log.len());
        let unreadable = restored.manifest.unreadable.iter().map(|record| &record.key);
        let keys = restored.records.iter().map(|record| &record.key).chain(unreadable);
        let held: HashSet<&MemoryKey> = keys.clone().collect();
        for (key, offset) in keys_of_log {
            let key = MemoryKey::from_bytes(&key).map_err(|e| ahead(e.to_string()))?;
            if offset < at.next_offset && !held.contains(&key) {
                return Err(ahead(format!("the log has a record at offset {offset} that it lacks")).into());
            }
            live.insert(key);
        }
        let gone: Vec<_> = keys.filter(|key| !live.contains(*key)).map(|key| (key.clone(), None)).collect();
        if gone.is_empty() {
            return Ok(None);
        }
        let (next_offset, offset) = (at.next_offset, end - 1);
        Ok(Some(MemoryLogRead { partition, next_offset, offset, append_ms, records: gone, ..MemoryLogRead::default() }))
    }
}
