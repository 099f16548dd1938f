//! Time expressions of a text, resolved to intervals.
//!
//! In: a text and, if known, the moment it was said. Out: the expressions that name one interval, in order, never
//! overlapping. An expression is resolved in the anchor's own offset (UTC without an anchor): a day is midnight to
//! midnight, a week Monday to Sunday, a weekend Saturday and Sunday. "Two weeks ago" is the calendar week, "three
//! months ago" the month, "a year ago" the year. Wording that names no single interval ("recently", "a few days ago",
//! "3/4", seasons, holidays) has no result. Languages other than English are read by phrases from Unicode's CLDR
//! (`other_languages`, `table`). It reads no clock and never panics.

mod absolute;
mod clock;
mod other_languages;
mod reader;
mod relative;
mod table;
mod tokens;

#[cfg(test)]
mod tests;

pub use super::calendar::{day_of, render_interval};
pub use other_languages::{count_times_in, find_times_in, months_in};
pub use reader::{TimeMention, find_times};
