//! The extraction stage of one partition: turns log to memory log.
//!
//! In: turn events from the position that the memory log states. Out: one transaction a
//! read, with the records of every window that changed, the nulls of the records they
//! replace, rejects, and the new position. A crash before the transaction repeats the
//! read; the records have the same keys, so a repetition replaces itself.

use std::collections::{BTreeMap, HashMap};

use crate::{
    config::Pipeline,
    extract::{
        Extractor,
        plain::{PLAIN, plain_unit},
    },
    log::{Log, Topic, Transaction, partition_of},
    model::{DeadLetter, MemoryKey, MemoryRecord, Place, SCHEMA_VERSION, TurnEvent, Window, WindowState, WindowTurn},
    window::{WindowChange, Windower},
};

use super::{
    PipelineError,
    split::{self, MAX_VALUE_BYTES},
    vectors::{Drafted, Vectors},
};

/// Turns to memory records, for one partition.
pub(super) struct Stage {
    partition: u32,
    windower: Windower,
    position: u64,
    least_content_words: u32,
    /// How many parts each window has that has more than one, by the key of its first.
    parts: HashMap<MemoryKey, u32>,
    /// A read failed between its drain and its commit.
    halted: bool,
}

/// The turns of the live records of a partition: what a stage goes on from.
#[derive(Debug, Default)]
pub(super) struct HeldTurns(HashMap<MemoryKey, Vec<WindowTurn>>);

impl HeldTurns {
    /// Takes the next record in log order, or its removal.
    pub(super) fn take(&mut self, key: &MemoryKey, turns: Option<Vec<WindowTurn>>) {
        match turns {
            Some(turns) => drop(self.0.insert(key.clone(), turns)),
            None => drop(self.0.remove(key)),
        }
    }
}

/// What of a record a stage needs: the units are skipped, not read.
#[derive(serde::Deserialize)]
struct TurnsOnly {
    turns: Vec<WindowTurn>,
}

/// What one step wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Step {
    /// Events that were read.
    pub events: u64,
    /// Events that lie in another partition than their bank's, and were sent there.
    pub forwards: u64,
    /// Append time of the last event, in milliseconds since 1970.
    pub append_ms: Option<i64>,
    /// Events that were rejected.
    pub rejects: u64,
    /// Windows that were written as final.
    pub windows: u64,
    /// Units of the records that were written.
    pub units: u64,
}

/// A record that is still to get its units; its drafts stand beside it.
struct Planned {
    key: MemoryKey,
    state: WindowState,
    extractor: &'static str,
    turns_hash: String,
    turns: Vec<WindowTurn>,
}

impl Stage {
    /// A stage that goes on from what the partition holds, and from a position of its turns.
    pub(super) fn new(partition: u32, pipeline: &Pipeline, held: &HeldTurns, position: u64) -> Self {
        let mut windower = Windower::new(&pipeline.window);
        let mut parts: HashMap<MemoryKey, u32> = HashMap::new();
        for (key, turns) in &held.0 {
            windower.restore(key, turns);
            if key.part > 0 {
                let count = parts.entry(MemoryKey { part: 0, ..key.clone() }).or_default();
                *count = (*count).max(key.part + 1);
            }
        }
        let least_content_words = pipeline.extract.least_content_words;
        Self { partition, windower, position, least_content_words, parts, halted: false }
    }

    /// Takes a partition over: nobody else commits to it from now on.
    pub(super) fn take_over(partition: u32, pipeline: &Pipeline, log: &dyn Log) -> Result<Self, PipelineError> {
        log.own(partition)?;
        let (mut held, mut failure) = (HeldTurns::default(), None);
        let position = log.replay(partition, &mut |record| {
            let failed = |problem: String| PipelineError::Record { partition, offset: record.offset, problem };
            let read = MemoryKey::from_bytes(&record.key).map_err(|e| failed(e.to_string())).and_then(|key| {
                let turns = record.value.as_deref().map(serde_json::from_slice::<TurnsOnly>).transpose();
                held.take(&key, turns.map_err(|e| failed(format!("not a memory record: {e}")))?.map(|t| t.turns));
                Ok(())
            });
            failure = failure.take().or(read.err());
        })?;
        failure.map_or(Ok(()), Err)?;
        Ok(Self::new(partition, pipeline, &held, position))
    }

    /// The partition.
    pub(super) fn partition(&self) -> u32 {
        self.partition
    }

