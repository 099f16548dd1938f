//! Times of formats without zones (decision 7).
//!
//! In: a civil time, and the offset in the settings. Out: a moment, and the notice that the offset is
//! assumed.

use std::path::Path;

use jiff::{civil::DateTime, tz::Offset};

use super::error::SourceError;
use crate::model::{EventTime, Invalid};

/// The offset in seconds of a setting such as `+02:00` or `Z`.
pub(super) fn zone_offset(zone: &str) -> Result<i32, SourceError> {
    let at: Result<EventTime, Invalid> = EventTime::parse(&format!("2000-01-01T00:00:00{zone}"));
    at.map(|t| t.offset_seconds).map_err(|_| SourceError::Settings {
        key: "zone",
        problem: format!("{zone:?} is not an offset; write one such as \"+02:00\" or \"Z\""),
    })
}

/// The moment of a civil time at an offset; `None` if it is out of range.
pub(super) fn moment(local: DateTime, offset_seconds: i32) -> Option<EventTime> {
    let moment = Offset::from_seconds(offset_seconds).and_then(|o| o.to_timestamp(local)).ok()?;
    EventTime::new(moment.as_millisecond(), offset_seconds).ok()
}

/// The notice of a format without zones (decision 7).
pub(super) fn zone_notice(path: &Path, zone: &str) -> String {
    let path = path.display();
    format!("{path}: its times have no zone and are read as {zone}; set source.zone if that is wrong")
}
