//! A unit on its way into the evidence.
//!
//! In: a unit that a probe returned. Out: the unit with every way in which it was reached, and
//! the parts of it that are quoted. Never changes the unit.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    memory::UnitBody,
    model::{Provenance, Score},
};

/// A unit on its way into the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The unit.
    pub unit: Arc<UnitBody>,
    /// Cosine with the question: the best of the unit's parts.
    pub alignment: Score,
    /// Every way in which it was reached.
    pub provenance: Vec<Provenance>,
    /// Whether an expansion started from it.
    pub anchor: bool,
    /// How far its best part lies on the way from the zero of the scale (0) to the bank's best
    /// (1); below 0 for what is background.
    pub familiarity: f64,
    /// The parts that are quoted, by their place; absent when the whole unit is, in the
    /// words of its restatement.
    pub excerpt: Option<BTreeSet<usize>>,
}
