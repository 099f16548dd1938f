//! Rules of language that other modules use: times, names, places, sentences, questions.
//!
//! In: text, and what the caller already knows (the moment it was said, the people of the
//! dialogue). Out: ranges and values found in it. Pure: no clock, no file, no language model.
//! What the text does not state is left out, never guessed.

pub mod arrangements;
pub mod attachment_text;
pub mod calendar;
pub mod greeted_name;
pub mod grounding;
pub mod inflection;
pub mod month_mentions;
pub mod multilingual;
mod name_runs;
mod name_text;
pub mod named_in_talk;
pub mod person_names;
pub mod place_names;
mod place_rules;
pub mod question;
pub mod replies;
pub mod sentences;
pub mod tense;
pub mod time_count;
pub mod times;
pub mod token_count;
pub mod vague_times;
