//! Selects dead letters: by words, by sender, by reason, by source, by bank.
//!
//! In: a log, and a selector. Out: how many letters it selects and the latest of them; or, on a log whose records can
//! be erased, the same letters emptied in place. Names and words are compared in normal form. A letter states its
//! sender where its record does: in a field of JSON, or before the words of a line.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    PipelineError,
    dead_letter_erasure::{DeadLetterEntry, REMOVED_REASON, each_batch, empty_where, values_of},
    storage_search::StoragePattern as _,
    word_pattern::WordPattern,
};
use logs::Log;
use types::model::{Bank, DeadLetter, FieldError, canonical_name, normal_form};

/// The fields in which formats name the sender of a record.
const SENDERS: [&str; 16] = [
    "speaker",
    "sender",
    "sender_name",
    "sender_id",
    "author",
    "from",
    "from_name",
    "user",
    "user_name",
    "username",
    "nick",
    "name",
    "real_name",
    "first_name",
    "display_name",
    "displayName",
];
/// How many levels of JSON in JSON are read.
const INSIDE: usize = 2;

/// Which dead letters. A letter must fit each field that is set; within one, any of its values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LetterSelector {
    /// Those that hold one of these words, in whatever form, in the record, the reason or the source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// Those whose record states one of these as its sender, by the whole name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub senders: Vec<String>,
    /// Those whose reason holds one of these texts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Those whose source holds one of these texts, such as the name of a file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// Those of this bank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bank: Option<Bank>,
    /// With a bank: also those whose bank cannot be read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bankless: bool,
    /// Every letter.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// A dead letter in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDeadLetter {
    /// Its offset.
    pub offset: u64,
    /// When it was appended, in milliseconds since 1970.
    pub append_ms: i64,
    /// The letter.
    pub letter: DeadLetter,
}

/// The selected dead letters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeadLetterList {
    /// How many there are.
    pub count: u64,
    /// The latest of them, the latest first.
    pub latest: Vec<StoredDeadLetter>,
}

impl LetterSelector {
    /// Checks that the selector selects something.
    ///
    /// # Errors
    /// [`FieldError`] names the field.
    pub fn check(&self) -> Result<(), FieldError> {
        let Self { words, senders, reasons, sources, bank, bankless: _, all } = self;
        let lists = [("words", words), ("senders", senders), ("reasons", reasons), ("sources", sources)];
        let is_nothing = bank.is_none() && lists.iter().all(|(_, texts)| texts.is_empty());
        if is_nothing != *all {
            let (problem, remedy) = if *all {
                ("further fields are set", "set all alone, or leave it out")
            } else {
                ("nothing is named", "name words, senders, reasons, sources or a bank, or set all")
            };
            return Err(FieldError { field: "all", problem: problem.to_owned(), remedy });
        }
        match lists.iter().find(|(_, texts)| texts.iter().any(|text| normal_form(text).trim().is_empty())) {
            Some((field, _)) => {
                Err(FieldError { field, problem: "one of them is empty".to_owned(), remedy: "leave it out" })
            }
            None => Ok(()),
        }
    }
}

/// A selector in normal form.
struct CompiledLetterSelector<'s> {
    words: Option<WordPattern>,
    senders: Vec<String>,
    reasons: Option<WordPattern>,
    sources: Option<WordPattern>,
    select: &'s LetterSelector,
}

impl<'s> CompiledLetterSelector<'s> {
    fn of(select: &'s LetterSelector) -> Result<Self, PipelineError> {
        let words = |texts: &[String]| (!texts.is_empty()).then(|| WordPattern::new(texts)).transpose();
        Ok(Self {
            words: words(&select.words)?,
            senders: select.senders.iter().map(|name| compared(name)).collect(),
            reasons: words(&select.reasons)?,
            sources: words(&select.sources)?,
            select,
        })
    }

    fn takes(&self, letter: &DeadLetter) -> bool {
        let Self { words, senders, reasons, sources, select } = self;
        let DeadLetter { origin, reason, payload, .. } = letter;
        let holds = |words: &Option<WordPattern>, texts: &[&String]| {
            words.as_ref().is_none_or(|words| texts.iter().any(|text| holds(words, text)))
        };
        holds(reasons, &[reason])
            && holds(sources, &[origin])
            && select.bank.as_ref().is_none_or(|bank| is_of(letter, bank, select.bankless))
            && holds(words, &[payload, reason, origin])
            && (senders.is_empty() || stated_senders(payload).iter().any(|sender| senders.contains(sender)))
    }
}

