//! The time that a question names.
//!
//! In: a question's text, its language, and when it is asked. Out: one value: the stretches of local time that it
//! names, where its words stand, how sure the reading is, and whether it asks when something was said. A question
//! without `asked_at` has no clock: its stretches are compared with the local time of each turn, and a month without a
//! year means that month of any year. A date in figures that can be read in two ways names both days, because the bank
//! shows which one is meant.

use std::{ops::Range, sync::LazyLock};

use jiff::civil::{Date, DateTime};
use regex::Regex;
use serde::{Deserialize, Serialize};

use super::{
    day_ranges::numeric_dates,
    question_words::{QuestionWord, is_weak_word, is_within},
};
use crate::language::{
    calendar::{CalendarUnit, LocalInterval, shift},
    month_mentions::months,
    multilingual::{is_function_word_of, is_weak_word_of},
    sentences::is_function_word,
    times::{find_periods, months_in},
};
use types::model::{EventTime, FIRST_YEAR, Interval, LAST_YEAR, Language, Question};

/// A stretch of at most this number of days names days; a longer one names a period.
const DAYS_MOST: i64 = 8;
const DAY_MS: i64 = 86_400_000;

/// A stretch of local time, in milliseconds of the local clock since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalStretch {
    /// Its first millisecond.
    pub first_ms: i64,
    /// Its last millisecond.
    pub last_ms: i64,
    /// The months that hold it, if it names days; otherwise the stretch itself. People talk about a day for weeks.
    pub around: (i64, i64),
}

impl LocalStretch {
    /// Whether it names days.
    #[must_use]
    pub fn names_days(&self) -> bool {
        (self.last_ms - self.first_ms).div_euclid(DAY_MS) < DAYS_MOST
    }

    /// `None` if the calendar ends before it.
    fn of(first: DateTime, last: DateTime) -> Option<Self> {
        let (first_ms, last_ms) = (local_ms(first)?, local_ms(last)?);
        let own = Self { first_ms, last_ms, around: (first_ms, last_ms) };
        if !own.names_days() {
            return Some(own);
        }
        let months = LocalInterval::days(first.date().first_of_month(), last.date().last_of_month());
        Some(Self { around: (local_ms(months.first)?, local_ms(months.last)?), ..own })
    }
}

/// The time that a question names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedTime {
    /// Its words, as written, in order.
    pub words: Vec<String>,
    /// The stretches that it names.
    pub stretches: Vec<LocalStretch>,
    /// Months of any year, January being 1.
    pub months: Vec<i8>,
    /// The asker's offset from UTC, in seconds; `None` if the question has no clock.
    pub offset_seconds: Option<i32>,
    /// Whether the reading infers nothing.
    pub certain: bool,
    /// Whether the time is that of saying: "what did we talk about last week?".
    pub of_saying: bool,
    /// Whether the question asks for nothing else.
    pub chooses: bool,
    /// Where its words stand.
    pub(super) ranges: Vec<Range<usize>>,
    /// Those that name nothing else, so that they are not searched.
    unsearched: Vec<Range<usize>>,
}

impl AskedTime {
    /// Reads the time of a question; `left_out` are ranges that name no time, such as titles.
    pub(super) fn of(question: &Question, language: Language, left_out: &[Range<usize>]) -> Option<Self> {
        let text = question.text.as_str();
        let mut periods = find_periods(text, language, question.asked_at);
        periods.retain(|period| !is_within(&period.range, left_out));
        let ends = |first: Option<DateTime>, last: Option<DateTime>| {
            LocalStretch::of(first.unwrap_or(day(FIRST_YEAR, 1, 1)), last.unwrap_or(day(LAST_YEAR, 12, 31)))
        };
        let mut stretches: Vec<LocalStretch> =
            periods.iter().filter_map(|period| ends(period.first, period.last)).collect();
        let mut certain = periods.iter().all(|period| period.certain);
        let mut any_year = Vec::new();
        if question.asked_at.is_none() {
            let named = if language.is_english() { months(text) } else { months_in(text, language) };
            for (year, month) in named {
                let Some(year) = year else {
                    any_year.push(month);
                    continue;
                };
                let whole = LocalInterval::month(year, month).and_then(|one| LocalStretch::of(one.first, one.last));
                stretches.extend(whole.filter(|one| !stretches.iter().any(|known| overlaps(known, one))));
            }
            // What has a year already is not named without one as well.
            any_year.retain(|month| !stretches.iter().any(|one| month_of(one.first_ms) == Some(*month)));
        }
        if stretches.is_empty() {
            stretches = numeric_dates(text)
                .into_iter()
                .filter_map(|(first, last)| {
                    let date = |days| shift(Date::new(1970, 1, 1).ok()?, CalendarUnit::Day, days);
                    let whole = LocalInterval::days(date(first)?, date(last)?);
                    LocalStretch::of(whole.first, whole.last)
                })
                .collect();
            certain &= stretches.len() < 2;
        }
        if stretches.is_empty() && any_year.is_empty() {
            return None;
        }
        let ranges: Vec<Range<usize>> = periods.iter().map(|period| period.range.clone()).collect();
        let now = question.asked_at.map(|asked| asked.unix_ms + i64::from(asked.offset_seconds) * 1_000);
        // Nobody has said anything in the future.
        let has_begun = stretches.iter().any(|one| now.is_none_or(|now| one.first_ms <= now));
        Some(Self {
            words: ranges.iter().filter_map(|range| text.get(range.clone())).map(str::to_owned).collect(),
            certain: certain && any_year.is_empty(),
            stretches,
            months: any_year,
            offset_seconds: question.asked_at.map(|asked| asked.offset_seconds),
            of_saying: has_begun && asks_what_was_said(text, language),
            chooses: false,
            unsearched: periods.iter().filter(|one| !one.is_name).map(|one| one.range.clone()).collect(),
            ranges,
        })
    }

