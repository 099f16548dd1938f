//! Reads the date and time at the start of a message's first line.
//!
//! In: a line. Out: its numbers as they are written, the AM/PM marker, and the rest of the line; `None` for a line that
//! continues a message. Knows every form that the app is known to write: brackets (iOS) or a dash (Android), `/`, `-`,
//! `.` or 年月日, months in words, years of Japan's and Taiwan's eras, no year, the digits of fifteen scripts, 12 or 24
//! hours, the AM/PM marker before or after the time, invisible marks anywhere. Never decides which number is the month.

use super::half_day::{WhatsappHalfDay, half_of};
use crate::chat::foreign_month;
use types::month_names::month_number;

/// The form of a line's date and time, which is the same for all messages of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct WhatsappHeaderShape {
    pub(super) end: WhatsappHeaderEnd,
    /// The separator between the numbers of the date.
    pub(super) separator: char,
    pub(super) year: WhatsappYearPosition,
    pub(super) seconds: bool,
    /// Whether the time has an AM/PM marker.
    pub(super) half: bool,
}

/// How the date and time end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum WhatsappHeaderEnd {
    /// `]`, as on iOS.
    Bracket,
    /// ` - `, as on Android.
    Dash,
    /// `: `.
    Colon,
    /// A space alone.
    Space,
}

/// Which of the three numbers is the year.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum WhatsappYearPosition {
    First,
    Middle,
    Last,
    /// Unknown, because all have at most two digits.
    Short,
    /// The month is a word; the numbers are day, month and year, and the year is 0 if the line has none.
    Named,
    /// There are only two numbers; the year is 0.
    Missing,
}

/// The start of a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WhatsappHeader<'a> {
    pub(super) shape: WhatsappHeaderShape,
    /// The numbers of the date as written.
    pub(super) date: [u32; 3],
    /// Whether a number of the date has one digit.
    pub(super) unpadded: bool,
    /// Whether one of the first two numbers of the date has a leading zero.
    pub(super) padded: bool,
    /// Whether the AM/PM marker is written `AM` or `PM`.
    pub(super) capitals: bool,
    /// Whether the date is written in Persian digits.
    pub(super) persian_digits: bool,
    /// Hour from 0 to 23, minute and second.
    pub(super) time: [u32; 3],
    /// Words in the place of an AM/PM marker after the time, which name no known half of the day. Before a dash
    /// ([`WhatsappHeaderEnd::Space`]), they may also be the beginning of a name.
    pub(super) unknown_half: Option<&'a str>,
    /// The rest of the line: a sender and a text, or a notice.
    pub(super) rest: &'a str,
}

/// Whether a character is an invisible direction mark, which the app may write anywhere.
pub(super) fn is_mark(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Whether a character is a space, but not a tab or a line end.
pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}' | '\u{2007}' | '\u{3000}')
}

/// Words between a date and its time, in lower case.
const BETWEEN: [&str; 14] =
    ["klo", "kl.", "kl", "um", "à", "às", "as", "a las", "alle ore", "alle", "at", "o", "u", "в"];

/// The header of a line, if it has one.
pub(super) fn header(line: &str) -> Option<WhatsappHeader<'_>> {
    let mut cursor = WhatsappLineCursor { rest: line };
    let bracket = cursor.eat('[');
    let first = cursor.peek()?;
    if digit(first).is_none() && !(bracket || first.is_alphabetic()) {
        return None;
    }
    let whole = |year| date_then_time(&mut cursor.clone(), year).or_else(|| time_then_date(&mut cursor.clone(), year));
    // A date of two numbers is tried only if there is no full date.
    let (date, time) = whole(true).or_else(|| whole(false))?;
    let is_time_last = time.behind.len() < date.behind.len();
    cursor.rest = if is_time_last { time.behind } else { date.behind };
    let may_name_half = is_time_last && time.half.is_none();
    let in_bracket = (bracket && may_name_half).then(|| cursor.unknown_half()).flatten();
    let end = cursor.end(bracket)?;
    let rest = cursor.rest;
    let before_dash = || [" - ", " – ", " — "].iter().find_map(|dash| words_before(rest, dash));
    let unknown_half =
        in_bracket.or_else(|| (end == WhatsappHeaderEnd::Space && may_name_half).then(before_dash).flatten());
    if end == WhatsappHeaderEnd::Space && unknown_half.is_none() && !rest.contains(": ") {
        return None;
    }
    let half = time.half.is_some() || in_bracket.is_some();
    let start = line.get(..line.len() - rest.len()).unwrap_or_default();
    let persian_digits = start.chars().any(|c| matches!(c, '\u{6f0}'..='\u{6f9}'));
    let shape = WhatsappHeaderShape { end, separator: date.separator, year: date.year, seconds: time.seconds, half };
    Some(WhatsappHeader {
        shape,
        date: date.numbers,
        unpadded: date.unpadded,
        padded: date.padded,
        capitals: time.capitals,
        persian_digits,
        time: time.on_24_hours()?,
        unknown_half,
        rest,
    })
}

