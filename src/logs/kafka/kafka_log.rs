//! The Kafka log: turn events and transactions to the cluster, records from it.
//!
//! In: calls of [`Log`]. Out: records and read positions. Each turns partition has one owner, whose
//! commits this file serialises; positions that other instances commit are never cached.

use std::{
    collections::{BTreeMap, HashMap},
    ops::ControlFlow,
    sync::{Arc, Mutex},
    time::Instant,
};

use rdkafka::producer::BaseProducer;

use super::{
    client::{ATTEMPT_TIMEOUT, KafkaClientState, KafkaCluster, drop_in_background},
    control_records::{self, GenerationSwitch, MOVED_KEY},
    group_writer::GroupWriter,
    live_key_index::LiveKeyIndex,
    operation_entries::OperationEntries,
    partition_reader::PartitionReader,
    record_lookup::RecordLookup,
    record_values::{check_sizes, json_of},
    topic_setup::{self, OPERATIONS, OptionalTopics},
    transactional_producer::{self, OutgoingRecord, TransactionalProducer},
    unmarked_transactions::UnseenCommits,
    unread_counter::{UnreadCount, UnreadCounters},
};
use crate::{
    DeletionRegistry, GenerationalLog, KeyedValue, LiveKey, Log, LogEntry, LogError, LogRecord, RawRecord, ReadBatch,
    ReadProgress, SharedLog, Topic, TopicRetention, Transaction, TransactionEnd, WriteOutcomeRegistry, WritePosition,
    memory_name, partition_of,
};
use types::{
    config::{ExpiredTurnPolicy, LogSettings},
    model::{Bank, DeadLetter, ModelRef, TurnEvent},
    sync,
    wake_signal::WakeSignal,
};

/// Records that a replay reads at once.
const REPLAYED_AT_ONCE: usize = 256;
/// How many offsets before the end are searched first for the last read position.
const FIRST_SEARCH: u64 = 512;

/// Readers by topic and partition, and how far they must read.
#[derive(Default)]
pub(super) struct PartitionReaders {
    open: HashMap<(Topic, u32), Arc<Mutex<PartitionReader>>>,
    /// The end of what this process wrote. It outlives a reader, because a busy broker may report an older end to the
    /// next one.
    written_ends: HashMap<(Topic, u32), u64>,
}

impl PartitionReaders {
    pub(super) fn written_end(&self, topic: Topic, partition: u32) -> u64 {
        self.written_ends.get(&(topic, partition)).copied().unwrap_or_default()
    }
}

/// A log on a Kafka cluster.
pub struct KafkaLog {
    cluster: KafkaCluster,
    partitions: u32,
    turns: String,
    pub(super) memory: String,
    next_memory: String,
    generation: u32,
    dead_letters: String,
    pub(super) readers: Mutex<PartitionReaders>,
    pub(super) owners: Mutex<HashMap<u32, Arc<Mutex<TransactionalProducer>>>>,
    pub(super) unseen: UnseenCommits,
    pub(super) counters: UnreadCounters,
    /// The writer of the next generation of the memory.
    next_owner: Mutex<Option<TransactionalProducer>>,
    /// Committed read positions of owned turns partitions.
    positions: Mutex<BTreeMap<u32, ReadProgress>>,
    /// The producer of records outside transactions; `None` until it is used, and after an error.
    producer: Mutex<Option<(BaseProducer<KafkaClientState>, KafkaClientState)>>,
    /// For each record of the memory topic that cannot be read, by partition and offset: the offset up to which no
    /// later record of its key was found.
    unread: Mutex<HashMap<(u32, u64), u64>>,
    /// Where live records lie, for the memory partitions whose banks were listed.
    pub(super) live: Mutex<HashMap<u32, Arc<Mutex<LiveKeyIndex>>>>,
    /// Readers of single records of memory partitions.
    pub(super) lookups: Mutex<HashMap<u32, Arc<Mutex<RecordLookup>>>>,
    entries: Mutex<OperationEntries>,
    /// When words leave the topics, and when that was read.
    pub(super) leaving: Mutex<Option<(Instant, TopicRetention)>>,
    notices: Vec<String>,
    news: Arc<WakeSignal>,
    pub(super) group_writer: GroupWriter,
    pub(super) deletions: DeletionRegistry,
    pub(super) outcomes: WriteOutcomeRegistry,
}

