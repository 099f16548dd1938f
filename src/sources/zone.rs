//! Reads times of formats without time zones (decision 7).
//!
//! In: a local time, and the zone in the settings, which is an offset or a name such as `Europe/Berlin`. Out: a moment,
//! and the notice that the zone is assumed.

use std::path::Path;

use jiff::{
    Timestamp,
    civil::DateTime,
    tz::{Offset, TimeZone},
};

use super::error::SourceError;
use types::model::EventTime;

/// The zone if none is set.
const UTC: &str = "+00:00";

/// The zone for times that state none.
#[derive(Debug, Clone, PartialEq)]
pub struct Zone(TimeZone);

impl Zone {
    /// Reads a setting such as `+02:00`, `Z` or `Europe/Berlin`.
    ///
    /// # Errors
    /// [`SourceError::Settings`] when it is neither an offset nor a known zone.
    pub fn parse(zone: &str) -> Result<Self, SourceError> {
        if let Ok(at) = EventTime::read(&format!("2000-01-01T00:00:00{zone}"))
            && at.check_offset("zone").is_ok()
        {
            let offset = Offset::from_seconds(at.offset_seconds).unwrap_or(Offset::UTC);
            return Ok(Self(TimeZone::fixed(offset)));
        }
        // Only names with a slash and `UTC` are accepted, because abbreviations such as `EST` are misleading.
        let named = (zone.contains('/') || zone == "UTC").then(|| TimeZone::get(zone).ok()).flatten();
        named.map(Self).ok_or_else(|| SourceError::Settings {
            key: "zone",
            problem: format!(
                "{zone:?} is not an offset or a zone; write one such as \"+02:00\", \"Z\" or \"Europe/Berlin\""
            ),
        })
    }

    /// A zone by its name, such as `Europe/Berlin` or `EST5EDT`; `None` if it is not known.
    pub(crate) fn named(name: &str) -> Option<Self> {
        TimeZone::get(name).ok().map(Self)
    }

    /// The moment of a local time; `None` if it is out of range. If a clock change repeats an hour, the first one is
    /// taken; a time in a skipped hour is shifted forward.
    pub fn moment(&self, local: DateTime) -> Option<EventTime> {
        let zoned = self.0.to_ambiguous_zoned(local).compatible().ok()?;
        event_time(zoned.timestamp(), zoned.offset())
    }

    /// A moment given in milliseconds since 1970, with this zone's offset at that moment; `None` if
    /// it is out of range.
    pub fn at_unix_ms(&self, unix_ms: i64) -> Option<EventTime> {
        let moment = Timestamp::from_millisecond(unix_ms).ok()?;
        event_time(moment, self.0.to_offset(moment))
    }
}

/// Offsets with seconds, which zones had before about 1900, are truncated to minutes.
fn event_time(moment: Timestamp, offset: Offset) -> Option<EventTime> {
    EventTime::new(moment.as_millisecond(), offset.seconds() / 60 * 60).ok()
}

/// The notice for a format without zones (decision 7).
pub fn zone_notice(path: &Path, zone: &str) -> String {
    format!("{}: its {}", path.display(), zone_assumed(zone))
}

/// The same notice without the file.
pub(crate) fn zone_assumed(zone: &str) -> String {
    // A user who has set the zone does not need to be told where to set it.
    let advice = if zone == UTC { "; set source.zone (--zone) if that is wrong" } else { ", as source.zone says" };
    format!("times have no zone and are read as {zone}{advice}")
}

#[cfg(test)]
mod tests {
    use types::config::SourceSettings;

    use super::*;

    #[test]
    fn the_notice_advises_only_where_nothing_was_set() {
        let path = Path::new("a.log");
        let assumed = zone_notice(path, &SourceSettings::new("irc", path).zone);
        assert_eq!(
            assumed,
            "a.log: its times have no zone and are read as +00:00; set source.zone (--zone) if that is wrong"
        );
        assert_eq!(
            zone_notice(path, "Europe/Berlin"),
            "a.log: its times have no zone and are read as Europe/Berlin, as source.zone says"
        );
    }
}
