//! Question to cues, by rules (paper, section 3.4; the cue contract of its appendix).
//!
//! In: a question in English. Out: its wording with nothing deleted, two to six keywords
//! in order, and the persons, places and time that it names. Never invents: every word
//! of a cue stands in the question, and a field that the question does not ground is
//! empty. The same question always gives the same cues.

use std::{collections::BTreeSet, ops::Range};

use super::{
    RecallError,
    words::{Word, is_auxiliary, is_weak_word, words},
};
use crate::{
    language::{sentences::is_function_word, times::find_times},
    model::{Cues, Interval, MAX_TEXT_BYTES, Question, QuestionCues, canonical_name},
};

/// Keywords of a question, at most (the cue contract of the paper's appendix).
const MOST_KEYWORDS: usize = 6;
/// Keywords below which common verbs are taken too (the same contract).
const FEWEST_KEYWORDS: usize = 2;
/// Words of the longest name of a person; longer capitalised phrases are titles.
const LONGEST_NAME: usize = 3;
/// Words between a verb of motion and the "to" or "from" that belongs to it, at most.
const MOTION_REACH: usize = 5;

/// Reads the cues of a question.
///
/// # Errors
/// [`RecallError::EmptyQuestion`] when there is no word in it, and
/// [`RecallError::LongQuestion`] when it is longer than a turn may be.
pub fn cues(question: &Question) -> Result<QuestionCues, RecallError> {
    let text = question.text.as_str();
    if text.len() > MAX_TEXT_BYTES {
        return Err(RecallError::LongQuestion { bytes: text.len() });
    }
    let words = words(text);
    if words.is_empty() {
        return Err(RecallError::EmptyQuestion);
    }
    let times = find_times(text, question.asked_at);
    let quotes = quoted(text);
    let taken: Vec<Range<usize>> = quotes.iter().cloned().chain(times.iter().map(|t| t.range.clone())).collect();
    let runs = classified(text, &words, &taken);
    Ok(QuestionCues {
        semantic_query: text.trim().to_owned(),
        keywords: keywords(text, &words, &quotes, &runs, &times.iter().map(|t| t.range.clone()).collect::<Vec<_>>()),
        cues: Cues {
            participants: names(&runs, Class::Person),
            locations: names(&runs, Class::Place),
            time: hull(times.iter().map(|t| t.interval)),
        },
        note: None,
    })
}

/// What a capitalised phrase stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Person,
    Place,
    /// A title, a feast, a language, an organisation: a keyword, but no cue.
    Other,
}

/// A run of capitalised words.
struct Run<'t> {
    /// The words, possessive ending left out.
    text: &'t str,
    /// Its first word, and the one after its last.
    words: Range<usize>,
    class: Class,
}

