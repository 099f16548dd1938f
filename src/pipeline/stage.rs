//! The extraction stage of one partition: turns log to memory log.
//!
//! In: turn events from the position that the memory log states. Out: one transaction a
//! read, with the records of every window that changed, the nulls of the records they
//! replace, rejects, and the new position. A crash before the transaction repeats the
//! read; the records have the same keys, so a repetition replaces itself.

use crate::{
    config::Pipeline,
    extract::{
        Extractor,
        plain::{PLAIN, plain_unit},
    },
    log::{Log, Topic, Transaction},
    model::{DeadLetter, MemoryKey, MemoryRecord, SCHEMA_VERSION, TurnEvent, Window, WindowState, WindowTurn},
    window::{WindowChange, Windower},
};

use super::{
    PipelineError,
    vectors::{Drafted, Vectors},
};

/// Turns to memory records, for one partition.
pub(super) struct Stage {
    partition: u32,
    windower: Windower,
    position: u64,
    least_content_words: u32,
    /// A read failed between its drain and its commit.
    halted: bool,
}

/// What one step wrote.
pub(super) struct Step {
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
    /// A stage that has seen nothing.
    pub(super) fn new(partition: u32, pipeline: &Pipeline) -> Self {
        let least_content_words = pipeline.extract.least_content_words;
        Self { partition, windower: Windower::new(&pipeline.window), position: 0, least_content_words, halted: false }
    }

    /// The partition.
    pub(super) fn partition(&self) -> u32 {
        self.partition
    }

    /// Takes back a live record of the memory log.
    pub(super) fn restore(&mut self, key: &MemoryKey, record: &MemoryRecord) {
        self.windower.restore(key, record);
    }

    /// Goes on from a position of the turns log.
    pub(super) fn resume(&mut self, position: u64) {
        self.position = position;
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
        let records = log.read(Topic::Turns, self.partition, self.position, limit)?;
        let mut dead_letters = Vec::new();
        for record in &records {
            let value = record.value.as_deref().unwrap_or_default();
            match TurnEvent::from_json(value) {
                Ok(event) => self.windower.apply(record.offset, &event),
                Err(reason) => {
                    let origin = format!("turns partition {}, offset {}", self.partition, record.offset);
                    dead_letters.push(DeadLetter::new(origin, reason, value));
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
        let mut planned = Vec::new();
        for change in changes {
            plan(change, extractor, self.least_content_words, &mut planned, &mut memory)?;
        }
        let (planned, drafted): (Vec<Planned>, Vec<Drafted>) = planned.into_iter().unzip();
        let mut step = Step { rejects: dead_letters.len() as u64, windows: 0, units: 0 };
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
                let value = serde_json::to_vec(&record).map_err(|e| PipelineError::Record {
                    partition: self.partition,
                    offset: next_offset,
                    problem: format!("window {:?} has no JSON form: {e}", record.window),
                })?;
                memory.push((planned.key.to_bytes(), Some(value)));
            }
        }
        log.commit(&Transaction { partition: self.partition, next_offset, memory, dead_letters })?;
        self.position = next_offset;
        self.halted = false;
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
    let key = |turn: Option<String>| MemoryKey { bank: window.bank.clone(), window: window.id.clone(), turn };
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
