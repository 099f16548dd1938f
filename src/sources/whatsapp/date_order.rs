//! Finds the order of day, month and year in an export.
//!
//! In: the numbers of all dates of a file, in its order, and the current year. Out: the order, and how it is known:
//! from a number above 12, from the dates in the names of attached files, from the sequence of the dates, from the
//! setting, or assumed from the form of the dates. The file takes precedence; the setting is used only if the file
//! leaves the order open. Dates in Persian digits are of the Persian calendar if their years fit no other. Never reads
//! the clock.

use jiff::civil::Date;

use super::{
    header::{WhatsappHeader, WhatsappHeaderShape, WhatsappYearPosition},
    persian_calendar,
};
use types::config::DateOrder;

/// The first year in which the app existed; an order that leads to an earlier year is wrong.
const FIRST_YEAR: u32 = 2009;

/// By how many years the Buddhist era is ahead.
const BUDDHIST: u32 = 543;

/// What the dates of one shape show.
#[derive(Debug, Clone, Default)]
pub(super) struct WhatsappDateFacts {
    dates: u64,
    /// The smallest and the largest number at each position.
    smallest: [u32; 3],
    largest: [u32; 3],
    /// For each position, how many dates have a number above 12 there.
    above_12: [u64; 3],
    /// For each position, how many dates differ there from the previous date.
    changes: [u64; 3],
    /// For each order in [`ORDERS`], how many dates are earlier than the previous date.
    backwards: [u64; ORDERS.len()],
    /// For each order in [`ORDERS`], how many dates match the date of a file attached to the message.
    attached: [u64; ORDERS.len()],
    unpadded: bool,
    padded: bool,
    /// Whether the AM/PM marker is written in another form than `AM` and `PM`.
    other_half: bool,
    /// Whether some dates are written in Persian digits.
    persian_digits: bool,
    /// The numbers below 128 at each position, a bit for each.
    seen: [u128; 3],
    last: Option<[u32; 3]>,
}

/// The positions of year, month and day in a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WhatsappDateOrder {
    year: usize,
    month: usize,
    day: usize,
    /// Whether a year of two digits is one of the Persian calendar.
    persian: bool,
}

const DMY: WhatsappDateOrder = WhatsappDateOrder { year: 2, month: 1, day: 0, persian: false };
const MDY: WhatsappDateOrder = WhatsappDateOrder { year: 2, month: 0, day: 1, persian: false };
const YMD: WhatsappDateOrder = WhatsappDateOrder { year: 0, month: 1, day: 2, persian: false };
const YDM: WhatsappDateOrder = WhatsappDateOrder { year: 0, month: 2, day: 1, persian: false };
const MYD: WhatsappDateOrder = WhatsappDateOrder { year: 1, month: 0, day: 2, persian: false };
const DYM: WhatsappDateOrder = WhatsappDateOrder { year: 1, month: 2, day: 0, persian: false };
const ORDERS: [WhatsappDateOrder; 6] = [DMY, MDY, YMD, YDM, MYD, DYM];

/// How an order is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhatsappOrderEvidence {
    /// Numbers above 12, which cannot be months.
    Numbers,
    /// Months that are words.
    Words,
    /// Names of attached files, which hold the date of their message.
    Attachments,
    /// Dates that would otherwise run backwards, or change the month more often than the day.
    Sequence,
    /// `source.date_order`.
    Setting,
    /// Nothing in the file shows the order; dates of this form are most often written in this order.
    Assumed,
    /// Nothing in the file shows whether its dates are of the Persian or of the Gregorian calendar: no order is known.
    TwoCalendars,
}

