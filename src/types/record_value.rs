//! Reads the value of a record of the memory topic.
//!
//! In: bytes. Out: the record, or why this build cannot read it: a newer schema, which another build reads, or contents
//! that no build can use. This file does not know the log.

use crate::model::{MemoryKey, MemoryRecord, OLDEST_SCHEMA_VERSION, SCHEMA_VERSION, WindowTurn};

/// Why a value could not be read as a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordValueError {
    /// A newer build wrote it.
    #[error("schema {0} is newer than {SCHEMA_VERSION}, the newest that this build reads; run the newer build")]
    Newer(u32),
    /// No build can use it.
    #[error("{0}")]
    Unreadable(String),
}

/// The field that every schema of the record has.
#[derive(serde::Deserialize)]
struct RecordSchemaVersion {
    schema: u32,
}

/// Reads a value.
///
/// # Errors
/// [`RecordValueError`].
pub fn read_value(value: &[u8]) -> Result<MemoryRecord, RecordValueError> {
    check_schema(value)?;
    serde_json::from_slice(value).map_err(|e| not_a_record(&e))
}

/// The turns of a record.
#[derive(serde::Deserialize)]
struct RecordTurnFields {
    turns: Vec<WindowTurn>,
}

/// All turns that the value of a record holds, deleted turns and context included. Its units are not read.
///
/// # Errors
/// Why it cannot be read.
pub fn turns_of(value: &[u8]) -> Result<Vec<WindowTurn>, String> {
    let read = serde_json::from_slice::<RecordTurnFields>(value);
    read.map(|read| read.turns).map_err(|error| error.to_string())
}

/// Reads the value of a key.
///
/// # Errors
/// [`RecordValueError`].
pub fn read_record(key: &MemoryKey, value: &[u8]) -> Result<MemoryRecord, RecordValueError> {
    let record = read_value(value)?;
    check_bank(key, &record).map_err(RecordValueError::Unreadable)?;
    Ok(record)
}

/// Fails for the record of another bank than its key's.
///
/// # Errors
/// The problem.
pub fn check_bank(key: &MemoryKey, record: &MemoryRecord) -> Result<(), String> {
    if record.bank == key.bank {
        return Ok(());
    }
    Err(format!("a record of bank {} under the key of bank {}", record.bank, key.bank))
}

/// Fails for a value of a schema that this build does not read.
///
/// # Errors
/// [`RecordValueError`].
pub fn check_schema(value: &[u8]) -> Result<(), RecordValueError> {
    let RecordSchemaVersion { schema } = serde_json::from_slice(value).map_err(|e| not_a_record(&e))?;
    match schema {
        newer if newer > SCHEMA_VERSION => Err(RecordValueError::Newer(newer)),
        older if older < OLDEST_SCHEMA_VERSION => Err(RecordValueError::Unreadable(format!(
            "schema {older} is older than {OLDEST_SCHEMA_VERSION}, the oldest known"
        ))),
        _ => Ok(()),
    }
}

fn not_a_record(error: &serde_json::Error) -> RecordValueError {
    RecordValueError::Unreadable(format!("not a memory record: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_newer_schema_is_left_to_another_build() {
        let newer = format!("{{\"schema\": {}, \"anything\": true}}", SCHEMA_VERSION + 1);
        assert_eq!(check_schema(newer.as_bytes()), Err(RecordValueError::Newer(SCHEMA_VERSION + 1)));
        let known = format!("{{\"schema\": {SCHEMA_VERSION}}}");
        assert_eq!(check_schema(known.as_bytes()), Ok(()));
        for bad in ["", "{", "[]", "{}", "{\"schema\": 0}", "{\"schema\": \"1\"}", &known] {
            assert!(matches!(read_value(bad.as_bytes()), Err(RecordValueError::Unreadable(_))), "{bad}");
        }
    }
}
