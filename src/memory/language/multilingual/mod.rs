//! Which language a text is in, and its words.
//!
//! In: a text, and the language of what was said before it. Out: its language (`language_detection`), its words and
//! their stems (`stem_analyzer`), the marks of its script (`sentence_marks`), and how it asks (`question_intent`).
//! `language_table` has what is known about each language; `writing_script` finds the script of a letter. Pure: no
//! clock, no file; the language of a text is the same on every machine.

mod language_detection;
mod language_table;
mod question_intent;
mod sentence_marks;
mod stem_analyzer;
mod writing_script;

pub use language_detection::{LanguageDetection, language_of, languages_of, told};
pub use question_intent::{QuestionIntent, is_first_person, question_intent};
pub use sentence_marks::{ends_sentence, is_asking_mark};
pub use stem_analyzer::{StemAnalyzer, is_function_word_of, is_weak_word_of, name_forms, word_count, word_ranges};
pub use writing_script::is_unspaced;
