//! The units of a memory, as its topic holds them.
//!
//! In: a log, a way to embed questions. Out: every live unit's vectors and those of what its
//! turns ask, by bank; an unreadable record is an error with its partition and offset, never
//! skipped. Writes nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::calibrate::Sample;
use crate::{
    embed::EmbedError,
    language::sentences::{has_content, is_question, sentences},
    log::{Log, LogError, Topic},
    memory::quantise,
    model::{Bank, MemoryRecord, Unit, UnitId, Vector},
};

/// Content words of a question that is about something, at least.
const QUESTION_WORDS: usize = 3;
/// Records read at once.
const READ_RECORDS: usize = 64;

/// Why the units could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A question could not be embedded.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// A record of the memory topic cannot be used.
    #[error("memory partition {partition}, offset {offset}: not a memory record; restore the log from a copy")]
    Record {
        /// The partition.
        partition: u32,
        /// The offset.
        offset: u64,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
}

/// Reads the live units of every bank; `embed` gives the vector of a question.
///
/// # Errors
/// [`SampleError`] when the log cannot be read, or a question not embedded.
pub fn samples(
    log: &dyn Log,
    embed: &mut dyn FnMut(&str) -> Result<Vector, EmbedError>,
) -> Result<BTreeMap<Bank, Vec<Sample>>, SampleError> {
    let mut banks: BTreeMap<Bank, Vec<Sample>> = BTreeMap::new();
    for partition in 0..log.partitions() {
        let mut seen: BTreeSet<(Bank, UnitId)> = BTreeSet::new();
        let mut next = 0;
        loop {
            let records = log.read(Topic::Memory, partition, next, READ_RECORDS)?.records;
            let Some(last) = records.last() else { break };
            next = last.offset + 1;
            for record in &records {
                let Some(value) = &record.value else { continue };
                let held: MemoryRecord = serde_json::from_slice(value).map_err(|source| SampleError::Record {
                    partition,
                    offset: record.offset,
                    source,
                })?;
                for unit in &held.units {
                    if seen.insert((held.bank.clone(), unit.id)) {
                        let questions = asked(unit).map(|text| Ok(quantise(&embed(text)?.0)));
                        let sample = Sample::of(unit, questions.collect::<Result<_, EmbedError>>()?);
                        banks.entry(held.bank.clone()).or_default().push(sample);
                    }
                }
            }
        }
    }
    Ok(banks)
}

/// What a unit's turns ask, sentence by sentence.
fn asked(unit: &Unit) -> impl Iterator<Item = &str> {
    let asking = unit.parts.iter().filter(|part| part.marks.asks);
    let all = asking.flat_map(|part| sentences(&part.text).into_iter().filter_map(|range| part.text.get(range)));
    all.filter(|sentence| is_question(sentence) && has_content(sentence, QUESTION_WORDS))
}