/// A read position that cannot be read.
pub(super) struct UnreadablePosition {
    /// The partition of the turns topic.
    turns: u32,
    offset: u64,
    problem: String,
}

impl KafkaLog {
    /// Connects to the cluster, creates missing topics, and checks the others.
    ///
    /// # Errors
    /// [`LogError::Cluster`] when it cannot be reached or refuses access; [`LogError::Topics`] with
    /// every difference.
    pub fn open(settings: &LogSettings) -> Result<Self, LogError> {
        let cluster = KafkaCluster::new(&settings.kafka)?;
        let (generation, notices) = topic_setup::ensure(&cluster, settings.partitions, OptionalTopics::default())?;
        Ok(Self {
            notices,
            news: Arc::default(),
            group_writer: GroupWriter::default(),
            deletions: DeletionRegistry::default(),
            outcomes: WriteOutcomeRegistry::default(),
            turns: cluster.topic("turns"),
            memory: cluster.topic(&memory_name(generation)),
            next_memory: cluster.topic(&memory_name(generation + 1)),
            generation,
            next_owner: Mutex::default(),
            dead_letters: cluster.topic("dead-letters"),
            cluster,
            partitions: settings.partitions,
            readers: Mutex::default(),
            owners: Mutex::default(),
            unseen: UnseenCommits::default(),
            counters: UnreadCounters::default(),
            positions: Mutex::default(),
            producer: Mutex::default(),
            unread: Mutex::default(),
            live: Mutex::default(),
            lookups: Mutex::default(),
            entries: Mutex::default(),
            leaving: Mutex::default(),
        })
    }

    /// Creates the topic of edges, or checks it.
    ///
    /// # Errors
    /// [`LogError`], as [`Self::open`].
    pub fn ensure_edges(&self) -> Result<(), LogError> {
        topic_setup::ensure(&self.cluster, self.partitions, OptionalTopics { edges: true, ..OptionalTopics::default() })
            .map(drop)
    }

    /// Topic properties that work but could be better, each with its remedy.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// The cluster's settings and client configurations.
    pub fn cluster(&self) -> &KafkaCluster {
        &self.cluster
    }

    pub(super) fn name(&self, topic: Topic) -> &str {
        match topic {
            Topic::Turns => &self.turns,
            Topic::Memory => &self.memory,
            Topic::NextMemory => &self.next_memory,
            Topic::DeadLetters => &self.dead_letters,
        }
    }

    pub(super) fn check_partition(&self, topic: Topic, partition: u32) -> Result<(), LogError> {
        let partitions = match topic {
            Topic::DeadLetters => 1,
            // The turns topic may have more partitions than the memory topic.
            Topic::Turns if partition >= self.partitions => self.turns_partitions()?,
            Topic::Memory | Topic::NextMemory | Topic::Turns => self.partitions,
        };
        if partition < partitions { Ok(()) } else { Err(LogError::NoPartition { topic, partition, partitions }) }
    }

    /// The current partition count of the turns topic: an operator may add partitions at any time.
    pub(super) fn turns_partitions(&self) -> Result<u32, LogError> {
        use rdkafka::producer::Producer;
        self.with_producer(|producer, watch| {
            let metadata =
                producer.client().fetch_metadata(Some(&self.turns), ATTEMPT_TIMEOUT.min(self.cluster.timeout()));
            let metadata = metadata.map_err(|e| self.cluster.failed(watch, "asking for the topics", &e))?;
            Ok(topic_setup::count(&metadata, &self.turns).unwrap_or(self.partitions))
        })
    }

