//! Rules of English that every other room may ask: times, sentences, names.
//!
//! In: text, and what the caller already knows (the moment it was said, the people of the
//! dialogue). Out: ranges and values found in it. Pure: no clock, no file, no model of
//! language; what the text does not ground is left out, never guessed.

pub mod calendar;
pub mod grounds;
pub mod months;
pub mod names;
pub mod places;
pub mod sentences;
pub mod shared;
pub mod synonyms;
pub mod tense;
pub mod time_words;
pub mod times;
pub mod vague;
