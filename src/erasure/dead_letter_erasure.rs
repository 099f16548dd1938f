//! Dead letters that hold words of turns to erase, or name such turns.
//!
//! In: the dead letters of a log, words, and ids of turns. Out: the letters that hold or name some of them, emptied in
//! place. A letter keeps the first 4,096 bytes of what was rejected, so its payload may be only the beginning of JSON.

use std::ops::ControlFlow;

use serde_json::Value;

use super::{PipelineError, imported_turns::each_imported_turn, ledger::LedgerLine, turn_word_set::TurnWordSet};
use logs::{Log, Topic, partition_of};
use pipeline::imported_ms;
use types::model::{DeadLetter, MemoryKey};

/// Letters read at once.
const READ_AT_ONCE: usize = 1_024;
/// The reasons of emptied letters.
const EMPTIED_REASON: &str = "emptied: it held words of a turn that was deleted";
pub(super) const REMOVED_REASON: &str = "emptied: it was removed";
/// The fields of a turn that hold its words.
const SAID: [&str; 2] = ["text", "caption"];

/// A letter, and where and when it was written.
pub(super) struct DeadLetterEntry {
    pub(super) offset: u64,
    pub(super) append_ms: i64,
    pub(super) letter: DeadLetter,
}

/// Whether a turn is to be erased: by its bank, if the letter states one, its id, and its version.
pub(super) type ErasureFilter<'g> = dyn Fn(Option<&str>, &str, u64) -> bool + 'g;

/// Empties the letters that hold one of these words, or name a turn to erase. Returns how many.
pub(super) fn empty_dead_letters(
    log: &dyn Log,
    words: &TurnWordSet,
    goes: &ErasureFilter<'_>,
) -> Result<u64, PipelineError> {
    let empty = |letter: DeadLetter| {
        let (payload, reason) = (String::new(), EMPTIED_REASON.to_owned());
        DeadLetter { payload, reason, ..letter }
    };
    empty_where(log, &|letter| holds(letter, words) || names(letter, goes), &empty)
}