    /// Where those of its words stand that name nothing else.
    pub(super) fn unsearched(&self) -> std::slice::Iter<'_, Range<usize>> {
        self.unsearched.iter()
    }

    /// The smallest interval that holds its stretches; `None` if it names months of any year alone.
    #[must_use]
    pub fn interval(&self) -> Option<Interval> {
        let (first, last) =
            (self.stretches.iter().map(|one| one.first_ms).min()?, self.stretches.iter().map(|one| one.last_ms).max()?);
        let offset_seconds = self.offset_seconds.unwrap_or_default();
        let at = |local: i64| EventTime::new(local - i64::from(offset_seconds) * 1_000, offset_seconds).ok();
        Interval::try_from((at(first)?, at(last)?)).ok()
    }

    /// Its first and last moment, each absent where it is open.
    #[must_use]
    pub fn bounds(&self) -> (Option<EventTime>, Option<EventTime>) {
        let Some(interval) = self.interval() else { return (None, None) };
        let (first, last): (EventTime, EventTime) = interval.into();
        let is_bound = |at: &EventTime| (FIRST_YEAR + 1..LAST_YEAR).contains(&at.local().year());
        (Some(first).filter(is_bound), Some(last).filter(is_bound))
    }
}

/// Whether a question has no words but those of its time, of asking, and of saying or doing in general.
pub(super) fn asks_for_nothing_else(words: &[QuestionWord<'_>], language: Language, times: &[Range<usize>]) -> bool {
    let is_general = |word: &QuestionWord<'_>| {
        let lower = word.lower.as_str();
        is_function_word(lower)
            || is_function_word_of(lower, language)
            || is_weak_word(lower)
            || is_weak_word_of(lower, language)
            || GENERAL_WORDS.binary_search(&lower).is_ok()
    };
    words.iter().all(|word| is_within(&word.range, times) || is_general(word))
}

/// Words of questions for all that was said or done at a time, besides those that are too common to select; sorted.
const GENERAL_WORDS: &[&str] = &[
    "all",
    "anything",
    "chat",
    "chats",
    "chatted",
    "conversation",
    "conversations",
    "day",
    "days",
    "diary",
    "did",
    "discussing",
    "doing",
    "email",
    "emailed",
    "emails",
    "event",
    "events",
    "everything",
    "happening",
    "happens",
    "history",
    "lately",
    "message",
    "messaged",
    "messages",
    "new",
    "news",
    "occurred",
    "on",
    "ongoing",
    "overview",
    "plan",
    "planned",
    "plans",
    "post",
    "posted",
    "posts",
    "recap",
    "recount",
    "report",
    "reported",
    "spoke",
    "summarise",
    "summarize",
    "summary",
    "talking",
    "text",
    "texted",
    "texts",
    "topic",
    "topics",
    "up",
    "week",
    "write",
    "writing",
    "written",
    "wrote",
];

/// Whether a question asks what was said, or when it was said.
fn asks_what_was_said(text: &str, language: Language) -> bool {
    let lower = text.to_lowercase();
    let words: &[&str] = match language {
        Language::De => {
            &["gesagt", "sagte", "erzählt", "gesprochen", "geredet", "besprochen", "erwähnt", "geschrieben"]
        }
        Language::Fr => &["dit", "parlé", "raconté", "discuté", "mentionné", "écrit"],
        Language::Es => &["dijo", "dije", "dicho", "hablamos", "hablado", "contó", "conté", "mencionó", "mencioné"],
        Language::Zh => &["说", "聊", "谈", "讲", "提到"],
        _ if language.is_english() => return SAYING.as_ref().is_some_and(|saying| saying.is_match(&lower)),
        _ => &[],
    };
    words.iter().any(|word| lower.contains(word))
}

