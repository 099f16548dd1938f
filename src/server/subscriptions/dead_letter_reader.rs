//! Dead letters as they come, for those who follow the banks that they are for.
//!
//! In: the log's topic of dead letters, from the time at which a bank was first followed. Out: each later letter that
//! names its bank, once, as an event without the record itself. A letter without a bank is passed over: it may be of
//! any bank, so only readers of every bank may see it, in the log.

use std::sync::Mutex;

use serde::Deserialize;

use super::bank_event_forms::RejectedRecord;
use logs::{Log, LogError, LogRecord, Topic};
use types::{
    model::{Bank, DeadLetter, MAX_NAME_BYTES},
    sync,
};

/// Most letters that are read at once.
const READ_AT_ONCE: usize = 256;

/// Reads the dead letters of a log, each once.
#[derive(Debug, Default)]
pub(super) struct DeadLetterReader {
    /// The offset of the first letter that was not read; `None` while no letters are asked for.
    next: Mutex<Option<u64>>,
}

/// A dead letter of a bank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BankDeadLetter {
    pub(super) bank: Bank,
    pub(super) rejected: RejectedRecord,
}

impl DeadLetterReader {
    /// The end of the topic now. Letters from there on are read, and earlier ones that were not read yet.
    ///
    /// # Errors
    /// [`LogError`].
    pub(super) fn begin(&self, log: &dyn Log) -> Result<u64, LogError> {
        let end = log.end(Topic::DeadLetters, 0)?;
        sync::lock(&self.next).get_or_insert(end);
        Ok(end)
    }

    /// Passes over all letters until some are asked for again.
    pub(super) fn skip_to_end(&self) {
        *sync::lock(&self.next) = None;
    }

    /// The letters of banks among the next ones; `None` once all were read.
    ///
    /// # Errors
    /// [`LogError`]; the same letters are read again.
    pub(super) fn read(&self, log: &dyn Log) -> Result<Option<Vec<BankDeadLetter>>, LogError> {
        let mut next = sync::lock(&self.next);
        let end = log.end(Topic::DeadLetters, 0)?;
        let from = *next.get_or_insert(end);
        if end <= from {
            return Ok(None);
        }
        let records = log.read(Topic::DeadLetters, 0, from, READ_AT_ONCE)?.records;
        let Some(last) = records.last() else { return Ok(None) };
        *next = Some(last.offset + 1);
        Ok(Some(records.iter().filter_map(bank_dead_letter).collect()))
    }
}

/// A record of the topic, if it names its bank.
fn bank_dead_letter(record: &LogRecord) -> Option<BankDeadLetter> {
    let letter: DeadLetter = serde_json::from_slice(record.value.as_deref().unwrap_or_default()).ok()?;
    let turn = stated_turn(&letter);
    let DeadLetter { bank, reason, .. } = letter;
    Some(BankDeadLetter { bank: bank?, rejected: RejectedRecord { offset: record.offset, turn, reason } })
}

/// The id of the turn in the rejected record, if it states one.
fn stated_turn(letter: &DeadLetter) -> Option<String> {
    #[derive(Deserialize)]
    struct StatedTurnId {
        bank: Option<Bank>,
        turn: String,
    }
    let StatedTurnId { bank, turn } = serde_json::from_str(&letter.payload).ok()?;
    // A longer id is not valid.
    (turn.len() <= MAX_NAME_BYTES && (bank.is_none() || bank == letter.bank)).then_some(turn)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(payload: &str, bank: Option<&str>) -> Option<(Option<String>, String)> {
        let bank = bank.map(|bank| Bank::parse(bank).unwrap());
        let letter = DeadLetter::new("f:1".to_owned(), "no time".to_owned(), payload.as_bytes()).in_bank(bank);
        let value = Some(serde_json::to_vec(&letter).unwrap());
        let record = LogRecord { offset: 7, append_ms: 0, key: Vec::new(), value };
        let BankDeadLetter { bank: _, rejected } = bank_dead_letter(&record)?;
        assert_eq!(rejected.offset, 7);
        Some((rejected.turn, rejected.reason))
    }

    #[test]
    fn a_letter_is_told_without_its_record_and_only_where_it_names_a_bank() {
        let said = r#"{"bank":"b","turn":"1","text":"secret"}"#;
        let reason = || "no time".to_owned();
        assert_eq!(told(said, Some("b")), Some((Some("1".to_owned()), reason())));
        assert_eq!(told(said, None), None, "what a record says of itself is not enough");
        assert_eq!(told(r#"{"bank":"c","turn":"1"}"#, Some("b")), Some((None, reason())));
        assert_eq!(told("what was said", Some("b")), Some((None, reason())));
    }
}
