//! The names in a question: runs of capitalised words, and what each of them names.
//!
//! In: a question's words, and the ranges of its quotations and times. Out: runs in order, each a person, a place, or
//! something else such as a title. The first word of a sentence counts only if grammar shows that it is a name. No name
//! is ever invented.

use std::{collections::BTreeSet, ops::Range};

use super::question_words::{QuestionWord, is_auxiliary, is_weak_word, is_within};
use crate::language::{
    calendar::{is_month_name, weekday_number},
    name_runs::{NameRunReader, run_end},
    place_rules::{QUESTION, is_holiday, question_leads_to_place},
    sentences::is_function_word,
};
use types::model::canonical_name;

/// The maximum number of words in a person's name; longer capitalised phrases are titles.
const MAX_NAME: usize = 3;
/// Titles before a name that are not part of it; lower case.
const HONORIFICS: &[&str] = &["mr", "mrs", "ms", "miss", "dr", "prof", "professor", "sir", "aunt", "uncle"];
/// Small words inside a name or title.
const CONNECTORS: &[&str] = &["of", "the", "de", "van", "von", "der", "la", "le", "du", "del", "di"];
/// Words of time that may follow a place without being part of its name.
const AFTER_PLACE: &[&str] =
    &["last", "next", "yesterday", "today", "tomorrow", "recently", "previously", "earlier", "later", "now", "ago"];

/// What a capitalised phrase names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameClass {
    Person,
    Place,
    /// A title, a holiday, a language, an organisation: a keyword, but not a cue.
    Other,
}

/// A run of capitalised words.
pub(super) struct NameRun<'t> {
    /// The words, without the possessive ending.
    pub(super) text: &'t str,
    /// The indexes of its words.
    pub(super) words: Range<usize>,
    pub(super) class: NameClass,
}

