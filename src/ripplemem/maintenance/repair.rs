//! Finds records on Kafka that cannot be read, in the log and in the memory, and replaces them as the operator decides.
//!
//! In: the cluster's settings. Out: each such record, with what may be written instead; then the new record. A record
//! is not reported if its bank is quarantined only because its vectors come from another model or have another width:
//! re-embedding makes it readable.

use erasure::unreadable_entry;
use logs::{
    LogError,
    kafka::{self, RecordProblem, RepairChecks, UnreadableKafkaRecord},
};
use memory::index::RecordUnits;
use types::record_value::{RecordValueError, read_record};
use types::{config::LogSettings, model::MemoryKey};

/// Every record that cannot be read and is the last one of its key.
///
/// # Errors
/// [`LogError::Cluster`].
pub fn unreadable_records(settings: &LogSettings) -> Result<Vec<UnreadableKafkaRecord>, LogError> {
    kafka::unreadable_records(settings, CHECKS)
}

/// Writes a record that replaces one that cannot be read, under the same key; `None` removes that record.
///
/// # Errors
/// [`LogError::Unreadable`] for a value that could not be read either; [`LogError::Cluster`].
pub fn replace_record(
    settings: &LogSettings,
    found: &UnreadableKafkaRecord,
    value: Option<&[u8]>,
) -> Result<(), LogError> {
    kafka::replace(settings, found, value, CHECKS)
}

const CHECKS: RepairChecks<'static> = RepairChecks { value: &check_value, entry: &check_entry };

/// What is wrong with an entry of an operation, if anything.
fn check_entry(name: &str, value: &[u8]) -> Option<RecordProblem> {
    let found = unreadable_entry(name, value)?;
    let remedy = "remove it, and send the request to forget again, which finds what is left of it".to_owned();
    Some(RecordProblem { what: found.what, problem: found.problem, remedy })
}

/// What is wrong with the value of a memory record, if anything.
fn check_value(key: &MemoryKey, value: &[u8]) -> Option<RecordProblem> {
    let read = read_record(key, value).and_then(|record| {
        let dimensions = record.units.first().map_or(0, |unit| unit.vector.len());
        RecordUnits::new(&record, dimensions).map_err(RecordValueError::Unreadable)
    });
    let unread = read.err()?;
    let first = match &unread {
        RecordValueError::Newer(_) => "run the newer build",
        RecordValueError::Unreadable(_) => "import an earlier export of the bank, with `ripplemem import`",
    };
    Some(RecordProblem {
        what: format!("a record of the memory, of bank {}", key.bank),
        problem: unread.to_string(),
        remedy: format!("{first}; or remove it, and the bank lacks the turns that it held"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::model::{Bank, SCHEMA_VERSION, SessionId, WindowId};

    #[test]
    fn a_value_that_quarantines_its_bank_and_one_of_a_newer_schema_are_found() {
        let window = WindowId { session: SessionId("s".to_owned()), start: 0 };
        let key = MemoryKey { bank: Bank::parse("b").expect("a bank"), window, turn: None, part: 0 };
        let found = |value: &str| check_value(&key, value.as_bytes()).expect("it cannot be read");
        let junk = found("junk");
        assert!(junk.what.contains("bank b") && junk.problem.contains("not a memory record"), "{}", junk.problem);
        assert!(junk.remedy.contains("ripplemem import") && junk.remedy.contains("remove it"), "{}", junk.remedy);
        let newer = found(&format!("{{\"schema\": {}}}", SCHEMA_VERSION + 1));
        assert!(newer.problem.contains("is newer") && newer.remedy.contains("newer build"), "{}", newer.problem);
    }
}
