//! The control records of the memory topic: read positions, and the switch to a new generation.
//!
//! The key of a read position is two zero bytes, where a memory record's key has the length of the bank, and then the
//! turns partition in four bytes, big-endian. Its value is JSON. It is the last record of every transaction, so a
//! reader that has it has everything that it covers. A switch is recorded in every partition, under two zero bytes and
//! `moved`, and in the topic of generations, under `memory`; that topic exists from the first re-embedding on. For each
//! key, only the last record counts: an unreadable record does not matter once another one of its key follows.

use serde::{Deserialize, Serialize};

use crate::ReadProgress;
use types::model::{ModelRef, SCHEMA_VERSION};

#[derive(Serialize, Deserialize)]
struct ReadPosition {
    schema: u32,
    /// The first offset that is not covered, of any bank.
    next_offset: u64,
    /// Where some banks are behind others; a build that does not know it reads covered turns again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ahead: Option<ReadProgress>,
}

/// The key that marks a memory topic as replaced.
pub(super) const MOVED_KEY: &[u8] = b"\0\0moved";
/// The key of the current generation in the topic of generations.
pub(super) const GENERATION_KEY: &[u8] = b"memory";

/// The current generation of the memory topic.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct GenerationSwitch {
    schema: u32,
    /// From 1.
    pub generation: u32,
    /// The model of its vectors.
    pub model: ModelRef,
}

impl GenerationSwitch {
    pub(super) fn value(generation: u32, model: &ModelRef) -> Vec<u8> {
        serde_json::to_vec(&Self { schema: SCHEMA_VERSION, generation, model: model.clone() }).unwrap_or_default()
    }

    pub(super) fn parse(value: &[u8]) -> Result<Self, String> {
        let read: Self = serde_json::from_slice(value).map_err(|e| format!("not a generation of the memory: {e}"))?;
        if read.schema == SCHEMA_VERSION {
            Ok(read)
        } else {
            Err(format!("schema {} is not {SCHEMA_VERSION}; use the build that wrote it", read.schema))
        }
    }
}

/// The key of a turns partition's read position.
pub(super) fn key(partition: u32) -> [u8; 6] {
    let [a, b, c, d] = partition.to_be_bytes();
    [0, 0, a, b, c, d]
}

/// The turns partition of a read position's key; `None` for other keys.
pub(super) fn partition_of_key(key: &[u8]) -> Option<u32> {
    let partition = key.strip_prefix(&[0, 0])?;
    Some(u32::from_be_bytes(partition.try_into().ok()?))
}

/// Describes a control record of the memory topic by its key; `None` for the key of a memory record.
pub(super) fn describe_key(key: &[u8]) -> Option<String> {
    match partition_of_key(key) {
        Some(turns) => Some(format!("the read position of turns/{turns}")),
        None if key == MOVED_KEY => Some("the mark of the next generation of the memory".to_owned()),
        None => None,
    }
}

/// Why a control record of the memory topic cannot be read; `None` if it can be, and for a memory record.
pub(super) fn problem(key: &[u8], value: Option<&[u8]>) -> Option<String> {
    let what = describe_key(key)?;
    let problem = match partition_of_key(key) {
        Some(_) => read(value).err()?,
        None => GenerationSwitch::parse(value?).err()?,
    };
    Some(format!("{what} cannot be read: {problem}"))
}

/// The position in the value of a record, which may have none.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read(value: Option<&[u8]>) -> Result<ReadProgress, String> {
    parse(value.ok_or("it was deleted")?)
}

/// The value of a read position.
pub(super) fn value(progress: &ReadProgress) -> Vec<u8> {
    let (next_offset, ahead) = (progress.low(), Some(progress.clone()).filter(|of| !of.behind.is_empty()));
    // Numbers and names always have a JSON form.
    serde_json::to_vec(&ReadPosition { schema: SCHEMA_VERSION, next_offset, ahead }).unwrap_or_default()
}

/// The position in a value.
///
/// # Errors
/// What is wrong with the value.
fn parse(value: &[u8]) -> Result<ReadProgress, String> {
    let read: ReadPosition = serde_json::from_slice(value).map_err(|e| format!("not a read position: {e}"))?;
    if read.schema == SCHEMA_VERSION {
        Ok(read.ahead.unwrap_or_else(|| read.next_offset.into()))
    } else {
        Err(format!("schema {} is not {SCHEMA_VERSION}; use the build that wrote it", read.schema))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::model::{Bank, MemoryKey, SessionId, WindowId};

    #[test]
    fn a_position_reads_back_and_is_no_memory_record() {
        assert_eq!(partition_of_key(&key(70_000)), Some(70_000));
        assert_eq!(parse(&value(&u64::MAX.into())), Ok(u64::MAX.into()));
        let ahead = ReadProgress { through: 9, behind: [(Bank::parse("b").unwrap(), 4)].into() };
        assert_eq!(parse(&value(&ahead)), Ok(ahead.clone()));
        let known_to_all: serde_json::Value = serde_json::from_slice(&value(&ahead)).unwrap();
        assert_eq!(known_to_all["next_offset"], 4);
        assert!(MemoryKey::from_bytes(&key(3)).is_err());
        let window = WindowId { session: SessionId("s".to_owned()), start: 0 };
        let record = MemoryKey { bank: Bank::parse("b").unwrap(), window, turn: None, part: 0 };
        assert_eq!(partition_of_key(&record.to_bytes()), None);
        assert!(parse(b"{\"schema\": 2, \"next_offset\": 1}").unwrap_err().contains("schema 2"));
        assert!(parse(b"").is_err());
    }

    #[test]
    fn a_control_record_that_cannot_be_read_is_named_and_a_memory_record_is_none() {
        let of_junk = |key: &[u8]| problem(key, Some(b"junk")).expect("a problem");
        assert!(of_junk(&key(3)).starts_with("the read position of turns/3 cannot be read: not a read position"));
        assert!(of_junk(MOVED_KEY).starts_with("the mark of the next generation of the memory cannot be read"));
        assert!(problem(&key(3), None).expect("a problem").contains("deleted"));
        assert_eq!((problem(&key(3), Some(&value(&7.into()))), problem(b"\xff\xfe", Some(b"junk"))), (None, None));
    }
}
