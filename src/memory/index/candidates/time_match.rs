//! Whether a part is of the time that a question names, and what that adds to its score (decision 59).
//!
//! In: the time of a probe; when a part was said, and the intervals that its words name. Out: the term of the
//! score, and whether the part lies in the time. However the time was worded, what lies in it counts the same. A part
//! that was said around a named day, in the same month or on the two days after it, gets a share, because people talk
//! about a day later on; a question that asks for nothing but a time gets no such parts.

use crate::index::probes::ProbedTime;
use crate::language::question::LocalStretch;
use types::{
    config::FamiliarityWeights,
    model::{EventTime, Interval},
};

const DAY_MS: i64 = 86_400_000;
/// For how many days, counting the named day, people are expected to talk about what happened on it.
const TELLING_DAYS: i64 = 3;
/// An event of at most this number of days may hold most of the time that is asked for. A longer one is of another
/// scale: who was born in 1999 was not born in May.
const EVENT_DAYS_MOST: i64 = 15;

/// The most by which two clocks may differ.
const CLOCKS_APART_MS: i64 = 2 * 26 * 3_600_000;

/// What is added to the score of parts of the time, if the question asks for nothing else: more than any other part of
/// a score, so that they come first.
pub const CHOSEN: f64 = 8.0;

/// First and last millisecond of a stretch of a local clock.
pub(in crate::index) type LocalRange = (i64, i64);

/// A part's own times on a local clock.
#[derive(Debug, Clone)]
pub(in crate::index) struct PartTimes {
    /// When it was said: a moment, or a stretch that holds it.
    pub said: LocalRange,
    /// The month in which it was said, January being 1.
    pub month: i8,
    /// When what it tells happens.
    pub events: Vec<LocalRange>,
}

impl ProbedTime {
    /// The times of a part on the clock of the question, or on its own.
    pub(in crate::index) fn times_of(&self, said: EventTime, events: &[Interval]) -> PartTimes {
        let at = said.unix_ms + self.offset_ms(said.offset_seconds);
        let month = if self.months.is_empty() { 0 } else { said.local().month() };
        PartTimes { said: (at, at), month, events: self.events_of(events) }
    }

    /// Intervals on the clock of the question, or on their own; none if only the time of saying counts.
    fn events_of(&self, events: &[Interval]) -> Vec<LocalRange> {
        let events = if self.of_saying { &[] } else { events };
        let local = |event: &Interval| {
            let offset_ms = self.offset_ms(event.offset_seconds);
            (event.start_ms + offset_ms, event.end_ms + offset_ms)
        };
        events.iter().map(local).collect()
    }

    fn offset_ms(&self, own: i32) -> i64 {
        i64::from(self.offset_seconds.unwrap_or(own)) * 1_000
    }

    /// Whether a part with these times lies in the time.
    pub(in crate::index) fn holds(&self, times: &PartTimes) -> bool {
        let is_said = |one: &LocalStretch| one.first_ms <= times.said.1 && times.said.0 <= one.last_ms;
        let happens = |one: &LocalStretch| times.events.iter().any(|event| is_of(*event, one));
        self.months.contains(&times.month) || self.stretches.iter().any(|one| is_said(one) || happens(one))
    }

    /// What the time adds to the score of a part, and whether the part lies in the time.
    pub(in crate::index) fn term(&self, weights: &FamiliarityWeights, times: &PartTimes) -> (f64, bool) {
        if self.holds(times) {
            let of_days = if self.stretches.iter().any(LocalStretch::names_days) { weights.day } else { 0.0 };
            return (weights.month + of_days, true);
        }
        if self.chooses {
            return (0.0, false);
        }
        let of_days = self.stretches.iter().filter(|one| one.names_days());
        let near = of_days.map(|one| {
            let is_around = one.around.0 <= times.said.1 && times.said.0 <= one.around.1;
            let month = if is_around { weights.month } else { 0.0 };
            month + weights.day * nearness_after(one, times.said.0)
        });
        (near.fold(0.0, f64::max), false)
    }

    /// As [`Self::term`], for a part that names no time, of which only the day is known on its own clock; `None` if the
    /// day does not decide.
    pub(in crate::index) fn term_of_day(
        &self,
        weights: &FamiliarityWeights,
        day: i64,
        month: i8,
    ) -> Option<(f64, bool)> {
        let slack_ms = if self.offset_seconds.is_some() { CLOCKS_APART_MS } else { 0 };
        let said = (day * DAY_MS - slack_ms, (day + 1) * DAY_MS - 1 + slack_ms);
        let term = self.term(weights, &PartTimes { said, month, events: Vec::new() });
        let decides = |one: &LocalStretch| one.first_ms <= said.0 && said.1 <= one.last_ms;
        let decided = !term.1 || self.months.contains(&month) || self.stretches.iter().any(decides);
        decided.then_some(term)
    }