/// The words in front of `end`, if they may name a half of the day: they are short, and have no digit and no colon.
fn words_before<'a>(text: &'a str, end: &str) -> Option<&'a str> {
    const MAX_HALF_BYTES: usize = 64;
    let words = text.split_once(end)?.0.trim_matches(|c| is_space(c) || is_mark(c));
    let may_be = words.len() <= MAX_HALF_BYTES
        && words.chars().any(char::is_alphabetic)
        && !words.chars().any(|c| matches!(c, ':' | '[' | ']') || digit(c).is_some());
    may_be.then_some(words)
}

fn date_then_time<'a>(
    cursor: &mut WhatsappLineCursor<'a>,
    has_year: bool,
) -> Option<(WhatsappHeaderDate<'a>, WhatsappHeaderTime<'a>)> {
    let date = cursor.date_or_words(has_year)?;
    cursor.between()?;
    Some((date, cursor.time()?))
}

fn time_then_date<'a>(
    cursor: &mut WhatsappLineCursor<'a>,
    has_year: bool,
) -> Option<(WhatsappHeaderDate<'a>, WhatsappHeaderTime<'a>)> {
    let time = cursor.time()?;
    cursor.between()?;
    Some((cursor.date_or_words(has_year)?, time))
}

struct WhatsappHeaderDate<'a> {
    numbers: [u32; 3],
    separator: char,
    year: WhatsappYearPosition,
    unpadded: bool,
    padded: bool,
    behind: &'a str,
}

struct WhatsappHeaderTime<'a> {
    numbers: [u32; 3],
    seconds: bool,
    half: Option<WhatsappHalfDay>,
    capitals: bool,
    behind: &'a str,
}

impl WhatsappHeaderTime<'_> {
    fn on_24_hours(&self) -> Option<[u32; 3]> {
        let [hour, minute, second] = self.numbers;
        let hour = match self.half {
            Some(WhatsappHalfDay::Morning) if hour == 12 => 0,
            Some(WhatsappHalfDay::Afternoon) if hour < 12 => hour + 12,
            Some(WhatsappHalfDay::Noon) if hour < 3 => hour + 12,
            // Some phones write 24:05 for five past midnight.
            _ if hour == 24 => 0,
            _ => hour,
        };
        (hour < 24 && minute < 60 && second < 60).then_some([hour, minute, second])
    }
}

/// Reads a line from its start, and skips marks.
#[derive(Clone)]
struct WhatsappLineCursor<'a> {
    rest: &'a str,
}

impl<'a> WhatsappLineCursor<'a> {
    fn skip_marks(&mut self) {
        self.rest = self.rest.trim_start_matches(is_mark);
    }

    fn peek(&mut self) -> Option<char> {
        self.skip_marks();
        self.rest.chars().next()
    }

    fn eat_if(&mut self, accepts: impl Fn(char) -> bool) -> Option<char> {
        let c = self.peek().filter(|c| accepts(*c))?;
        self.rest = self.rest.get(c.len_utf8()..).unwrap_or_default();
        Some(c)
    }

    fn eat(&mut self, wanted: char) -> bool {
        self.eat_if(|c| c == wanted).is_some()
    }

    fn spaces(&mut self) -> bool {
        let mut any = false;
        while self.eat_if(is_space).is_some() {
            any = true;
        }
        any
    }