/// The canonical names of a class, sorted, each once.
pub(super) fn names(runs: &[NameRun<'_>], class: NameClass) -> Vec<String> {
    let names: BTreeSet<String> = runs.iter().filter(|r| r.class == class).map(|r| canonical_name(r.text)).collect();
    names.into_iter().collect()
}

/// The runs of capitalised words of a question, outside the `taken` ranges of quotations and times.
pub(super) fn name_runs<'t>(text: &'t str, words: &[QuestionWord<'t>], taken: &[Range<usize>]) -> Vec<NameRun<'t>> {
    let mut runs: Vec<NameRun<'t>> = Vec::new();
    let mut start = 0;
    while start < words.len() {
        if !begins_run(text, words, taken, start) {
            start += 1;
            continue;
        }
        let end = run_end(&QuestionNameRun { text, words, taken }, start);
        runs.extend(classify(text, words, start..end, runs.last()));
        start = end;
    }
    runs
}

/// Whether a run of capitalised words begins at a word.
fn begins_run(text: &str, words: &[QuestionWord<'_>], taken: &[Range<usize>], start: usize) -> bool {
    words.get(start).is_some_and(|first| {
        begins_name(first, taken) && (!opens_sentence(text, first) || is_subject(text, words, start))
    })
}

/// Runs with up to two small words ("Hill of the Crows"), and with the full stop of an honorific.
struct QuestionNameRun<'w, 't> {
    text: &'t str,
    words: &'w [QuestionWord<'t>],
    taken: &'w [Range<usize>],
}

impl NameRunReader for QuestionNameRun<'_, '_> {
    const MAX_LINKS: usize = 2;

    fn may_be_name(&self, at: usize) -> bool {
        self.words.get(at).is_some_and(|w| begins_name(w, self.taken))
    }

    fn may_link(&self, at: usize) -> bool {
        self.words.get(at).is_some_and(|w| CONNECTORS.contains(&w.lower.as_str()) && !w.capitalised())
    }

    fn is_joined(&self, at: usize) -> bool {
        let (Some(before), Some(word)) = (at.checked_sub(1).and_then(|i| self.words.get(i)), self.words.get(at)) else {
            return false;
        };
        let gap = self.text.get(before.range.end..word.range.start);
        gap == Some(" ") || (gap == Some(". ") && HONORIFICS.contains(&before.lower.as_str()))
    }

    fn ends_run(&self, at: usize) -> bool {
        self.words.get(at).is_some_and(|w| w.possessive)
    }
}

fn begins_name(word: &QuestionWord<'_>, taken: &[Range<usize>]) -> bool {
    let grammar = is_function_word(&word.lower) && word.lower != "may" && word.lower != "will";
    word.capitalised() && !grammar && !is_within(&word.range, taken)
}

pub(super) fn opens_sentence(text: &str, word: &QuestionWord<'_>) -> bool {
    let before =
        text.get(..word.range.start).unwrap_or_default().trim_end_matches([' ', '\n', '\t', '"', '(', '\u{201c}']);
    before.is_empty() || before.ends_with(['.', '?', '!', ':']) && !honorific_before(before)
}

fn honorific_before(before: &str) -> bool {
    let last = before.trim_end_matches('.').rsplit(' ').next().unwrap_or_default().to_lowercase();
    before.ends_with('.') && HONORIFICS.contains(&last.as_str())
}

/// Whether grammar shows that the first word of a sentence, which always has a capital, is a name.
fn is_subject(text: &str, words: &[QuestionWord<'_>], at: usize) -> bool {
    let Some(word) = words.get(at) else { return false };
    if is_auxiliary(&word.lower) || is_weak_word(&word.lower) {
        return false;
    }
    let Some(next) = words.get(at + 1) else { return false };
    let comma = text.get(word.range.end..next.range.start).is_some_and(|gap| gap.starts_with(','));
    let joined = next.lower == "and" && words.get(at + 2).is_some_and(QuestionWord::capitalised);
    let named = next.capitalised() && !is_function_word(&next.lower);
    word.possessive
        || comma
        || joined
        || named
        || is_auxiliary(&next.lower)
        || HONORIFICS.contains(&word.lower.as_str())
}

fn classify<'t>(
    text: &'t str,
    words: &[QuestionWord<'t>],
    range: Range<usize>,
    previous: Option<&NameRun<'t>>,
) -> Option<NameRun<'t>> {
    let mut start = range.start;
    while start + 1 < range.end && words.get(start).is_some_and(|w| HONORIFICS.contains(&w.lower.as_str())) {
        start += 1;
    }
    let inside = words.get(start..range.end)?;
    let (first, last) = (inside.first()?, inside.last()?);
    let name = text.get(first.range.start..last.range.start + last.text.len())?;
    let class = if start > range.start { NameClass::Person } else { class_of(text, words, inside, &range, previous) };
    Some(NameRun { text: name, words: range, class })
}

fn class_of(
    text: &str,
    words: &[QuestionWord<'_>],
    inside: &[QuestionWord<'_>],
    range: &Range<usize>,
    previous: Option<&NameRun<'_>>,
) -> NameClass {
    let lower = |i: usize| words.get(i).map_or("", |w| w.lower.as_str());
    let article = range.start > 0 && lower(range.start - 1) == "the";
    let before = range.start.checked_sub(1 + usize::from(article));
    let possessive = inside.last().is_some_and(|w| w.possessive);
    let calendar = inside.iter().any(|w| is_calendar_name(&w.lower));
    // "Did June call?": after an auxiliary, a month's name is a person.
    let called = inside.len() == 1 && before.is_some_and(|b| is_auxiliary(lower(b)));
    if calendar && !(called || possessive) {
        return NameClass::Other;
    }
    if let Some(before) = before.filter(|_| !possessive)
        && question_leads_to_place(|n| (before + 1).checked_sub(n).map_or("", lower))
    {
        // "at the Harbour festival" does not name a place.
        let part_of_more = words.get(range.end).is_some_and(|w| {
            let gap = inside.last().and_then(|l| text.get(l.range.end..w.range.start));
            gap == Some(" ")
                && !is_function_word(&w.lower)
                && !AFTER_PLACE.contains(&w.lower.as_str())
                && !w.capitalised()
        });
        return if part_of_more { NameClass::Other } else { NameClass::Place };
    }
    if !possessive
        && let Some(previous) = previous.filter(|p| p.class != NameClass::Person)
        && continues(text, words, previous, range)
    {
        return previous.class;
    }
    let title = article || inside.len() > MAX_NAME || inside.iter().any(|w| matches!(w.lower.as_str(), "of" | "the"));
    let acronym =
        inside.iter().any(|w| w.text.chars().count() > 1 && w.text.chars().all(|c| c.is_uppercase() || c.is_numeric()));
    let language = inside.len() == 1
        && inside.iter().any(|w| w.lower.len() > 5 && ["ish", "ese", "ism"].iter().any(|e| w.lower.ends_with(e)));
    // Initials such as "J.K." do not match any canonical name.
    let initials = inside.iter().all(|w| w.text.contains('.'));
    if title || acronym || language || initials { NameClass::Other } else { NameClass::Person }
}

/// Whether a word, in lower case, names a part of the calendar, and so neither a person nor a place.
fn is_calendar_name(lower: &str) -> bool {
    is_month_name(lower)
        || weekday_number(lower).is_some()
        || is_holiday(lower, QUESTION)
        || matches!(lower, "spring" | "summer" | "autumn" | "winter" | "year")
}

/// Whether a run continues an enumeration: "Lima and Quito", "Lima, Quito".
fn continues(text: &str, words: &[QuestionWord<'_>], previous: &NameRun<'_>, range: &Range<usize>) -> bool {
    let end = previous.words.end.checked_sub(1).and_then(|i| words.get(i)).map_or(0, |w| w.range.end);
    let gap = words.get(range.start).and_then(|w| text.get(end..w.range.start)).unwrap_or_default();
    matches!(gap, ", " | " and " | " or " | ", and ")
}