    fn reader(&self, topic: Topic, partition: u32) -> Result<Arc<Mutex<PartitionReader>>, LogError> {
        if let Some(reader) = sync::lock(&self.readers).open.get(&(topic, partition)) {
            return Ok(Arc::clone(reader));
        }
        self.check_partition(topic, partition)?;
        let mut reader = PartitionReader::open(
            &self.cluster,
            self.name(topic),
            partition,
            matches!(topic, Topic::Memory | Topic::NextMemory),
        )?;
        reader.announce(&self.news);
        let mut readers = sync::lock(&self.readers);
        reader.must_reach(readers.written_end(topic, partition));
        Ok(Arc::clone(readers.open.entry((topic, partition)).or_insert_with(|| Arc::new(Mutex::new(reader)))))
    }

    /// Makes readers of this process see what it wrote.
    pub(super) fn reach_written(&self, last: &HashMap<(String, i32), i64>) {
        let mut readers = sync::lock(&self.readers);
        for ((topic, partition), offset) in last {
            let kinds = [Topic::Turns, Topic::Memory, Topic::NextMemory, Topic::DeadLetters];
            let Some(kind) = kinds.into_iter().find(|kind| self.name(*kind) == topic) else { continue };
            let (of, end) = ((kind, partition.unsigned_abs()), offset.unsigned_abs() + 1);
            let written_end = readers.written_ends.entry(of).or_default();
            *written_end = end.max(*written_end);
            if let Some(reader) = readers.open.get(&of) {
                sync::lock(reader).must_reach(end);
            }
        }
        drop(readers);
        self.news.raise();
    }

    /// Runs `work` with the shared producer; a failed one is closed, because it may be stranded.
    fn with_producer<T>(
        &self,
        work: impl FnOnce(&BaseProducer<KafkaClientState>, &KafkaClientState) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        let mut shared = sync::lock(&self.producer);
        let (producer, watch) = match shared.take() {
            Some(open) => open,
            None => {
                let watch = KafkaClientState::default();
                let made = self.cluster.producer().create_with_context(watch.clone());
                (made.map_err(|e| self.cluster.failed(&watch, "making a producer", &e))?, watch)
            }
        };
        let result = work(&producer, &watch);
        match result {
            Ok(_) => *shared = Some((producer, watch)),
            Err(_) => drop_in_background(producer),
        }
        result
    }

