//! Times in languages other than English: "am 5. März 2024", "上周二", "hace 3 días", "5.3.2024".
//!
//! In: a text, its language and, if known, the moment it was said. Out: the expressions that name one interval, as for
//! English text; how many expressions there are, including vague ones; the months that a question names. The phrases
//! are those of `time_phrases`; a date in figures is read in the order that is usual in its language. A weekday or a
//! alone does not name a single interval. No clock is read.

use std::sync::LazyLock;

use jiff::civil::{Date, DateTime, Weekday};
use regex::{Captures, Regex};

use super::{
    time_phrases::{PhraseMeaning, TimePhrases, phrases},
    time_reader::{TimeMention, find_times},
};
use crate::language::{
    arrangements::arranges_in,
    calendar::{CalendarUnit, LocalInterval, shift, weekday_beside},
    month_mentions::YearMonth,
    multilingual::is_unspaced,
    time_count::count_times,
};
use types::model::{EventTime, Language};

/// The expressions of a text in a language. Without an anchor, only those that need none.
#[must_use]
pub fn find_times_in(text: &str, language: Language, anchor: Option<EventTime>) -> Vec<TimeMention> {
    let Some(reader) = ForeignTimeReader::of(text, language) else { return find_times(text, anchor) };
    let (now, offset_seconds) = (anchor.map(|a| a.local()), anchor.map_or(0, |a| a.offset_seconds));
    let mention = |found: TimeMatch| {
        let stretch = reader.stretch(&found.time, now)?;
        let interval = stretch.interval(offset_seconds)?;
        let range = reader.origin(found.start)..reader.origin(found.end);
        Some(TimeMention { range, interval, complete: found.time.is_complete() })
    };
    reader.find_all().into_iter().filter_map(mention).collect()
}

/// How many expressions of time a text in a language has, including vague ones.
#[must_use]
pub fn count_times_in(text: &str, language: Language) -> usize {
    ForeignTimeReader::of(text, language).map_or_else(|| count_times(text), |reader| reader.find_all().len())
}

/// The months that a text in a language other than English names, each with its year if the year is next to it.
#[must_use]
pub fn months_in(text: &str, language: Language) -> Vec<YearMonth> {
    let mut months: Vec<YearMonth> = Vec::new();
    for found in ForeignTimeReader::of(text, language).map_or_else(Vec::new, |reader| reader.find_all()) {
        if let NamedTime::Month { year, month } | NamedTime::Day { year, month, .. } = found.time
            && !months.contains(&(year, month))
        {
            months.push((year, month));
        }
    }
    months
}

/// What an expression names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamedTime {
    Day {
        year: Option<i16>,
        month: i8,
        day: i8,
    },
    Month {
        year: Option<i16>,
        month: i8,
    },
    Year(i16),
    /// A number of units from now.
    From(CalendarUnit, i64),
    WeekdayOf(i8, i64),
    /// Monday is 1.
    Weekday(i8),
}

impl NamedTime {
    /// Whether its meaning does not depend on the anchor.
    fn is_complete(self) -> bool {
        matches!(self, Self::Day { year: Some(_), .. } | Self::Month { year: Some(_), .. } | Self::Year(_))
    }
}

struct TimeMatch {
    start: usize,
    end: usize,
    time: NamedTime,
}

/// A text in lower case with ASCII digits, and for each of its bytes the place in the original text.
pub(super) struct ForeignTimeReader {
    language: Language,
    pub(super) phrases: &'static TimePhrases,
    pub(super) text: String,
    origins: Vec<usize>,
}

/// `None` only if a pattern were malformed, which a test rules out.
type DatePattern = LazyLock<Option<Regex>>;

static YEAR_FIRST: DatePattern = LazyLock::new(|| Regex::new(r"^(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:\D|$)").ok());
static DAY_FIRST: DatePattern = LazyLock::new(|| Regex::new(r"^(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})(?:\D|$)").ok());
/// "2024年3月5日", "2024년 3월".
static EAST_ASIAN: DatePattern =
    LazyLock::new(|| Regex::new(r"^(?:(\d{4}) ?[年년] ?)?(\d{1,2}) ?[月월](?: ?(\d{1,2}) ?[日号號일])?").ok());
