//! Statements for memory records that were written before statements were kept, or by other rules.
//!
//! In: a log. Out: the same records with what their turns state that lasts. Nothing is embedded and no model is asked;
//! turns, units and vectors stay byte for byte what they were. A record that cannot be read stays as it is. Records are
//! written with the read position that covers them already, so that no turn is extracted again. A killed run is run
//! again: it skips the records that it wrote.

use logs::{self, KeyedValue, Log, ReadProgress, Topic, Transaction};
use memory::{
    extract::TurnLanguages,
    statements::{is_outdated, record_statements},
};
use pipeline::{LiveRecords, PipelineError, Progress, record_of};
use types::config::Pipeline;

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
        let mut waiting: Vec<KeyedValue> = Vec::new();
        let mut done = 0;
        live.each(&*log, &mut |key, record| {
            (done, report.records) = (done + 1, report.records + 1);
            progress(Progress { doing: "reading statements", done, total: Some(total), unit: "records" });
            let Ok(mut read) = record_of(partition, key, record)? else { return Ok(()) };
            if !is_outdated(read.statements.as_ref()) {
                return Ok(());
            }
            let languages = TurnLanguages::of(&read.turns, pipeline.extract.language);
            let found = record_statements(&read.turns, &read.turns, |turn| languages.of_turn(turn));
            let count = found.found.len() as u64;
            read.statements = Some(found);
            let value = serde_json::to_vec(&read).map_err(|e| PipelineError::Record {
                partition,
                offset: record.offset,
                problem: format!("window {:?} has no JSON form: {e}", read.window),
            })?;
            // A record that fills its value has no room for statements.
            if value.len() <= logs::MAX_VALUE_BYTES {
                waiting.push((record.key.clone(), Some(value)));
                (report.written, report.statements) = (report.written + 1, report.statements + count);
            }
            Ok(())
        })?;
        while !waiting.is_empty() {
            let rest = waiting.split_off(waiting.len().min(RECORDS_AT_ONCE));
            commit(&*log, partition, std::mem::replace(&mut waiting, rest), &covered)?;
        }
    }
    Ok(report)
}

fn commit(log: &dyn Log, partition: u32, memory: Vec<KeyedValue>, covered: &ReadProgress) -> Result<(), PipelineError> {
    let ReadProgress { through, behind } = covered.clone();
    let written = Transaction { partition, next_offset: through, behind, memory, ..Transaction::default() };
    Ok(log.commit(&written)?)
}
