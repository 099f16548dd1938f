//! Finds the time expressions among a text's words.
//!
//! In: a text and, if known, the moment it was said. Out: the longest expression at each word, by the rules of
//! `absolute_dates`, `relative_times` and `clock_times`. It never reads a clock.

use std::ops::Range;

use jiff::civil::DateTime;

use super::time_tokens::TimeTokens;
use crate::language::calendar::{LocalInterval, month_number};
use types::model::{EventTime, Interval};

/// An expression of a text and what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeMention {
    /// Its byte range in the text.
    pub range: Range<usize>,
    /// The whole interval that it names.
    pub interval: Interval,
    /// True if its meaning does not depend on the anchor ("8 May 2023"); false if the anchor was needed ("yesterday",
    /// "in June").
    pub complete: bool,
}

/// The expressions of a text. Without an anchor, only those that need none.
#[must_use]
pub fn find_times(text: &str, anchor: Option<EventTime>) -> Vec<TimeMention> {
    let lower = text.to_ascii_lowercase();
    let reader = TimeReader { words: TimeTokens::of(text, &lower), now: anchor.map(|a| a.local()) };
    let offset_seconds = anchor.map_or(0, |a| a.offset_seconds);
    let mut found = Vec::new();
    let mut at = 0;
    while at < reader.words.len() {
        let Some(hit) = reader.longest_expression(at) else {
            at += 1;
            continue;
        };
        if let Some(interval) = hit.stretch.interval(offset_seconds) {
            let range = reader.words.range(at, hit.next);
            found.push(TimeMention { range, interval, complete: hit.complete });
        }
        at = hit.next.max(at + 1);
    }
    found
}

/// The words other than months and figures that an expression may begin with, sorted. Most words of a text are not
/// among them and are skipped at once.
pub(super) const FIRST_WORDS: &[&str] = &[
    "a",
    "an",
    "day",
    "eight",
    "eleven",
    "fifteen",
    "first",
    "five",
    "four",
    "fourth",
    "friday",
    "in",
    "last",
    "midnight",
    "monday",
    "month",
    "next",
    "nine",
    "noon",
    "one",
    "saturday",
    "second",
    "seven",
    "six",
    "sunday",
    "ten",
    "the",
    "third",
    "thirty",
    "this",
    "three",
    "thursday",
    "today",
    "tomorrow",
    "tonight",
    "tuesday",
    "twelve",
    "twenty",
    "two",
    "wednesday",
    "week",
    "weekend",
    "year",
    "yesterday",
];

/// A recognised expression: it ends before word `next`.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeExpression {
    pub(super) next: usize,
    pub(super) stretch: LocalInterval,
    pub(super) complete: bool,
}

/// The words of a text and the local time at which it was said.
pub(super) struct TimeReader<'t> {
    pub(super) words: TimeTokens<'t>,
    pub(super) now: Option<DateTime>,
}

impl TimeReader<'_> {
    /// The longest expression that starts at a word.
    pub(super) fn longest_expression(&self, at: usize) -> Option<TimeExpression> {
        let word = self.words.at(at);
        let opens = word.starts_with(|c: char| c.is_ascii_digit())
            || FIRST_WORDS.binary_search(&word).is_ok()
            || month_number(word).is_some();
        if !opens || !self.words.may_begin(at) {
            return None;
        }
        let day = [self.absolute(at), self.relative(at)].into_iter().flatten().max_by_key(|h| h.next);
        day.map(|h| self.refine(h)).or_else(|| self.clock_then_day(at))
    }

    /// Narrows a day by the part of the day or the clock that follows it.
    fn refine(&self, hit: TimeExpression) -> TimeExpression {
        let w = |i: usize| self.words.at(i);
        let Some(date) = hit.stretch.whole_day() else { return hit };
        let mut hit = hit;
        let mut part = "";
        let skip = if (w(hit.next), w(hit.next + 1)) == ("in", "the") { 2 } else { 0 };
        if let Some(stretch) = hit.stretch.part(w(hit.next + skip)) {
            part = w(hit.next + skip);
            hit = TimeExpression { next: hit.next + skip + 1, stretch, ..hit };
        }
        let skip = match (w(hit.next), w(hit.next + 1)) {
            (",", "at") => 2,
            ("at" | "," | "around", _) => 1,
            _ => 0,
        };
        // "at around two" is not a moment; "at two" is one only if the part of the day says which two is meant.
        match self.clock_time(hit.next + skip, part) {
            Some((next, time)) if w(hit.next) != "around" => {
                TimeExpression { next, stretch: LocalInterval::moment(date.to_datetime(time)), ..hit }
            }
            _ => hit,
        }
    }

    /// "2 pm tomorrow", "1:56 pm on 8 May 2023".
    fn clock_then_day(&self, at: usize) -> Option<TimeExpression> {
        let (next, time) = self.clock_time(at, "")?;
        let skip = usize::from(matches!(self.words.at(next), "on" | ","));
        let from = next + skip;
        let day = self.absolute(from).or_else(|| self.relative(from))?;
        let date = day.stretch.whole_day()?;
        Some(TimeExpression { stretch: LocalInterval::moment(date.to_datetime(time)), ..day })
    }
}