static EAST_ASIAN_YEAR: DatePattern = LazyLock::new(|| Regex::new(r"^(\d{4}) ?[年년]").ok());
/// A day, and what may be between it and its month: "5. März", "5 de marzo", "1er mai", "5-го марта".
static DAY: DatePattern = LazyLock::new(|| Regex::new(r"^(\d{1,2})(?:\.|er|º|°|ª|-?го|ος|η)? ?(?:de |di |του )?").ok());
/// What may be between a month and its year, and the year.
static YEAR: DatePattern =
    LazyLock::new(|| Regex::new(r"^[,.]? ?(?:de |del |di |năm |του |г\.? |พ\.ศ\. ?|ค\.ศ\. ?)?(\d{4})(?:\D|$)").ok());
/// The range of four-digit numbers that count as years.
const YEARS: std::ops::Range<i16> = 1900..2200;
/// The range of years in the Buddhist era, which Thailand uses.
const BUDDHIST: std::ops::Range<i16> = 2443..2743;
const BUDDHIST_YEARS: i16 = 543;
/// The greatest number in a phrase such as "3 years ago".
const MAX: i64 = 500;

impl ForeignTimeReader {
    /// None if the language has no table.
    pub(super) fn of(text: &str, language: Language) -> Option<Self> {
        let phrases = phrases(language)?;
        let (mut lower, mut origins) = (String::with_capacity(text.len()), Vec::with_capacity(text.len() + 1));
        for (at, c) in text.char_indices() {
            let before = lower.len();
            match (c, language) {
                (_, _) if ascii_digit(c).is_some() => lower.extend(ascii_digit(c)),
                ('I', Language::Tr) => lower.push('ı'),
                ('İ', Language::Tr) => lower.push('i'),
                ('\u{a0}' | '\u{202f}', _) => lower.push(' '),
                // CLDR writes "aujourd’hui".
                ('\'', Language::Fr | Language::It) => lower.push('’'),
                _ => lower.extend(c.to_lowercase()),
            }
            origins.extend(std::iter::repeat_n(at, lower.len() - before));
        }
        origins.push(text.len());
        Some(Self { language, phrases, text: lower, origins })
    }

    pub(super) fn origin(&self, at: usize) -> usize {
        self.origins.get(at).copied().unwrap_or_default()
    }

    /// Every expression, in order, never overlapping.
    fn find_all(&self) -> Vec<TimeMatch> {
        let mut found = Vec::new();
        let mut next = 0;
        for at in self.word_starts() {
            if at >= next
                && let Some((length, time)) = self.text.get(at..).and_then(|rest| self.expression(rest))
            {
                next = at + length;
                found.push(TimeMatch { start: at, end: next, time });
            }
        }
        found
    }

    /// The places at which an expression may begin.
    pub(super) fn word_starts(&self) -> Vec<usize> {
        let mut before = ' ';
        let mut starts = Vec::new();
        for (at, c) in self.text.char_indices() {
            let begins = if c.is_ascii_digit() {
                !before.is_ascii_digit() && !matches!(before, '.' | ',' | ':' | '/' | '-')
            } else {
                !before.is_alphanumeric() || is_unspaced(before) || is_unspaced(c) || is_korean(before)
            };
            if begins {
                starts.push(at);
            }
            before = c;
        }
        starts
    }

    /// The expression at the beginning of a text, and its length in bytes.
    pub(super) fn expression(&self, rest: &str) -> Option<(usize, NamedTime)> {
        let figures = rest.starts_with(|c: char| c.is_ascii_digit());
        let by_number = || if figures { self.numeric_date(rest) } else { None };
        self.counted_phrase(rest).or_else(by_number).or_else(|| self.phrase(rest))
    }

    /// "vor 3 Tagen", "三天前".
    fn counted_phrase(&self, rest: &str) -> Option<(usize, NamedTime)> {
        self.phrases.counted.iter().find_map(|one| {
            let tail = rest.strip_prefix(one.before)?;
            let (figures, number) = written_number(tail)?;
            let tail = tail.get(figures..)?;
            // In Chinese and Japanese, spaces around figures are optional.
            let tail = if one.after.starts_with(' ') { tail } else { tail.trim_start_matches(' ') };
            let after = if tail.starts_with(' ') { one.after } else { one.after.trim_start() };
            let end = tail.strip_prefix(after)?;
            let whole = self.may_end_word(end) && number <= MAX;
            whole.then(|| (rest.len() - end.len(), NamedTime::From(one.unit, one.sign * number)))
        })
    }

