//! Finds the periods in a question in another language than English.
//!
//! In: a text, its language, and the local time at which it is asked. Out: the periods. Times are read with the phrases
//! of CLDR (`foreign_times`), and with those of `phrases.tsv` in the languages that have them; other languages have no
//! period that another time opens or closes, because the words for it are missing.

use jiff::{
    Span,
    civil::{Date, DateTime},
};

use super::{
    NamedPeriod,
    period_phrases::{PeriodMeaning, PeriodPhrase, period_phrases},
    period_span::{A_FEW, PeriodSpan, fitting, in_fitting_year, quarter_from, rolling, rolling_clock},
    yearly::Yearly,
};
use crate::language::{
    calendar::{CalendarUnit, LocalInterval},
    multilingual::is_unspaced,
    tense::Tense,
    times::foreign_times::{ForeignTimeReader, NamedTime, written_number},
};
use types::model::Language;

/// The periods of a text.
pub(super) fn foreign_periods(text: &str, language: Language, now: Option<DateTime>) -> Vec<NamedPeriod> {
    let Some(reader) = ForeignTimeReader::of(text, language) else { return Vec::new() };
    let mut periods = ForeignPeriods { reader, phrases: period_phrases(language), now, tense: Tense::Past };
    if (0..periods.reader.text.len()).any(|at| periods.is_at(at, |meaning| meaning == PeriodMeaning::Future).is_some())
    {
        periods.tense = Tense::Future;
    }
    let mut found = Vec::new();
    let mut next = 0;
    let starts: Vec<usize> = periods.reader.word_starts();
    for at in starts {
        if at < next {
            continue;
        }
        let Some((end, span)) = periods.joined(at).or_else(|| periods.run(at)) else { continue };
        next = end.max(at + 1);
        found.push(span.named(periods.reader.origin(at)..periods.reader.origin(end)));
    }
    found
}

#[derive(Debug, Clone, Copy)]
enum Item {
    Span(PeriodSpan),
    /// And the year that a word before it points to: -1 for the last.
    Yearly(Yearly, Option<i8>),
}

/// How many units are meant without a number: "the last days" are a few, "the last month" is one.
fn unnumbered(unit: CalendarUnit) -> i64 {
    if unit == CalendarUnit::Day { A_FEW } else { 1 }
}

struct ForeignPeriods {
    reader: ForeignTimeReader,
    phrases: &'static [PeriodPhrase],
    now: Option<DateTime>,
    tense: Tense,
}

impl ForeignPeriods {
    fn rest(&self, at: usize) -> &str {
        self.reader.text.get(at..).unwrap_or_default()
    }

    fn today(&self) -> Option<Date> {
        self.now.map(|now| now.date())
    }

    /// The longest phrase at a place whose meaning passes: its end, its meaning, and its number.
    fn phrase(&self, at: usize, passes: impl Fn(PeriodMeaning) -> bool) -> Option<(usize, PeriodMeaning, Option<i64>)> {
        let rest = self.rest(at);
        self.phrases.iter().filter(|phrase| passes(phrase.meaning)).find_map(|phrase| {
            let tail = rest.strip_prefix(phrase.before)?;
            let (tail, number) = match phrase.after {
                None => (tail, None),
                Some(after) => {
                    let (length, number) = self.number(tail.trim_start_matches(' '))?;
                    let tail = tail.trim_start_matches(' ').get(length..)?;
                    let after_place = if tail.starts_with(' ') { after } else { after.trim_start_matches(' ') };
                    (tail.strip_prefix(after_place)?, Some(number))
                }
            };
            // Chinese figures follow a word without a space.
            let written = phrase.after.filter(|after| !after.is_empty()).unwrap_or(phrase.before);
            let ends = self.reader.may_end_word(tail) || written.ends_with(is_unspaced);
            ends.then(|| (at + rest.len() - tail.len(), phrase.meaning, number))
        })
    }

    fn is_at(&self, at: usize, passes: impl Fn(PeriodMeaning) -> bool) -> Option<usize> {
        self.phrase(at, passes).map(|(end, ..)| end)
    }

    /// A number in figures, numerals or words, and its length.
    fn number(&self, text: &str) -> Option<(usize, i64)> {
        let figures = written_number(text);
        let word = self.phrases.iter().find_map(|phrase| {
            let value = match phrase.meaning {
                PeriodMeaning::Number(value) => value,
                PeriodMeaning::Few => A_FEW,
                _ => return None,
            };
            let tail = text.strip_prefix(phrase.before).filter(|tail| self.reader.may_end_word(tail))?;
            Some((text.len() - tail.len(), value))
        });
        figures.or(word)
    }

