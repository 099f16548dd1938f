//! How an answer follows the time that its question names.
//!
//! In: the question as read, and the parts of its bank as they were scored. Out: the time for the probe, the parts of
//! it if the question asks for nothing else, what the trace says of it, and the line that says that memory holds
//! nothing of it. Sends no probe.

use crate::{
    index::{CHOSEN, FamiliarityResult, ProbedTime},
    language::{
        question::{AskedTime, ParsedQuestion},
        times::render_interval,
    },
};
use types::model::{AskedPeriod, PeriodClock, PeriodReading, PeriodSubject, PeriodUse};

/// The time that a question names, for its probe.
pub(super) fn probed_time(read: &ParsedQuestion<'_>) -> Option<ProbedTime> {
    let AskedTime { stretches, months, offset_seconds, of_saying, chooses, .. } = read.asked_time()?.clone();
    Some(ProbedTime { stretches, months, offset_seconds, of_saying, chooses })
}

/// The same result with the parts of the asked time alone, if the question asks for nothing else and memory has some.
/// They are the first ones, so each keeps its index.
pub(super) fn parts_of_time(familiar: &FamiliarityResult) -> Option<FamiliarityResult> {
    let count = familiar.best.iter().take_while(|part| part.terms.month >= CHOSEN).count();
    let best = familiar.best.get(..count).filter(|best| !best.is_empty())?.to_vec();
    Some(FamiliarityResult { best, ..familiar.clone() })
}

/// What the trace says of the asked time.
pub(super) fn asked_period(read: &ParsedQuestion<'_>, familiar: &FamiliarityResult) -> Option<AskedPeriod> {
    let time = read.asked_time()?;
    let (from, until) = time.bounds();
    Some(AskedPeriod {
        words: time.words.clone(),
        from,
        until,
        clock: if time.offset_seconds.is_some() { PeriodClock::Asker } else { PeriodClock::Turns },
        reading: if time.certain { PeriodReading::Certain } else { PeriodReading::Likely },
        of: if time.of_saying { PeriodSubject::Said } else { PeriodSubject::SaidOrHappened },
        used: if time.chooses { PeriodUse::Chooses } else { PeriodUse::Weighs },
        parts: familiar.in_time.unwrap_or_default() as u64,
    })
}

/// That memory holds nothing of a time that was read with certainty, in words; and whether the question asks for
/// nothing else, so that nothing supports it.
pub(super) fn nothing_of_time(read: &ParsedQuestion<'_>, familiar: &FamiliarityResult) -> Option<(String, bool)> {
    let time = read.asked_time().filter(|time| time.certain)?;
    if familiar.in_time != Some(0) || familiar.parts_total == 0 {
        return None;
    }
    let what = if time.of_saying { "nothing was said" } else { "nothing was said or happened" };
    Some((format!("{what} {}", period_words(time)?), time.chooses))
}

/// A time after a verb: "in 5 to 11 October 2026", "before May 2026".
fn period_words(time: &AskedTime) -> Option<String> {
    let whole = render_interval(&time.interval()?);
    Some(match time.bounds() {
        (Some(_), Some(_)) => format!("in the time {whole}"),
        (Some(from), None) => format!("from {} on", day(from)),
        (None, Some(until)) => format!("until {}", day(until)),
        (None, None) => return None,
    })
}

fn day(at: types::model::EventTime) -> String {
    super::day_name(at.local().date())
}

/// The time that a question names, in words, for the text of a trace.
#[must_use]
pub(super) fn period_text(period: &AskedPeriod) -> String {
    let moment = |at: types::model::EventTime| types::model::Interval::at(at);
    let when = match (period.from, period.until) {
        (Some(from), Some(until)) => types::model::Interval::try_from((from, until))
            .map_or_else(|_| String::new(), |interval| render_interval(&interval)),
        (Some(from), None) => format!("from {} on", render_interval(&moment(from))),
        (None, Some(until)) => format!("until {}", render_interval(&moment(until))),
        (None, None) => "months of any year".to_owned(),
    };
    let zone = match (period.clock, period.from.or(period.until)) {
        (PeriodClock::Asker, Some(at)) => format!("the asker's clock, {}", offset_text(at.offset_seconds)),
        _ => "the clock of each turn".to_owned(),
    };
    let reading = match period.reading {
        PeriodReading::Certain => "certain",
        PeriodReading::Likely => "likely",
    };
    let of = match period.of {
        PeriodSubject::Said => "said then",
        PeriodSubject::SaidOrHappened => "said or happened then",
    };
    let used = match period.used {
        PeriodUse::Weighs => "weighs",
        PeriodUse::Chooses => "chooses",
    };
    let words = period.words.join(", ");
    format!("{when} (\"{words}\"; {zone}; {reading}; {of}, {used}; {} parts)", period.parts)
}

fn offset_text(seconds: i32) -> String {
    let minutes = seconds.abs() / 60;
    format!("UTC{}{:02}:{:02}", if seconds < 0 { '-' } else { '+' }, minutes / 60, minutes % 60)
}
