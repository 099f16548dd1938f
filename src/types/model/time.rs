//! Moments with the offset at which they were said, and intervals of them.
//!
//! In: RFC 3339 text, or milliseconds. Out: checked values whose JSON form reads back equal.

use std::fmt;

use jiff::{Timestamp, fmt::temporal::Pieces, tz::Offset};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, de};

use super::{FIRST_YEAR, FieldError, LAST_YEAR};

const REMEDY: &str = "write RFC 3339 with an offset, such as 2023-05-08T13:56:00Z, in a year from 1900 to 2199";
/// The largest offset of RFC 3339, in either direction.
const MAX_OFFSET_SECONDS: u32 = 24 * 3_600 - 60;

/// A moment with the offset at which it was said; RFC 3339 in JSON.
///
/// Ordered by the moment, then by the offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventTime {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub unix_ms: i64,
    /// Offset east of UTC in seconds.
    pub offset_seconds: i32,
}

impl EventTime {
    /// Reads RFC 3339 with an offset (`2023-05-08T13:56:00+02:00` or `…Z`), and no other form.
    ///
    /// # Errors
    /// [`FieldError`] when it is not such a time, lies outside [`FIRST_YEAR`] to [`LAST_YEAR`], or has an offset of 24
    /// hours or more.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        let time = Self::of_record(text)?;
        time.check_offset("time")?;
        Ok(time)
    }

    /// The time in a record. Earlier builds took offsets of up to 25:59, so records may hold them.
    fn of_record(text: &str) -> Result<Self, FieldError> {
        let read = Self::read(text)?;
        if is_rfc_3339(text) {
            Ok(read)
        } else {
            Err(FieldError::new("time", format!("{text:?} is not RFC 3339"), REMEDY))
        }
    }

    /// Reads what [`Self::parse`] reads, and the other forms of ISO 8601 that exports and models write: a space in
    /// place of the `T`, digits without separators, an offset in hours. Takes offsets of up to 25:59;
    /// [`Self::check_offset`] refuses those that RFC 3339 does not have.
    ///
    /// # Errors
    /// [`FieldError`] when it is not a time, names no offset, or lies outside [`FIRST_YEAR`] to [`LAST_YEAR`].
    pub fn read(text: &str) -> Result<Self, FieldError> {
        let bad = |problem: String| FieldError::new("time", problem, REMEDY);
        let pieces = Pieces::parse(text).map_err(|_| bad(format!("{text:?} is not a time")))?;
        let time = pieces.time().ok_or_else(|| bad(format!("{text:?} has no time of day")))?;
        let offset = pieces.to_numeric_offset().ok_or_else(|| bad(format!("{text:?} has no zone")))?;
        let moment = offset.to_timestamp(pieces.date().to_datetime(time)).map_err(|e| bad(format!("{text:?}: {e}")))?;
        Self::new(moment.as_millisecond(), offset.seconds()).map_err(|_| bad(format!("{text:?} is out of range")))
    }

    /// A moment from its parts.
    ///
    /// # Errors
    /// [`FieldError`] when the year or the offset is out of range.
    pub fn new(unix_ms: i64, offset_seconds: i32) -> Result<Self, FieldError> {
        const REMEDY: &str = "use a year from 1900 to 2199 and an offset of whole minutes, less than 26 hours";
        let bad = || FieldError::new("time", format!("{unix_ms} ms at offset {offset_seconds} s"), REMEDY);
        let moment = Timestamp::from_millisecond(unix_ms).map_err(|_| bad())?;
        let offset = Offset::from_seconds(offset_seconds).map_err(|_| bad())?;
        let year = offset.to_datetime(moment).year();
        // RFC 3339 writes whole minutes: a finer offset would not read back.
        if !(FIRST_YEAR..=LAST_YEAR).contains(&year) || offset_seconds % 60 != 0 {
            return Err(bad());
        }
        Ok(Self { unix_ms, offset_seconds })
    }

    /// Checks that RFC 3339 has its offset: other programs refuse to read one of 24 hours or more.
    ///
    /// # Errors
    /// [`FieldError`] names `field`.
    pub fn check_offset(&self, field: &'static str) -> Result<(), FieldError> {
        if self.offset_seconds.unsigned_abs() <= MAX_OFFSET_SECONDS {
            return Ok(());
        }
        let problem = format!("\"{self}\" has an offset of 24 hours or more");
        Err(FieldError::new(field, problem, "write an offset from -23:59 to +23:59"))
    }

    /// The local date and time, at the offset at which it was said.
    #[must_use]
    pub fn local(&self) -> jiff::civil::DateTime {
        // `new` has checked both parts; the fallbacks only avoid a panic.
        let offset = Offset::from_seconds(self.offset_seconds).unwrap_or(Offset::UTC);
        offset.to_datetime(Timestamp::from_millisecond(self.unix_ms).unwrap_or(Timestamp::UNIX_EPOCH))
    }
}

