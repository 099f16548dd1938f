//! The words of an English question, and what the rules of all periods need of them.
//!
//! In: the words and an index. Out: numbers, units and years there; the tense; the period of a year that is named or
//! inferred. A rule is given the place of its first word and returns the place after its last one.

use jiff::civil::Date;

use super::period_span::{A_FEW, PeriodSpan, in_fitting_year};
use crate::language::{
    calendar::{CalendarUnit, LocalInterval},
    tense::Tense,
    times::time_reader::TimeReader,
};

/// Within how many words a year may follow that counts for a time before it.
const YEAR_REACH: usize = 5;

/// The words of a question, and when it is asked.
pub(super) struct EnglishReader<'t> {
    pub(super) reader: TimeReader<'t>,
}

/// A period that ends before word `next`.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeriodHit {
    pub(super) next: usize,
    pub(super) span: PeriodSpan,
}

/// A number of units, as written.
#[derive(Debug, Clone, Copy)]
pub(super) struct WrittenNumber {
    pub(super) next: usize,
    pub(super) value: i64,
    /// False for "a few".
    pub(super) exact: bool,
}

impl<'t> EnglishReader<'t> {
    /// The word at an index, in lower case.
    pub(super) fn w(&self, at: usize) -> &'t str {
        self.reader.words.at(at)
    }

    /// The word `n` before an index.
    pub(super) fn before(&self, at: usize, n: usize) -> &'t str {
        self.reader.words.before(at, n)
    }

    /// The day on which the question is asked.
    pub(super) fn today(&self) -> Option<Date> {
        self.reader.now.map(|now| now.date())
    }

    /// The index after these words, if they stand there.
    pub(super) fn follows(&self, at: usize, words: &[&str]) -> Option<usize> {
        words.iter().enumerate().all(|(i, word)| self.w(at + i) == *word).then_some(at + words.len())
    }

    /// `at`, or the index after it if one of these words stands there.
    pub(super) fn skip(&self, at: usize, words: &[&str]) -> usize {
        at + usize::from(words.contains(&self.w(at)))
    }

    /// The tense at a word. A question after something that was arranged may be asked before or after it.
    pub(super) fn tense(&self, at: usize) -> Tense {
        if self.reader.words.is_arranged(at) { Tense::Unclear } else { self.reader.words.tense(at) }
    }

    /// A year in figures.
    pub(super) fn year(&self, at: usize) -> Option<i16> {
        self.reader.year_number(at)
    }

    /// The year that follows a period: "2026", "of 2026", "last year"; and the index after it.
    pub(super) fn year_after(&self, at: usize) -> Option<(usize, i16)> {
        let from = self.skip(at, &["of", ","]);
        // "July, 2026-08": that year belongs to the month after it.
        let is_own = |at: usize| !(matches!(self.w(at), "-" | "/") && self.reader.words.is_joined(at));
        if let Some(year) = self.year(from).filter(|_| is_own(from + 1)) {
            return Some((from + 1, year));
        }
        let away = match (self.w(from), self.w(from + 1)) {
            ("last", "year") => -1,
            ("this", "year") => 0,
            ("next", "year") => 1,
            _ => return None,
        };
        Some((from + 2, self.today()?.year() + away))
    }

    /// The period of the year that follows at `next`; without one, of the year that the tense at `at` points to.
    pub(super) fn of_some_year(
        &self,
        at: usize,
        next: usize,
        of_year: impl Fn(i16) -> Option<LocalInterval>,
    ) -> Option<PeriodHit> {
        if let Some((next, year)) = self.year_after(next) {
            return Some(PeriodHit { next, span: PeriodSpan::complete(of_year(year)?) });
        }
        let stretch = match self.today() {
            Some(today) => in_fitting_year(today, self.tense(at), of_year)?,
            // "between May and June 2023": a year that follows counts for both.
            None => of_year((next..next + YEAR_REACH).find_map(|at| self.year(at))?)?,
        };
        Some(PeriodHit { next, span: PeriodSpan::inferred(stretch) })
    }

    /// A number of units: "3", "three", "a few", "a couple of".
    pub(super) fn number(&self, at: usize) -> Option<WrittenNumber> {
        let article = self.skip(at, &["a"]);
        let vague = |next: usize, value: i64| Some(WrittenNumber { next, value, exact: false });
        match self.w(article) {
            "few" => return vague(article + 1, A_FEW),
            "several" => return vague(article + 1, A_FEW),
            "couple" => return vague(self.skip(article + 1, &["of"]), 2),
            "dozen" => return Some(WrittenNumber { next: article + 1, value: 12, exact: true }),
            _ => {}
        }
        let value = match self.w(at) {
            "thirteen" => 13,
            "fourteen" => 14,
            "sixteen" => 16,
            "eighteen" => 18,
            "forty" => 40,
            "fifty" => 50,
            "sixty" => 60,
            "ninety" => 90,
            "hundred" => 100,
            _ => self.reader.count_word(at)?,
        };
        Some(WrittenNumber { next: at + 1, value, exact: true })
    }
}

/// The unit that a word names, and how many of it.
pub(super) fn unit_of(word: &str) -> Option<(CalendarUnit, i64)> {
    Some(match word.strip_suffix('s').unwrap_or(word) {
        "day" => (CalendarUnit::Day, 1),
        "week" => (CalendarUnit::Week, 1),
        "fortnight" => (CalendarUnit::Week, 2),
        "weekend" => (CalendarUnit::Weekend, 1),
        "month" => (CalendarUnit::Month, 1),
        "quarter" => (CalendarUnit::Month, 3),
        "year" => (CalendarUnit::Year, 1),
        "decade" => (CalendarUnit::Year, 10),
        _ => return None,
    })
}

/// Whether a date may be narrowed by such a word: "morning".
pub(super) fn is_day_part(word: &str) -> bool {
    matches!(word, "morning" | "afternoon" | "evening" | "night")
}

/// 1 to 4 for an ordinal, -1 for "last".
pub(super) fn ordinal(word: &str) -> Option<i8> {
    Some(match word {
        "first" | "1st" => 1,
        "second" | "2nd" => 2,
        "third" | "3rd" => 3,
        "fourth" | "4th" => 4,
        "last" | "final" => -1,
        _ => return None,
    })
}
