//! Time expressions of English text, resolved to intervals.
//!
//! In: a text and, where known, the moment it was said. Out: the expressions that name one
//! interval, in order, never overlapping. An expression is resolved in the anchor's own
//! offset (UTC without an anchor): a day is midnight to midnight, a week Monday to Sunday,
//! a weekend Saturday and Sunday. "Two weeks ago" is the calendar week, "three months ago"
//! the month, "a year ago" the year. Wording that names no single interval ("recently", "a few
//! days ago", "3/4", seasons, holidays) gives nothing. Reads no clock; never panics.

mod absolute;
mod clock;
mod reader;
mod relative;
mod tokens;

#[cfg(test)]
mod tests;

pub use super::calendar::{day_of, render_interval};
pub use reader::{TimeMention, find_times};