/// `None` only if the pattern were malformed, which a test rules out.
static SAYING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"\b(?:talk(?:ed|ing)?|discuss(?:ed|ing)?|chat(?:ted|ting)?|sa(?:y|id)|t(?:ell|old)|mention(?:ed)?|ask(?:ed)?|wr(?:ite|ote|itten)|sp(?:eak|oke|oken)|messaged?|conversations?|messages|promised?|(?:bring|brought) up)\b",
    )
    .ok()
});

fn overlaps(a: &LocalStretch, b: &LocalStretch) -> bool {
    a.first_ms <= b.last_ms && b.first_ms <= a.last_ms
}

fn day(year: i16, month: i8, day: i8) -> DateTime {
    jiff::civil::date(year, month, day).at(0, 0, 0, 0)
}

/// The local clock as milliseconds since 1970.
fn local_ms(at: DateTime) -> Option<i64> {
    Some(jiff::tz::Offset::UTC.to_timestamp(at).ok()?.as_millisecond())
}

/// The month of such a moment.
fn month_of(local_ms: i64) -> Option<i8> {
    let at = jiff::Timestamp::from_millisecond(local_ms).ok()?;
    Some(jiff::tz::Offset::UTC.to_datetime(at).month())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::{question::ParsedQuestion, times::render_interval};
    use types::model::Bank;

    fn asked(text: &str, at: Option<&str>) -> Option<AskedTime> {
        let mut question = Question::new(Bank::parse("b").unwrap(), text);
        question.asked_at = at.map(|at| EventTime::parse(at).unwrap());
        ParsedQuestion::of(&question).asked_time().cloned()
    }

    const NOW: Option<&str> = Some("2026-10-14T09:00:00+02:00");

    #[test]
    fn the_lists_are_well_formed() {
        assert!(SAYING.is_some() && GENERAL_WORDS.is_sorted());
    }

    #[test]
    fn a_time_alone_chooses_and_a_topic_beside_it_makes_it_weigh() {
        let chooses = |text: &str| asked(text, NOW).map(|time| time.chooses);
        for text in [
            "What happened last week?",
            "What did we talk about last month?",
            "What did I do yesterday?",
            "Give me a summary of last week.",
            "What is planned for next week?",
            "What did we chat about in May?",
            "What did we text yesterday?",
        ] {
            assert_eq!(chooses(text), Some(true), "{text}");
        }
        for text in ["What did Ann do last week?", "Which kayak did we buy last week?", "When in 2025 did I move?"] {
            assert_eq!(chooses(text), Some(false), "{text}");
        }
        assert_eq!(chooses("Where is the kayak?"), None);
        assert_eq!(chooses("Who wrote \"Last Summer\"?"), None);
    }

    #[test]
    fn saying_is_told_from_happening() {
        let of_saying = |text: &str| asked(text, NOW).unwrap().of_saying;
        assert!(of_saying("What did we talk about last week?"));
        assert!(of_saying("What did I tell you yesterday?"));
        assert!(!of_saying("What happened last week?"));
        assert!(!of_saying("What did I say that we do next week?"), "nothing was said then yet");
    }

    #[test]
    fn words_of_a_time_are_not_searched() {
        let searched = |text: &str| {
            let mut question = Question::new(Bank::parse("b").unwrap(), text);
            question.asked_at = EventTime::parse("2026-10-14T09:00:00+02:00").ok();
            ParsedQuestion::of(&question).searched_text()
        };
        assert_eq!(searched("What was painted on 2026-07-25?"), "What was painted on  ?");
        assert_eq!(searched("Who painted in Q3 and sang at Christmas?"), "Who painted in   and sang at Christmas?");
        assert_eq!(searched("What is in section 25?"), "What is in section 25?");
    }

    #[test]
    fn the_interval_lies_on_the_askers_clock() {
        let words = |text, at| asked(text, at).and_then(|time| time.interval()).map(|i| render_interval(&i));
        assert_eq!(words("What happened yesterday?", NOW).as_deref(), Some("13 October 2026"));
        let late = Some("2026-10-14T23:30:00-10:00");
        assert_eq!(words("What happened today?", late).as_deref(), Some("14 October 2026"));
        let time = asked("What happened in July?", None).unwrap();
        assert_eq!((time.stretches.len(), time.months, time.certain), (0, vec![7], false));
        let both = asked("What did Kevin watch on 10.01.2024?", None).unwrap();
        assert_eq!((both.stretches.len(), both.certain), (2, false));
        assert_eq!(
            asked("What happened since Monday?", NOW).unwrap().bounds().0,
            EventTime::parse("2026-10-12T00:00:00+02:00").ok()
        );
        assert_eq!(asked("What happened before May 2026?", NOW).unwrap().bounds().0, None);
    }
}
