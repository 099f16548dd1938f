//! What a bank holds at one moment, and what changed since an earlier one.
//!
//! In: a memory, a bank, what it held before. Out: counts, the units that were added and removed, and how many edges
//! were. Of what is held, the ids of units and a hash of each edge are kept, 8 bytes each: no texts and no vectors.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use super::{
    bank_event_forms::{AddedUnit, BankEvent, BankProgress, EdgeChangeCounts, RemovedUnit, SkippedEvents},
    evidence_version::memory_offset,
};
use memory::index::{DataflowAnswer, GraphCensus, GraphEdge, UnitBody};
use pipeline::PipelineError;
use replica::Replica;
use types::model::{Bank, UnitId};

/// Most units of each kind of change that are named at once.
const MAX_NAMED: usize = 200;

/// What a bank holds, by which a change is reported.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GraphFingerprint {
    /// In order.
    units: Vec<UnitId>,
    /// A hash of each edge, in order.
    edges: Vec<u64>,
}

/// A scan of a bank.
#[derive(Debug)]
pub(super) struct BankScan {
    pub(super) held: GraphFingerprint,
    /// What changed in the graph, and how many changes are not named.
    pub(super) events: Vec<BankEvent>,
    pub(super) skipped: u64,
    pub(super) progress: BankProgress,
}

impl BankScan {
    /// What the bank holds now, and how it differs from what it held `before`; without that, nothing counts as changed.
    /// Walks all of its units and edges.
    ///
    /// # Errors
    /// As [`Replica::listing`].
    pub(super) fn of(replica: &Replica, bank: Bank, before: Option<&GraphFingerprint>) -> Result<Self, PipelineError> {
        let DataflowAnswer { value: census, reflects, .. } = replica.listing(&bank)?;
        let GraphCensus { units, semantic_edges, structural_edges, unit_list, edge_list, .. } = census;
        let mut held = GraphFingerprint {
            units: unit_list.into_iter().map(|(unit, _)| unit.id).collect(),
            edges: edge_list.iter().map(edge_hash).collect(),
        };
        held.edges.sort_unstable();
        let progress = BankProgress { bank, units, semantic_edges, structural_edges, reflects };
        let Some(before) = before else {
            return Ok(Self { held, events: Vec::new(), skipped: 0, progress });
        };
        let (came, _) = difference(&before.units, &held.units);
        let named: Vec<UnitId> = came.iter().copied().take(MAX_NAMED).collect();
        let found = if named.is_empty() { Vec::new() } else { replica.units(&progress.bank, named.clone())?.value };
        // A unit that was replaced since the walk is not reported.
        let gone: Vec<&UnitId> = named.iter().filter(|id| !found.iter().any(|unit| unit.id == **id)).collect();
        held.units.retain(|id| !gone.contains(&id));
        let more = (came.len() - named.len()) as u64;
        let (events, skipped) = changes(before, &held, &found);
        Ok(Self { held, events, skipped: skipped + more, progress })
    }

    /// The scan of an empty bank, compared with what it held `before`.
    pub(super) fn of_empty_bank(progress: BankProgress, before: Option<&GraphFingerprint>) -> Self {
        let held = GraphFingerprint::default();
        let (events, skipped) = before.map(|before| changes(before, &held, &[])).unwrap_or_default();
        Self { held, events, skipped, progress }
    }

    /// The offset of the memory partition before which everything is reflected.
    pub(super) fn offset(&self) -> u64 {
        memory_offset(&self.progress.reflects)
    }
}

/// The events between two states, and how many removals are not named. `added` are the new units that are named.
fn changes(before: &GraphFingerprint, held: &GraphFingerprint, added: &[Arc<UnitBody>]) -> (Vec<BankEvent>, u64) {
    let (_, went) = difference(&before.units, &held.units);
    let (new, old) = difference(&before.edges, &held.edges);
    let mut events: Vec<BankEvent> =
        went.iter().take(MAX_NAMED).map(|id| BankEvent::UnitRemoved(RemovedUnit { id: *id, label: None })).collect();
    events.extend(added.iter().map(|unit| BankEvent::UnitAdded(added_unit(unit))));
    if !(new.is_empty() && old.is_empty()) {
        let edges = EdgeChangeCounts { added: new.len() as u64, removed: old.len() as u64 };
        events.push(BankEvent::Edges(edges));
    }
    (events, went.len().saturating_sub(MAX_NAMED) as u64)
}

/// The event that says how much is left out, if anything is.
pub(super) fn skipped(events: u64) -> Option<BankEvent> {
    (events > 0).then_some(BankEvent::Skipped(SkippedEvents { events }))
}

fn added_unit(unit: &UnitBody) -> AddedUnit {
    AddedUnit {
        id: unit.id,
        label: unit.label().to_owned(),
        said_at: unit.said_at,
        session: unit.session().to_owned(),
        turns: unit.sources().map(str::to_owned).collect(),
    }
}

/// A hash of an edge without its weight, the same within this process.
fn edge_hash(edge: &GraphEdge) -> u64 {
    let mut hasher = DefaultHasher::new();
    (edge.channel, edge.a, edge.b).hash(&mut hasher);
    hasher.finish()
}

/// What is in the later list alone, and what is in the earlier one alone. Both are in order.
fn difference<T: Ord + Copy>(before: &[T], later: &[T]) -> (Vec<T>, Vec<T>) {
    let only = |of: &[T], other: &[T]| -> Vec<T> {
        let mut others = other.iter().peekable();
        let is_only = |one: &&T| {
            while others.next_if(|other| other < one).is_some() {}
            others.peek() != Some(one)
        };
        of.iter().filter(is_only).copied().collect()
    };
    (only(later, before), only(before, later))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_and_went_is_what_stands_in_one_list_alone() {
        assert_eq!(difference(&[1, 3, 5], &[2, 3, 5, 7]), (vec![2, 7], vec![1]));
        assert_eq!(difference(&[], &[1]), (vec![1], Vec::new()));
        assert_eq!(difference(&[1, 2], &[1, 2]), (Vec::new(), Vec::new()));
    }

    #[test]
    fn only_so_many_removals_are_named() {
        let before = GraphFingerprint { units: (0..250).map(UnitId).collect(), edges: vec![1, 2] };
        let held = GraphFingerprint { units: Vec::new(), edges: vec![2, 3, 4] };
        let (events, skipped) = changes(&before, &held, &[]);
        assert_eq!((events.len(), skipped), (MAX_NAMED + 1, 50));
        assert_eq!(events.last(), Some(&BankEvent::Edges(EdgeChangeCounts { added: 2, removed: 1 })));
        let first = BankEvent::UnitRemoved(RemovedUnit { id: UnitId(0), label: None });
        assert_eq!(events.first(), Some(&first));
    }
}
