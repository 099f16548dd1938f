//! A recollection as it stands when its evidence is chosen.
//!
//! In: nothing. Out: what the loop found and chose, for its answer, for a trace that shows more of it, and for an
//! explanation. Values without behaviour.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    EvidenceCandidate,
    expand::Support,
    first_hop::{FirstHopQuery, FirstHopResult},
};
use crate::{
    index::{FixedVector, MatchingParts, Neighbour},
    language::question::ParsedQuestion,
};
use types::{
    config::RecallSettings,
    model::{Evidence, LogPosition, Plan, UnitId},
};

/// A recollection: the evidence, and what it was chosen from.
pub(super) struct Recollection<'q> {
    /// The settings for the tokens that the question asks for.
    pub(super) settings: RecallSettings,
    /// The question as it was read.
    pub(super) read: ParsedQuestion<'q>,
    /// The question's vector, by which the memory is probed.
    pub(super) vector: FixedVector,
    /// The parts that its selector takes; `None` if it has none.
    pub(super) matching: Option<Arc<MatchingParts>>,
    /// The first hop.
    pub(super) first: FirstHopResult,
    /// The rounds, in order.
    pub(super) rounds: Vec<PlannedRound>,
    /// What the first hop and the rounds found, one candidate per unit.
    pub(super) found: Vec<EvidenceCandidate>,
    /// The quoted parts of each unit of the answer; `None` if it is quoted whole.
    pub(super) quoted: QuotedUnits,
    /// The evidence.
    pub(super) evidence: Evidence,
}

impl Recollection<'_> {
    /// The question as its first hop was asked.
    pub(super) fn first_hop_query(&self) -> FirstHopQuery<'_> {
        let (cues, matching) = (&self.evidence.trace.cues, self.matching.as_ref());
        FirstHopQuery { read: &self.read, cues, vector: &self.vector, matching }
    }
}

/// The quoted parts of the units of an answer; `None` for a unit that is quoted whole.
pub(super) type QuotedUnits = BTreeMap<UnitId, Option<BTreeSet<usize>>>;

/// A round with what its walk reached.
pub(super) struct PlannedRound {
    /// The plan.
    pub(super) plan: Plan,
    /// The units that were chosen from those that the walk reached.
    pub(super) support: Support,
    /// What the walk reached.
    pub(super) neighbours: Vec<Neighbour>,
    /// The units that were in the evidence before.
    pub(super) known: BTreeSet<UnitId>,
    /// The offsets that the walk reflects.
    pub(super) reflects: Vec<LogPosition>,
}
