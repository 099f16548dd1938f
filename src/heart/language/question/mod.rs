//! A question, read once, in its own language.
//!
//! In: a question. Out: a [`ReadQuestion`], from which recall takes everything that the wording says: its type and
//! form, keywords, persons, places and time, who acts, and the statement whose gap it asks for. `first_person_wording`
//! puts a question into the first person. Pure; it never looks at the memory.
//!
//! `read` makes the value. `words`, `quotes`, `names`, `keywords`, `persons`, `question_type`,
//! `form`, `statement` and `inflection` each read one thing.

mod days;
mod form;
mod inflection;
mod keywords;
mod names;
mod persons;
mod question_type;
mod quotes;
mod read;
mod statement;
mod words;

#[cfg(test)]
mod tests;

pub use form::QuestionForm;
pub use persons::first_person_wording;
pub use question_type::QuestionType;
pub use read::ReadQuestion;
