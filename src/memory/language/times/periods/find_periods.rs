//! The times that a text of any language names.
//!
//! In: a text, its language and, if known, when it is asked. Out: the times that it names, in order.

use super::{english_periods::english_periods, foreign_periods::foreign_periods, named_period::NamedPeriod};
use types::model::{EventTime, Language};

/// The times that a text names, in order, never overlapping. Without `asked_at`, only those that do not need it.
#[must_use]
pub fn find_periods(text: &str, language: Language, asked_at: Option<EventTime>) -> Vec<NamedPeriod> {
    let now = asked_at.map(|asked| asked.local());
    if language.is_english() { english_periods(text, now) } else { foreign_periods(text, language, now) }
}