impl WhatsappDateFacts {
    pub(super) fn add(&mut self, header: &WhatsappHeader<'_>) {
        let date = header.date;
        if self.dates == 0 {
            self.smallest = date;
        }
        self.dates += 1;
        self.unpadded |= header.unpadded;
        self.padded |= header.padded;
        self.other_half |= !header.capitals;
        self.persian_digits |= header.persian_digits;
        if let Some(attached) = date_of_file(header.rest) {
            for (order, same) in ORDERS.iter().zip(&mut self.attached) {
                let persian = WhatsappDateOrder { persian: true, ..*order };
                let is_same = |order: WhatsappDateOrder| order.date(date) == Some(attached);
                *same += u64::from(is_same(*order) || (header.persian_digits && is_same(persian)));
            }
        }
        for (place, number) in date.into_iter().enumerate() {
            let before = self.last.and_then(|last| last.get(place).copied());
            if let Some(smallest) = self.smallest.get_mut(place) {
                *smallest = number.min(*smallest);
            }
            if let Some(largest) = self.largest.get_mut(place) {
                *largest = number.max(*largest);
            }
            if let Some(seen) = self.seen.get_mut(place) {
                *seen |= 1_u128.checked_shl(number).unwrap_or(0);
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

    /// The order of dates of this shape, and how it is known. No date is later than `this_year`.
    pub(super) fn settle(
        &self,
        shape: WhatsappHeaderShape,
        setting: Option<DateOrder>,
        this_year: u32,
    ) -> (WhatsappDateOrder, WhatsappOrderEvidence) {
        let year = match self.calendar(shape, setting, this_year) {
            WhatsappCalendar::Persian(order, source) => return (order, source),
            WhatsappCalendar::Unknown => return (YMD, WhatsappOrderEvidence::TwoCalendars),
            WhatsappCalendar::Gregorian(Some(year)) => year,
            WhatsappCalendar::Gregorian(None) => self.year(shape, setting, this_year),
        };
        let (day_first, month_first) = match year {
            WhatsappYearPosition::First => (YDM, YMD),
            WhatsappYearPosition::Middle => (DYM, MYD),
            WhatsappYearPosition::Last | WhatsappYearPosition::Short | WhatsappYearPosition::Missing => (DMY, MDY),
            WhatsappYearPosition::Named => return (DMY, WhatsappOrderEvidence::Words),
        };
        let of = |numbers: &[u64; 3], place: usize| numbers.get(place).copied().unwrap_or(0);
        // A number above 12 at the month's position rules an order out.
        let against_day_first = of(&self.above_12, day_first.month);
        let against_month_first = of(&self.above_12, month_first.month);
        if against_day_first != against_month_first {
            let order = if against_day_first < against_month_first { day_first } else { month_first };
            return (order, WhatsappOrderEvidence::Numbers);
        }
        let count = |counts: [u64; ORDERS.len()], order: WhatsappDateOrder| {
            ORDERS.iter().zip(counts).find(|(o, _)| **o == order).map_or(0, |(_, count)| count)
        };
        let attached = |order| count(self.attached, order);
        if attached(day_first) != attached(month_first) {
            let order = if attached(day_first) > attached(month_first) { day_first } else { month_first };
            return (order, WhatsappOrderEvidence::Attachments);
        }
        let backwards = |order| count(self.backwards, order);
        if backwards(day_first) != backwards(month_first) {
            let order = if backwards(day_first) < backwards(month_first) { day_first } else { month_first };
            return (order, WhatsappOrderEvidence::Sequence);
        }
        // A day changes far more often than a month.
        let (first, second) = (of(&self.changes, day_first.day), of(&self.changes, month_first.day));
        if first.max(second) >= 3 && first.max(second) >= 3 * first.min(second) {
            return (if first > second { day_first } else { month_first }, WhatsappOrderEvidence::Sequence);
        }
        match (setting, shape.year) {
            (
                Some(DateOrder::Dmy),
                WhatsappYearPosition::Last | WhatsappYearPosition::Short | WhatsappYearPosition::Missing,
            ) => return (DMY, WhatsappOrderEvidence::Setting),
            (
                Some(DateOrder::Mdy),
                WhatsappYearPosition::Last | WhatsappYearPosition::Short | WhatsappYearPosition::Missing,
            ) => return (MDY, WhatsappOrderEvidence::Setting),
            (Some(DateOrder::Ymd), WhatsappYearPosition::First | WhatsappYearPosition::Short) => {
                return (YMD, WhatsappOrderEvidence::Setting);
            }
            _ => {}
        }
        // Phones in American English write 1/23/23, 3:19 AM. Other phones with 12 hours pad numbers, or write 2023 or
        // p. m.
        let american = shape.separator == '/' && shape.half && shape.year == WhatsappYearPosition::Short;
        let american = american && self.unpadded && !self.padded && !self.other_half;
        let year_leads = matches!(day_first.year, 0 | 1);
        (if year_leads || american { month_first } else { day_first }, WhatsappOrderEvidence::Assumed)
    }

    /// The calendar of the dates. Two-digit years in Persian digits may be of either calendar, and come first or last:
    /// a reading fits if its years are ones in which the app exists, and the other numbers a month and a day.
    fn calendar(&self, shape: WhatsappHeaderShape, setting: Option<DateOrder>, this_year: u32) -> WhatsappCalendar {
        if shape.year != WhatsappYearPosition::Short || !self.persian_digits {
            return WhatsappCalendar::Gregorian(None);
        }
        let all = |place: usize, fits: &dyn Fn(u32) -> bool| {
            let seen = self.seen.get(place).copied().unwrap_or(0);
            (0..u128::BITS).all(|number| (seen >> number) & 1 == 0 || fits(number))
        };
        let attached = |order: WhatsappDateOrder| {
            ORDERS.iter().zip(self.attached).find(|(o, _)| **o == order).map_or(0, |(_, n)| n)
        };
        let years = FIRST_YEAR..=this_year;
        let persian_years = *persian_calendar::YEARS.start()..=this_year.saturating_sub(persian_calendar::BEHIND_YEARS);
        let mut readings = Vec::new();
        for order in [YMD, DMY] {
            let is_date = all(order.month, &|n| (1..=12).contains(&n)) && all(order.day, &|n| (1..=31).contains(&n));
            if is_date && all(order.year, &|n| persian_years.contains(&persian_calendar::full_year(n))) {
                readings.push(WhatsappDateOrder { persian: true, ..order });
            }
            if is_date && all(order.year, &|n| years.contains(&(n + 2000))) {
                readings.push(order);
            }
        }
        let is_open = readings.len() > 1;
        let by_attached = attached(YMD) != attached(DMY);
        if is_open && by_attached {
            let year = if attached(YMD) > attached(DMY) { YMD.year } else { DMY.year };
            readings.retain(|order| order.year == year);
        } else if is_open {
            readings.retain(|order| match setting {
                Some(DateOrder::Ymd) => order.year == YMD.year,
                Some(DateOrder::Dmy) => order.year == DMY.year,
                _ => true,
            });
        }
        let source = match (is_open, by_attached) {
            (false, _) => WhatsappOrderEvidence::Numbers,
            (true, true) => WhatsappOrderEvidence::Attachments,
            (true, false) => WhatsappOrderEvidence::Setting,
        };
        match readings[..] {
            [order] if order.persian => WhatsappCalendar::Persian(order, source),
            [order] => WhatsappCalendar::Gregorian(Some(if order.year == YMD.year {
                WhatsappYearPosition::First
            } else {
                WhatsappYearPosition::Last
            })),
            _ if readings.iter().any(|order| order.persian) => WhatsappCalendar::Unknown,
            _ => WhatsappCalendar::Gregorian(None),
        }
    }

    /// The position of the year.
    fn year(&self, shape: WhatsappHeaderShape, setting: Option<DateOrder>, this_year: u32) -> WhatsappYearPosition {
        if shape.year != WhatsappYearPosition::Short {
            return shape.year;
        }
        let [first, middle, last] = self.largest.map(|largest| largest > 31);
        let is_past = |place: usize| {
            let of = |numbers: [u32; 3]| numbers.get(place).map_or(0, |number| number + 2000);
            of(self.smallest) >= FIRST_YEAR && of(self.largest) <= this_year
        };
        let (maybe_first, maybe_last) = (is_past(0), is_past(2));
        match setting {
            _ if last => WhatsappYearPosition::Last,
            _ if first => WhatsappYearPosition::First,
            _ if middle => WhatsappYearPosition::Middle,
            _ if !maybe_last && maybe_first => WhatsappYearPosition::First,
            Some(DateOrder::Ymd) if maybe_first => WhatsappYearPosition::First,
            _ => WhatsappYearPosition::Last,
        }
    }

    /// Whether some dates rule out one order, and other dates rule out the other.
    pub(super) fn contradicts_itself(&self, order: WhatsappDateOrder) -> bool {
        let above = |place: usize| self.above_12.get(place).copied().unwrap_or(0) > 0;
        above(order.month) && above(order.day)
    }
}

/// The calendar of a file's dates.
enum WhatsappCalendar {
    Persian(WhatsappDateOrder, WhatsappOrderEvidence),
    /// Also the position of the year, if it is known.
    Gregorian(Option<WhatsappYearPosition>),
    Unknown,
}

/// The date in the name of a file that the app attached: `IMG-20240106-WA0000.jpg`,
/// `00000002-PHOTO-2024-01-06-21-06-01.jpg` or `2015-08-04-PHOTO-00004762.jpg`.
fn date_of_file(rest: &str) -> Option<Date> {
    let from = |digits: &str| {
        let part = |range: std::ops::Range<usize>| digits.get(range);
        let date = Date::new(part(0..4)?.parse().ok()?, part(4..6)?.parse().ok()?, part(6..8)?.parse().ok()?).ok()?;
        (u32::try_from(date.year()).ok()? >= FIRST_YEAR).then_some(date)
    };
    let digits = |text: &str, form: &str| {
        let fits = text.len() >= form.len()
            && text.bytes().zip(form.bytes()).all(|(b, f)| match f {
                b'0' => b.is_ascii_digit(),
                _ => b == f,
            });
        fits.then(|| text.bytes().take(form.len()).filter(u8::is_ascii_digit).map(char::from).collect::<String>())
    };
    let android = ["IMG-", "VID-", "PTT-", "AUD-", "STK-", "DOC-"].iter().find_map(|kind| {
        let (_, name) = rest.split_once(kind)?;
        from(&digits(name, "00000000-WA")?)
    });
    android.or_else(|| {
        ["PHOTO", "VIDEO", "AUDIO", "STICKER", "GIF"].iter().find_map(|kind| {
            let (before, behind) = rest.split_once(kind)?;
            let older = || digits(before.get(before.len().checked_sub(11)?..)?, "0000-00-00-");
            from(&digits(behind, "-0000-00-00").or_else(older)?)
        })
    })
}

impl WhatsappDateOrder {
    fn key(self, date: [u32; 3]) -> [u32; 3] {
        [self.year, self.month, self.day].map(|place| date.get(place).copied().unwrap_or(0))
    }

    /// The date with these numbers. If the number of the month is above 12, day and month are swapped: some files were
    /// put together from two phones.
    pub(super) fn date(self, numbers: [u32; 3]) -> Option<Date> {
        let [year, mut month, mut day] = self.key(numbers);
        if month > 12 && day <= 12 {
            std::mem::swap(&mut month, &mut day);
        }
        let year = match year {
            0..100 if self.persian => persian_calendar::full_year(year),
            // Thai phones write years that are 543 ahead, and may write 66 for 2566.
            52..100 => year + 2500 - BUDDHIST,
            0..100 => year + 2000,
            2540..2643 => year - BUDDHIST,
            _ => year,
        };
        if persian_calendar::YEARS.contains(&year) {
            return persian_calendar::date(year, month, day);
        }
        Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
    }

    /// The numbers of a date that states no year, with this year in the last position.
    pub(super) fn with_year([first, second, _]: [u32; 3], year: u32) -> [u32; 3] {
        [first, second, year]
    }

    /// The order in words.
    pub(super) fn words(self) -> &'static str {
        match self {
            WhatsappDateOrder { year: 0, persian: true, .. } => "year, month, day of the Persian calendar",
            WhatsappDateOrder { persian: true, .. } => "day, month, year of the Persian calendar",
            DMY => "day, month, year",
            MDY => "month, day, year",
            YMD => "year, month, day",
            YDM => "year, day, month",
            MYD => "month, year, day",
            _ => "day, year, month",
        }
    }
}