    /// Consumes a word; case is ignored.
    fn word(&mut self, word: &str) -> bool {
        self.skip_marks();
        let mut rest = self.rest.chars();
        for wanted in word.chars() {
            match rest.next() {
                Some(c) if c == wanted || c.to_lowercase().eq(std::iter::once(wanted)) => {}
                _ => return false,
            }
        }
        self.rest = rest.as_str();
        true
    }

    /// A number of up to four digits, and how many it has.
    fn number(&mut self) -> Option<(u32, usize)> {
        let (mut value, mut digits) = (0, 0);
        while let Some(d) = self.peek().and_then(digit) {
            self.eat_if(|_| true);
            digits += 1;
            if digits > 4 {
                return None;
            }
            value = value * 10 + d;
        }
        (digits > 0).then_some((value, digits))
    }

    /// A date in numbers, else a date with the month in words. Without a year, a date in numbers has two numbers.
    fn date_or_words(&mut self, has_year: bool) -> Option<WhatsappHeaderDate<'a>> {
        for read in [if has_year { Self::date } else { Self::day_and_month }, Self::named_date] {
            let mut ahead = self.clone();
            if let Some(date) = read(&mut ahead) {
                *self = ahead;
                return Some(date);
            }
        }
        None
    }

    /// `28/4`: which of the numbers is the month is not decided.
    fn day_and_month(&mut self) -> Option<WhatsappHeaderDate<'a>> {
        let ((first, 1..=2), '/', (second, 1..=2)) = (self.number()?, self.date_separator(None)?, self.number()?)
        else {
            return None;
        };
        self.skip_marks();
        let unpadded = first < 10 || second < 10;
        Some(WhatsappHeaderDate {
            numbers: [first, second, 0],
            separator: '/',
            year: WhatsappYearPosition::Missing,
            unpadded,
            padded: false,
            behind: self.rest,
        })
    }

    /// `28 Apr 2013`, `Apr 28, 2013`, `28. April`, `28 de abr. de 2013`.
    fn named_date(&mut self) -> Option<WhatsappHeaderDate<'a>> {
        let day_first = match self.number() {
            Some((day, 1..=2)) => {
                self.eat('.');
                self.spaces();
                Some(day)
            }
            Some(_) => return None,
            None => None,
        };
        self.word_and_space("de");
        let month = self.month()?;
        let day = match day_first {
            Some(day) => day,
            None => {
                self.spaces().then_some(())?;
                let (day, 1..=2) = self.number()? else { return None };
                day
            }
        };
        let mut ahead = self.clone();
        ahead.eat(',');
        let is_apart = ahead.spaces();
        ahead.word_and_space("de");
        let year = match ahead.number() {
            Some((year, 4)) if is_apart => {
                *self = ahead;
                year
            }
            _ => 0,
        };
        self.skip_marks();
        let numbers = [day, month, year];
        Some(WhatsappHeaderDate {
            numbers,
            separator: ' ',
            year: WhatsappYearPosition::Named,
            unpadded: false,
            padded: false,
            behind: self.rest,
        })
    }

    /// Consumes a word followed by a space, if it comes next.
    fn word_and_space(&mut self, word: &str) {
        let mut ahead = self.clone();
        if ahead.word(word) && ahead.spaces() {
            *self = ahead;
        }
    }

    /// The month for a word, in full or abbreviated, with the dot after it.
    fn month(&mut self) -> Option<u32> {
        self.skip_marks();
        let end = self.rest.find(|c: char| !(c.is_alphabetic() || is_letter_mark(c))).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at_checked(end)?;
        let month = month_number(word).or_else(|| foreign_month(word))?;
        self.rest = rest.strip_prefix('.').unwrap_or(rest);
        u32::try_from(month).ok()
    }

    /// A number of a date. A number after the name of an era is a year, and is converted to the Gregorian calendar.
    fn number_or_era(&mut self) -> Option<(u32, usize)> {
        // The year before the first of each era.
        const ERAS: [(&str, u32); 6] =
            [("令和", 2018), ("平成", 1988), ("r", 2018), ("h", 1988), ("民國", 1911), ("民国", 1911)];
        for (name, before) in ERAS {
            let mut ahead = self.clone();
            if ahead.word(name) {
                let (year, 1..=3) = (if ahead.eat('元') { Some((1, 1)) } else { ahead.number() })? else {
                    return None;
                };
                *self = ahead;
                return Some((before + year, 4));
            }
        }
        self.number()
    }

    fn date(&mut self) -> Option<WhatsappHeaderDate<'a>> {
        let first = self.number_or_era()?;
        let separator = self.date_separator(None)?;
        let second = self.number()?;
        self.date_separator(Some(separator))?;
        let third = self.number_or_era()?;
        let digits = [first.1, second.1, third.1];
        let year = match digits {
            [4, 1..=2, 1..=2] => WhatsappYearPosition::First,
            [1..=2, 4, 1..=2] => WhatsappYearPosition::Middle,
            [1..=2, 1..=2, 4] => WhatsappYearPosition::Last,
            [1..=2, 1..=2, 1..=2] => WhatsappYearPosition::Short,
            _ => return None,
        };
        // `2024년 3월 5일`, `2024年3月5日`, `5. 3. 2024.`, `5.03.2024 г.`, `5/3/2567 BE`
        self.eat_if(|c| matches!(c, '日' | '일') || (separator == '.' && c == '.'));
        let mut ahead = self.clone();
        if (ahead.spaces() || self.rest.starts_with('г')) && (ahead.word("г.") || ahead.word("be")) {
            *self = ahead;
        }
        self.skip_marks();
        let unpadded = digits.contains(&1);
        let padded = [first, second].iter().any(|(number, digits)| *digits == 2 && *number < 10);
        Some(WhatsappHeaderDate {
            numbers: [first.0, second.0, third.0],
            separator,
            year,
            unpadded,
            padded,
            behind: self.rest,
        })
    }

    fn date_separator(&mut self, same_as: Option<char>) -> Option<char> {
        let c = self.eat_if(|c| matches!(c, '/' | '-' | '.' | '年' | '月' | '년' | '월' | '\u{2010}' | '\u{2011}'))?;
        let c = match c {
            '月' => '年',
            '월' => '년',
            '\u{2010}' | '\u{2011}' => '-',
            c => c,
        };
        if matches!(c, '.' | '년') {
            self.spaces();
        }
        same_as.is_none_or(|same| same == c).then_some(c)
    }

    /// Consumes what is between a date and a time: a comma, a word or a space.
    fn between(&mut self) -> Option<()> {
        let comma = self.eat_if(|c| matches!(c, ',' | '،' | '、')).is_some();
        let space = self.spaces();
        for word in BETWEEN {
            let mut ahead = self.clone();
            if ahead.word(word) && ahead.spaces() {
                *self = ahead;
                break;
            }
        }
        (comma || space).then_some(())
    }

    fn time(&mut self) -> Option<WhatsappHeaderTime<'a>> {
        let before = self.half();
        self.spaces();
        let (hour, 1..=2) = self.number()? else { return None };
        let separator = self.time_separator()?;
        let (minute, 2) = self.number()? else { return None };
        let mut ahead = self.clone();
        let second = ahead.second(separator);
        if second.is_some() {
            *self = ahead;
        }
        let behind = self.rest.trim_start_matches(|c| is_space(c) || is_mark(c) || c == '_');
        let half = before.or_else(|| self.half());
        let capitals = before.is_none() && half.is_some() && (behind.starts_with("AM") || behind.starts_with("PM"));
        for word in [" ч.", " uhr"] {
            let mut ahead = self.clone();
            if ahead.spaces() && ahead.word(word.trim_start()) {
                *self = ahead;
            }
        }
        self.skip_marks();
        let numbers = [hour, minute, second.unwrap_or(0)];
        Some(WhatsappHeaderTime { numbers, seconds: second.is_some(), half, capitals, behind: self.rest })
    }

    fn second(&mut self, separator: char) -> Option<u32> {
        if separator == 'h' {
            // `14 h 05 min 03 s`
            let minutes = self.spaces() && self.word("min") && self.spaces();
            let (second, 2) = minutes.then(|| self.number())?? else { return None };
            return (self.spaces() && self.word("s")).then_some(second);
        }
        if self.time_separator()? != separator {
            return None;
        }
        let (second, 2) = self.number()? else { return None };
        Some(second)
    }

    fn time_separator(&mut self) -> Option<char> {
        if let Some(c) = self.eat_if(|c| matches!(c, ':' | '.' | '：')) {
            return Some(if c == '：' { ':' } else { c });
        }
        let mut ahead = self.clone();
        ahead.spaces();
        if ahead.word("h") {
            ahead.spaces();
            *self = ahead;
            return Some('h');
        }
        None
    }

    /// An AM/PM marker: the longest run of words, dots and spaces here that is one. A part of a word never counts, so
    /// that no name is split.
    fn half(&mut self) -> Option<WhatsappHalfDay> {
        const MAX_HALF: usize = 24;
        let is_letter = |c: char| c.is_alphabetic() || is_letter_mark(c);
        let mut letters = String::new();
        let mut found = None;
        let mut characters = self.rest.char_indices().take(MAX_HALF).peekable();
        while let Some((at, c)) = characters.next() {
            if is_letter(c) {
                letters.extend(c.to_lowercase());
                if !characters.peek().is_some_and(|(_, next)| is_letter(*next)) {
                    found = half_of(&letters).map(|half| (at + c.len_utf8(), half)).or(found);
                }
            } else if !(is_space(c) || is_mark(c) || is_inside_half(c)) {
                break;
            }
        }
        let (end, half) = found?;
        self.rest = self.rest.get(end..).unwrap_or_default();
        self.eat('.');
        Some(half)
    }

    /// Consumes words before a closing bracket, in the place of an AM/PM marker.
    fn unknown_half(&mut self) -> Option<&'a str> {
        let words = words_before(self.rest, "]")?;
        self.rest = self.rest.get(self.rest.find(']')?..)?;
        Some(words)
    }

    fn end(&mut self, bracket: bool) -> Option<WhatsappHeaderEnd> {
        let space = self.spaces();
        if bracket {
            if !self.eat(']') {
                return None;
            }
            let mut ahead = self.clone();
            ahead.spaces();
            if ahead.eat('-') && ahead.spaces() {
                *self = ahead;
            } else if let Some(rest) = self.rest.strip_prefix(is_space) {
                self.rest = rest;
            }
            return Some(WhatsappHeaderEnd::Bracket);
        }
        if space && self.eat_if(|c| matches!(c, '-' | '–' | '—')).is_some() {
            return (self.one_space() || self.rest.is_empty()).then_some(WhatsappHeaderEnd::Dash);
        }
        if self.eat(':') {
            return self.one_space().then_some(WhatsappHeaderEnd::Colon);
        }
        space.then_some(WhatsappHeaderEnd::Space)
    }

    fn one_space(&mut self) -> bool {
        match self.rest.strip_prefix(is_space) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}

