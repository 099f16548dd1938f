//! Words of units.
//!
//! In: texts. Out: words, their weights, and the units that a question's words find. `words` splits a text; `bm25`
//! computes weights; `postings` and `hits` are the paper's lexical channel; `word_window` finds which parts count
//! together for their words; `greetings` finds who was greeted.

pub(super) mod bm25;
pub(super) mod greetings;
pub(super) mod hits;
pub(super) mod postings;
pub(super) mod word_window;
pub(super) mod words;