    fn numeric_date(&self, rest: &str) -> Option<(usize, NamedTime)> {
        let found = |pattern: &'static DatePattern| pattern.as_ref().and_then(|pattern| pattern.captures(rest));
        if let Some(found) = found(&YEAR_FIRST) {
            return self.day(&found, [1, 2, 3], 3);
        }
        if let Some(found) = found(&DAY_FIRST).filter(|_| !self.phrases.year_first) {
            return self.day(&found, [3, 2, 1], 3);
        }
        if let Some(found) = found(&EAST_ASIAN).filter(|_| self.is_east_asian()) {
            if found.get(3).is_some() {
                return self.day(&found, [1, 2, 3], 0);
            }
            let (year, month) = (self.year(&found, 1), part(&found, 2)?);
            let month = i8::try_from(month).ok().filter(|month| (1..=12).contains(month))?;
            return Some((found.get(0)?.end(), NamedTime::Month { year, month }));
        }
        if let Some(found) = found(&EAST_ASIAN_YEAR).filter(|_| self.is_east_asian()) {
            return Some((found.get(0)?.end(), NamedTime::Year(self.year(&found, 1)?)));
        }
        let day = found(&DAY)?;
        let from = day.get(0)?.end();
        let (length, meaning) = self.phrases.longest(rest.get(from..)?, |end| self.may_end_word(end))?;
        let PhraseMeaning::Month { number: month, .. } = meaning else { return None };
        let end = from + length;
        let (more, year) = self.year_after(rest.get(end..)?);
        let day = i8::try_from(part(&day, 1)?).ok().filter(|day| (1..=31).contains(day))?;
        Some((end + more, NamedTime::Day { year, month, day }))
    }

    fn phrase(&self, rest: &str) -> Option<(usize, NamedTime)> {
        let (length, meaning) = self.phrases.longest(rest, |end| self.may_end_word(end))?;
        Some(match meaning {
            PhraseMeaning::Relative(unit, count) => (length, NamedTime::From(unit, count)),
            PhraseMeaning::WeekdayOf(weekday, week) => (length, NamedTime::WeekdayOf(weekday, week)),
            PhraseMeaning::Weekday(number) => (length, NamedTime::Weekday(number)),
            PhraseMeaning::Month { number: month, short } => {
                let (more, year) = self.year_after(rest.get(length..)?);
                if short && year.is_none() {
                    return None;
                }
                (length + more, NamedTime::Month { year, month })
            }
        })
    }

    /// The year that follows a month, and how many bytes it takes.
    pub(super) fn year_after(&self, rest: &str) -> (usize, Option<i16>) {
        let found = YEAR.as_ref().and_then(|pattern| pattern.captures(rest));
        let year = found.as_ref().and_then(|found| self.year(found, 1));
        let end = found.and_then(|found| found.get(1).map(|year| year.end()));
        (end.filter(|_| year.is_some()).unwrap_or_default(), year)
    }

    fn year(&self, found: &Captures<'_>, at: usize) -> Option<i16> {
        let year = part(found, at)?;
        if self.language == Language::Th && BUDDHIST.contains(&year) {
            return Some(year - BUDDHIST_YEARS);
        }
        YEARS.contains(&year).then_some(year)
    }

    /// A day whose year, month and day are in these groups of the match; it ends with the group `end`.
    fn day(&self, found: &Captures<'_>, [year, month, day]: [usize; 3], end: usize) -> Option<(usize, NamedTime)> {
        let number = |at: usize| part(found, at).and_then(|number| i8::try_from(number).ok());
        let (month, day) = (number(month)?, number(day)?);
        let in_year = self.year(found, year);
        if (found.get(year).is_some() && in_year.is_none()) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        Some((found.get(end)?.end(), NamedTime::Day { year: in_year, month, day }))
    }

    fn is_east_asian(&self) -> bool {
        matches!(self.language, Language::Zh | Language::Ja | Language::Ko)
    }

    /// Whether a word may end where this text begins.
    pub(super) fn may_end_word(&self, rest: &str) -> bool {
        rest.chars().next().is_none_or(|c| !c.is_alphanumeric() || is_unspaced(c) || is_korean(c))
    }

