//! Windows to drafts of memory units.
//!
//! In: a window's turns. Out: [`DraftUnit`]s, without vectors or ids. Never guesses: a cue that
//! the dialogue does not ground stays empty.
//!
//! The files:
//! - `extractor`, `draft`, `error`: the trait, its result, its failure.
//! - `rules`: the extractor that needs no model (`models` has the one that asks a language model);
//!   `plain`: the unit of a single turn, while its window is open.
//! - `compose`: chosen turns to one unit, for `rules` and `plain`; `passages`: a long turn to what is quoted of it;
//!   `turn_languages`: the language of each turn.

mod compose;
mod draft;
mod error;
mod extractor;
pub mod passages;
pub mod plain;
pub mod rules;
mod turn_languages;

pub use compose::caption;
pub use draft::{DraftPart, DraftUnit};
pub use error::OutOfOrder;
pub use extractor::Extractor;
pub use turn_languages::TurnLanguages;
