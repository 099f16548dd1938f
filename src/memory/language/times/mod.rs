//! Time expressions of a text, resolved to intervals.
//!
//! In: a text and, if known, the moment it was said. Out: the expressions that name one interval, in order, never
//! overlapping. An expression is resolved in the anchor's own offset (UTC without an anchor): a day is midnight to
//! midnight, a week Monday to Sunday, a weekend Saturday and Sunday. "Two weeks ago" is the calendar week, "three
//! months ago" the month, "a year ago" the year. Wording that names no single interval ("recently", "a few days ago",
//! "3/4", seasons, holidays) has no result. Languages other than English are read by phrases from Unicode's CLDR
//! (`foreign_times`, `time_phrases`). It reads no clock and never panics.

mod absolute_dates;
mod clock_times;
mod foreign_times;
mod periods;
mod relative_times;
mod time_phrases;
mod time_reader;
mod time_tokens;

#[cfg(test)]
mod tests;

pub use super::calendar::{day_of, render_interval};
pub use foreign_times::{count_times_in, find_times_in, months_in};
pub use periods::{NamedPeriod, find_periods};
pub use time_reader::{TimeMention, find_times};
