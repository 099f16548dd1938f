//! The log as topics of a Kafka cluster.
//!
//! In: turn events and transactions. Out: records by offset. Guarantees:
//! - A transaction is there as a whole or not at all; its last record is the read position
//!   that it covers, so that what is remembered and how far was read never differ.
//! - One instance commits to a partition. Who owns it last fences those before.
//! - Only committed records are read. Positions are our own; those at the broker are
//!   written for tools that show lag, and never read.
//! - Turns are acknowledged when all in-sync copies have them.
//!
//! The files: `client` makes clients and errors, `topics` makes and compares topics, `lane`
//! reads a partition, `owner` commits to one, `position` is the record of the read position,
//! `members` says which partitions this instance is to own.

pub(crate) mod client;
pub(crate) mod lane;
pub mod members;
pub(crate) mod owner;
mod position;
mod topics;

#[cfg(test)]
mod faults;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
    time::Instant,
};

use rdkafka::{
    message::{Header, OwnedHeaders},
    producer::BaseProducer,
};

use self::{
    client::{Cluster, TRYING, Watch, let_go},
    lane::Lane,
    owner::{Outgoing, Owner},
    position::{MOVED_KEY, Moved},
    topics::Beside,
};
use super::{Batch, LiveKey, Log, LogError, Record, Rewritten, Topic, Transaction, Whole, memory_name, partition_of};
use crate::{
    config::{Expired, LogSettings},
    model::{DeadLetter, ModelRef, TurnEvent},
    sync,
};

/// Records of one read of a replay.
const REPLAYED_AT_ONCE: usize = 256;

/// Offsets looked through at first in search of the last read position.
const READ_BACK: u64 = 512;

/// Readers by topic and partition.
type Lanes = HashMap<(Topic, u32), Arc<Mutex<Lane>>>;

/// A log on a Kafka cluster.
pub struct KafkaLog {
    cluster: Cluster,
    partitions: u32,
    turns: String,
    memory: String,
    next_memory: String,
    generation: u32,
    dead_letters: String,
    lanes: Mutex<Lanes>,
    owners: Mutex<HashMap<u32, Arc<Mutex<Owner>>>>,
    /// Who fills the next generation of the memory.
    next_owner: Mutex<Option<Owner>>,
    /// Read positions by turns partition, as far as they are known to be committed.
    positions: Mutex<BTreeMap<u32, u64>>,
    plain: Mutex<Option<(BaseProducer<Watch>, Watch)>>,
    notices: Vec<String>,
}

impl KafkaLog {
    /// Reaches the cluster, makes the topics that are missing, and compares the others.
    ///
    /// # Errors
    /// [`LogError::Cluster`] when it cannot be reached or does not let us in;
    /// [`LogError::Topics`] with everything that differs.
    pub fn open(settings: &LogSettings) -> Result<Self, LogError> {
        let cluster = Cluster::new(&settings.kafka)?;
        let (generation, notices) = topics::ensure(&cluster, settings.partitions, Beside::default())?;
        Ok(Self {
            notices,
            turns: cluster.topic("turns"),
            memory: cluster.topic(&memory_name(generation)),
            next_memory: cluster.topic(&memory_name(generation + 1)),
            generation,
            next_owner: Mutex::default(),
            dead_letters: cluster.topic("dead-letters"),
            cluster,
            partitions: settings.partitions,
            lanes: Mutex::default(),
            owners: Mutex::default(),
            positions: Mutex::default(),
            plain: Mutex::default(),
        })
    }

    /// Makes the topic of edges, or compares it.
    ///
    /// # Errors
    /// [`LogError`], as [`Self::open`].
    pub fn ensure_edges(&self) -> Result<(), LogError> {
        topics::ensure(&self.cluster, self.partitions, Beside { edges: true, next: false }).map(drop)
    }

    /// What could be better about the topics, each with its remedy.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// How the cluster is reached.
    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Gives a partition back: it is not committed to any more, and not read.
    pub fn disown(&self, partition: u32) {
        sync::lock(&self.owners).remove(&partition);
        sync::lock(&self.lanes).remove(&(Topic::Turns, partition));
    }

