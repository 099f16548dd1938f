//! A unit that may become evidence.
//!
//! In: a unit that a probe returned. Out: the unit, with every way in which it was reached and
//! the parts of it that are quoted. Never changes the unit.

use std::{collections::BTreeSet, sync::Arc};

use crate::index::UnitBody;
use types::model::{Provenance, Score};

/// A unit that may become evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct EvidenceCandidate {
    /// The unit.
    pub unit: Arc<UnitBody>,
    /// The best cosine of the unit's parts with the question.
    pub alignment: Score,
    /// Every way in which it was reached.
    pub provenance: Vec<Provenance>,
    /// Whether an expansion started from it.
    pub anchor: bool,
    /// The familiarity of its best part: 0 at the zero of the scale, 1 at the bank's best part, below 0 for background.
    pub familiarity: f64,
    /// Indexes of the parts that are quoted. `None` if the restatement is quoted instead.
    pub excerpt: Option<BTreeSet<usize>>,
}