fn names(runs: &[Run<'_>], class: Class) -> Vec<String> {
    let names: BTreeSet<String> = runs.iter().filter(|r| r.class == class).map(|r| canonical_name(r.text)).collect();
    names.into_iter().collect()
}

fn hull(intervals: impl Iterator<Item = Interval>) -> Option<Interval> {
    intervals.reduce(|a, b| Interval {
        start_ms: a.start_ms.min(b.start_ms),
        end_ms: a.end_ms.max(b.end_ms),
        offset_seconds: a.offset_seconds,
    })
}

// ---------------------------------------------------------------- keywords

fn keywords(
    text: &str,
    words: &[Word<'_>],
    quotes: &[Range<usize>],
    runs: &[Run<'_>],
    times: &[Range<usize>],
) -> Vec<String> {
    // Classes of selectiveness: a title says most, then what the question is about,
    // then names and dates (which the cue channel looks up as well), then common verbs.
    const TITLE: u8 = 0;
    const TOPIC: u8 = 1;
    const NAMED: u8 = 2;
    const WEAK: u8 = 3;
    let mut found: Vec<(usize, u8, String)> = Vec::new();
    for quote in quotes {
        if let Some(title) = text.get(quote.clone()) {
            found.push((quote.start, TITLE, title.trim().to_owned()));
        }
    }
    for run in runs {
        let class = if run.class == Class::Person { NAMED } else { TITLE };
        let start = words.get(run.words.start).map_or(0, |w| w.range.start);
        found.push((start, class, run.text.to_owned()));
    }
    for (i, word) in words.iter().enumerate() {
        let in_phrase = within(&word.range, quotes) || runs.iter().any(|r| r.words.contains(&i));
        if in_phrase || is_function_word(&word.lower) {
            continue;
        }
        let contraction = word.lower.contains('\'');
        let class = if within(&word.range, times) {
            NAMED
        } else if is_weak_word(&word.lower) || contraction {
            WEAK
        } else {
            TOPIC
        };
        found.push((word.range.start, class, word.text.to_owned()));
    }
    found.retain(|(_, _, k)| !k.is_empty());
    found.sort_by_key(|&(start, class, _)| (class, start));
    let mut seen = BTreeSet::new();
    found.retain(|(_, _, k)| seen.insert(k.to_lowercase()));
    let strong = found.iter().filter(|&&(_, class, _)| class < WEAK).count();
    found.truncate(strong.clamp(FEWEST_KEYWORDS, MOST_KEYWORDS));
    found.sort_by_key(|&(start, ..)| start);
    found.into_iter().map(|(_, _, keyword)| keyword).collect()
}

fn within(range: &Range<usize>, ranges: &[Range<usize>]) -> bool {
    ranges.iter().any(|r| r.start <= range.start && range.end <= r.end)
}

/// Byte ranges of what stands between quotation marks, marks left out.
fn quoted(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open: Option<(usize, char)> = None;
    let mut before = ' ';
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map_or(' ', |&(_, n)| n);
        match open {
            Some((start, close)) if c == close && (c != '\'' || !next.is_alphanumeric()) => {
                if start < at {
                    found.push(start..at);
                }
                open = None;
            }
            Some(_) => {}
            None => {
                let close = match c {
                    '"' => Some('"'),
                    '\u{201c}' => Some('\u{201d}'),
                    '\u{ab}' => Some('\u{bb}'),
                    // An apostrophe inside or after a word opens nothing.
                    '\'' if !before.is_alphanumeric() && next.is_alphanumeric() => Some('\''),
                    _ => None,
                };
                open = close.map(|close| (at + c.len_utf8(), close));
            }
        }
        before = c;
    }
    found
}

// ---------------------------------------------------------------- persons and places

/// Names of the calendar that are neither persons nor places; lower case.
const CALENDAR: &[&str] = &[
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "christmas",
    "easter",
    "halloween",
    "thanksgiving",
    "hanukkah",
    "ramadan",
    "eid",
    "diwali",
    "passover",
    "valentine",
    "new year",
    "spring",
    "summer",
    "autumn",
    "winter",
];
/// Titles before a name, which are no part of it; lower case.
const HONORIFICS: &[&str] = &["mr", "mrs", "ms", "miss", "dr", "prof", "professor", "sir", "aunt", "uncle"];
/// Small words inside a name or title.
const CONNECTORS: &[&str] = &["of", "the", "de", "van", "von", "der", "la", "le", "du", "del", "di"];
/// Prepositions that are followed by a place.
const PLACE_PREPOSITIONS: &[&str] =
    &["in", "at", "near", "around", "into", "inside", "outside", "across", "throughout", "within"];
/// Words after which "in" or "at" is not followed by a place.
const NOT_PLACE_GOVERNORS: &[&str] = &[
    "interested",
    "interest",
    "believe",
    "believes",
    "believed",
    "participate",
    "participated",
    "major",
    "majored",
    "invest",
    "invested",
    "enroll",
    "enrolled",
    "enrol",
    "trust",
    "confide",
    "confided",
    "look",
    "looked",
    "laugh",
    "laughed",
    "angry",
    "mad",
    "yell",
    "yelled",
    "shout",
    "shouted",
    "smile",
    "smiled",
    "good",
    "fluent",
    "dressed",
];
/// Verbs whose object is a place.
const PLACE_VERBS: &[&str] = &["visit", "visited", "visiting", "visits", "tour", "toured", "explore", "explored"];
/// Words of motion, after which "to" and "from" are followed by a place.
const MOTION: &[&str] = &[
    "go",
    "goes",
    "going",
    "gone",
    "went",
    "travel",
    "travels",
    "traveled",
    "travelled",
    "traveling",
    "travelling",
    "trip",
    "trips",
    "move",
    "moves",
    "moved",
    "moving",
    "fly",
    "flew",
    "flown",
    "flight",
    "drive",
    "drove",
    "driven",
    "return",
    "returned",
    "returning",
    "come",
    "came",
    "coming",
    "back",
    "head",
    "headed",
    "journey",
    "relocate",
    "relocated",
    "emigrate",
    "emigrated",
    "immigrate",
    "immigrated",
    "sail",
    "sailed",
    "tour",
    "been",
    "vacation",
    "originally",
];
/// Words of time that may follow a place without being part of its name.
const AFTER_PLACE: &[&str] =
    &["last", "next", "yesterday", "today", "tomorrow", "recently", "previously", "earlier", "later", "now", "ago"];

fn classified<'t>(text: &'t str, words: &[Word<'t>], taken: &[Range<usize>]) -> Vec<Run<'t>> {
    let mut runs: Vec<Run<'t>> = Vec::new();
    let mut i = 0;
    while i < words.len() {
        match run_from(text, words, taken, i) {
            Some(end) => {
                if let Some(run) = classify(text, words, i..end, runs.last()) {
                    runs.push(run);
                }
                i = end;
            }
            None => i += 1,
        }
    }
    runs
}

/// The end of the run of capitalised words that begins at `start`, if one does.
fn run_from(text: &str, words: &[Word<'_>], taken: &[Range<usize>], start: usize) -> Option<usize> {
    let first = words.get(start)?;
    if !begins_name(first, taken) || (opens_sentence(text, first) && !is_subject(text, words, start)) {
        return None;
    }
    let mut end = start + 1;
    while let Some(last) = words.get(end - 1).filter(|w| !w.possessive) {
        // "Hill of the Crows": up to two small words, if a capital follows them.
        let small = words
            .iter()
            .skip(end)
            .take(2)
            .take_while(|w| CONNECTORS.contains(&w.lower.as_str()) && !w.capitalised())
            .count();
        let Some(next) = words.get(end + small).filter(|w| begins_name(w, taken)) else { break };
        let between = words.get(end..end + small).unwrap_or_default();
        let mut edge = last;
        let adjacent = between.iter().chain([next]).all(|w| {
            let gap = text.get(edge.range.end..w.range.start);
            let joined = gap == Some(" ") || (gap == Some(". ") && HONORIFICS.contains(&edge.lower.as_str()));
            edge = w;
            joined
        });
        if !adjacent {
            break;
        }
        end += small + 1;
    }
    Some(end)
}

fn begins_name(word: &Word<'_>, taken: &[Range<usize>]) -> bool {
    let grammar = is_function_word(&word.lower) && word.lower != "may" && word.lower != "will";
    word.capitalised() && !grammar && !within(&word.range, taken)
}

fn opens_sentence(text: &str, word: &Word<'_>) -> bool {
    let before =
        text.get(..word.range.start).unwrap_or_default().trim_end_matches([' ', '\n', '\t', '"', '(', '\u{201c}']);
    before.is_empty() || before.ends_with(['.', '?', '!', ':']) && !honorific_before(before)
}

fn honorific_before(before: &str) -> bool {
    let last = before.trim_end_matches('.').rsplit(' ').next().unwrap_or_default().to_lowercase();
    before.ends_with('.') && HONORIFICS.contains(&last.as_str())
}

/// Every first word has a capital: it counts as a name only where grammar says so.
fn is_subject(text: &str, words: &[Word<'_>], at: usize) -> bool {
    let Some(word) = words.get(at) else { return false };
    if is_auxiliary(&word.lower) || is_weak_word(&word.lower) {
        return false;
    }
    let Some(next) = words.get(at + 1) else { return false };
    let comma = text.get(word.range.end..next.range.start).is_some_and(|gap| gap.starts_with(','));
    let joined = next.lower == "and" && words.get(at + 2).is_some_and(Word::capitalised);
    let named = next.capitalised() && !is_function_word(&next.lower);
    word.possessive
        || comma
        || joined
        || named
        || is_auxiliary(&next.lower)
        || HONORIFICS.contains(&word.lower.as_str())
}

fn classify<'t>(text: &'t str, words: &[Word<'t>], range: Range<usize>, previous: Option<&Run<'t>>) -> Option<Run<'t>> {
    let mut start = range.start;
    while start + 1 < range.end && words.get(start).is_some_and(|w| HONORIFICS.contains(&w.lower.as_str())) {
        start += 1;
    }
    let inside = words.get(start..range.end)?;
    let (first, last) = (inside.first()?, inside.last()?);
    let name = text.get(first.range.start..last.range.start + last.text.len())?;
    let class = if start > range.start { Class::Person } else { class_of(text, words, inside, &range, previous) };
    Some(Run { text: name, words: range, class })
}

fn class_of(
    text: &str,
    words: &[Word<'_>],
    inside: &[Word<'_>],
    range: &Range<usize>,
    previous: Option<&Run<'_>>,
) -> Class {
    let lower = |i: usize| words.get(i).map_or("", |w| w.lower.as_str());
    let article = range.start > 0 && lower(range.start - 1) == "the";
    let before = range.start.checked_sub(1 + usize::from(article));
    let possessive = inside.last().is_some_and(|w| w.possessive);
    let calendar = inside.iter().any(|w| CALENDAR.contains(&w.lower.as_str()) || w.lower == "year");
    // "Did June call?": after an auxiliary a month is a person.
    let called = inside.len() == 1 && before.is_some_and(|b| is_auxiliary(lower(b)));
    if calendar && !(called || possessive) {
        return Class::Other;
    }
    if let Some(before) = before.filter(|_| !possessive)
        && leads_to_place(words, before)
    {
        // "at the Harbour festival" names no place.
        let part_of_more = words.get(range.end).is_some_and(|w| {
            let gap = inside.last().and_then(|l| text.get(l.range.end..w.range.start));
            gap == Some(" ")
                && !is_function_word(&w.lower)
                && !AFTER_PLACE.contains(&w.lower.as_str())
                && !w.capitalised()
        });
        return if part_of_more { Class::Other } else { Class::Place };
    }
    if !possessive
        && let Some(previous) = previous.filter(|p| p.class != Class::Person)
        && continues(text, words, previous, range)
    {
        return previous.class;
    }
    let title =
        article || inside.len() > LONGEST_NAME || inside.iter().any(|w| matches!(w.lower.as_str(), "of" | "the"));
    let acronym =
        inside.iter().any(|w| w.text.chars().count() > 1 && w.text.chars().all(|c| c.is_uppercase() || c.is_numeric()));
    let language = inside.len() == 1
        && inside.iter().any(|w| w.lower.len() > 5 && ["ish", "ese", "ism"].iter().any(|e| w.lower.ends_with(e)));
    // "J.K." and the like are initials of a name that is written out elsewhere, if at all.
    let initials = inside.iter().all(|w| w.text.contains('.'));
    if title || acronym || language || initials { Class::Other } else { Class::Person }
}

fn leads_to_place(words: &[Word<'_>], at: usize) -> bool {
    let lower = |i: usize| words.get(i).map_or("", |w| w.lower.as_str());
    let governor = at.checked_sub(1).map_or("", lower);
    let preposition = lower(at);
    if PLACE_PREPOSITIONS.contains(&preposition) {
        return !NOT_PLACE_GOVERNORS.contains(&governor);
    }
    if matches!(preposition, "to" | "from") {
        let moved = (at.saturating_sub(MOTION_REACH)..at).any(|i| MOTION.contains(&lower(i)));
        return moved || (preposition == "from" && matches!(governor, "is" | "are" | "was" | "were" | "be"));
    }
    PLACE_VERBS.contains(&preposition)
}

/// Whether a run continues an enumeration: "Lima and Quito", "Lima, Quito".
fn continues(text: &str, words: &[Word<'_>], previous: &Run<'_>, range: &Range<usize>) -> bool {
    let end = previous.words.end.checked_sub(1).and_then(|i| words.get(i)).map_or(0, |w| w.range.end);
    let gap = words.get(range.start).and_then(|w| text.get(end..w.range.start)).unwrap_or_default();
    matches!(gap, ", " | " and " | " or " | ", and ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Bank, EventTime};

    fn question(text: &str) -> Question {
        Question { bank: Bank::parse("b").unwrap(), text: text.to_owned(), asked_at: None }
    }

    fn check(text: &str, keywords: &[&str], persons: &[&str], places: &[&str]) {
        let found = cues(&question(text)).unwrap();
        assert_eq!(found.semantic_query, text);
        assert_eq!(found.keywords, keywords, "keywords of {text}");
        assert_eq!(found.cues.participants, persons, "persons of {text}");
        assert_eq!(found.cues.locations, places, "places of {text}");
    }

    #[test]
    fn persons_and_keywords() {
        check("Which songs has Omar taught to Priya?", &["songs", "Omar", "taught", "Priya"], &["omar", "priya"], &[]);
        check("What is Priya's favourite soup?", &["Priya", "favourite", "soup"], &["priya"], &[]);
        check("Priya's brother paints what?", &["Priya", "brother", "paints"], &["priya"], &[]);
        check("Why did Mrs. Okafor quit?", &["Okafor", "quit"], &["okafor"], &[]);
        check(
            "Did June call Anna Maria Berg?",
            &["June", "call", "Anna Maria Berg"],
            &["anna maria berg", "june"],
            &[],
        );
        check("Tell me about dogs.", &["Tell", "dogs"], &[], &[]);
        check("What does Omar like?", &["Omar", "like"], &["omar"], &[]);
        check("Who is it?", &[], &[], &[]);
    }

    #[test]
    fn places() {
        check("What did Omar buy in Lima?", &["Omar", "buy", "Lima"], &["omar"], &["lima"]);
        check(
            "Whom did Omar meet in Lima and Quito?",
            &["Omar", "meet", "Lima", "Quito"],
            &["omar"],
            &["lima", "quito"],
        );
        check("When did Priya move to New Zealand?", &["Priya", "move", "New Zealand"], &["priya"], &["new zealand"]);
        check("What did Priya give to Omar?", &["Priya", "Omar"], &["omar", "priya"], &[]);
        check("What happened at Omar's house?", &["Omar", "house"], &["omar"], &[]);
        check("Who swam at the Harbour festival?", &["swam", "Harbour", "festival"], &[], &[]);
        check("Is Priya interested in Buddhism?", &["Priya", "interested", "Buddhism"], &["priya"], &[]);
    }

    #[test]
    fn titles_are_neither() {
        check(
            "Did Omar lend \"The Glass Orchard\" to Priya?",
            &["Omar", "lend", "The Glass Orchard", "Priya"],
            &["omar", "priya"],
            &[],
        );
        check("Does Omar keep 'Salt Road'?", &["Omar", "keep", "Salt Road"], &["omar"], &[]);
        check("Has Priya seen Hill of the Crows?", &["Priya", "seen", "Hill of the Crows"], &["priya"], &[]);
        check("What did NASA send Omar for Christmas?", &["NASA", "send", "Omar", "Christmas"], &["omar"], &[]);
    }

    #[test]
    fn six_keywords_at_most_and_topics_before_names() {
        check(
            "Which blue ceramic bowl with painted swallows did Omar glaze and fire for Priya?",
            &["blue", "ceramic", "bowl", "painted", "swallows", "glaze"],
            &["omar", "priya"],
            &[],
        );
    }

    #[test]
    fn times_need_grounds_and_form_a_hull() {
        let asked = Question {
            asked_at: Some(EventTime::parse("2024-03-10T12:00:00Z").unwrap()),
            ..question("What did Omar do yesterday?")
        };
        assert_eq!(cues(&question("What did Omar do yesterday?")).unwrap().cues.time, None);
        let day = cues(&asked).unwrap().cues.time.unwrap();
        assert_eq!((day.end_ms - day.start_ms) / 3_600_000, 23);
        let both = cues(&question("What changed between 2 May 2023 and 4 July 2023?")).unwrap().cues.time.unwrap();
        let (start, end) = both.into();
        assert_eq!(start.local().date(), jiff::civil::date(2023, 5, 2));
        assert_eq!(end.local().date(), jiff::civil::date(2023, 7, 4));
    }

    #[test]
    fn a_question_without_a_word_is_rejected() {
        for text in ["", "   ", "?!"] {
            let error = cues(&question(text)).unwrap_err();
            assert!(matches!(error, RecallError::EmptyQuestion), "{text:?}");
            assert!(error.to_string().contains("empty"), "{error}");
        }
        let long = "a ".repeat(MAX_TEXT_BYTES);
        assert!(matches!(cues(&question(&long)).unwrap_err(), RecallError::LongQuestion { .. }));
    }

    proptest! {
        #[test]
        fn nothing_is_invented(text in "[A-Za-z'\" .,?0-9éß-]{0,80}") {
            if let Ok(found) = cues(&question(&text)) {
                let lower = canonical_name(&text);
                prop_assert_eq!(found.semantic_query.as_str(), text.trim());
                prop_assert!(found.keywords.len() <= MOST_KEYWORDS);
                for keyword in &found.keywords {
                    prop_assert!(text.contains(keyword.as_str()), "{:?} of {:?}", keyword, text);
                }
                for name in found.cues.participants.iter().chain(&found.cues.locations) {
                    prop_assert!(lower.contains(name.as_str()), "{:?} of {:?}", name, text);
                }
            }
        }
    }
}