    fn name(&self, topic: Topic) -> &str {
        match topic {
            Topic::Turns => &self.turns,
            Topic::Memory => &self.memory,
            Topic::NextMemory => &self.next_memory,
            Topic::DeadLetters => &self.dead_letters,
        }
    }

    fn check_partition(&self, topic: Topic, partition: u32) -> Result<(), LogError> {
        let partitions = match topic {
            Topic::DeadLetters => 1,
            // The turns topic has as many at least.
            Topic::Turns if partition >= self.partitions => self.turns_partitions()?,
            Topic::Memory | Topic::NextMemory | Topic::Turns => self.partitions,
        };
        if partition < partitions { Ok(()) } else { Err(LogError::NoPartition { topic, partition, partitions }) }
    }

    /// Partitions of the turns topic now: they may be added to while we run.
    fn turns_partitions(&self) -> Result<u32, LogError> {
        use rdkafka::producer::Producer;
        self.with_plain(|producer, watch| {
            let asked = producer.client().fetch_metadata(Some(&self.turns), TRYING.min(self.cluster.timeout()));
            let there = asked.map_err(|e| self.cluster.failed(watch, "asking for the topics", &e))?;
            Ok(topics::count(&there, &self.turns).unwrap_or(self.partitions))
        })
    }

    fn lane(&self, topic: Topic, partition: u32) -> Result<Arc<Mutex<Lane>>, LogError> {
        if let Some(lane) = sync::lock(&self.lanes).get(&(topic, partition)) {
            return Ok(Arc::clone(lane));
        }
        self.check_partition(topic, partition)?;
        let lane =
            Lane::open(&self.cluster, self.name(topic), partition, matches!(topic, Topic::Memory | Topic::NextMemory))?;
        Ok(Arc::clone(sync::lock(&self.lanes).entry((topic, partition)).or_insert_with(|| Arc::new(Mutex::new(lane)))))
    }

    /// Readers in this process must see what it wrote.
    fn written(&self, last: &HashMap<(String, i32), i64>) {
        let lanes = sync::lock(&self.lanes);
        for ((topic, partition), offset) in last {
            for kind in [Topic::Turns, Topic::Memory, Topic::NextMemory, Topic::DeadLetters] {
                if self.name(kind) == topic
                    && let Some(lane) = lanes.get(&(kind, partition.unsigned_abs()))
                {
                    sync::lock(lane).must_reach(offset.unsigned_abs() + 1);
                }
            }
        }
    }

    fn with_plain<T>(
        &self,
        work: impl FnOnce(&BaseProducer<Watch>, &Watch) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        let mut plain = sync::lock(&self.plain);
        let (producer, watch) = match plain.take() {
            Some(open) => open,
            None => {
                let watch = Watch::default();
                let made = self.cluster.producer().create_with_context(watch.clone());
                (made.map_err(|e| self.cluster.failed(&watch, "making a producer", &e))?, watch)
            }
        };
        let done = work(&producer, &watch);
        match done {
            Ok(_) => *plain = Some((producer, watch)),
            // It may be stranded: the next one asks anew.
            Err(_) => let_go(producer),
        }
        done
    }

