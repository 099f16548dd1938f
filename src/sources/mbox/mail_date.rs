//! Reads when a mail was sent, from its headers.
//!
//! In: a date in the form of RFC 5322 (including obsolete forms), `asctime` or ISO 8601, or a variant that programs
//! write: months in other languages, `11.00.00`, `13:2:1`, `+02:00`, `EST5EDT`, `America/New_York`, years such as
//! `19100`. Out: the moment with its offset, whether the stated weekday contradicts it, and whether its zone is known;
//! `None` if it is not a date. A date without a zone, or with an ambiguous zone name, is read in the zone of the
//! settings. Day, month and year are never guessed: each has to be stated.

use std::sync::LazyLock;

use jiff::{
    civil::{Date, Time, Weekday},
    tz::Offset,
};
use regex::{Captures, Regex};

use crate::{chat::foreign_month, zone::Zone};
use types::{model::EventTime, month_names::month_number};

static CLOCK: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(\d{1,2})[:.](\d{2})(?:[:.](\d{2})(?:\.\d+)?)?([A-Za-z+-].*)?$").ok());
/// A time without leading zeros, which only its colons distinguish from a date.
static BARE_CLOCK: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(\d{1,2}):(\d{1,2})(?::(\d{1,2}))?([A-Za-z+-].*)?$").ok());
static ISO: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^(\d{4})-(\d{2})-(\d{2})(?:T(.+))?$").ok());
static HYPHENATED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^(\d{1,2})-(\pL+)\.?-(\d{2,4})$").ok());
static OFFSET: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(?:GMT|UTC?)?[+-]?([+-])(\d{1,2})(?::?(\d{2}))?$").ok());

/// The date of a mail.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MailDate {
    pub(super) time: EventTime,
    /// Whether the stated weekday does not match the date.
    pub(super) is_contradicted: bool,
    /// Whether it states its zone in a known form.
    pub(super) has_zone: bool,
}

/// Reads a date.
pub(super) fn mail_date(text: &str, zone: &Zone) -> Option<MailDate> {
    let mut parts = MailDateParts::default();
    for word in without_comments(text).split([',', ' ', '\t', '\r', '\n']).filter(|word| !word.is_empty()) {
        parts.word(word);
    }
    let year = parts.year.filter(|year| *year >= 1900)?;
    let date = Date::new(year, parts.month?, parts.day?).ok()?;
    let day = if parts.is_end_of_day { date.tomorrow().ok()? } else { date };
    let local = day.to_datetime(parts.clock?);
    let time = match (parts.offset_seconds, &parts.zone) {
        (Some(seconds), _) => {
            let moment = Offset::from_seconds(seconds).ok()?.to_timestamp(local).ok()?;
            EventTime::new(moment.as_millisecond(), seconds).ok()?
        }
        (None, own) => own.as_ref().unwrap_or(zone).moment(local)?,
    };
    let has_zone = parts.offset_seconds.is_some() || parts.zone.is_some();
    Some(MailDate { time, is_contradicted: parts.weekday.is_some_and(|weekday| weekday != date.weekday()), has_zone })
}

/// The parts of a date, read word by word; the first word of each kind counts.
#[derive(Default)]
struct MailDateParts {
    year: Option<i16>,
    month: Option<i8>,
    day: Option<i8>,
    clock: Option<Time>,
    offset_seconds: Option<i32>,
    /// A zone with daylight saving rules.
    zone: Option<Zone>,
    /// Whether the time is 24:00, which is midnight of the next day.
    is_end_of_day: bool,
    weekday: Option<Weekday>,
    /// The month that the last word names. It is kept apart because in some languages a weekday has the same
    /// abbreviation.
    last_month: Option<i8>,
    /// Whether the last word was the day.
    after_day: bool,
}

impl MailDateParts {
    fn word(&mut self, word: &str) {
        let (last_month, after_day) = (self.last_month.take(), std::mem::take(&mut self.after_day));
        let plain = word.trim_end_matches('.');
        if !plain.is_empty() && plain.bytes().all(|byte| byte.is_ascii_digit()) {
            return self.number(plain, last_month);
        }
        if self.is_date(word) || self.is_clock(word) || self.clock.is_some() && self.is_behind_clock(word) {
            return;
        }
        self.weekday = self.weekday.or_else(|| weekday(plain));
        let named = month_number(plain).or_else(|| foreign_month(plain)).or_else(|| month_number(plain.get(..3)?));
        if after_day && named.is_some() {
            self.month = named;
        }
        self.last_month = named;
    }

    fn number(&mut self, digits: &str, last_month: Option<i8>) {
        if self.day.is_none() && digits.len() <= 2 {
            self.day = digits.parse().ok();
            self.month = self.month.or(last_month);
            self.after_day = true;
        } else if self.year.is_none() {
            self.year = year(digits);
        }
    }

    /// Takes a date written as one word.
    fn is_date(&mut self, word: &str) -> bool {
        let part = |found: &Captures<'_>, at: usize| found.get(at).map_or_else(String::new, |m| m.as_str().to_owned());
        if let Some(found) = ISO.as_ref().and_then(|iso| iso.captures(word)) {
            self.year = year(&part(&found, 1));
            (self.month, self.day) = (part(&found, 2).parse().ok(), part(&found, 3).parse().ok());
            return found.get(4).is_none_or(|clock| self.is_clock(clock.as_str()));
        }
        let Some(found) = HYPHENATED.as_ref().and_then(|hyphenated| hyphenated.captures(word)) else { return false };
        let name = part(&found, 2);
        self.month = month_number(&name).or_else(|| foreign_month(&name));
        (self.day, self.year) = (part(&found, 1).parse().ok(), year(&part(&found, 3)));
        true
    }