/// The value of a digit in one of the scripts that the app writes.
fn digit(c: char) -> Option<u32> {
    const ZEROS: [u32; 16] = [
        0x0660, 0x06f0, 0x0966, 0x09e6, 0x0a66, 0x0ae6, 0x0b66, 0x0be6, 0x0c66, 0x0ce6, 0x0d66, 0x0e50, 0x0ed0, 0x1040,
        0x17e0, 0xff10,
    ];
    if c.is_ascii() {
        return c.to_digit(10);
    }
    let code = c as u32;
    ZEROS.iter().find_map(|zero| code.checked_sub(*zero).filter(|d| *d < 10))
}

/// Whether a character is a vowel sign, which belongs to a word and is not a letter.
fn is_letter_mark(c: char) -> bool {
    let is_mark_of_script = matches!(
        c,
        '\u{300}'..='\u{36f}'
            | '\u{900}'..='\u{dff}'
            | '\u{e31}'..='\u{e4e}'
            | '\u{eb1}'..='\u{ecd}'
            | '\u{102b}'..='\u{103e}'
            | '\u{17b4}'..='\u{17d3}'
    );
    is_mark_of_script && !c.is_numeric()
}

/// Whether a character may stand inside an AM/PM marker without being one of its letters: a dot, a quotation mark, or
/// an invisible joiner.
fn is_inside_half(c: char) -> bool {
    matches!(c, '.' | '_' | '״' | '"' | '\'' | '’' | '\u{2024}' | '\u{200c}' | '\u{200d}')
}
