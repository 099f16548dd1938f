//! Clock times: "2pm", "2:30 p.m.", "14:00", "noon", "midnight".
//!
//! In: the words and an index. Out: the time and the index after it. A bare hour is a time only if the part of the day
//! before it says which half of the day is meant.

use jiff::civil::Time;

use super::time_reader::TimeReader;

impl TimeReader<'_> {
    /// The clock time at a word; `part` is the part of the day already read, or empty.
    pub(super) fn clock_time(&self, at: usize, part: &str) -> Option<(usize, Time)> {
        let w = |i: usize| self.words.at(i);
        match w(at) {
            "noon" => return Some((at + 1, Time::new(12, 0, 0, 0).ok()?)),
            "midnight" => return Some((at + 1, Time::midnight())),
            _ => {}
        }
        let digits = w(at).len() - w(at).trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (hour, glued) = w(at).split_at_checked(digits)?;
        if hour.is_empty() || hour.len() > 2 || !matches!(glued, "" | "am" | "pm") {
            return None;
        }
        let hour: i8 = hour.parse().ok()?;
        let mut next = at + 1;
        let mut minute = None;
        let mut half = glued;
        if glued.is_empty() && w(next) == ":" && self.words.is_joined(next) {
            let digits = w(next + 1).trim_end_matches(|c: char| c.is_ascii_alphabetic());
            half = w(next + 1).strip_prefix(digits).unwrap_or_default();
            minute = Some(if digits.len() == 2 { digits.parse::<i8>().ok()? } else { return None });
            next += 2;
        }
        if half.is_empty() {
            half = match (w(next), w(next + 1), w(next + 2)) {
                ("am", ..) | ("a", ".", "m") => "am",
                ("pm", ..) | ("p", ".", "m") => "pm",
                _ => "",
            };
            next += match w(next) {
                "am" | "pm" if !half.is_empty() => 1,
                "a" | "p" if !half.is_empty() => 3 + usize::from(w(next + 3) == "." && self.words.is_joined(next + 3)),
                _ => 0,
            };
        } else if !matches!(half, "am" | "pm") {
            return None;
        }
        let hour = match (half, part) {
            ("am" | "pm", _) if !(1..=12).contains(&hour) => return None,
            ("am", _) => hour % 12,
            ("pm", _) => hour % 12 + 12,
            (_, "morning") if (1..=11).contains(&hour) => hour,
            (_, "afternoon" | "evening" | "night") if (1..=11).contains(&hour) => hour + 12,
            _ if minute.is_some() && w(at).len() == 2 => hour,
            _ => return None,
        };
        Some((next, Time::new(hour, minute.unwrap_or(0), 0, 0).ok()?))
    }
}
