//! Which edges a unit has.
//!
//! In: the units of a bank, as they are added and removed. Out: each unit's choices. `semantic` chooses by vectors,
//! `cue` by persons, places and times.

pub(super) mod cue;
pub(super) mod semantic;