    /// Takes a time of day, with anything attached to it without a space.
    fn is_clock(&mut self, word: &str) -> bool {
        let of = |clock: &'static LazyLock<Option<Regex>>| clock.as_ref().and_then(|clock| clock.captures(word));
        let Some(found) = of(&CLOCK).or_else(|| of(&BARE_CLOCK)) else { return false };
        let part = |at: usize| found.get(at).map_or("0", |m| m.as_str()).parse::<i8>().ok();
        // A leap second is read as the last second of its minute.
        let second = part(3).map(|second| if second == 60 { 59 } else { second });
        let (Some(hour), Some(minute), Some(second)) = (part(1), part(2), second) else { return false };
        let is_end_of_day = [hour, minute, second] == [24, 0, 0];
        let Ok(clock) = Time::new(if is_end_of_day { 0 } else { hour }, minute, second, 0) else { return false };
        if self.clock.is_none() {
            (self.clock, self.is_end_of_day) = (Some(clock), is_end_of_day);
        }
        if let Some(behind) = found.get(4) {
            self.is_behind_clock(behind.as_str());
        }
        true
    }

    /// Takes a zone, or AM or PM.
    fn is_behind_clock(&mut self, word: &str) -> bool {
        let upper = word.trim_end_matches('.').to_ascii_uppercase();
        let hour = self.clock.map(Time::hour);
        let moved = match (upper.as_str(), hour) {
            ("AM", Some(12)) => Some(0),
            ("PM", Some(hour @ ..12)) => Some(hour + 12),
            ("AM" | "PM", hour) => hour,
            _ => None,
        };
        if let Some((hour, clock)) = moved.zip(self.clock) {
            self.clock = clock.with().hour(hour).build().ok();
            return true;
        }
        let found = OFFSET.as_ref().and_then(|offset| offset.captures(&upper));
        let offset_minutes = found.and_then(|found| {
            let part = |at: usize| found.get(at).map_or("0", |m| m.as_str()).parse::<i32>().ok();
            let minutes = part(2)? * 60 + part(3)?;
            Some(if found.get(1).is_some_and(|sign| sign.as_str() == "-") { -minutes } else { minutes })
        });
        if let Some(minutes) = offset_minutes.or_else(|| named_offset_minutes(&upper)) {
            if self.zone.is_none() {
                self.offset_seconds.get_or_insert(minutes * 60);
            }
            return true;
        }
        // `MET DST` is summer time.
        if upper == "DST" && self.offset_seconds.is_some() {
            self.offset_seconds = self.offset_seconds.map(|seconds| seconds + 3_600);
            return true;
        }
        let has_own = self.offset_seconds.is_some() || self.zone.is_some();
        if !has_own && is_zone_of_rules(word) {
            self.zone = Zone::named(word);
        }
        self.zone.is_some()
    }
}

/// Whether a word names a zone with daylight saving rules: `America/New_York`, `EST5EDT`.
fn is_zone_of_rules(word: &str) -> bool {
    let is_posix = || {
        let mut runs = word.split(|c: char| c.is_ascii_digit()).filter(|run| !run.is_empty());
        let is_name = |run: Option<&str>| {
            run.is_some_and(|run| matches!(run.len(), 3 | 4) && run.bytes().all(|b| b.is_ascii_uppercase()))
        };
        is_name(runs.next()) && is_name(runs.next()) && runs.next().is_none()
    };
    word.contains('/') || is_posix()
}

/// A year; two or three digits are read as RFC 5322 says. Programs that write the years since 1900 as the last two
/// digits write `19100`; others write `0097`.
fn year(digits: &str) -> Option<i16> {
    let digits = match digits.len() {
        5 => digits.strip_prefix("19").filter(|since_1900| since_1900.starts_with('1'))?,
        4 => digits.strip_prefix("00").unwrap_or(digits),
        _ => digits,
    };
    let year: i16 = digits.parse().ok()?;
    Some(match digits.len() {
        2 if year < 50 => year + 2_000,
        2 | 3 => year + 1_900,
        _ => year,
    })
}

/// The weekday for an English name, in full or abbreviated to three letters.
fn weekday(word: &str) -> Option<Weekday> {
    const NAMES: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let word = word.to_ascii_lowercase();
    let at = NAMES.iter().position(|name| *name == word || (word.len() == 3 && name.starts_with(word.as_str())))?;
    Weekday::from_monday_zero_offset(i8::try_from(at).ok()?).ok()
}

/// The offset for a zone's name: the names in RFC 5322, and those of Europe, Japan and Australia that mean only one
/// offset.
fn named_offset_minutes(name: &str) -> Option<i32> {
    let hours = match name {
        "Z" | "UT" | "UTC" | "GMT" | "WET" => 0,
        "CET" | "MET" | "MEZ" | "BST" | "WEST" => 1,
        "CEST" | "MEST" | "MESZ" | "EET" => 2,
        "EEST" | "MSK" => 3,
        "JST" => 9,
        "AEST" => 10,
        "AEDT" => 11,
        "EDT" => -4,
        "EST" | "CDT" => -5,
        "CST" | "MDT" => -6,
        "MST" | "PDT" => -7,
        "PST" => -8,
        _ => return None,
    };
    Some(hours * 60)
}

/// A text without the parts in parentheses.
fn without_comments(text: &str) -> String {
    let (mut kept, mut depth, mut is_escaped) = (String::with_capacity(text.len()), 0_usize, false);
    for character in text.chars() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '(' => {
                depth += 1;
                kept.push(' ');
            }
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(character),
            _ => {}
        }
    }
    kept
}
