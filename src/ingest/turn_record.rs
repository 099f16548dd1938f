//! Reads a record of the turns topic.
//!
//! In: a record, which any program may have written. Out: its event, or what is wrong with it and what to do, for its
//! dead letter.

use logs::LogRecord;
use types::model::TurnEvent;

/// The event of a record.
///
/// # Errors
/// What is wrong with it, and what to do.
pub(super) fn read_event(record: &LogRecord) -> Result<TurnEvent, String> {
    if record.key.is_empty() {
        return Err("the record has no key; write the bank's name as its key".to_owned());
    }
    match record.value.as_deref() {
        None | Some([]) => {
            Err("the record has no value, and deletes nothing; write a turn as its value, or, to delete \
                                a turn, a record of \"type\": \"deletion\""
                .to_owned())
        }
        Some(value) => TurnEvent::from_log(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_without_a_key_or_a_value_is_told_what_it_lacks() {
        let deletion = r#"{"type": "deletion", "bank": "b", "turn": "1"}"#;
        let read = |key: &str, value: Option<&str>| {
            let (key, value) = (key.as_bytes().to_vec(), value.map(|value| value.as_bytes().to_vec()));
            read_event(&LogRecord { offset: 0, append_ms: 0, key, value })
        };
        assert!(matches!(read("b", Some(deletion)), Ok(TurnEvent::Deletion(_))));
        assert!(read("", Some(deletion)).is_err_and(|reason| reason.contains("no key")));
        for value in [None, Some("")] {
            let reason = read("b", value).expect_err("it has no value");
            assert!(reason.contains("no value") && reason.contains("\"type\": \"deletion\""), "{reason}");
        }
    }
}