    /// Appends records outside a transaction, and waits for all acknowledgements.
    pub(super) fn append<'a>(
        &self,
        records: impl Iterator<Item = OutgoingRecord<'a>>,
    ) -> Result<HashMap<(String, i32), i64>, LogError> {
        let last = self.with_producer(|producer, watch| {
            let until = Instant::now() + self.cluster.timeout();
            drop(watch.take_deliveries());
            let sent = records.into_iter().try_for_each(|record| transactional_producer::send(producer, record, until));
            sent.and_then(|()| transactional_producer::drain(producer, until))
                .map_err(|e| self.cluster.failed(watch, "appending", &e))?;
            let deliveries = watch.take_deliveries();
            match deliveries.failed {
                Some(error) => Err(self.cluster.failed(watch, "appending", &error)),
                None => Ok(deliveries.last),
            }
        })?;
        self.reach_written(&last);
        Ok(last)
    }

    /// Adds the memory records and read positions of `raw` to `batch`, and returns the read positions that cannot be
    /// read. A control record that cannot be read is added as if it were a memory record, so that readers stop before
    /// it. It is left out if a later record of its key replaces or removes it.
    pub(super) fn split(
        &self,
        partition: u32,
        raw: Vec<RawRecord>,
        batch: &mut ReadBatch,
    ) -> Result<Vec<UnreadablePosition>, LogError> {
        let mut unread = Vec::new();
        for RawRecord { record, .. } in raw {
            let value = record.value.as_deref();
            let turns = control_records::partition_of_key(&record.key);
            if record.key == MOVED_KEY {
                if let Some(moved) = value.and_then(|value| self.moved(value)) {
                    return Err(moved);
                }
            } else if let Some(turns) = turns {
                if let Ok(next) = control_records::read(value) {
                    batch.covers.retain(|(p, _)| *p != turns);
                    batch.covers.push((turns, next));
                    continue;
                }
            } else {
                batch.records.push(record);
                continue;
            }
            if self.is_replaced(partition, &record)? {
                continue;
            }
            if let Some((turns, problem)) = turns.zip(control_records::read(value).err()) {
                unread.push(UnreadablePosition { turns, offset: record.offset, problem });
            }
            if record.value.is_some() {
                batch.records.push(record);
            }
        }
        Ok(unread)
    }

    /// The error for a read position that cannot be read.
    fn unreadable(&self, home: u32, UnreadablePosition { turns, offset, problem }: UnreadablePosition) -> LogError {
        LogError::Unreadable {
            topic: self.memory.clone(),
            partition: home,
            offset,
            what: control_records::describe_key(&control_records::key(turns)).unwrap_or_default(),
            problem,
        }
    }

    /// The error of a memory topic that was replaced by a later generation; `None` if the mark cannot be read.
    fn moved(&self, value: &[u8]) -> Option<LogError> {
        let GenerationSwitch { generation, model, .. } = GenerationSwitch::parse(value).ok()?;
        Some(LogError::Moved {
            topic: self.memory.clone(),
            to: self.cluster.topic(&memory_name(generation)),
            model: format!("of model {} ({})", model.name, model.hash),
        })
    }

    /// [`Log::replay`]. With `settled`, it first waits until every open transaction has ended, because a transaction of
    /// another owner hides what was committed after it. A caller that only reads must not wait for a writer that died.
    /// This uses a separate reader, so that the shared one keeps its position.
    fn read_back(
        &self,
        partition: u32,
        settled: bool,
        each: &mut dyn FnMut(&LogRecord),
    ) -> Result<ReadProgress, LogError> {
        self.check_partition(Topic::Turns, partition)?;
        let home = partition % self.partitions;
        let mut reader = PartitionReader::open(&self.cluster, &self.memory, home, true)?;
        reader.must_reach(sync::lock(&self.readers).written_end(Topic::Memory, home));
        if settled {
            self.end_unmarked(partition)?;
            reader.settle(&self.cluster)?;
        }
        let (mut from, mut committed) = (reader.span(&self.cluster)?.0, None);
        loop {
            let raw = reader.read(&self.cluster, from, REPLAYED_AT_ONCE)?;
            let Some(last) = raw.last() else { return self.resume_position(partition, committed) };
            from = last.record.offset + 1;
            let mut batch = ReadBatch::default();
            let unread = self.split(home, raw, &mut batch)?;
            if let Some(unread) = unread.into_iter().find(|unread| unread.turns == partition) {
                return Err(self.unreadable(home, unread));
            }
            committed = batch.covers.iter().find(|(p, _)| *p == partition).map(|(_, to)| to.clone()).or(committed);
            if home == partition {
                let is_ours = |record: &&LogRecord| control_records::describe_key(&record.key).is_none();
                batch.records.iter().filter(is_ours).for_each(&mut *each);
            }
        }
    }

    /// The read position, given the committed one.
    fn resume_position(&self, partition: u32, committed: Option<ReadProgress>) -> Result<ReadProgress, LogError> {
        let reader = self.reader(Topic::Turns, partition)?;
        let (earliest, _) = sync::lock(&reader).span(&self.cluster)?;
        let position = match committed {
            None => earliest.into(),
            Some(progress) if progress.low() >= earliest => progress,
            Some(progress) if self.cluster.settings.expired == ExpiredTurnPolicy::Earliest => {
                progress.from_offset(earliest)
            }
            Some(progress) => return Err(LogError::Expired { partition, position: progress.low(), earliest }),
        };
        // Another instance may move the position of a partition that we do not own: do not cache it.
        if sync::lock(&self.owners).contains_key(&partition) {
            sync::lock(&self.positions).insert(partition, position.clone());
        }
        Ok(position)
    }
}

impl Log for KafkaLog {
    fn partitions(&self) -> u32 {
        self.partitions
    }

