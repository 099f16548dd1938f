//! A unit that may become evidence.
//!
//! In: a unit that a probe returned. Out: the unit, with every way in which it was reached and
//! the parts of it that are quoted. Never changes the unit.

use std::{collections::BTreeSet, sync::Arc};

use crate::index::{MatchingParts, UnitBody};
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

impl EvidenceCandidate {
    /// Quotes only the parts that a selector takes, if there is one.
    pub(super) fn narrow(&mut self, matching: Option<&MatchingParts>) {
        let Some(taken) = some_of(&self.unit, matching) else { return };
        let taken: BTreeSet<usize> = taken.into_iter().map(|part| part as usize).collect();
        self.excerpt = Some(match &self.excerpt {
            Some(parts) => parts & &taken,
            None => taken,
        });
    }
}

/// The parts of a unit that a selector takes; `None` if it takes all of them, or there is none.
pub(super) fn some_of(unit: &UnitBody, matching: Option<&MatchingParts>) -> Option<Vec<u32>> {
    matching?.some_of(unit.id, unit.parts().len())
}

/// What an answer shows of a unit's restatement: without the parts that a selector does not take.
pub(super) fn shown_restatement(unit: &UnitBody, matching: Option<&MatchingParts>) -> String {
    match some_of(unit, matching) {
        None => unit.restatement().to_owned(),
        Some(taken) => {
            let parts = taken.iter().filter_map(|part| unit.part(*part as usize));
            parts.map(|part| format!("{}: {}", part.speaker, part.text)).collect::<Vec<_>>().join("\n")
        }
    }
}

/// What an answer shows of a unit's sources: without the turns that a selector does not take.
pub(super) fn shown_sources(unit: &UnitBody, matching: Option<&MatchingParts>) -> Vec<String> {
    let taken = some_of(unit, matching);
    let is_shown = |source: &&str| {
        taken.as_ref().is_none_or(|taken| {
            taken.iter().any(|part| unit.part(*part as usize).is_some_and(|part| part.turn == *source))
        })
    };
    unit.sources().filter(is_shown).map(str::to_owned).collect()
}