/// Whether a time has the form of RFC 3339: `YYYY-MM-DDTHH:MM:SS`, perhaps a fraction, and `Z` or `+HH:MM`.
fn is_rfc_3339(text: &str) -> bool {
    const FORM: &[u8] = b"0000-00-00T00:00:00";
    let fits = |form: &[u8], text: &[u8]| {
        form.len() == text.len()
            && form.iter().zip(text).all(|(form, found)| match form {
                b'0' => found.is_ascii_digit(),
                other => found.eq_ignore_ascii_case(other),
            })
    };
    let Some((moment, rest)) = text.as_bytes().split_at_checked(FORM.len()) else { return false };
    let (has_fraction, rest) = match rest.strip_prefix(b".") {
        None => (true, rest),
        Some(rest) => {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            (digits > 0, &rest[digits..])
        }
    };
    let is_offset = [&b"Z"[..], b"+00:00", b"-00:00"].iter().any(|form| fits(form, rest));
    fits(FORM, moment) && has_fraction && is_offset
}

impl fmt::Display for EventTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = Offset::from_seconds(self.offset_seconds).unwrap_or(Offset::UTC);
        let moment = Timestamp::from_millisecond(self.unix_ms).unwrap_or(Timestamp::UNIX_EPOCH);
        if offset == Offset::UTC { write!(f, "{moment}") } else { write!(f, "{}", moment.display_with_offset(offset)) }
    }
}

impl Serialize for EventTime {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EventTime {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Self::of_record(&String::deserialize(d)?).map_err(de::Error::custom)
    }
}

impl JsonSchema for EventTime {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "EventTime".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time",
            "description": "RFC 3339 with an offset, in a year from 1900 to 2199." })
    }
}

/// A closed interval of moments, `start ≤ end`; a pair of RFC 3339 times in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "(EventTime, EventTime)", into = "(EventTime, EventTime)")]
pub struct Interval {
    /// First moment, as milliseconds since 1970.
    pub start_ms: i64,
    /// Last moment, as milliseconds since 1970.
    pub end_ms: i64,
    /// Offset east of UTC, in seconds, at which the interval was meant.
    pub offset_seconds: i32,
}

impl Interval {
    /// The single moment `[t, t]`.
    #[must_use]
    pub fn at(time: EventTime) -> Self {
        Self { start_ms: time.unix_ms, end_ms: time.unix_ms, offset_seconds: time.offset_seconds }
    }

    /// Milliseconds between two intervals; 0 when they touch or overlap.
    #[must_use]
    pub fn gap_ms(&self, other: &Self) -> i64 {
        (other.start_ms.saturating_sub(self.end_ms)).max(self.start_ms.saturating_sub(other.end_ms)).max(0)
    }
}

impl TryFrom<(EventTime, EventTime)> for Interval {
    type Error = FieldError;
    fn try_from((start, end): (EventTime, EventTime)) -> Result<Self, FieldError> {
        if start.unix_ms > end.unix_ms {
            return Err(FieldError::new("time", format!("{start} is after {end}"), "write the earlier moment first"));
        }
        // Both ends are written in the offset of the start, and must be readable in it.
        EventTime::new(end.unix_ms, start.offset_seconds)?;
        Ok(Self { start_ms: start.unix_ms, end_ms: end.unix_ms, offset_seconds: start.offset_seconds })
    }
}