    fn append_turns(&self, events: &[TurnEvent]) -> Result<WritePosition, LogError> {
        let values = json_of(Topic::Turns, events)?;
        check_sizes(Topic::Turns, 0, values.iter().map(Vec::as_slice))?;
        let last = self.append(events.iter().zip(&values).map(|(event, value)| self.outgoing_turn(event, value)))?;
        Ok(self.position_of(events, &last))
    }

    fn append_together(&self, events: &[TurnEvent]) -> Result<WritePosition, LogError> {
        self.append_in_transaction(events)
    }

    fn append_dead_letters(&self, letters: &[DeadLetter]) -> Result<(), LogError> {
        let values = json_of(Topic::DeadLetters, letters)?;
        check_sizes(Topic::DeadLetters, 0, values.iter().map(Vec::as_slice))?;
        self.append(letters.iter().zip(&values).map(|(letter, value)| self.outgoing_letter(letter, value))).map(drop)
    }

    fn own(&self, partition: u32) -> Result<(), LogError> {
        self.check_partition(Topic::Turns, partition)?;
        // Another instance may have committed since: the cached position may be stale.
        self.disown(partition);
        sync::lock(&self.positions).remove(&partition);
        let owner = TransactionalProducer::take(&self.cluster, "extract", partition)?;
        sync::lock(&self.owners).insert(partition, Arc::new(Mutex::new(owner)));
        Ok(())
    }

    /// Closes its producer and its reader.
    fn disown(&self, partition: u32) {
        sync::lock(&self.owners).remove(&partition);
        self.unseen.forget(partition);
        sync::lock(&self.readers).open.remove(&(Topic::Turns, partition));
    }

    fn maintain(&self, partition: u32) -> Result<(), LogError> {
        self.check_last_commit(partition)
    }

    fn news(&self) -> &Arc<WakeSignal> {
        &self.news
    }

    fn commit(&self, transaction: &Transaction) -> Result<(), LogError> {
        let Transaction { partition, next_offset, memory, dead_letters, .. } = transaction;
        let forwards = transaction.appended_turns();
        let (partition, next_offset) = (*partition, *next_offset);
        self.check_partition(if memory.is_empty() { Topic::Turns } else { Topic::Memory }, partition)?;
        if let Some(index) = memory.iter().position(|(key, _)| key.is_empty()) {
            let problem = "its key is empty; a memory record needs one".to_owned();
            return Err(LogError::Record { topic: Topic::Memory, partition, index, problem });
        }
        check_sizes(Topic::Memory, partition, memory.iter().map(|(_, value)| value.as_deref().unwrap_or_default()))?;
        let owner = sync::lock(&self.owners).get(&partition).cloned();
        let owner = match owner {
            Some(owner) => owner,
            None => {
                self.own(partition)?;
                sync::lock(&self.owners).get(&partition).cloned().ok_or(LogError::Fenced { partition })?
            }
        };
        let position = self.progress(partition)?.through;
        if next_offset < position || !self.reaches(partition, next_offset)? {
            let end = self.end(Topic::Turns, partition)?;
            return Err(LogError::Position { partition, next_offset, position, end });
        }
        let home = partition % self.partitions;
        let (letters, turns) = (json_of(Topic::DeadLetters, dead_letters)?, json_of(Topic::Turns, &forwards)?);
        check_sizes(Topic::DeadLetters, 0, letters.iter().map(Vec::as_slice))?;
        check_sizes(Topic::Turns, partition, turns.iter().map(Vec::as_slice))?;
        let progress = transaction.progress();
        let (key, value) = (control_records::key(partition), control_records::value(&progress));
        let records = memory.iter().map(|(key, value)| OutgoingRecord {
            topic: &self.memory,
            partition: Some(home),
            key: Some(key),
            value: value.as_deref(),
            headers: None,
        });
        let owner = sync::lock(&owner);
        let records = records
            .chain(
                dead_letters
                    .iter()
                    .zip(&letters)
                    .map(|(letter, value)| self.outgoing_letter(letter, value).with_owner_header(owner.name())),
            )
            .chain(
                forwards
                    .iter()
                    .zip(&turns)
                    .map(|(event, value)| self.outgoing_turn(event, value).with_owner_header(owner.name())),
            )
            .chain(std::iter::once(OutgoingRecord {
                topic: &self.memory,
                partition: Some(home),
                key: Some(&key),
                value: Some(&value),
                headers: None,
            }));
        let result = owner.commit(&self.cluster, records);
        drop(owner);
        match result {
            Ok(committed) => {
                sync::lock(&self.positions).insert(partition, progress);
                self.reach_written(&committed.last);
                self.unseen.note(partition, committed.last);
                Ok(())
            }
            Err(error) => {
                self.disown(partition);
                sync::lock(&self.positions).remove(&partition);
                Err(error)
            }
        }
    }