    /// What a part of the time gets in addition, if the question asks for nothing else.
    pub(in crate::index) fn chosen(&self, weights: &FamiliarityWeights) -> f64 {
        if self.chooses && weights.month > 0.0 { CHOSEN } else { 0.0 }
    }
}

/// Whether an event lies in a stretch: at least half of it, or it is short and holds at least half of the stretch.
fn is_of(event: LocalRange, stretch: &LocalStretch) -> bool {
    let common = event.1.min(stretch.last_ms) - event.0.max(stretch.first_ms) + 1;
    let (length, of_stretch) = (event.1 - event.0 + 1, stretch.last_ms - stretch.first_ms + 1);
    common > 0 && (2 * common >= length || (length <= EVENT_DAYS_MOST * DAY_MS && 2 * common >= of_stretch))
}

/// How near after named days something was said: 1 on the last of them, 0 from the third day after it on.
fn nearness_after(stretch: &LocalStretch, said_ms: i64) -> f64 {
    if said_ms < stretch.first_ms {
        return 0.0;
    }
    let after = said_ms.div_euclid(DAY_MS) - stretch.last_ms.div_euclid(DAY_MS);
    (TELLING_DAYS - after.max(0)).max(0) as f64 / TELLING_DAYS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEIGHTS: FamiliarityWeights = FamiliarityWeights {
        meaning: 0.0,
        pair: 0.0,
        trio: 0.0,
        words: 0.0,
        speaker: 0.0,
        month: 1.0,
        day: 0.5,
        times: 0.0,
        times_asked: 0.0,
        asks: 0.0,
        names: 0.0,
        next_turn: 0.0,
        second_turn: 0.0,
        session: 0.0,
    };

    fn day(text: &str) -> i64 {
        EventTime::parse(&format!("{text}T00:00:00Z")).unwrap().unix_ms
    }

    /// 20 to 22 November 2026.
    fn probed(of_saying: bool, chooses: bool) -> ProbedTime {
        let stretch = LocalStretch {
            first_ms: day("2026-11-20"),
            last_ms: day("2026-11-23") - 1,
            around: (day("2026-11-01"), day("2026-12-01") - 1),
        };
        ProbedTime { stretches: vec![stretch], months: Vec::new(), offset_seconds: Some(0), of_saying, chooses }
    }

    #[test]
    fn what_was_said_then_and_what_happens_then_count_the_same() {
        let term = |time: &ProbedTime, said: &str, event: Option<(&str, &str)>| {
            let event =
                event.map(|(first, last)| Interval { start_ms: day(first), end_ms: day(last) - 1, offset_seconds: 0 });
            time.term(&WEIGHTS, &time.times_of(EventTime::parse(said).unwrap(), event.as_slice()))
        };
        let plain = probed(false, false);
        assert_eq!(term(&plain, "2026-11-21T10:00:00Z", None), (1.5, true), "said then");
        let booked = Some(("2026-11-20", "2026-11-23"));
        assert_eq!(term(&plain, "2026-04-10T10:00:00Z", booked), (1.5, true), "planned in April");
        assert_eq!(term(&plain, "2027-02-01T10:00:00Z", booked), (1.5, true), "told in February");
        assert_eq!(term(&probed(true, false), "2026-04-10T10:00:00Z", booked), (0.0, false), "not said then");
        assert_eq!(term(&plain, "2026-04-10T10:00:00Z", Some(("2026-01-01", "2027-01-01"))), (0.0, false), "a year");
        assert_eq!(term(&plain, "2026-11-24T10:00:00Z", None), (1.0 + 0.5 / 3.0, false), "told two days later");
        assert_eq!(term(&plain, "2026-11-05T10:00:00Z", None), (1.0, false), "in the same month");
        assert_eq!(term(&probed(false, true), "2026-11-05T10:00:00Z", None), (0.0, false), "another day");
        assert_eq!(term(&plain, "2026-10-05T10:00:00Z", None), (0.0, false));
    }

    #[test]
    fn a_question_without_a_clock_is_read_on_that_of_the_turn() {
        let mut time = probed(false, false);
        let late = EventTime::parse("2026-11-20T01:00:00+09:00").unwrap();
        assert!(!time.holds(&time.times_of(late, &[])), "it is still the 19th for the asker");
        time.offset_seconds = None;
        assert!(time.holds(&time.times_of(late, &[])));
        let months = ProbedTime { stretches: Vec::new(), months: vec![11], ..time };
        assert!(months.holds(&months.times_of(late, &[])));
        assert!(!months.holds(&months.times_of(EventTime::parse("2026-10-20T01:00:00Z").unwrap(), &[])));
    }
}