    /// The first offset of its turns that is not covered.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Reads at most `limit` events and writes what they change; None when there is nothing to do.
    pub(super) fn step(
        &mut self,
        log: &dyn Log,
        extractor: &dyn Extractor,
        vectors: &mut Vectors,
        limit: usize,
    ) -> Result<Option<Step>, PipelineError> {
        if self.halted {
            return Err(PipelineError::Halted { partition: self.partition });
        }
        let records = log.read(Topic::Turns, self.partition, self.position, limit)?.records;
        let (mut dead_letters, mut forwards) = (Vec::new(), Vec::new());
        for record in &records {
            let value = record.value.as_deref().unwrap_or_default();
            let read = if record.key.is_empty() {
                Err("the record has no key; write the bank's name as its key".to_owned())
            } else {
                TurnEvent::from_json(value)
            };
            match read {
                Ok(event) if partition_of(event.bank(), log.partitions()) != self.partition => forwards.push(event),
                Ok(event) => self.windower.apply(record.offset, &event),
                Err(reason) => {
                    let place = Place { partition: self.partition, offset: record.offset };
                    dead_letters.push(DeadLetter::of_turn(place, reason, value));
                }
            }
        }
        // Drained changes are not handed out again: until they are committed, only the
        // log can give them back.
        self.halted = true;
        let changes = self.windower.drain();
        let next_offset = records.last().map_or(self.position, |r| r.offset + 1);
        if records.is_empty() && changes.is_empty() {
            self.halted = false;
            return Ok(None);
        }
        let mut memory = Vec::new();
        let mut counts = BTreeMap::new();
        let mut planned = Vec::new();
        for change in changes {
            plan(change, extractor, self.least_content_words, &mut planned, &mut memory)?;
        }
        let (planned, drafted): (Vec<Planned>, Vec<Drafted>) = planned.into_iter().unzip();
        let mut step = Step {
            events: records.len() as u64,
            forwards: forwards.len() as u64,
            append_ms: records.last().map(|r| r.append_ms),
            rejects: dead_letters.len() as u64,
            ..Step::default()
        };
        if !planned.is_empty() {
            let (model, units) = vectors.units(&drafted)?;
            for (planned, units) in planned.iter().zip(units) {
                step.units += units.len() as u64;
                step.windows += u64::from(planned.state == WindowState::Final);
                let record = MemoryRecord {
                    schema: SCHEMA_VERSION,
                    bank: planned.key.bank.clone(),
                    window: planned.key.window.clone(),
                    state: planned.state,
                    turns_hash: planned.turns_hash.clone(),
                    extractor: planned.extractor.to_owned(),
                    model: model.clone(),
                    turns: planned.turns.clone(),
                    units,
                };
                let values = split::values(&record, MAX_VALUE_BYTES).map_err(|e| PipelineError::Record {
                    partition: self.partition,
                    offset: next_offset,
                    problem: format!("window {:?} has no JSON form: {e}", record.window),
                })?;
                let count = values.len() as u32;
                let before = self.parts.get(&planned.key).copied().unwrap_or(1);
                let gone = std::iter::repeat_n(None, before.saturating_sub(count) as usize);
                let key = |part| MemoryKey { part, ..planned.key.clone() }.to_bytes();
                memory.extend((0..).map(key).zip(values.into_iter().map(Some).chain(gone)));
                if count != before {
                    counts.insert(planned.key.clone(), count);
                }
            }
        }
        log.commit(&Transaction { partition: self.partition, next_offset, memory, dead_letters, forwards })?;
        self.position = next_offset;
        self.halted = false;
        self.parts.extend(counts);
        self.parts.retain(|_, count| *count > 1);
        for (planned, drafted) in planned.iter().zip(&drafted) {
            if planned.state == WindowState::Final {
                vectors.release(drafted)?;
            }
        }
        Ok(Some(step))
    }
}

/// The records that a changed window asks for, and the nulls.
fn plan(
    change: WindowChange,
    extractor: &dyn Extractor,
    least_content_words: u32,
    planned: &mut Vec<(Planned, Drafted)>,
    memory: &mut Vec<(Vec<u8>, Option<Vec<u8>>)>,
) -> Result<(), PipelineError> {
    let WindowChange { window, closed, write_open, remove_open } = change;
    let key = |turn: Option<String>| MemoryKey { bank: window.bank.clone(), window: window.id.clone(), turn, part: 0 };
    memory.extend(remove_open.into_iter().map(|turn| (key(Some(turn)).to_bytes(), None)));
    if closed {
        let final_record = Planned {
            key: key(None),
            state: WindowState::Final,
            extractor: extractor.name(),
            turns_hash: window.turns_hash(),
            turns: window.turns.clone(),
        };
        let drafts = extractor.extract(&window)?;
        planned.push((final_record, Drafted { bank: window.bank, window: window.id, drafts }));
        return Ok(());
    }
    let mut speakers: Vec<String> = window.turns.iter().map(|t| t.turn.speaker.clone()).collect();
    speakers.sort();
    speakers.dedup();
    for turn in write_open {
        let held: Vec<WindowTurn> = window.turns.iter().filter(|t| t.turn.turn == turn).cloned().collect();
        let alone = Window { bank: window.bank.clone(), id: window.id.clone(), turns: held };
        let drafts = alone.turns.iter().filter_map(|held| plain_unit(held, &speakers, least_content_words)).collect();
        let open_record = Planned {
            key: key(Some(turn)),
            state: WindowState::Open,
            extractor: PLAIN,
            turns_hash: alone.turns_hash(),
            turns: alone.turns,
        };
        planned.push((open_record, Drafted { bank: window.bank.clone(), window: window.id.clone(), drafts }));
    }
    Ok(())
}
