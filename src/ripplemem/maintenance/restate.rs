//! Statements for memory records that were written before statements were kept, or by other rules.
//!
//! In: a log. Out: the same records with what their turns state that lasts. Nothing is embedded and no model is asked;
//! turns, units and vectors stay byte for byte what they were. A record that cannot be read stays as it is. Records are
//! written with the read position that covers them already, so that no turn is extracted again. A killed run is run
//! again: it skips the records that it wrote.

use std::collections::HashMap;

use logs::{self, KeyedValue, Log, ReadProgress, Topic, Transaction};
use memory::{
    extract::TurnLanguages,
    statements::{is_outdated, record_statements},
};
use pipeline::{LiveRecords, PipelineError, Progress, record_of};
use types::{
    config::Pipeline,
    model::{MemoryKey, MemoryRecord, WindowTurn},
};

/// How many records are written at once.
const RECORDS_AT_ONCE: usize = 256;

/// What a run wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RestateReport {
    /// Records that were read.
    pub records: u64,
    /// Records that were written.
    pub written: u64,
    /// Statements of the written records.
    pub statements: u64,
}

/// Searches the turns of every memory record of a log that lacks statements of the present rules.
///
/// # Errors
/// [`PipelineError`] if the log cannot be opened, read or written.
pub fn restate(pipeline: &Pipeline, progress: &mut dyn FnMut(Progress)) -> Result<RestateReport, PipelineError> {
    let log = logs::open(&pipeline.log)?;
    let mut report = RestateReport::default();
    for partition in 0..log.partitions() {
        log.own(partition)?;
        let live = LiveRecords::of(&*log, Topic::Memory, partition, |_, _| Ok(true))?;
        // Without a position, nothing was ever committed.
        let Some(covered) = live.end.position.clone() else { continue };
        let total = live.count();
        // A window has several records while it is open, and where it is long: what one states depends on all of them.
        let counts = live.grouped(window_key)?;
        let mut windows: HashMap<Vec<u8>, Vec<ReadRecord>> = HashMap::new();
        let mut waiting: Vec<KeyedValue> = Vec::new();
        let mut done = 0;
        live.each(&*log, &mut |key, record| {
            (done, report.records) = (done + 1, report.records + 1);
            progress(Progress { doing: "reading statements", done, total: Some(total), unit: "records" });
            let window = window_key(key.clone()).to_bytes();
            let read = record_of(partition, key, record)?.ok();
            let records = windows.entry(window.clone()).or_default();
            records.push(ReadRecord { key: record.key.clone(), offset: record.offset, read });
            if records.len() < counts.get(&window).map_or(1, |count| *count as usize) {
                return Ok(());
            }
            for restated in restated(windows.remove(&window).unwrap_or_default(), pipeline, partition)? {
                (report.written, report.statements) = (report.written + 1, report.statements + restated.statements);
                waiting.push((restated.key, Some(restated.value)));
            }
            if waiting.len() >= RECORDS_AT_ONCE {
                commit(&*log, partition, std::mem::take(&mut waiting), &covered)?;
            }
            Ok(())
        })?;
        if !waiting.is_empty() {
            commit(&*log, partition, waiting, &covered)?;
        }
    }
    Ok(report)
}

/// The key that all records of a window have in common.
fn window_key(key: MemoryKey) -> MemoryKey {
    MemoryKey { turn: None, part: 0, ..key }
}

/// A record of a window; without a value where it cannot be read.
struct ReadRecord {
    key: Vec<u8>,
    offset: u64,
    read: Option<MemoryRecord>,
}

/// A record with its statements.
struct RestatedRecord {
    key: Vec<u8>,
    value: Vec<u8>,
    statements: u64,
}

/// The records of a window that lack statements of the present rules, with them.
fn restated(
    records: Vec<ReadRecord>,
    pipeline: &Pipeline,
    partition: u32,
) -> Result<Vec<RestatedRecord>, PipelineError> {
    if !records.iter().filter_map(|of| of.read.as_ref()).any(|read| is_outdated(read.statements.as_ref())) {
        return Ok(Vec::new());
    }
    let turns = records.iter().filter_map(|of| of.read.as_ref()).flat_map(|read| read.turns.iter().cloned());
    let mut window: Vec<WindowTurn> = turns.collect();
    window.sort_by_key(|turn| turn.ordinal);
    window.dedup_by_key(|turn| turn.ordinal);
    let languages = TurnLanguages::of(&window, pipeline.extract.language);
    let mut restated = Vec::new();
    for ReadRecord { key, offset, read } in records {
        let Some(mut read) = read.filter(|read| is_outdated(read.statements.as_ref())) else { continue };
        let found = record_statements(&read.turns, &window, |turn| languages.of_turn(turn));
        let statements = found.found.len() as u64;
        read.statements = Some(found);
        let value = serde_json::to_vec(&read).map_err(|e| PipelineError::Record {
            partition,
            offset,
            problem: format!("window {:?} has no JSON form: {e}", read.window),
        })?;
        // A record that fills its value has no room for statements.
        if value.len() <= logs::MAX_VALUE_BYTES {
            restated.push(RestatedRecord { key, value, statements });
        }
    }
    Ok(restated)
}

fn commit(log: &dyn Log, partition: u32, memory: Vec<KeyedValue>, covered: &ReadProgress) -> Result<(), PipelineError> {
    let ReadProgress { through, behind } = covered.clone();
    let written = Transaction { partition, next_offset: through, behind, memory, ..Transaction::default() };
    Ok(log.commit(&written)?)
}