    fn read(&self, topic: Topic, partition: u32, from: u64, limit: usize) -> Result<ReadBatch, LogError> {
        let reader = self.reader(topic, partition)?;
        let mut reader = sync::lock(&reader);
        if !matches!(topic, Topic::Memory | Topic::NextMemory) {
            let raw = reader.read(&self.cluster, from, limit)?;
            let records: Vec<LogRecord> = raw.into_iter().map(|raw| raw.record).collect();
            let next = records.last().map_or(from, |last| last.offset + 1);
            return Ok(ReadBatch { records, covers: Vec::new(), next });
        }
        let mut batch = ReadBatch { next: from, ..ReadBatch::default() };
        // An empty batch means the end, so a read that found only positions continues.
        while batch.records.is_empty() {
            let raw = reader.read(&self.cluster, batch.next, limit)?;
            let Some(last) = raw.last() else { break };
            batch.next = last.record.offset + 1;
            drop(self.split(partition, raw, &mut batch)?);
        }
        Ok(batch)
    }

    fn end(&self, topic: Topic, partition: u32) -> Result<u64, LogError> {
        let reader = self.reader(topic, partition)?;
        let (_, end) = sync::lock(&reader).span(&self.cluster)?;
        Ok(end)
    }

    /// Markers of the transactions that forwarded turns may follow the last turn. A separate reader searches backwards
    /// from the end, so that the shared one keeps its position.
    fn end_of_turns(&self, partition: u32) -> Result<u64, LogError> {
        self.check_partition(Topic::Turns, partition)?;
        let mut reader = PartitionReader::open(&self.cluster, &self.turns, partition, false)?;
        reader.settle(&self.cluster)?;
        let (low, end) = reader.span(&self.cluster)?;
        let mut distance = FIRST_SEARCH;
        loop {
            let begin = end.saturating_sub(distance).max(low);
            let mut next = begin;
            while let Some(last) = reader.read(&self.cluster, next, REPLAYED_AT_ONCE)?.last() {
                next = last.record.offset + 1;
            }
            if next > begin || begin == low {
                return Ok(next);
            }
            distance = distance.saturating_mul(8);
        }
    }

    /// A transaction's last record is its read position, so this searches backwards from the end for
    /// the last one of this turns partition; another turns partition's transaction may follow it.
    fn last_transaction(&self, topic: Topic, partition: u32) -> Result<TransactionEnd, LogError> {
        let reader = self.reader(topic, partition)?;
        let mut reader = sync::lock(&reader);
        let (low, end) = reader.span(&self.cluster)?;
        let end = end.max(reader.known_end());
        let mut distance = FIRST_SEARCH;
        loop {
            let begin = end.saturating_sub(distance).max(low);
            let (mut from, mut last_end) = (begin, None);
            loop {
                let raw = reader.read(&self.cluster, from, REPLAYED_AT_ONCE)?;
                let Some(last) = raw.last() else { break };
                from = last.record.offset + 1;
                let moved = raw.iter().filter(|raw| raw.record.key == MOVED_KEY && topic == Topic::Memory);
                if let Some(moved) = moved.filter_map(|raw| self.moved(raw.record.value.as_deref()?)).next() {
                    return Err(moved);
                }
                for RawRecord { record, .. } in &raw {
                    if control_records::partition_of_key(&record.key) == Some(partition) {
                        let position = control_records::read(record.value.as_deref());
                        last_end = Some((record.offset, position));
                    }
                }
            }
            match last_end {
                Some((offset, Ok(position))) => {
                    return Ok(TransactionEnd { end: offset + 1, position: Some(position) });
                }
                Some((offset, Err(problem))) => {
                    let unread = UnreadablePosition { turns: partition, offset, problem };
                    return Err(self.unreadable(partition, unread));
                }
                None if begin == low => return Ok(TransactionEnd { end: low, position: None }),
                None => {}
            }
            distance = distance.saturating_mul(8);
        }
    }

