//! The order of day, month and year in an export.
//!
//! In: the numbers of all dates of a file, in its order. Out: which number is what, and from what that
//! is known: from a number above 12, from the sequence of the dates, from the setting, or assumed from
//! the form of the dates. A file is asked first, and the setting only where the file leaves it open.

use jiff::civil::Date;

use super::header::{Header, Shape, Year};
use crate::config::DateOrder;

/// The first year that the app wrote dates in; no reading may lead to an earlier one.
const FIRST_YEAR: u32 = 2009;

/// What the dates of one shape tell.
#[derive(Debug, Clone, Default)]
pub(super) struct DateFacts {
    dates: u64,
    /// The smallest and the largest number at each place.
    smallest: [u32; 3],
    largest: [u32; 3],
    /// Dates whose number at each place is above 12.
    above_12: [u64; 3],
    /// Dates whose number at each place differs from the one before.
    changes: [u64; 3],
    /// Dates that lie before the one before them, for each order of [`ORDERS`].
    backwards: [u64; ORDERS.len()],
    unpadded: bool,
    last: Option<[u32; 3]>,
}

/// Which place of a date holds its year, month and day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Order {
    year: usize,
    month: usize,
    day: usize,
}

const DMY: Order = Order { year: 2, month: 1, day: 0 };
const MDY: Order = Order { year: 2, month: 0, day: 1 };
const YMD: Order = Order { year: 0, month: 1, day: 2 };
const YDM: Order = Order { year: 0, month: 2, day: 1 };
const MYD: Order = Order { year: 1, month: 0, day: 2 };
const DYM: Order = Order { year: 1, month: 2, day: 0 };
const ORDERS: [Order; 6] = [DMY, MDY, YMD, YDM, MYD, DYM];

/// From what an order is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Numbers above 12, which are no months.
    Numbers,
    /// Dates that would otherwise run backwards, or change the month more often than the day.
    Sequence,
    /// `source.date_order`.
    Setting,
    /// Nothing in the file tells; the form of the dates is most often written in this order.
    Assumed,
}

impl DateFacts {
    pub(super) fn add(&mut self, header: &Header<'_>) {
        let date = header.date;
        if self.dates == 0 {
            self.smallest = date;
        }
        self.dates += 1;
        self.unpadded |= header.unpadded;
        for (place, number) in date.into_iter().enumerate() {
            let before = self.last.and_then(|last| last.get(place).copied());
            if let Some(smallest) = self.smallest.get_mut(place) {
                *smallest = number.min(*smallest);
            }
            if let Some(largest) = self.largest.get_mut(place) {
                *largest = number.max(*largest);
            }
            if let Some(above) = self.above_12.get_mut(place) {
                *above += u64::from(number > 12);
            }
            if let Some(changes) = self.changes.get_mut(place) {
                *changes += u64::from(before.is_some_and(|before| before != number));
            }
        }
        if let Some(last) = self.last {
            for (order, backwards) in ORDERS.iter().zip(&mut self.backwards) {
                *backwards += u64::from(order.key(date) < order.key(last));
            }
        }
        self.last = Some(date);
    }

    /// The order of dates of this shape, and from what it is known.
    pub(super) fn settle(&self, shape: Shape, setting: Option<DateOrder>) -> (Order, Source) {
        let (day_first, month_first) = match self.year(shape, setting) {
            Year::First => (YDM, YMD),
            Year::Middle => (DYM, MYD),
            Year::Last | Year::Short => (DMY, MDY),
        };
        let of = |numbers: &[u64; 3], place: usize| numbers.get(place).copied().unwrap_or(0);
        // A number above 12 at the place of a month rules an order out.
        let against_day_first = of(&self.above_12, day_first.month);
        let against_month_first = of(&self.above_12, month_first.month);
        if against_day_first != against_month_first {
            let order = if against_day_first < against_month_first { day_first } else { month_first };
            return (order, Source::Numbers);
        }
        let backwards = |order: Order| {
            ORDERS.iter().zip(self.backwards).find(|(o, _)| **o == order).map_or(0, |(_, backwards)| backwards)
        };
        if backwards(day_first) != backwards(month_first) {
            let order = if backwards(day_first) < backwards(month_first) { day_first } else { month_first };
            return (order, Source::Sequence);
        }
        // A day changes far more often than a month.
        let (first, second) = (of(&self.changes, day_first.day), of(&self.changes, month_first.day));
        if first.max(second) >= 3 && first.max(second) >= 3 * first.min(second) {
            return (if first > second { day_first } else { month_first }, Source::Sequence);
        }
        match (setting, shape.year) {
            (Some(DateOrder::Dmy), Year::Last | Year::Short) => return (DMY, Source::Setting),
            (Some(DateOrder::Mdy), Year::Last | Year::Short) => return (MDY, Source::Setting),
            (Some(DateOrder::Ymd), Year::First | Year::Short) => return (YMD, Source::Setting),
            _ => {}
        }
        // Phones in American English write 1/23/23, 3:19 AM; others with 12 hours pad or write 2023.
        let american = shape.separator == '/' && shape.half && shape.year == Year::Short && self.unpadded;
        let year_leads = matches!(day_first.year, 0 | 1);
        (if year_leads || american { month_first } else { day_first }, Source::Assumed)
    }

    /// Where the year is.
    fn year(&self, shape: Shape, setting: Option<DateOrder>) -> Year {
        if shape.year != Year::Short {
            return shape.year;
        }
        let [first, middle, last] = self.largest.map(|largest| largest > 31);
        let [maybe_first, _, maybe_last] = self.smallest.map(|smallest| smallest + 2000 >= FIRST_YEAR);
        match setting {
            _ if last => Year::Last,
            _ if first => Year::First,
            _ if middle => Year::Middle,
            _ if !maybe_last && maybe_first => Year::First,
            Some(DateOrder::Ymd) if maybe_first => Year::First,
            _ => Year::Last,
        }
    }

    /// Whether some dates rule one order out, and others the other one.
    pub(super) fn contradicts_itself(&self, order: Order) -> bool {
        let above = |place: usize| self.above_12.get(place).copied().unwrap_or(0) > 0;
        above(order.month) && above(order.day)
    }
}

impl Order {
    fn key(self, date: [u32; 3]) -> [u32; 3] {
        [self.year, self.month, self.day].map(|place| date.get(place).copied().unwrap_or(0))
    }

    /// The date of these numbers. Where the number of the month is above 12, day and month change
    /// places: files exist that were put together from two phones.
    pub(super) fn date(self, numbers: [u32; 3]) -> Option<Date> {
        let [year, mut month, mut day] = self.key(numbers);
        if month > 12 && day <= 12 {
            std::mem::swap(&mut month, &mut day);
        }
        let year = match year {
            0..100 => year + 2000,
            // Thai phones count from 543 years before.
            2540..2643 => year - 543,
            _ => year,
        };
        Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
    }

    /// The order in words.
    pub(super) fn words(self) -> &'static str {
        match self {
            DMY => "day, month, year",
            MDY => "month, day, year",
            YMD => "year, month, day",
            YDM => "year, day, month",
            MYD => "month, year, day",
            _ => "day, year, month",
        }
    }
}