    /// What an expression means at a moment.
    pub(super) fn stretch(&self, time: &NamedTime, now: Option<DateTime>) -> Option<LocalInterval> {
        let today = || now.map(|now| now.date());
        let one = |date: Date| LocalInterval::days(date, date);
        match *time {
            NamedTime::Day { year: Some(year), month, day } => Date::new(year, month, day).ok().map(one),
            NamedTime::Day { year: None, month, day } if arranges_in(&self.text, self.language) => {
                coming(today()?, month, day).map(one)
            }
            NamedTime::Day { year: None, month, day } => nearest(today()?, month, day).map(one),
            NamedTime::Month { year, month } => LocalInterval::month(year?, month),
            NamedTime::Year(year) => LocalInterval::year(year),
            NamedTime::From(unit, count) => LocalInterval::relative(today()?, unit, count),
            NamedTime::WeekdayOf(weekday, week) => {
                let today = today()?;
                let weekday = Weekday::from_monday_one_offset(weekday).ok()?;
                // In these languages, it is the day in the last or next week.
                let of_the_week = self.is_east_asian() || self.language == Language::Vi;
                if week != 0 && !of_the_week {
                    return weekday_beside(today, weekday, week > 0).map(one);
                }
                let offset = i64::from(weekday.to_monday_zero_offset() - today.weekday().to_monday_zero_offset());
                shift(today, CalendarUnit::Day, 7 * week + offset).map(one)
            }
            NamedTime::Weekday(_) => None,
        }
    }
}

/// The date with this month and day that is nearest to `today`.
fn nearest(today: Date, month: i8, day: i8) -> Option<Date> {
    let years = [0, -1, 1].map(|years| today.year() + years);
    let dates = years.into_iter().filter_map(|year| Date::new(year, month, day).ok());
    dates.min_by_key(|date| today.until(*date).map_or(i32::MAX, |span| span.get_days().abs()))
}

/// The next date with this month and day, `today` included.
fn coming(today: Date, month: i8, day: i8) -> Option<Date> {
    let mut dates = (0..=8).filter_map(|years| Date::new(today.year() + years, month, day).ok());
    dates.find(|date| *date >= today)
}

fn part(found: &Captures<'_>, at: usize) -> Option<i16> {
    found.get(at)?.as_str().parse().ok()
}

/// A digit of any script as an ASCII digit.
fn ascii_digit(c: char) -> Option<char> {
    const ZEROES: [char; 6] = ['\u{660}', '\u{6f0}', '\u{966}', '\u{e50}', '\u{ff10}', '\u{1040}'];
    ZEROES.into_iter().find_map(|zero| {
        let value = u32::from(c).checked_sub(u32::from(zero)).filter(|value| *value < 10)?;
        char::from_digit(value, 10)
    })
}

fn is_korean(c: char) -> bool {
    matches!(c, '\u{ac00}'..='\u{d7a3}')
}