fn holds(words: &WordPattern, text: &str) -> bool {
    let mut found = false;
    words.find(text.as_bytes(), &mut |_, _| found = true);
    found
}

/// Whether a letter is of a bank; with `bankless` also if its bank cannot be read.
fn is_of(letter: &DeadLetter, bank: &Bank, bankless: bool) -> bool {
    if letter.bank.as_ref() == Some(bank) {
        return true;
    }
    let stated = stated_banks(letter);
    stated.contains(bank) || bankless && letter.bank.is_none() && stated.is_empty()
}

/// The banks that a letter's record names.
fn stated_banks(letter: &DeadLetter) -> Vec<Bank> {
    let stated = readings(&letter.payload).into_iter().flat_map(|json| values_of(&json, "bank"));
    stated.filter_map(|name| Bank::parse(&name).ok()).collect()
}

/// A name in the form in which names are compared.
fn compared(name: &str) -> String {
    canonical_name(&normal_form(name))
}

/// The senders that a record states, in normal form.
fn stated_senders(payload: &str) -> Vec<String> {
    let mut senders: Vec<String> = Vec::new();
    for json in readings(payload) {
        SENDERS.iter().for_each(|field| senders.extend(values_of(&json, field)));
    }
    for line in payload.lines() {
        // `[time] Ann: words`, `time - Ann: words`, `From: Ann <address>`.
        for (at, _) in line.match_indices(':') {
            let before = &line[..at];
            let after_mark = ["] ", "- ", "> "].iter().filter_map(|mark| Some(before.rfind(mark)? + mark.len())).max();
            senders.push(before[after_mark.unwrap_or(0)..].to_owned());
        }
        if let Some(from) = line.get(..5).filter(|head| head.eq_ignore_ascii_case("from:")).and(line.get(5..)) {
            let name = from.split('<').next().unwrap_or_default();
            senders.push(name.trim().trim_matches('"').to_owned());
        }
        // `<Ann> words`, `Ann <address>`.
        let angles = line.split('<').skip(1).filter_map(|rest| rest.split_once('>'));
        senders.extend(angles.map(|(inside, _)| inside.to_owned()));
    }
    senders.iter().map(|name| compared(name)).filter(|name| !name.is_empty()).collect()
}

/// A text, and the texts in it if it is JSON in JSON.
fn readings(text: &str) -> Vec<String> {
    let mut readings = vec![text.to_owned()];
    for _ in 0..INSIDE {
        let last = readings.last().map(String::as_str).unwrap_or_default();
        if !last.contains("\\\"") {
            break;
        }
        readings.push(last.replace("\\\\", "\\").replace("\\\"", "\""));
    }
    readings
}

/// The dead letters of a log that a selector selects: their number, and at most `most` of the latest.
///
/// # Errors
/// [`PipelineError`] if the log failed, or for words that cannot be searched.
pub fn stored_dead_letters(
    log: &dyn Log,
    select: &LetterSelector,
    most: usize,
) -> Result<DeadLetterList, PipelineError> {
    let prepared = CompiledLetterSelector::of(select)?;
    let (mut count, mut latest) = (0, VecDeque::new());
    each_batch(log, &mut |letters| {
        for DeadLetterEntry { offset, append_ms, letter } in letters {
            if prepared.takes(&letter) {
                count += 1;
                latest.push_front(StoredDeadLetter { offset, append_ms, letter });
                latest.truncate(most);
            }
        }
        Ok(std::ops::ControlFlow::Continue(()))
    })?;
    Ok(DeadLetterList { count, latest: latest.into() })
}

