//! The conditions that a record must meet before it may enter another log.
//!
//! In: the records of a file, one by one, and the model of the log that they are for. Out: what is
//! wrong with a record, if anything. A record that passes can be read by every memory that follows the
//! log. Writes nothing.

use std::collections::HashSet;

use logs::MAX_VALUE_BYTES;
use memory::index::RecordUnits;
use types::model::{Bank, ExportRecord, MemoryKey, MemoryRecord, ModelRef, WindowState};

/// What the records of a file are checked against.
pub(super) struct ImportRecordCheck {
    bank: Bank,
    /// The model of every vector, and its width; `None` if there are no vectors.
    model: Option<(ModelRef, usize)>,
    keys: HashSet<Vec<u8>>,
}

impl ImportRecordCheck {
    pub(super) fn new(bank: &Bank, model: Option<(ModelRef, usize)>) -> Self {
        Self { bank: bank.clone(), model, keys: HashSet::new() }
    }

    /// Fails for a record that some memory could not read; `value` is its JSON form in the log.
    pub(super) fn check(&mut self, record: &ExportRecord, value: &[u8]) -> Result<(), String> {
        let ExportRecord { key, value: record } = record;
        let bytes = key.to_bytes();
        if MemoryKey::from_bytes(&bytes).as_ref() != Ok(key) {
            return Err("its key cannot be written: a name in it is too long".to_owned());
        }
        if key.window != record.window {
            return Err("its key and its value name different windows".to_owned());
        }
        if key.turn.is_some() != (record.state == WindowState::Open) {
            return Err("the key of an open window must name a turn, and the key of a final one must not".to_owned());
        }
        if let Some(other) = record.turns.iter().find(|turn| turn.turn.bank != self.bank) {
            return Err(format!("a turn of bank {}, not {}", other.turn.bank, self.bank));
        }
        if value.len() > MAX_VALUE_BYTES {
            return Err(format!("{} bytes, more than the {MAX_VALUE_BYTES} that a log takes", value.len()));
        }
        self.vectors(record)?;
        if self.keys.insert(bytes) { Ok(()) } else { Err("a second record of the same key".to_owned()) }
    }

    /// Fails for vectors that cannot be compared with those of the log.
    pub(super) fn vectors(&self, record: &MemoryRecord) -> Result<(), String> {
        match &self.model {
            _ if record.units.is_empty() => Ok(()),
            None => Err("it has units, but the header names no model".to_owned()),
            Some((model, _)) if *model != record.model => {
                let (found, expected) = (&record.model, model);
                Err(format!(
                    "vectors of model {} ({}), but the header names {} ({})",
                    found.name, found.hash, expected.name, expected.hash
                ))
            }
            Some((_, dimensions)) => RecordUnits::new(record, *dimensions).map(drop),
        }
    }
}
