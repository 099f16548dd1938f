//! A unit on its way into the evidence.
//!
//! In: a unit that a probe returned. Out: the unit with every way in which it was reached, and
//! which of its parts are quoted. Never changes the unit.

use std::{collections::BTreeSet, sync::Arc};

use crate::memory::UnitBody;
use nouns::model::{Provenance, Score};

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
    /// Familiarity of its best part, scaled so that 0 is the zero of the scale and 1 the bank's
    /// best part; below 0 for background.
    pub familiarity: f64,
    /// Indexes of the parts that are quoted; absent when the restatement is quoted instead.
    pub excerpt: Option<BTreeSet<usize>>,
}