    /// The place after spaces and articles.
    fn past_articles(&self, at: usize) -> usize {
        let mut at = self.past_spaces(at);
        while let Some(end) = self.is_at(at, |meaning| meaning == PeriodMeaning::Article) {
            at = self.past_spaces(end);
        }
        at
    }

    fn past_spaces(&self, at: usize) -> usize {
        let rest = self.rest(at);
        at + rest.len() - rest.trim_start_matches(' ').len()
    }

    /// A period that another one opens or closes.
    fn joined(&self, at: usize) -> Option<(usize, PeriodSpan)> {
        use PeriodMeaning::{After, Before, Between, From, Since, Until};
        let opens =
            |meaning| matches!(meaning, Since(false) | Until(false) | Before(false) | After(false) | Between | From);
        // "vor zwei Wochen" is counted, though "vor" also means before.
        let counted = self.closed(at).map(|(end, _)| end).unwrap_or_default();
        let pair = |from| self.pair(from);
        if let Some((end, ..)) = self.phrase(at, |meaning| matches!(meaning, Between | From))
            && let Some(whole) = pair(self.past_articles(end)).filter(|(end, _)| *end > counted)
        {
            return Some(whole);
        }
        let (end, meaning, _) = self.phrase(at, |meaning| opens(meaning) && !matches!(meaning, Between | From))?;
        let (end, span) = self.inner(self.past_articles(end)).filter(|(end, _)| *end > counted)?;
        Some((end, self.opened(meaning, span)?))
    }

    /// A span that a word such as "since" makes of another.
    fn opened(&self, meaning: PeriodMeaning, span: PeriodSpan) -> Option<PeriodSpan> {
        match meaning {
            PeriodMeaning::Since(_) => Some(span.since(self.today())),
            PeriodMeaning::Until(_) => Some(span.until()),
            PeriodMeaning::Before(_) => span.before(),
            PeriodMeaning::After(_) => span.after(),
            _ => None,
        }
    }

    /// A period after such a word, where a bare year counts as well.
    fn inner(&self, at: usize) -> Option<(usize, PeriodSpan)> {
        self.closed(at).or_else(|| {
            let digits = self.rest(at).get(..4)?;
            let year: i16 = digits.parse().ok().filter(|year| (1900..2200).contains(year))?;
            let ends = self.rest(at + 4).chars().next().is_none_or(|c| !c.is_ascii_digit());
            Some((at + 4, PeriodSpan::complete(LocalInterval::year(year).filter(|_| ends)?)))
        })
    }

    /// Two times, of which the first may be a day without its month.
    fn pair(&self, at: usize) -> Option<(usize, PeriodSpan)> {
        let joins = |meaning| matches!(meaning, PeriodMeaning::Join | PeriodMeaning::And);
        let second = |from: usize| {
            let from = self.past_spaces(from);
            let join = self.is_at(from, joins)?;
            Some(self.past_articles(join))
        };
        if let Some((end, from)) = self.inner(at)
            && let Some(place) = second(end)
        {
            if let Some((end, to)) = self.inner(place) {
                return Some((end, from.up_to(to)?));
            }
            let (end, day) = self.bare_day(place)?;
            let last = from.stretch.last.date().with().day(day).build().ok()?;
            let to = PeriodSpan { stretch: LocalInterval::days(last, last), ..from };
            return Some((end, from.up_to(to)?));
        }
        let (end, day) = self.bare_day(at)?;
        let (end, to) = self.closed(second(end)?)?;
        let first = to.stretch.first.date().with().day(day).build().ok()?;
        let from = PeriodSpan { stretch: LocalInterval::days(first, first), ..to };
        to.stretch.whole_day()?;
        Some((end, from.up_to(to)?))
    }

    /// A day in figures.
    fn bare_day(&self, at: usize) -> Option<(usize, i8)> {
        let rest = self.rest(at);
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let day = rest.get(..digits)?.parse().ok().filter(|day| (1..=31).contains(day))?;
        let end = at + digits;
        let mark = [".", "er", "日", "号", "º"].iter().find(|mark| self.rest(end).starts_with(**mark));
        Some((end + mark.map_or(0, |mark| mark.len()), day))
    }

