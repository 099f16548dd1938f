//! The units of a memory topic, as samples for a calibration.
//!
//! In: a log, and a way to embed questions. Out: by bank, every unit's vectors and the vectors of
//! the questions in its turns; or some of the units' texts. An unreadable record is an error with
//! its partition and offset, never skipped. Writes nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::{calibrate::CalibrationSample, error::CalibrationSampleError};
use logs::{Log, Topic};
use memory::{
    index::quantise,
    language::sentences::{has_content, is_question, sentences},
};
use models::embed::EmbedError;
use types::model::{Bank, MemoryRecord, Unit, UnitId, Vector};

/// The minimum number of content words in a question that is used.
const QUESTION_WORDS: usize = 3;
/// How many texts show how bytes store a model's vectors. Each takes a pass of the model.
const TEXTS: usize = 1_000;
/// The number of records read at once.
const READ_RECORDS: usize = 64;

/// Reads the units of every bank; `embed` returns the vector of a question.
///
/// # Errors
/// [`CalibrationSampleError`] when the log cannot be read, or a question cannot be embedded.
pub fn samples(
    log: &dyn Log,
    embed: &mut dyn FnMut(&str) -> Result<Vector, EmbedError>,
) -> Result<BTreeMap<Bank, Vec<CalibrationSample>>, CalibrationSampleError> {
    let mut banks: BTreeMap<Bank, Vec<CalibrationSample>> = BTreeMap::new();
    each_unit(log, &mut |bank, unit| {
        let questions = questions(unit).map(|text| Ok(quantise(&embed(text)?.floats())));
        let sample = CalibrationSample::of(unit, questions.collect::<Result<_, EmbedError>>()?);
        banks.entry(bank.clone()).or_default().push(sample);
        Ok(())
    })?;
    Ok(banks)
}

/// Texts of units of all banks, at most a thousand, each once and spread evenly over their alphabetical order.
///
/// # Errors
/// [`CalibrationSampleError`] when the log cannot be read.
pub fn texts(log: &dyn Log) -> Result<Vec<String>, CalibrationSampleError> {
    let mut texts = BTreeSet::new();
    each_unit(log, &mut |_, unit| {
        texts.insert(unit.restatement.clone());
        Ok(())
    })?;
    let step = texts.len().div_ceil(TEXTS).max(1);
    Ok(texts.into_iter().step_by(step).collect())
}

/// Shows every unit of the log once.
fn each_unit(
    log: &dyn Log,
    show: &mut dyn FnMut(&Bank, &Unit) -> Result<(), CalibrationSampleError>,
) -> Result<(), CalibrationSampleError> {
    for partition in 0..log.partitions() {
        let mut seen: BTreeSet<(Bank, UnitId)> = BTreeSet::new();
        let mut next = 0;
        loop {
            let records = log.read(Topic::Memory, partition, next, READ_RECORDS)?.records;
            let Some(last) = records.last() else { break };
            next = last.offset + 1;
            for record in &records {
                let Some(value) = &record.value else { continue };
                let read: MemoryRecord = serde_json::from_slice(value)
                    .map_err(|source| CalibrationSampleError::Record { partition, offset: record.offset, source })?;
                for unit in &read.units {
                    if seen.insert((read.bank.clone(), unit.id)) {
                        show(&read.bank, unit)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// The questions in a unit's turns, sentence by sentence.
fn questions(unit: &Unit) -> impl Iterator<Item = &str> {
    let asking = unit.parts.iter().filter(|part| part.marks.asks);
    let all = asking.flat_map(|part| sentences(&part.text).into_iter().filter_map(|range| part.text.get(range)));
    all.filter(|sentence| is_question(sentence) && has_content(sentence, QUESTION_WORDS))
}
