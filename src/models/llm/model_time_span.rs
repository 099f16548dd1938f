//! Turns times as models write them into an interval.
//!
//! In: a start and an end as text, and the speaker's UTC offset. Out: an interval; or what is wrong with the text, for
//! the model to repair. A time without an offset gets the speaker's. An end without a fraction includes its last
//! second.

use serde::Deserialize;

use types::model::{EventTime, FieldError, Interval};

/// A start and an end as a model wrote them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ModelTimeSpan {
    start: String,
    end: String,
}

impl ModelTimeSpan {
    /// The interval; a time without an offset gets `offset_seconds`.
    ///
    /// # Errors
    /// What is wrong, worded for the model.
    pub fn interval(&self, offset_seconds: i32) -> Result<Interval, String> {
        let start = moment(&self.start, offset_seconds)?;
        let mut end = moment(&self.end, offset_seconds)?;
        if end.unix_ms > start.unix_ms && end.unix_ms % 1_000 == 0 {
            end.unix_ms += 999;
        }
        (start, end).try_into().map_err(|e: FieldError| e.to_string())
    }
}

fn moment(text: &str, offset_seconds: i32) -> Result<EventTime, String> {
    let (sign, minutes) = (if offset_seconds < 0 { '-' } else { '+' }, offset_seconds.unsigned_abs() / 60);
    let with_offset = format!("{}{sign}{:02}:{:02}", text.trim(), minutes / 60, minutes % 60);
    EventTime::read(text.trim())
        .and_then(|time| time.check_offset("time").map(|()| time))
        .or_else(|_| EventTime::read(&with_offset))
        .map_err(|_| format!("time: {text:?} is not YYYY-MM-DDThh:mm:ss with an offset, in a year from 1900 to 2199"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_models_write_them() {
        let check = |start: &str, end: &str, expected: Result<(&str, &str), &str>| {
            let span = ModelTimeSpan { start: start.to_owned(), end: end.to_owned() };
            let found = span.interval(7_200).map(|i| {
                let (start, end): (EventTime, EventTime) = i.into();
                (start.to_string(), end.to_string())
            });
            match (&found, expected) {
                (Ok((a, b)), Ok(wanted)) => assert_eq!((a.as_str(), b.as_str()), wanted),
                (Err(problem), Err(word)) => assert!(problem.contains(word), "{problem}"),
                _ => panic!("{start} {end}: {found:?}"),
            }
        };
        let day = ("2024-05-06T00:00:00+02:00", "2024-05-06T23:59:59.999+02:00");
        check("2024-05-06T00:00:00+02:00", "2024-05-06T23:59:59+02:00", Ok(day));
        check("2024-05-06T00:00:00", " 2024-05-06T23:59:59 ", Ok(day));
        check("2024-05-06T10:00:00Z", "2024-05-06T10:00:00Z", Ok(("2024-05-06T10:00:00Z", "2024-05-06T10:00:00Z")));
        check("yesterday", "2024-05-06T23:59:59", Err("\"yesterday\" is not"));
        check("2024-05-06T00:00:00+25:00", "2024-05-06T23:59:59", Err("+25:00\" is not"));
        check("2024-05-07T00:00:00", "2024-05-06T00:00:00", Err("is after"));
        let last = "2199-12-31T23:59:59";
        check("2024-05-06T00:00:00+02:00", &format!("{last}Z"), Err("1900 to 2199"));
        check("2024-05-06T00:00:00Z", &format!("{last}Z"), Ok(("2024-05-06T00:00:00Z", "2199-12-31T23:59:59.999Z")));
    }
}