/// Empties the dead letters of a log that a selector selects, and returns how many. Letters of a bank that `stays` keep
/// their records. The bytes of the others are erased by the next pass.
///
/// # Errors
/// As [`stored_dead_letters`]; [`PipelineError::NotEmbedded`] on Kafka.
pub(super) fn empty_letters(
    log: &dyn Log,
    select: &LetterSelector,
    stays: &dyn Fn(&Bank) -> bool,
) -> Result<u64, PipelineError> {
    let prepared = CompiledLetterSelector::of(select)?;
    // The source may hold a name, too, for example in the name of a file.
    let emptied = |letter: DeadLetter| DeadLetter {
        origin: "-".to_owned(),
        payload: String::new(),
        reason: REMOVED_REASON.to_owned(),
        ..letter
    };
    let stays = |letter: &DeadLetter| {
        let stated = stated_banks(letter);
        letter.bank.iter().chain(&stated).any(stays)
    };
    empty_where(log, &|letter| prepared.takes(letter) && !stays(letter), &emptied)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(payload: &str) -> DeadLetter {
        DeadLetter::new("hook: record 3".to_owned(), "time: missing".to_owned(), payload.as_bytes())
    }

    fn takes(select: &LetterSelector, letter: &DeadLetter) -> bool {
        select.check().unwrap();
        CompiledLetterSelector::of(select).unwrap().takes(letter)
    }

    fn named(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_sender_is_read_from_fields_and_lines_of_many_formats() {
        let of = |payload: &str| {
            let select = LetterSelector { senders: named(&["José Núñez"]), ..LetterSelector::default() };
            takes(&select, &letter(payload))
        };
        for payload in [
            r#"{"speaker":"José Núñez","text":"hi"}"#,
            "{\"sender\":\"Jose\u{301} Nu\u{301}n\u{303}ez\",\"text\":\"h",
            r#"{"from": "JOSÉ  NÚÑEZ"}"#,
            r#"{"user":{"profile":{"real_name":"Jos\u00e9 N\u00fa\u00f1ez"}}}"#,
            r#"{"body":"{\"speaker\":\"José Núñez\",\"text\":\"hi\"}"}"#,
            "[06.05.24, 10:00:00] José Núñez: hi",
            "06/05/24, 10:00 - José Núñez: hi",
            "10:00 <José Núñez> hi",
            "Subject: x\nFrom: \"José Núñez\" <j@example.org>\n\nhi",
        ] {
            assert!(of(payload), "{payload}");
        }
        for payload in [
            r#"{"speaker":"Jose Nunez","text":"José Núñez"}"#,
            r#"{"speaker":"Ann","text":"hi José Núñez"}"#,
            "10:00 - Ann: for José Núñez",
            "",
        ] {
            assert!(!of(payload), "{payload}");
        }
    }

    #[test]
    fn each_field_narrows_and_a_bank_is_read_from_the_record() {
        let bank = |name: &str| Some(Bank::parse(name).unwrap());
        let none = LetterSelector::default;
        let of_b = letter(r#"{"bank":"b","speaker":"Ann","text":"Grüße aus Köln"}"#);
        let bankless = letter(r#"{"speaker":"Ann","text":"no"}"#);
        assert!(takes(&LetterSelector { bank: bank("b"), ..none() }, &of_b));
        assert!(!takes(&LetterSelector { bank: bank("c"), bankless: true, ..none() }, &of_b));
        assert!(!takes(&LetterSelector { bank: bank("b"), ..none() }, &bankless));
        assert!(takes(&LetterSelector { bank: bank("b"), bankless: true, ..none() }, &bankless));
        let words = named(&["GRÜSSE aus ko\u{308}ln"]);
        assert!(takes(&LetterSelector { words: words.clone(), ..none() }, &of_b));
        assert!(takes(&LetterSelector { words: words.clone(), senders: named(&["ann"]), ..none() }, &of_b));
        assert!(!takes(&LetterSelector { words, reasons: named(&["speaker"]), ..none() }, &of_b));
        assert!(takes(&LetterSelector { reasons: named(&["TIME: missing"]), ..none() }, &bankless));
        assert!(takes(&LetterSelector { sources: named(&["hook"]), ..none() }, &bankless));
        assert!(takes(&LetterSelector { all: true, ..none() }, &bankless));
        for wrong in [
            none(),
            LetterSelector { bankless: true, ..none() },
            LetterSelector { words: named(&[" "]), ..none() },
            LetterSelector { senders: named(&["\u{200b}"]), ..none() },
            LetterSelector { all: true, bank: bank("b"), ..none() },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