    /// Writes records one by one and waits for all of them.
    fn append<'a>(&self, records: impl Iterator<Item = Outgoing<'a>>) -> Result<(), LogError> {
        let last = self.with_plain(|producer, watch| {
            let until = Instant::now() + self.cluster.timeout();
            drop(watch.take_deliveries());
            let sent = records.into_iter().try_for_each(|record| owner::send(producer, record, until));
            sent.and_then(|()| owner::drain(producer, until))
                .map_err(|e| self.cluster.failed(watch, "appending", &e))?;
            let deliveries = watch.take_deliveries();
            match deliveries.failed {
                Some(error) => Err(self.cluster.failed(watch, "appending", &error)),
                None => Ok(deliveries.last),
            }
        })?;
        self.written(&last);
        Ok(())
    }

    /// Tells memory records and read positions apart.
    fn sort(&self, partition: u32, raw: Vec<lane::Raw>, batch: &mut Batch) -> Result<(), LogError> {
        for raw in raw {
            if raw.record.key == MOVED_KEY {
                return Err(self.moved(raw.record.value.as_deref().unwrap_or_default()));
            }
            let Some(turns) = position::partition_of_key(&raw.record.key) else {
                batch.records.push(raw.record);
                continue;
            };
            let read = raw.record.value.as_deref().ok_or_else(|| "it is removed".to_owned()).and_then(position::parse);
            let next = read.map_err(|problem| LogError::Cluster {
                brokers: self.cluster.settings.brokers.clone(),
                doing: format!("reading the position at {}/{partition}, offset {}", self.memory, raw.record.offset),
                problem,
                remedy: "restore the topic from a copy",
                passing: false,
            })?;
            batch.covers.retain(|(p, _)| *p != turns);
            batch.covers.push((turns, next));
        }
        Ok(())
    }

    fn moved(&self, value: &[u8]) -> LogError {
        match Moved::parse(value) {
            Ok(Moved { generation, model, .. }) => LogError::Moved {
                topic: self.memory.clone(),
                to: self.cluster.topic(&memory_name(generation)),
                model: format!("of model {} ({})", model.name, model.hash),
            },
            Err(problem) => self.cluster.error(format!("reading {}", self.memory), problem, None),
        }
    }

    /// Where reading begins, given the position that was found.
    fn start_of(&self, partition: u32, found: Option<u64>) -> Result<u64, LogError> {
        let lane = self.lane(Topic::Turns, partition)?;
        let (earliest, _) = sync::lock(&lane).span(&self.cluster)?;
        let position = match found {
            None => earliest,
            Some(position) if position >= earliest => position,
            Some(_) if self.cluster.settings.expired == Expired::Earliest => earliest,
            Some(position) => return Err(LogError::Expired { partition, position, earliest }),
        };
        // Others may commit to a partition that is not ours: only our own is worth keeping.
        if sync::lock(&self.owners).contains_key(&partition) {
            sync::lock(&self.positions).insert(partition, position);
        }
        Ok(position)
    }
}

impl Log for KafkaLog {
    fn partitions(&self) -> u32 {
        self.partitions
    }

    fn append_turns(&self, events: &[TurnEvent]) -> Result<(), LogError> {
        let values = json_of(Topic::Turns, events)?;
        self.append(events.iter().zip(&values).map(|(event, value)| self.turn(event, value)))
    }

    fn append_dead_letters(&self, letters: &[DeadLetter]) -> Result<(), LogError> {
        let values = json_of(Topic::DeadLetters, letters)?;
        self.append(letters.iter().zip(&values).map(|(letter, value)| self.letter(letter, value)))
    }

    fn own(&self, partition: u32) -> Result<(), LogError> {
        self.check_partition(Topic::Turns, partition)?;
        // Positions and readers from before belong to a time when another may have committed.
        self.disown(partition);
        sync::lock(&self.positions).remove(&partition);
        let owner = Owner::take(&self.cluster, "extract", partition)?;
        sync::lock(&self.owners).insert(partition, Arc::new(Mutex::new(owner)));
        Ok(())
    }

