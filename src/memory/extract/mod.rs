//! Turns windows into drafts of memory units.
//!
//! In: a window's turns. Out: [`DraftUnit`]s, without vectors or ids. Nothing is guessed: a cue for which the dialogue
//! gives no evidence stays empty.
//!
//! The files:
//! - `extractor`, `draft`, `error`: the trait, its result, its failure.
//! - `rules_extractor`: the extractor that needs no model (`models` has the one that asks a language model);
//!   `open_turn`: the unit of a single turn, while its window is open.
//! - `compose`: composes one unit from chosen turns, for `rules_extractor` and `open_turn`; `passages`: cuts a long
//!   turn into the passages that are quoted; `turn_languages`: the language of each turn.

mod compose;
mod draft;
mod error;
mod extractor;
pub mod open_turn;
pub mod passages;
pub mod rules_extractor;
mod turn_languages;

pub use compose::caption;
pub use draft::{DraftPart, DraftUnit};
pub use error::TurnOrderError;
pub use extractor::Extractor;
pub use turn_languages::TurnLanguages;