    /// A period with what adjoins it, or with a second one up to which it reaches.
    fn run(&self, at: usize) -> Option<(usize, PeriodSpan)> {
        // "25. und 26. Juli": the month stands after the second day.
        if self.rest(at).starts_with(|c: char| c.is_ascii_digit())
            && self.closed(at).is_none()
            && let Some(found) = self.pair(at)
        {
            return Some(found);
        }
        let (end, span) = self.closed(at)?;
        let place = self.past_spaces(end);
        let after = |meaning| {
            matches!(
                meaning,
                PeriodMeaning::Since(true)
                    | PeriodMeaning::Until(true)
                    | PeriodMeaning::Before(true)
                    | PeriodMeaning::After(true)
            )
        };
        if let Some((end, meaning, _)) = self.phrase(place, after) {
            return Some((end, self.opened(meaning, span)?));
        }
        let Some(join) = self.is_at(place, |m| matches!(m, PeriodMeaning::Join | PeriodMeaning::And)) else {
            return Some((end, span));
        };
        let is_range = self.is_at(place, |meaning| meaning == PeriodMeaning::Join).is_some();
        let days = |span: PeriodSpan| {
            span.stretch.first.date().until(span.stretch.last.date()).map_or(i32::MAX, |days| days.get_days() + 1)
        };
        let whole = self.pair(at).filter(|(end, _)| *end > join);
        let adjoins = |whole: &(usize, PeriodSpan)| is_range || days(whole.1) <= 2 * days(span) + 31;
        Some(whole.filter(adjoins).unwrap_or((end, span)))
    }

    /// The longest period at a place that no other one opens.
    fn closed(&self, at: usize) -> Option<(usize, PeriodSpan)> {
        let (mut end, item) = self.item(at)?;
        let span = match item {
            Item::Span(span) => self.within_year(&mut end, span).unwrap_or(span),
            Item::Yearly(yearly, pointed) => self.in_year(&mut end, yearly, pointed)?,
        };
        let place = self.past_spaces(end);
        if let Some((after, PeriodMeaning::DayPart(name), _)) =
            self.phrase(place, |meaning| matches!(meaning, PeriodMeaning::DayPart(_)))
            && let Some(stretch) = span.stretch.part(name)
        {
            return Some((after, PeriodSpan { stretch, ..span }));
        }
        Some((end, span))
    }

    /// What recurs each year, after a year: "2026年第三季度".
    fn within_year(&self, end: &mut usize, year: PeriodSpan) -> Option<PeriodSpan> {
        let (first, last) = (year.stretch.first.date(), year.stretch.last.date());
        if first != last.first_of_year() || last != first.last_of_year() {
            return None;
        }
        let (after, Item::Yearly(yearly, _)) = self.item(self.past_articles(*end))? else { return None };
        *end = after;
        Some(yearly.span(yearly.of_year(first.year())?, true))
    }

    /// What recurs each year, in the year that is named after it or that the tense points to.
    fn in_year(&self, end: &mut usize, yearly: Yearly, pointed: Option<i8>) -> Option<PeriodSpan> {
        if let (length, Some(year)) = self.reader.year_after(self.rest(*end)) {
            *end += length;
            return Some(yearly.span(yearly.of_year(year)?, true));
        }
        let place = self.past_spaces(*end);
        let follows = |meaning| matches!(meaning, PeriodMeaning::YearOf(_) | PeriodMeaning::Pointed(_, true));
        let mut pointed = pointed;
        let today = self.today()?;
        match self.phrase(place, follows) {
            Some((after, PeriodMeaning::YearOf(away), _)) => {
                *end = after;
                return Some(yearly.span(yearly.of_year(today.year() + away)?, true));
            }
            Some((after, PeriodMeaning::Pointed(direction, _), _)) => {
                *end = after;
                pointed = Some(direction);
            }
            _ => {}
        }
        let stretch = match pointed {
            None => in_fitting_year(today, self.tense, |year| yearly.of_year(year))?,
            Some(direction) => {
                let years = (-1..=1).filter_map(|away| yearly.of_year(today.year() + away));
                let is_other = |one: &LocalInterval| match direction {
                    -1 => one.last.date() < today,
                    1 => one.first.date() > today,
                    _ => one.first.date().year() == today.year() || one.last.date() >= today,
                };
                let tense = [Tense::Past, Tense::Unclear, Tense::Future][(direction + 1) as usize];
                fitting(today, tense, years.filter(is_other))?
            }
        };
        Some(yearly.span(stretch, pointed.is_some()))
    }

    /// The longest single time at a place.
    fn item(&self, at: usize) -> Option<(usize, Item)> {
        let own = self.own_item(at);
        let counted = self.counted(at).map(|(end, span)| (end, Item::Span(span)));
        let common = self
            .reader
            .expression(self.rest(at))
            .and_then(|(length, time)| Some((at + length, self.of_named_time(&time)?)));
        own.into_iter().chain(counted).chain(common).max_by_key(|(end, _)| *end)
    }

