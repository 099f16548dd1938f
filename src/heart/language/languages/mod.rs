//! Which language a text is in, and its words.
//!
//! In: a text, and the language of what was said before it. Out: its language (`detect`), its words and their stems
//! (`words`), the marks of its script (`marks`), and how it asks (`asking`). `table` has what is known about each
//! language; `letters` finds the script of a letter. Pure: no clock, no file; the language of a text is the same on
//! every machine.

mod asking;
mod detect;
mod letters;
mod marks;
mod table;
mod words;

pub use asking::{Asked, asked, is_first_person};
pub use detect::{Told, language_of, languages, told};
pub use letters::is_unspaced;
pub use marks::{ends_sentence, is_asking_mark};
pub use words::{Splitter, is_function_word_of, is_weak_word_of, name_forms, word_count, word_ranges};
