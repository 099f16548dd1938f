//! Which parts of a large bank get the full score.
//!
//! In: the parts of a bank, and what is `asked`. Out: a bounded number of candidates. `indexed_part` is a part with its
//! key; `candidate_index` holds a bank's parts in `part_columns`, `gists`, `stem_postings` and `dense_ids`; a
//! `first_estimate` ranks them with `best_slots` and `session_best`. `choice` chooses the candidates from these and
//! finds their words with `found_words`; it uses `slot_set`s from `scratch`.

pub(super) mod asked;
pub(super) mod best_slots;
pub(super) mod candidate_index;
pub(super) mod choice;
pub(super) mod dense_ids;
pub(super) mod first_estimate;
pub(super) mod found_words;
pub(super) mod gists;
pub(super) mod indexed_part;
pub(super) mod part_columns;
pub(super) mod scratch;
pub(super) mod session_best;
pub(super) mod slot_set;
pub(super) mod stem_postings;
