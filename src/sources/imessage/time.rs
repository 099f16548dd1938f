//! Reads the dates and time spans that imessage-exporter writes.
//!
//! In: text such as `May 17, 2022  5:29:42 PM` and `1 hour, 49 seconds`. Out: a date and what follows
//! it, or milliseconds. Both are in English on every computer.

use jiff::civil::{Date, DateTime};

use types::month_names::MONTHS;

/// The date and time at the start of a line, and the rest of the line.
pub(super) fn date_time(line: &str) -> Option<(DateTime, &str)> {
    let (month, rest) = line.split_at_checked(3)?;
    let month = MONTHS.iter().position(|name| name.get(..3) == Some(month))? + 1;
    let (day, rest) = number(rest.strip_prefix(' ')?.trim_start_matches(' '))?;
    let (year, rest) = number(rest.strip_prefix(", ")?)?;
    let (hour, rest) = number(rest.strip_prefix(' ')?.trim_start_matches(' '))?;
    let (minute, rest) = number(rest.strip_prefix(':')?)?;
    let (second, rest) = number(rest.strip_prefix(':')?)?;
    let rest = rest.strip_prefix([' ', '\u{202f}'])?;
    let hour = match (rest.get(..2)?, hour) {
        ("AM", 12) => 0,
        ("PM", 12) => 12,
        ("AM", 1..12) => hour,
        ("PM", 1..12) => hour + 12,
        _ => return None,
    };
    let date = Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    if minute > 59 || second > 59 {
        return None;
    }
    let clock = [hour, minute, second].map(|n| i8::try_from(n).unwrap_or_default());
    Some((date.at(clock[0], clock[1], clock[2], 0), rest.get(2..)?))
}

fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(digits)?;
    Some((number.parse().ok()?, rest))
}

/// The milliseconds of a span such as `2 days, 1 hour, 5 minutes, 49 seconds`.
pub(super) fn span_ms(text: &str) -> Option<u64> {
    let mut total_seconds = 0u64;
    for part in text.split(", ") {
        let (count, unit) = part.split_once(' ')?;
        let seconds = match unit.trim_end_matches('s') {
            "second" => 1,
            "minute" => 60,
            "hour" => 3_600,
            "day" => 86_400,
            "week" => 604_800,
            _ => return None,
        };
        total_seconds = total_seconds.saturating_add(count.parse::<u64>().ok()?.saturating_mul(seconds));
    }
    Some(total_seconds.saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_spans_are_read() {
        for (text, expected) in [
            ("May 17, 2022  5:29:42 PM", Some(("2022-05-17T17:29:42", ""))),
            ("Dec 01, 2000 12:00:00 AM (Read by you)", Some(("2000-12-01T00:00:00", " (Read by you)"))),
            ("May 17, 2022 12:29:42 PM x", Some(("2022-05-17T12:29:42", " x"))),
            ("May 17, 2022 13:29:42 PM", None),
            ("Mai 17, 2022  5:29:42 PM", None),
            ("Feb 30, 2022  5:29:42 PM", None),
            ("May be, 2022", None),
        ] {
            let read = date_time(text);
            assert_eq!(read.map(|(time, rest)| (time.to_string(), rest)), expected.map(|(t, r)| (t.to_owned(), r)));
        }
        for (text, expected) in [
            ("1 hour, 49 seconds", Some(3_649_000)),
            ("2 days, 1 minute", Some(172_860_000)),
            ("soon", None),
            ("99999999999999999999 days", None),
        ] {
            assert_eq!(span_ms(text), expected, "{text}");
        }
    }
}
