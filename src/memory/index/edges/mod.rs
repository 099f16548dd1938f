//! Which edges a unit has.
//!
//! In: the units of a bank, as they are added and removed. Out: each unit's choices. `semantic_index` chooses by
//! vectors, `cue_index` by persons, places and times; `choice_changes` says what changed of their choices.

pub(super) mod choice_changes;
pub(super) mod cue_index;
pub(super) mod semantic_index;