impl From<Interval> for (EventTime, EventTime) {
    fn from(i: Interval) -> Self {
        let at = |unix_ms| EventTime { unix_ms, offset_seconds: i.offset_seconds };
        (at(i.start_ms), at(i.end_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_reads_back_equal() {
        for text in [
            "2023-05-08T13:56:00Z",
            "2023-05-08T13:56:00+02:00",
            "1900-01-01T00:00:00Z",
            "2024-02-29T23:59:59.999-11:30",
        ] {
            let time = EventTime::parse(text).expect(text);
            assert_eq!(time.to_string(), text);
            assert_eq!(EventTime::parse(&time.to_string()), Ok(time));
        }
        assert_eq!(EventTime::parse("2023-05-08T13:56:00+02:00").map(|t| t.unix_ms), Ok(1_683_546_960_000));
    }

    /// Requests must write RFC 3339; exports and models write other forms of ISO 8601, too.
    #[test]
    fn other_forms_than_rfc_3339_are_read_where_they_are_expected_alone() {
        let expected = EventTime::parse("2024-05-06T09:00:00Z").expect("a time").unix_ms;
        for text in [
            "20240506T090000Z",
            "2024-05-06T09Z",
            "2024-05-06T09:00Z",
            "2024-05-06T10:00:00+01",
            "2024-05-06T10:00:00+0100",
            "2024-05-06 09:00:00Z",
            "2024-05-06T09:00:00Z[Europe/Berlin]",
            "2024-05-06T09:00:00,5Z",
        ] {
            let error = EventTime::parse(text).expect_err(text).to_string();
            assert!(error.contains("RFC 3339"), "{error}");
            assert_eq!(EventTime::read(text).map(|time| time.unix_ms / 1_000), Ok(expected / 1_000), "{text}");
        }
        for text in ["2024-05-06t09:00:00z", "2024-05-06T09:00:00.123456789Z", "2024-05-06T08:59:60Z"] {
            assert!(EventTime::parse(text).is_ok(), "{text}");
        }
        for text in ["2024-05-06T09:00:00.Z", "2024-05-06T09:00:00", "2024-05-06T09:00:00Zz", "+002024-05-06T09:00:00Z"]
        {
            assert!(EventTime::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_offset_of_24_hours_is_refused_and_read_from_records() {
        for text in ["2024-05-06T09:00:00+24:00", "2024-05-06T09:00:00-25:59"] {
            let error = EventTime::parse(text).expect_err(text).to_string();
            assert!(error.contains(text) && error.contains("-23:59 to +23:59"), "{error}");
            let json = format!("\"{text}\"");
            let stored: EventTime = serde_json::from_str(&json).expect("a record");
            assert_eq!(serde_json::to_string(&stored).ok(), Some(json));
            assert!(stored.check_offset("since").is_err_and(|invalid| invalid.field == "since"));
        }
        assert!(EventTime::parse("2024-05-06T09:00:00-23:59").is_ok());
    }

    #[test]
    fn what_is_no_time_says_why() {
        for (text, word) in [
            ("2023-05-08T13:56:00", "zone"),
            ("2023-05-08", "time of day"),
            ("yesterday", "not a time"),
            ("1500-01-01T00:00:00Z", "1900 to 2199"),
            ("9999-12-31T23:59:59Z", "1900 to 2199"),
            ("2023-13-01T00:00:00Z", "not a time"),
        ] {
            let error = EventTime::parse(text).expect_err(text).to_string();
            assert!(error.starts_with("time: ") && error.contains(word), "{error}");
        }
        assert!(EventTime::new(0, 1).is_err(), "an offset of a second has no RFC 3339 form");
    }

    #[test]
    fn gaps_are_between_ends() {
        let of = |start_ms, end_ms| Interval { start_ms, end_ms, offset_seconds: 0 };
        for (a, b, gap) in [((0, 5), (5, 9), 0), ((0, 5), (7, 9), 2), ((7, 9), (0, 5), 2), ((0, 9), (3, 4), 0)] {
            assert_eq!(of(a.0, a.1).gap_ms(&of(b.0, b.1)), gap);
        }
    }
}