    fn commit(&self, transaction: &Transaction) -> Result<(), LogError> {
        let Transaction { partition, next_offset, memory, dead_letters, forwards } = transaction;
        let (partition, next_offset) = (*partition, *next_offset);
        self.check_partition(if memory.is_empty() { Topic::Turns } else { Topic::Memory }, partition)?;
        if let Some(index) = memory.iter().position(|(key, _)| key.is_empty()) {
            let problem = "its key is empty; a memory record needs one".to_owned();
            return Err(LogError::Record { topic: Topic::Memory, partition, index, problem });
        }
        let owner = sync::lock(&self.owners).get(&partition).cloned();
        let owner = match owner {
            Some(owner) => owner,
            None => {
                self.own(partition)?;
                sync::lock(&self.owners).get(&partition).cloned().ok_or(LogError::Fenced { partition })?
            }
        };
        let position = self.read_position(partition)?;
        if next_offset < position || !self.holds(partition, next_offset)? {
            let end = self.end(Topic::Turns, partition)?;
            return Err(LogError::Position { partition, next_offset, position, end });
        }
        let home = partition % self.partitions;
        let (letters, turns) = (json_of(Topic::DeadLetters, dead_letters)?, json_of(Topic::Turns, forwards)?);
        let (key, value) = (position::key(partition), position::value(next_offset));
        let records = memory.iter().map(|(key, value)| Outgoing {
            topic: &self.memory,
            partition: Some(home),
            key,
            value: value.as_deref(),
            headers: None,
        });
        let records = records
            .chain(dead_letters.iter().zip(&letters).map(|(letter, value)| self.letter(letter, value)))
            .chain(forwards.iter().zip(&turns).map(|(event, value)| self.turn(event, value)))
            .chain(std::iter::once(Outgoing {
                topic: &self.memory,
                partition: Some(home),
                key: &key,
                value: Some(&value),
                headers: None,
            }));
        let done = sync::lock(&owner).commit(&self.cluster, records);
        match done {
            Ok(committed) => {
                sync::lock(&self.positions).insert(partition, next_offset);
                self.written(&committed.last);
                Ok(())
            }
            Err(error) => {
                self.disown(partition);
                sync::lock(&self.positions).remove(&partition);
                Err(error)
            }
        }
    }

    fn read(&self, topic: Topic, partition: u32, from: u64, limit: usize) -> Result<Batch, LogError> {
        let lane = self.lane(topic, partition)?;
        let mut lane = sync::lock(&lane);
        if !matches!(topic, Topic::Memory | Topic::NextMemory) {
            let raw = lane.read(&self.cluster, from, limit)?;
            let records: Vec<Record> = raw.into_iter().map(|raw| raw.record).collect();
            let next = records.last().map_or(from, |last| last.offset + 1);
            return Ok(Batch { records, covers: Vec::new(), next });
        }
        let mut batch = Batch { next: from, ..Batch::default() };
        // A read that brings positions and nothing else goes on: no record would mean the end.
        while batch.records.is_empty() {
            let raw = lane.read(&self.cluster, batch.next, limit)?;
            let Some(last) = raw.last() else { break };
            batch.next = last.record.offset + 1;
            self.sort(partition, raw, &mut batch)?;
        }
        Ok(batch)
    }

    fn end(&self, topic: Topic, partition: u32) -> Result<u64, LogError> {
        let lane = self.lane(topic, partition)?;
        let (_, end) = sync::lock(&lane).span(&self.cluster)?;
        Ok(end)
    }

    /// Behind it is the read position, its last record. Looked for from the end backwards: of
    /// the transactions that are shown, the last may be cut by one of another turns partition.
    fn whole(&self, topic: Topic, partition: u32) -> Result<Whole, LogError> {
        let lane = self.lane(topic, partition)?;
        let mut lane = sync::lock(&lane);
        let (low, end) = lane.span(&self.cluster)?;
        let end = end.max(lane.seen());
        let mut back = READ_BACK;
        loop {
            let begin = end.saturating_sub(back).max(low);
            let (mut from, mut whole) = (begin, None);
            loop {
                let raw = lane.read(&self.cluster, from, REPLAYED_AT_ONCE)?;
                let Some(last) = raw.last() else { break };
                from = last.record.offset + 1;
                let moved = raw.iter().find(|raw| raw.record.key == MOVED_KEY);
                if let Some(moved) = moved.filter(|_| topic == Topic::Memory) {
                    return Err(self.moved(moved.record.value.as_deref().unwrap_or_default()));
                }
                for raw in &raw {
                    if position::partition_of_key(&raw.record.key) == Some(partition) {
                        let position = raw.record.value.as_deref().and_then(|value| position::parse(value).ok());
                        whole = Some(Whole { end: raw.record.offset + 1, position });
                    }
                }
            }
            if whole.is_some() || begin == low {
                return Ok(whole.unwrap_or(Whole { end: low, position: None }));
            }
            back = back.saturating_mul(8);
        }
    }

