//! Words of units.
//!
//! In: texts. Out: words, their weights, and the units that a question's words find. `term_analyzer` splits a text;
//! `bm25` computes weights; `tantivy_postings` and `lexical_index` are the paper's lexical channel; `word_window` finds
//! which parts count together for their words; `greeting_index` finds who was greeted.

pub(super) mod bm25;
pub(super) mod greeting_index;
pub(super) mod lexical_index;
pub(super) mod tantivy_postings;
pub(super) mod term_analyzer;
pub(super) mod word_window;
