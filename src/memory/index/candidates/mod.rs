//! Which parts of a large bank get the full score.
//!
//! In: the parts of a bank, and the `query_terms` of a question. Out: a bounded number of candidates. `indexed_part` is
//! a part with its key; `candidate_index` holds a bank's parts in `part_columns`, `centroids`, `stem_postings` and
//! `dense_ids`; a `first_estimate` ranks them with `best_slots` and `session_best_slots`. `candidate_selection` chooses
//! the candidates from these and finds their words with `slot_words`; it uses `slot_set`s from `scratch_buffers`.
//! `time_match` is what the time of a question adds to a part.

pub(super) mod best_slots;
pub(super) mod candidate_index;
pub(super) mod candidate_selection;
pub(super) mod centroids;
pub(super) mod dense_ids;
pub(super) mod first_estimate;
pub(super) mod indexed_part;
pub(super) mod part_columns;
pub(super) mod query_terms;
pub(super) mod scratch_buffers;
pub(super) mod session_best_slots;
pub(super) mod slot_set;
pub(super) mod slot_words;
pub(super) mod stem_postings;
pub(super) mod time_match;
