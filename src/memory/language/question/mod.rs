//! A question, read once, in its own language.
//!
//! In: a question. Out: a [`ParsedQuestion`], from which recall takes everything that the wording says: its type and
//! form, keywords, persons, places and time, who acts, and the question as a statement. `first_person_wording` puts a
//! question into the first person. Pure; it never reads the memory.
//!
//! `parsed_question` makes the value. `asked_time` and `day_ranges` read its time. `question_words`, `quoted_ranges`,
//! `question_names`, `keywords`, `first_person`, `question_type`, `question_form` and `statement` each read one thing.

mod asked_time;
mod day_ranges;
mod first_person;
mod keywords;
mod parsed_question;
mod question_form;
mod question_names;
mod question_type;
mod question_words;
mod quoted_ranges;
mod statement;

#[cfg(test)]
mod tests;

pub use asked_time::{AskedTime, LocalStretch};
pub use first_person::first_person_wording;
pub use parsed_question::ParsedQuestion;
pub use question_form::QuestionForm;
pub use question_type::QuestionType;
