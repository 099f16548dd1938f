//! The times that a question names, each as one stretch of local time.
//!
//! In: a question's text, its language and, if known, the local time at which it is asked. Out: where each time stands
//! and what it means, however it is worded: days, weeks, quarters, seasons, holidays, parts of a day, periods that are
//! counted back from now, and those that begin or end with another time ("since Monday", "before May"). What is said of
//! a turn's own words is read more strictly (`time_reader`), because a turn is not about a time as a question is.
//!
//! A missing year is inferred from the tense, and such a reading is not certain; nor is one that depends on the
//! hemisphere, or on how many "a few" are. `period_span` computes; `english_periods` finds and joins, with the rules of
//! `english_units`, `english_months` and `english_days` for the words of `english_reader`; `foreign_periods` reads
//! other languages with the phrases of `period_phrases` and of CLDR; `yearly` is what recurs each year; `find_periods`
//! chooses among the languages.

mod english_days;
mod english_months;
mod english_periods;
mod english_reader;
mod english_units;
mod find_periods;
mod foreign_periods;
mod named_period;
mod period_phrases;
mod period_span;
mod yearly;

#[cfg(test)]
mod tests;

pub use find_periods::find_periods;
pub use named_period::NamedPeriod;