/// The number at the beginning of a text, in figures or in Chinese numerals up to 99, and its length in bytes.
pub(super) fn written_number(text: &str) -> Option<(usize, i64)> {
    let figures = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if figures > 0 {
        return text.get(..figures)?.parse().ok().map(|number| (figures, number));
    }
    let digit = |c: char| {
        "一二三四五六七八九".chars().position(|d| d == c).map(|at| at as i64 + 1).or((c == '两').then_some(2))
    };
    let mut chars = text.chars();
    let first = chars.next()?;
    let (mut bytes, mut value) = (first.len_utf8(), if first == '十' { 10 } else { digit(first)? });
    let mut rest = text.get(bytes..)?.chars();
    let mut next = rest.next();
    if first != '十' && next == Some('十') {
        (bytes, value) = (bytes + '十'.len_utf8(), value * 10);
        next = rest.next();
    } else if first != '十' {
        return Some((bytes, value));
    }
    if let Some(last) = next.filter(|c| *c != '两').and_then(digit) {
        (bytes, value) = (bytes + '一'.len_utf8(), value + last);
    }
    Some((bytes, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::calendar::render_interval;

    /// A Wednesday.
    const NOW: &str = "2024-03-13T10:00:00Z";

    fn check(language: Language, text: &str, expected: &[&str]) {
        let found = find_times_in(text, language, EventTime::parse(NOW).ok());
        let found: Vec<String> =
            found.iter().map(|m| format!("{}: {}", &text[m.range.clone()], render_interval(&m.interval))).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn every_pattern_is_well_formed() {
        let all = [&YEAR_FIRST, &DAY_FIRST, &EAST_ASIAN, &EAST_ASIAN_YEAR, &DAY, &YEAR];
        assert!(all.into_iter().all(|pattern| pattern.is_some()));
    }

    /// One row per language: a date with its month's name, "yesterday", and "3 days ago", by CLDR's patterns `d MMMM
    /// y`, `relative-type--1` and `relativeTime-type-past` of the day.
    #[test]
    fn dates_days_and_spans_are_read_in_each_language() {
        use Language::*;
        for (language, date, yesterday, ago) in [
            (De, "5. März 2024", "Gestern", "vor 3 Tagen"),
            (Es, "5 de marzo de 2024", "ayer", "hace 3 días"),
            (Fr, "5 mars 2024", "Hier", "il y a 3 jours"),
            (It, "5 marzo 2024", "ieri", "3 giorni fa"),
            (Pt, "5 de março de 2024", "ontem", "há 3 dias"),
            (Nl, "5 maart 2024", "Gisteren", "3 dagen geleden"),
            (Pl, "5 marca 2024", "wczoraj", "3 dni temu"),
            (Ru, "5 марта 2024", "Вчера", "3 дня назад"),
            (Uk, "5 березня 2024", "Учора", "3 дні тому"),
            (Tr, "5 Mart 2024", "dün", "3 gün önce"),
            (El, "5 Μαρτίου 2024", "χθες", "πριν από 3 ημέρες"),
            (Ar, "5 مارس 2024", "أمس", "قبل 3 أيام"),
            (Fa, "۵ مارس ۲۰۲۴", "دیروز", "۳ روز پیش"),
            (Hi, "5 मार्च 2024", "कल", "3 दिन पहले"),
            (Id, "5 Maret 2024", "kemarin", "3 hari yang lalu"),
            (Vi, "5 tháng 3 năm 2024", "Hôm qua", "3 ngày trước"),
            (Th, "5 มีนาคม 2567", "เมื่อวาน", "3 วันที่ผ่านมา"),
            (Zh, "2024年3月5日", "昨天", "三天前"),
            (Ja, "2024年3月5日", "昨日", "3日前"),
            (Ko, "2024년 3월 5일", "어제", "3일 전"),
        ] {
            let dated = find_times_in(date, language, None);
            assert_eq!(dated.len(), 1, "{date}");
            assert_eq!(
                (render_interval(&dated[0].interval), dated[0].complete),
                ("5 March 2024".to_owned(), true),
                "{date}"
            );
            let day = |text: &str| -> Vec<String> {
                let found = find_times_in(text, language, EventTime::parse(NOW).ok());
                found.iter().map(|mention| render_interval(&mention.interval)).collect()
            };
            // Hindi has one word for yesterday and tomorrow.
            if language != Hi {
                assert_eq!(day(yesterday), ["12 March 2024"], "{yesterday}");
            }
            assert_eq!(day(ago), ["10 March 2024"], "{ago}");
        }
    }

    #[test]
    fn expressions_stand_in_sentences() {
        use Language::*;
        check(
            De,
            "Am 5.3.2024 war ich da, und letzten Dienstag auch.",
            &["5.3.2024: 5 March 2024", "letzten Dienstag: 12 March 2024"],
        );
        check(
            Zh,
            "我上周二去了，昨天也去了，两天前没有。",
            &["上周二: 5 March 2024", "昨天: 12 March 2024", "两天前: 11 March 2024"],
        );
        check(De, "Das Mag ich, im Mai, am Freitag", &[]);
        check(Es, "El 20 de diciembre fuimos", &["20 de diciembre: 20 December 2023"]);
        check(Zh, "3月5日见面", &["3月5日: 5 March 2024"]);
        check(De, "Version 1.2.3 und 99.99.2024", &[]);
        assert_eq!(count_times_in("Am Freitag im Mai, vor 3 Tagen", De), 3);
        assert_eq!(count_times_in("last week", En), 1);
        assert_eq!(months_in("Was war im Mai 2023 und im Juni?", De), [(Some(2023), 5), (None, 6)]);
        assert_eq!(months_in("2023年5月和6月做了什么？", Zh), [(Some(2023), 5), (None, 6)]);
    }
}