    fn lag(&self, partition: u32, position: u64) -> Result<u64, LogError> {
        Ok(self.count_unread(Topic::Turns, partition, position)?.records)
    }

    fn records_after(&self, partition: u32, offset: u64) -> Result<u64, LogError> {
        Ok(self.count_unread(Topic::Memory, partition, offset)?.records)
    }

    fn after_markers(&self, partition: u32, position: u64) -> Result<u64, LogError> {
        let UnreadCount { records, end } = self.count_unread(Topic::Turns, partition, position)?;
        Ok(if records == 0 { end.max(position) } else { position })
    }

    fn progress(&self, partition: u32) -> Result<ReadProgress, LogError> {
        if let Some(progress) = sync::lock(&self.positions).get(&partition) {
            return Ok(progress.clone());
        }
        let owned = sync::lock(&self.owners).contains_key(&partition);
        self.read_back(partition, owned, &mut |_| {})
    }

    fn generation(&self) -> u32 {
        self.generation
    }

    fn shared(&self) -> Option<&dyn SharedLog> {
        Some(self)
    }

    fn interrupt_next(&self) -> Result<(), LogError> {
        TransactionalProducer::take(&self.cluster, "reembed", 0).map(|_| ())
    }

    fn live_keys(&self, _partition: u32) -> Result<Option<Vec<LiveKey>>, LogError> {
        Ok(None)
    }

    fn live_records(
        &self,
        partition: u32,
        prefix: &[u8],
        wanted: &mut dyn FnMut(&[u8], u64) -> bool,
        each: &mut dyn FnMut(&LogRecord) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        self.indexed_records(partition, prefix, wanted, each)
    }

    fn listed_to(&self, bank: &Bank) -> Result<u64, LogError> {
        let partition = partition_of(bank, self.partitions);
        self.with_index(partition, |index| Ok(index.covered(partition, bank)))
    }

    fn entries(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, LogError> {
        sync::lock(&self.entries).with_prefix(&self.cluster, prefix)
    }

    fn append_with_entries(&self, events: &[TurnEvent], entries: Vec<LogEntry>) -> Result<WritePosition, LogError> {
        let written = self.append_turns(events)?;
        let topic = self.cluster.topic(OPERATIONS);
        let last = self.append(entries.iter().map(|(name, value)| OutgoingRecord {
            topic: &topic,
            partition: Some(0),
            key: Some(name.as_bytes()),
            value: value.as_deref(),
            headers: None,
        }))?;
        if let Some(end) = last.values().max() {
            sync::lock(&self.entries).note_written(end.unsigned_abs() + 1);
        }
        Ok(written)
    }

    fn topic_retention(&self) -> Result<Option<TopicRetention>, LogError> {
        self.known_retention().map(Some)
    }

    fn control_problem(&self, record: &LogRecord) -> Option<String> {
        control_records::problem(&record.key, record.value.as_deref())
    }

    /// Each search continues where the previous one ended.
    fn is_replaced(&self, partition: u32, record: &LogRecord) -> Result<bool, LogError> {
        let of = (partition, record.offset);
        let mut from = sync::lock(&self.unread).get(&of).copied().unwrap_or(record.offset + 1);
        // Records may have been written here outside transactions, so the last offset may hold a record.
        let mut reader = PartitionReader::open(&self.cluster, &self.memory, partition, false)?;
        loop {
            let raw = reader.read(&self.cluster, from, REPLAYED_AT_ONCE)?;
            let Some(last) = raw.last() else { break };
            from = last.record.offset + 1;
            if raw.iter().any(|later| later.record.key == record.key) {
                sync::lock(&self.unread).remove(&of);
                return Ok(true);
            }
        }
        sync::lock(&self.unread).insert(of, from);
        Ok(false)
    }

    fn replay(&self, partition: u32, each: &mut dyn FnMut(&LogRecord)) -> Result<ReadProgress, LogError> {
        self.read_back(partition, true, each)
    }
}

impl GenerationalLog for KafkaLog {
    fn begin_next(&self) -> Result<(), LogError> {
        let (found, _) = topic_setup::ensure(
            &self.cluster,
            self.partitions,
            OptionalTopics { next: true, ..OptionalTopics::default() },
        )?;
        if found != self.generation {
            return Err(self.already_moved(found));
        }
        *sync::lock(&self.next_owner) = Some(TransactionalProducer::take(&self.cluster, "reembed", 0)?);
        Ok(())
    }

