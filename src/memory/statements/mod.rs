//! Finds the sentences of persons that state something that lasts: instructions, preferences, facts, plans.
//!
//! In: a turn and its language. Out: [`Statement`](types::model::Statement)s, each with the words that say it. By rules,
//! from tables of phrases: English, German, French, Spanish and Chinese; a turn in another language makes none.
//! Precision comes before recall: a question, a quotation, irony, a hypothesis, pasted or forwarded text, and the words
//! of an assistant, a tool or a bot make none. The same turn always makes the same statements.
//!
//! The files, from the bottom up: `text_tokens` cuts text into words; `own_words` leaves out what others said;
//! `phrase_table` reads the tables `phrases/*.tsv`; `phrase_pattern` matches one of their patterns; `clauses` says where
//! a statement may begin and where it ends; `find_statements` joins them; `explain_statements` says
//! what each sentence of a turn states; `topic_stems` is what statements are compared
//! by.

mod clauses;
mod explain_statements;
mod find_statements;
mod own_words;
mod phrase_pattern;
mod phrase_table;
mod text_tokens;
mod topic_stems;

#[cfg(test)]
mod tests;

pub use explain_statements::{StatedSentence, explain_statements};
pub use find_statements::{find_statements, is_called_user, is_outdated, record_statements};
pub use topic_stems::topic_stems;