    fn behind(&self, partition: u32, position: u64) -> Result<u64, LogError> {
        let lane = self.lane(Topic::Turns, partition)?;
        let mut lane = sync::lock(&lane);
        lane.behind(&self.cluster, position)
    }

    fn read_position(&self, partition: u32) -> Result<u64, LogError> {
        if let Some(position) = sync::lock(&self.positions).get(&partition) {
            return Ok(*position);
        }
        self.replay(partition, &mut |_| {})
    }

    fn generation(&self) -> u32 {
        self.generation
    }

    fn begin_next(&self) -> Result<(), LogError> {
        let (found, _) = topics::ensure(&self.cluster, self.partitions, Beside { edges: false, next: true })?;
        if found != self.generation {
            return Err(self.already_moved(found));
        }
        *sync::lock(&self.next_owner) = Some(Owner::take(&self.cluster, "reembed", 0)?);
        Ok(())
    }

    fn fill_next(&self, partition: u32, records: &[Rewritten], next_offset: u64) -> Result<(), LogError> {
        let mut positions = vec![(partition, next_offset)];
        // Of turns partitions beyond, whose turns are only sent on.
        for beyond in (partition..self.turns_partitions()?).step_by(self.partitions as usize).skip(1) {
            positions.insert(0, (beyond, self.read_position(beyond)?));
        }
        let positions = positions.iter().map(|(p, next)| (position::key(*p).to_vec(), Some(position::value(*next))));
        let positions: Vec<Rewritten> = positions.collect();
        let owner = sync::lock(&self.next_owner);
        let owner = owner.as_ref().ok_or(LogError::NotBegun { topic: Topic::NextMemory })?;
        let outgoing = records.iter().chain(&positions).map(|(key, value)| Outgoing {
            topic: &self.next_memory,
            partition: Some(partition),
            key,
            value: value.as_deref(),
            headers: None,
        });
        let committed = owner.commit(&self.cluster, outgoing)?;
        self.written(&committed.last);
        Ok(())
    }

    fn interrupt_next(&self) -> Result<(), LogError> {
        Owner::take(&self.cluster, "reembed", 0).map(|_| ())
    }

    /// One transaction says so everywhere; then whoever commits to the old one is fenced, and
    /// finds it when it takes a partition over.
    fn switch(&self, model: &ModelRef) -> Result<(), LogError> {
        let value = Moved::value(self.generation + 1, model);
        let generations = self.cluster.topic(topics::GENERATIONS);
        {
            let owner = sync::lock(&self.next_owner);
            let owner = owner.as_ref().ok_or(LogError::NotBegun { topic: Topic::NextMemory })?;
            let mark = |topic, partition, key| Outgoing {
                topic,
                partition: Some(partition),
                key,
                value: Some(&value),
                headers: None,
            };
            let marks = (0..self.partitions).map(|partition| mark(&self.memory, partition, MOVED_KEY));
            let marks = marks.chain(std::iter::once(mark(&generations, 0, position::GENERATION_KEY)));
            owner.commit(&self.cluster, marks)?;
        }
        (0..self.partitions).try_for_each(|partition| self.own(partition))
    }

    fn drop_old(&self) -> Result<Vec<String>, LogError> {
        topics::drop_old(&self.cluster, self.generation)
    }

    fn live_keys(&self, _partition: u32) -> Result<Option<Vec<LiveKey>>, LogError> {
        Ok(None)
    }

    /// By a reader of its own, so that nobody else's place is lost.
    fn replay(&self, partition: u32, each: &mut dyn FnMut(&Record)) -> Result<u64, LogError> {
        self.check_partition(Topic::Turns, partition)?;
        let home = partition % self.partitions;
        let mut lane = Lane::open(&self.cluster, &self.memory, home, true)?;
        let (mut from, mut found) = (lane.span(&self.cluster)?.0, None);
        loop {
            let raw = lane.read(&self.cluster, from, REPLAYED_AT_ONCE)?;
            let Some(last) = raw.last() else { return self.start_of(partition, found) };
            from = last.record.offset + 1;
            let mut batch = Batch::default();
            self.sort(home, raw, &mut batch)?;
            found = batch.covers.iter().find(|(p, _)| *p == partition).map(|(_, next)| *next).or(found);
            if home == partition {
                batch.records.iter().for_each(&mut *each);
            }
        }
    }
}