/// Replaces the selected letters by what `empty` makes of them. Returns how many.
pub(super) fn empty_where(
    log: &dyn Log,
    is_wanted: &dyn Fn(&DeadLetter) -> bool,
    empty: &dyn Fn(DeadLetter) -> DeadLetter,
) -> Result<u64, PipelineError> {
    let erasable = log.erasable().ok_or(PipelineError::NotEmbedded)?;
    let mut count = 0;
    each_batch(log, &mut |letters| {
        let mut emptied = Vec::new();
        for DeadLetterEntry { offset, letter, .. } in letters {
            if is_wanted(&letter) {
                let json = serde_json::to_vec(&empty(letter));
                let failed = |e: serde_json::Error| PipelineError::Forget {
                    what: format!("the dead letter at offset {offset} of the log"),
                    problem: format!("{e}; please report this"),
                };
                emptied.push((offset, json.map_err(failed)?));
            }
        }
        if !emptied.is_empty() {
            erasable.replace(Topic::DeadLetters, 0, &emptied)?;
            count += emptied.len() as u64;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(count)
}

/// Empties the letters that hold words of imported turns, before these turns are deleted: only the memory's records
/// hold their words, and once they are gone from there, no pass can search for them.
pub(super) fn empty_letters_of_imported(log: &dyn Log, forgotten: &LedgerLine) -> Result<(), PipelineError> {
    let LedgerLine { bank, turns, .. } = forgotten;
    // Most banks were not imported; then no letter is read.
    if imported_ms(log, bank)?.is_none() {
        return Ok(());
    }
    let may_be_of_bank = |letter: &DeadLetter| letter.bank.as_ref().is_none_or(|of| of == bank);
    if !is_any(log, &may_be_of_bank)? {
        return Ok(());
    }
    let mut words = TurnWordSet::default();
    each_imported_turn(log, partition_of(bank, log.partitions()), &MemoryKey::prefix(bank), &mut |held| {
        if turns.contains(&held.turn.turn) {
            words.add_turn(&held.turn);
        }
    })?;
    if !words.is_empty() {
        empty_dead_letters(log, &words, &|_, _, _| false)?;
    }
    Ok(())
}

/// Whether a letter that is not emptied names a turn to erase.
pub(super) fn is_named(log: &dyn Log, goes: &ErasureFilter<'_>) -> Result<bool, PipelineError> {
    is_any(log, &|letter| names(letter, goes))
}

fn is_any(log: &dyn Log, wanted: &dyn Fn(&DeadLetter) -> bool) -> Result<bool, PipelineError> {
    let mut found = false;
    each_batch(log, &mut |letters| {
        found = letters.iter().any(|of| wanted(&of.letter));
        Ok(if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(found)
}

/// Calls `each` with the letters that are not emptied, in batches, until it breaks.
pub(super) fn each_batch(
    log: &dyn Log,
    each: &mut dyn FnMut(Vec<DeadLetterEntry>) -> Result<ControlFlow<()>, PipelineError>,
) -> Result<(), PipelineError> {
    let mut at = 0;
    loop {
        let batch = log.read(Topic::DeadLetters, 0, at, READ_AT_ONCE)?;
        if batch.next == at {
            return Ok(());
        }
        at = batch.next;
        let read = batch.records.iter().filter_map(|record| {
            let letter: DeadLetter = serde_json::from_slice(record.value.as_deref().unwrap_or_default()).ok()?;
            let is_emptied =
                letter.payload.is_empty() && [EMPTIED_REASON, REMOVED_REASON].contains(&letter.reason.as_str());
            (!is_emptied).then_some(DeadLetterEntry { offset: record.offset, append_ms: record.append_ms, letter })
        });
        if each(read.collect())?.is_break() {
            return Ok(());
        }
    }
}

/// Whether a letter holds one of these words: anywhere, or, if the text is short, as its whole content.
fn holds(letter: &DeadLetter, words: &TurnWordSet) -> bool {
    let is_said = |field: &&str| values_of(&letter.payload, field).iter().any(|text| words.are_in(text));
    let is_in = || words.are_in(&letter.payload) || words.are_in(&letter.reason) || SAID.iter().any(is_said);
    !words.is_empty() && is_in()
}

/// Whether a letter names a turn to erase. If its bank cannot be read, it may be of any bank.
fn names(letter: &DeadLetter, goes: &ErasureFilter<'_>) -> bool {
    let turns = values_of(&letter.payload, "turn");
    if turns.is_empty() {
        return false;
    }
    let mut banks = values_of(&letter.payload, "bank");
    banks.extend(letter.bank.as_ref().map(|bank| bank.as_str().to_owned()));
    // A complete record may state a version that no deletion covers.
    let record: Value = serde_json::from_str(&letter.payload).unwrap_or_default();
    let version = record.get("version").and_then(Value::as_u64).unwrap_or(0);
    turns.iter().any(|turn| {
        banks.iter().any(|bank| goes(Some(bank), turn, version)) || banks.is_empty() && goes(None, turn, version)
    })
}

/// The strings and numbers that follow a field's name in JSON, which may be cut or damaged.
pub(super) fn values_of(json: &str, field: &str) -> Vec<String> {
    let name = format!("\"{field}\"");
    let after = json.match_indices(&name).filter_map(|(at, _)| {
        let value = json[at + name.len()..].trim_start().strip_prefix(':')?;
        serde_json::Deserializer::from_str(value).into_iter::<Value>().next()?.ok()
    });
    let texts = after.filter_map(|value| match value {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::model::Bank;

    #[test]
    fn a_turn_is_named_by_whole_cut_and_damaged_records() {
        let goes = |bank: Option<&str>, turn: &str, version: u64| {
            turn == "d1" && version <= 5 && bank.is_none_or(|bank| bank == "b")
        };
        let named = |bank: Option<&str>, payload: &str| {
            let letter = DeadLetter::new("f:1".to_owned(), "no time".to_owned(), payload.as_bytes());
            names(&letter.in_bank(bank.map(|bank| Bank::parse(bank).unwrap())), &goes)
        };
        for payload in [
            r#"{"bank":"b","turn":"d1","text":"x"}"#.to_owned(),
            r#"{"turn" : "\u0064\u0031", "bank": "b", "version": 5}"#.to_owned(),
            // Longer than a letter's payload.
            format!(r#"{{"bank":"b","turn":"d1","text":"{}"}}"#, "x".repeat(5_000)),
            r#"{"bank":"b","turn":"d1","turn":"d2""#.to_owned(),
            r#"{"events":[{"bank":"b","turn":"d1"},"#.to_owned(),
        ] {
            assert!(named(None, &payload) && named(Some("b"), &payload), "{payload}");
        }
        let unstated = format!(r#"{{"turn":"d1","text":"{}","bank":"b"}}"#, "x".repeat(5_000));
        assert!(named(Some("b"), &unstated) && named(None, &unstated) && !named(Some("c"), &unstated));
        for payload in [
            r#"{"bank":"b","turn":"d2","text":"the turn d1"}"#,
            r#"{"bank":"c","turn":"d1"}"#,
            r#"{"bank":"b","turn":"d1","version":6}"#,
            r#"{"bank":"b","reply_to":"d1","turn":"#,
            r#"{"bank":"b","turn":"d"#,
            "d1",
        ] {
            assert!(!named(None, payload), "{payload}");
        }
    }

    #[test]
    fn short_words_are_found_as_all_that_was_said() {
        let mut words = TurnWordSet::default();
        words.add("Süß, ok");
        let holds =
            |payload: &str| holds(&DeadLetter::new("f:1".to_owned(), "no time".to_owned(), payload.as_bytes()), &words);
        assert!(holds(r#"{"time":7,"text":"s\u00fc\u00df ok"}"#));
        assert!(holds(r#"{"attachments":[{"kind":"image","caption":"süß\u002c ok!"}],"tex"#));
        assert!(!holds(r#"{"text":"s\u00fc\u00df, ok then","session":"süß ok"}"#));
    }
}
