//! Finds the periods among the words of an English question, and joins them: "since", "between … and …".
//!
//! In: a text and the local time at which it is asked. Out: the longest period at each word.

use jiff::civil::DateTime;

use super::{
    NamedPeriod,
    english_reader::{EnglishReader, PeriodHit},
    period_span::PeriodSpan,
};
use crate::language::{
    calendar::LocalInterval,
    tense::Tense,
    times::{time_reader::TimeReader, time_tokens::TimeTokens},
};

/// The periods of an English text.
pub(super) fn english_periods(text: &str, now: Option<DateTime>) -> Vec<NamedPeriod> {
    let lower = text.to_ascii_lowercase();
    let reader = EnglishReader { reader: TimeReader { words: TimeTokens::of(text, &lower), now } };
    let mut found = Vec::new();
    let mut at = 0;
    while at < reader.reader.words.len() {
        let Some(hit) = reader.period(at) else {
            at += 1;
            continue;
        };
        found.push(hit.span.named(reader.reader.words.range(at, hit.next)));
        at = hit.next.max(at + 1);
    }
    found
}

impl EnglishReader<'_> {
    /// The longest period that begins at a word.
    fn period(&self, at: usize) -> Option<PeriodHit> {
        self.joined(at).or_else(|| self.run(at))
    }

    /// A period that another one opens or closes.
    fn joined(&self, at: usize) -> Option<PeriodHit> {
        let after = |words: &[&str]| self.follows(at, words);
        let inner = |from: usize| self.closed(self.skip(from, &["about", "around"]));
        let with = |hit: PeriodHit, span: PeriodSpan| Some(PeriodHit { span, ..hit });
        if let Some(from) = after(&["since"]).or(after(&["ever", "since"])) {
            let hit = inner(from)?;
            return with(hit, self.begun(hit.span).since(self.today()));
        }
        if let Some(from) = after(&["before"]).or(after(&["prior", "to"])).or(after(&["earlier", "than"])) {
            let hit = inner(from)?;
            return with(hit, hit.span.before()?);
        }
        if let Some(from) = after(&["after"]).or(after(&["later", "than"])) {
            let hit = inner(from)?;
            return with(hit, hit.span.after()?);
        }
        let until = after(&["until"]).or(after(&["till"])).or(after(&["up", "until"])).or(after(&["up", "to"]));
        if let Some(from) = until.or(after(&["by"])) {
            let hit = inner(from)?;
            return with(hit, hit.span.until());
        }
        if let Some(from) = after(&["between"]) {
            return self.range(from, &["and", "to"]);
        }
        let from = after(&["from"]).or(after(&["starting"])).or(after(&["beginning"]))?;
        if self.w(at) == "from"
            && let Some(hit) = self.range(from, &["to", "until", "till", "through", "thru", "-", "–"])
        {
            return Some(hit);
        }
        let hit = inner(self.skip(from, &["on", "in", "from", "with"]))?;
        let on = self.follows(hit.next, &["onwards"]).or(self.follows(hit.next, &["onward"]));
        let on = on.or(self.follows(hit.next, &["on"])).or((self.w(at) != "from").then_some(hit.next))?;
        Some(PeriodHit { next: on, span: self.begun(hit.span).since(self.today()) })
    }

    /// What has begun already, if "since" stands before it: "since June" is not next June.
    fn begun(&self, span: PeriodSpan) -> PeriodSpan {
        let is_later = self.today().is_some_and(|today| span.stretch.first.date() > today);
        if !is_later || span.has_year {
            return span;
        }
        let LocalInterval { first, last } = span.stretch;
        // A weekday is a week earlier, and what recurs each year a year.
        let back = |at: DateTime| {
            let days = self.today().and_then(|today| today.until(first.date()).ok()).map_or(0, |away| away.get_days());
            if days < 7 {
                at.checked_sub(jiff::Span::new().weeks(1))
            } else {
                at.checked_sub(jiff::Span::new().years(1))
            }
        };
        match (back(first), back(last)) {
            (Ok(first), Ok(last)) => PeriodSpan { stretch: LocalInterval { first, last }, ..span },
            _ => span,
        }
    }

    /// Two periods with one of these words between them, as one: "20 to 22 November", "June to August".
    fn range(&self, at: usize, joins: &[&str]) -> Option<PeriodHit> {
        if let Some(from) = self.closed(at) {
            if !joins.contains(&self.w(from.next)) {
                // "from 20 to 22 November" was read as one already.
                let is_several = from.span.stretch.first.date() < from.span.stretch.last.date();
                return Some(from).filter(|_| is_several && (joins.contains(&self.w(at + 1)) || self.w(at) == "the"));
            }
            let second = self.skip(from.next + 1, &["the"]);
            if let Some(to) = self.closed(from.next + 1).or_else(|| self.closed(second)) {
                return Some(PeriodHit { span: from.span.up_to(to.span)?, ..to });
            }
            let day = self.reader.day_number(second)?;
            let last = from.span.stretch.last.date().with().day(day).build().ok()?;
            let to = PeriodSpan { stretch: LocalInterval::days(last, last), ..from.span };
            return Some(PeriodHit { next: second + 1, span: from.span.up_to(to)? });
        }
        // "between the 5th and the 9th of October": the month stands only after the second day.
        let first = self.skip(at, &["the"]);
        let day = self.reader.day_number(first).filter(|_| joins.contains(&self.w(first + 1)))?;
        let to = self.closed(first + 2)?;
        let date = to.span.stretch.first.date().with().day(day).build().ok()?;
        let from = PeriodSpan { stretch: LocalInterval::days(date, date), ..to.span };
        Some(PeriodHit { span: from.up_to(to.span)?, ..to })
    }

    /// A period with those that are joined to it: "25 July to 3 August", "July and August".
    fn run(&self, at: usize) -> Option<PeriodHit> {
        let mut hit = self.closed(at)?;
        loop {
            let join = self.w(hit.next);
            let adjoins = matches!(join, "and" | "," | "&");
            if !adjoins && !matches!(join, "to" | "until" | "till" | "through" | "-" | "–") {
                return Some(hit);
            }
            let Some(next) = self.closed(hit.next + 1) else { return Some(hit) };
            let Some(whole) = hit.span.up_to(next.span) else { return Some(hit) };
            let length = |span: PeriodSpan| {
                span.stretch.first.date().until(span.stretch.last.date()).map_or(i32::MAX, |days| days.get_days() + 1)
            };
            // "May and September" are two times, "July and August" are one.
            if adjoins && length(whole) > length(hit.span) + length(next.span) {
                return Some(hit);
            }
            hit = PeriodHit { span: whole, ..next };
        }
    }

    /// The longest period at a word that does not depend on words such as "since".
    pub(super) fn closed(&self, at: usize) -> Option<PeriodHit> {
        if !self.reader.words.may_begin(at) {
            return None;
        }
        let plain = self.reader.longest_expression(at).map(|hit| {
            let span = PeriodSpan { certain: true, has_year: hit.complete, ..PeriodSpan::complete(hit.stretch) };
            let by_tense = !hit.complete && self.reader.words.tense(at) != Tense::Unclear && self.is_by_tense(at);
            PeriodHit { next: hit.next, span: if by_tense { PeriodSpan::inferred(hit.stretch) } else { span } }
        });
        let rules = [
            Self::part_of_period,
            Self::rolling,
            Self::ago,
            Self::quarter_or_half,
            Self::week,
            Self::year_month,
            Self::season,
            Self::month,
            Self::whole_year,
            Self::part_until_now,
            Self::weekend,
            Self::day_of_month,
            Self::weekday,
            Self::part_of_day,
            Self::holiday,
            Self::days_before_month,
            Self::days_after_month,
        ];
        let own = rules.iter().filter_map(|rule| rule(self, at));
        // Of two readings that are equally long, the one by the rules for questions counts.
        plain.into_iter().chain(own).max_by_key(|hit| hit.next)
    }

    /// Whether an expression has its year or week by the tense alone.
    fn is_by_tense(&self, at: usize) -> bool {
        let opens = ["last", "this", "next", "yesterday", "today", "tomorrow", "tonight", "the", "a", "an", "in"];
        let counted =
            self.number(at).is_some_and(|number| super::english_reader::unit_of(self.w(number.next)).is_some());
        !opens.contains(&self.w(at)) && !counted
    }
}