impl KafkaLog {
    /// Whether a turns partition reaches up to an offset; the broker is asked only when that
    /// is not known.
    fn holds(&self, partition: u32, next_offset: u64) -> Result<bool, LogError> {
        let lane = self.lane(Topic::Turns, partition)?;
        let mut lane = sync::lock(&lane);
        Ok(lane.seen() >= next_offset || lane.span(&self.cluster)?.1 >= next_offset)
    }

    fn already_moved(&self, generation: u32) -> LogError {
        let (topic, to) = (self.memory.clone(), self.cluster.topic(&memory_name(generation)));
        LogError::Moved { topic, to, model: "those of another run".to_owned() }
    }

    fn turn<'a>(&'a self, event: &'a TurnEvent, value: &'a [u8]) -> Outgoing<'a> {
        Outgoing {
            topic: &self.turns,
            partition: Some(partition_of(event.bank(), self.partitions)),
            key: event.bank().as_str().as_bytes(),
            value: Some(value),
            headers: None,
        }
    }

    fn letter<'a>(&'a self, letter: &DeadLetter, value: &'a [u8]) -> Outgoing<'a> {
        Outgoing {
            topic: &self.dead_letters,
            partition: Some(0),
            key: b"",
            value: Some(value),
            headers: Some(error_headers(letter, &self.turns)),
        }
    }
}

/// The topic that holds the memory now, by its whole name.
///
/// # Errors
/// [`LogError::Cluster`].
pub(crate) fn memory_topic(cluster: &Cluster) -> Result<String, LogError> {
    Ok(cluster.topic(&memory_name(topics::generation_now(cluster)?)))
}

/// Partitions of a topic by its whole name; 0 when it is not there.
///
/// # Errors
/// [`LogError::Cluster`].
pub(crate) fn partitions_of(cluster: &Cluster, topic: &str) -> Result<u32, LogError> {
    use rdkafka::producer::Producer;
    let watch = Watch::default();
    let failed = |e: &_| cluster.failed(&watch, "asking for the topics", e);
    let asking: BaseProducer<Watch> = cluster.client().create_with_context(watch.clone()).map_err(|e| failed(&e))?;
    let there = asking.client().fetch_metadata(Some(topic), cluster.timeout()).map_err(|e| failed(&e))?;
    Ok(topics::count(&there, topic).unwrap_or_default())
}

/// Why a record was rejected, under the names that Kafka Connect uses.
fn error_headers(letter: &DeadLetter, turns: &str) -> OwnedHeaders {
    let mut headers = OwnedHeaders::new();
    let mut put = |name: &str, value: &str| {
        let key = format!("__connect.errors.{name}");
        let taken = std::mem::take(&mut headers);
        headers = taken.insert(Header { key: &key, value: Some(value) });
    };
    if let Some(place) = &letter.place {
        put("topic", turns);
        put("partition", &place.partition.to_string());
        put("offset", &place.offset.to_string());
    } else {
        put("topic", &letter.origin);
    }
    put("connector.name", "ripplemem");
    put("task.id", &letter.place.as_ref().map_or(0, |p| p.partition).to_string());
    put("stage", "VALUE_CONVERTER");
    put("class.name", "ripplemem::model::TurnEvent");
    put("exception.class.name", "ripplemem.InvalidTurn");
    put("exception.message", &letter.reason);
    headers
}

fn json_of<T: serde::Serialize>(topic: Topic, values: &[T]) -> Result<Vec<Vec<u8>>, LogError> {
    let json = |(index, value)| {
        serde_json::to_vec(value).map_err(|e| LogError::Record {
            topic,
            partition: 0,
            index,
            problem: format!("it has no JSON form ({e}); report this"),
        })
    };
    values.iter().enumerate().map(json).collect()
}