    fn fill_next(&self, partition: u32, records: &[KeyedValue], progress: &ReadProgress) -> Result<(), LogError> {
        let mut positions = vec![(partition, progress.clone())];
        // The additional turns partitions, whose turns are only forwarded, have positions here, too.
        for beyond in (partition..self.turns_partitions()?).step_by(self.partitions as usize).skip(1) {
            positions.insert(0, (beyond, self.replay(beyond, &mut |_| {})?));
        }
        let positions =
            positions.iter().map(|(p, next)| (control_records::key(*p).to_vec(), Some(control_records::value(next))));
        let positions: Vec<KeyedValue> = positions.collect();
        let owner = sync::lock(&self.next_owner);
        let owner = owner.as_ref().ok_or(LogError::NotBegun { topic: Topic::NextMemory })?;
        let outgoing = records.iter().chain(&positions).map(|(key, value)| OutgoingRecord {
            topic: &self.next_memory,
            partition: Some(partition),
            key: Some(key),
            value: value.as_deref(),
            headers: None,
        });
        let committed = owner.commit(&self.cluster, outgoing)?;
        self.reach_written(&committed.last);
        Ok(())
    }

    /// One transaction marks every partition of the old generation as replaced. Then this fences the owners of the old
    /// generation; they find the mark when they own a partition again.
    fn switch(&self, model: &ModelRef) -> Result<(), LogError> {
        let value = GenerationSwitch::value(self.generation + 1, model);
        let generations = self.cluster.topic(topic_setup::GENERATIONS);
        {
            let owner = sync::lock(&self.next_owner);
            let owner = owner.as_ref().ok_or(LogError::NotBegun { topic: Topic::NextMemory })?;
            let mark = |topic, partition, key| OutgoingRecord {
                topic,
                partition: Some(partition),
                key: Some(key),
                value: Some(&value),
                headers: None,
            };
            let marks = (0..self.partitions).map(|partition| mark(&self.memory, partition, MOVED_KEY));
            let marks = marks.chain(std::iter::once(mark(&generations, 0, control_records::GENERATION_KEY)));
            owner.commit(&self.cluster, marks)?;
        }
        (0..self.partitions).try_for_each(|partition| self.own(partition))
    }

    fn drop_old(&self) -> Result<Vec<String>, LogError> {
        topic_setup::drop_old(&self.cluster, self.generation)
    }
}

impl KafkaLog {
    /// Whether a turns partition has all offsets before `next_offset`; asks the broker only when the
    /// reader does not know.
    fn reaches(&self, partition: u32, next_offset: u64) -> Result<bool, LogError> {
        let reader = self.reader(Topic::Turns, partition)?;
        let mut reader = sync::lock(&reader);
        Ok(reader.known_end() >= next_offset || reader.span(&self.cluster)?.1 >= next_offset)
    }

    fn already_moved(&self, generation: u32) -> LogError {
        let (topic, to) = (self.memory.clone(), self.cluster.topic(&memory_name(generation)));
        LogError::Moved { topic, to, model: "those of another run".to_owned() }
    }
}
