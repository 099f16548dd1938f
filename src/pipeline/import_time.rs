//! When banks were imported into a log in a directory.
//!
//! In: an import that is about to write. Out: its time, which the log keeps beside its records: no record of the turns
//! log says when imported turns came.

use super::PipelineError;
use logs::Log;
use types::model::Bank;

fn name_of(bank: &Bank) -> String {
    format!("imported {bank}")
}

/// Notes that an import writes records of a bank, at a time in milliseconds since 1970. The last one counts.
pub fn note_import(log: &dyn Log, bank: &Bank, now_ms: i64) -> Result<(), PipelineError> {
    if log.erasable().is_some() {
        log.append_with_entries(&[], vec![(name_of(bank), Some(now_ms.to_string().into_bytes()))])?;
    }
    Ok(())
}

/// When a bank was imported last, in milliseconds since 1970; `None` where it was not, and on Kafka.
pub fn imported_ms(log: &dyn Log, bank: &Bank) -> Result<Option<i64>, PipelineError> {
    if log.erasable().is_none() {
        return Ok(None);
    }
    let name = name_of(bank);
    // Entries of other banks may have this prefix, too.
    let found = log.entries(&name)?.into_iter().find(|(other, _)| *other == name);
    Ok(found.and_then(|(_, ms)| std::str::from_utf8(&ms).ok()?.parse().ok()))
}