    fn of_named_time(&self, time: &NamedTime) -> Option<Item> {
        match *time {
            NamedTime::Day { year: None, month, day } => Some(Item::Yearly(Yearly::Day(month, day), None)),
            NamedTime::Month { year: None, month } => Some(Item::Yearly(Yearly::Month(month), None)),
            NamedTime::Weekday(number) => {
                let today = self.today()?;
                let monday = LocalInterval::around(today, CalendarUnit::Week)?.first.date();
                let of_week = |away: i64| {
                    let day = monday.checked_add(Span::new().days(7 * away + i64::from(number) - 1)).ok()?;
                    Some(LocalInterval::days(day, day))
                };
                let stretch = fitting(today, self.tense, (-1..=1).filter_map(of_week))?;
                Some(Item::Span(PeriodSpan::inferred(stretch)))
            }
            _ => Some(Item::Span(PeriodSpan::complete(self.reader.stretch(time, self.now)?))),
        }
    }

    /// A phrase of CLDR with a number in words: "vor zwei Wochen".
    fn counted(&self, at: usize) -> Option<(usize, PeriodSpan)> {
        let today = self.today()?;
        self.reader.phrases.counted.iter().find_map(|one| {
            let tail = self.rest(at).strip_prefix(one.before)?;
            let (length, number) = self.number(tail)?;
            let end = tail.get(length..)?.strip_prefix(one.after)?;
            let stretch = LocalInterval::relative(today, one.unit, one.sign * number)?;
            let place = at + self.rest(at).len() - end.len();
            self.reader.may_end_word(end).then(|| (place, PeriodSpan::complete(stretch)))
        })
    }

    /// A time by the phrases of `phrases.tsv`.
    fn own_item(&self, at: usize) -> Option<(usize, Item)> {
        use PeriodMeaning::{
            Holiday, IsoWeek, PartOf, Pointed, Quarter, QuarterFrom, Relative, Rolling, RollingHours, Season, Weekend,
            Year,
        };
        let is_time = |meaning| {
            matches!(
                meaning,
                Relative(..)
                    | Rolling(..)
                    | RollingHours
                    | Quarter(_)
                    | QuarterFrom(_)
                    | IsoWeek
                    | Season(_)
                    | Weekend(_)
                    | PartOf(..)
                    | Year
                    | Holiday(_)
            )
        };
        if let Some((end, Pointed(direction, false), _)) = self.phrase(at, |m| matches!(m, Pointed(_, false)))
            && let Some((end, Item::Yearly(yearly @ (Yearly::Season(_) | Yearly::Holiday(_)), None))) =
                self.own_item(self.past_spaces(end))
        {
            return Some((end, Item::Yearly(yearly, Some(direction))));
        }
        let (end, meaning, number) = self.phrase(at, is_time)?;
        let small = || number.and_then(|number| i8::try_from(number).ok());
        let span = |stretch: Option<LocalInterval>| Some((end, Item::Span(PeriodSpan::complete(stretch?))));
        let yearly = |yearly| Some((end, Item::Yearly(yearly, None)));
        match meaning {
            Quarter(named) => yearly(Yearly::Quarter(named.or_else(small).filter(|number| (1..=4).contains(number))?)),
            IsoWeek => yearly(Yearly::Week(small().filter(|week| (1..=53).contains(week))?)),
            Season(number) => yearly(Yearly::Season(number)),
            Holiday(name) => yearly(Yearly::Holiday(name)),
            Year => {
                let year = i16::try_from(number?).ok().filter(|year| (1900..2200).contains(year))?;
                span(LocalInterval::year(year))
            }
            Relative(unit, count) => span(LocalInterval::relative(self.today()?, unit, count)),
            Rolling(unit, sign) => span(rolling(self.today()?, unit, sign * number.unwrap_or(unnumbered(unit)))),
            RollingHours => span(rolling_clock(self.now?, Span::new().try_hours(number?.checked_neg()?).ok()?)),
            QuarterFrom(away) => span(quarter_from(self.today()?, away)),
            Weekend(Some(away)) => span(LocalInterval::relative(self.today()?, CalendarUnit::Weekend, away)),
            Weekend(None) => {
                let today = self.today()?;
                let weekends = (-1..=1).filter_map(|away| LocalInterval::relative(today, CalendarUnit::Weekend, away));
                Some((end, Item::Span(PeriodSpan::inferred(fitting(today, self.tense, weekends)?))))
            }
            PartOf(part, away) => span(LocalInterval::relative(self.today()?, CalendarUnit::Day, away)?.part(part)),
            _ => None,
        }
    }
}
