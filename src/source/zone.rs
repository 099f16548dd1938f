//! Times of formats that name no zone (decision 7).
//!
//! In: a civil time and the offset that the settings name. Out: a moment, and the notice that the
//! offset is assumed.

use std::path::Path;

use jiff::{civil::DateTime, tz::Offset};

use super::error::SourceError;
use crate::model::{EventTime, Invalid};

/// Offset in seconds of a setting such as `+02:00` or `Z`.
pub(super) fn zone_offset(zone: &str) -> Result<i32, SourceError> {
    let at: Result<EventTime, Invalid> = EventTime::parse(&format!("2000-01-01T00:00:00{zone}"));
    at.map(|t| t.offset_seconds).map_err(|_| SourceError::Settings {
        key: "zone",
        problem: format!("{zone:?} is not an offset; write one such as \"+02:00\" or \"Z\""),
    })
}

/// The moment of a civil time at an offset, when its year may be one.
pub(super) fn moment(local: DateTime, offset_seconds: i32) -> Option<EventTime> {
    let moment = Offset::from_seconds(offset_seconds).and_then(|o| o.to_timestamp(local)).ok()?;
    EventTime::new(moment.as_millisecond(), offset_seconds).ok()
}

/// What to say of a format whose times name no zone (decision 7).
pub(super) fn zone_notice(path: &Path, zone: &str) -> String {
    let path = path.display();
    format!("{path}: its times name no zone and are taken as {zone}; set source.zone if they were said elsewhere")
}
