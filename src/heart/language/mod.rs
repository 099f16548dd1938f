//! Rules of language that other modules use: times, names, places, sentences, questions.
//!
//! In: text, and what the caller already knows (the moment it was said, the people of the
//! dialogue). Out: ranges and values found in it. Pure: no clock, no file, no language model.
//! What the text does not state is left out, never guessed.

pub mod calendar;
pub mod greetings;
pub mod grounding;
pub mod languages;
pub mod months;
mod name_runs;
mod name_text;
pub mod names;
mod place_rules;
pub mod places;
pub mod question;
pub mod sentences;
pub mod shared;
pub mod tense;
pub mod time_words;
pub mod times;
pub mod tokens;
pub mod vague;
