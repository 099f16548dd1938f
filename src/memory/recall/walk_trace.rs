//! The units that a round's walk met, for the trace.
//!
//! In: a round, the evidence, how familiar the bank's parts are. Out: the units with what became of each, and the edges
//! of the best paths to them; of a long walk only the first units and edges, and how many units were left out. No
//! answer changes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    EvidenceCandidate, PartShares,
    evidence_candidate::{shown_restatement, some_of},
    recollection::PlannedRound,
};
use crate::index::{MatchingParts, UnitBody};
use types::model::{EdgeStep, UnitId, WalkTrace, WalkUnit, WalkUnitState};

/// Most units of a trace.
const MAX_UNITS: usize = 500;
/// Most characters of the label of a unit of which only some parts are shown.
const LABEL: usize = 80;

/// What a round's walk met.
pub(super) fn walk_trace(
    round: &PlannedRound,
    evidence: &[EvidenceCandidate],
    impressions: &PartShares,
    matching: Option<&MatchingParts>,
) -> WalkTrace {
    let mut met: BTreeMap<UnitId, (WalkUnitState, &Arc<UnitBody>)> = BTreeMap::new();
    let anchors = evidence.iter().filter(|candidate| round.plan.anchors.contains(&candidate.unit.id));
    met.extend(anchors.map(|anchor| (anchor.unit.id, (WalkUnitState::Anchor, &anchor.unit))));
    for near in &round.neighbours {
        let state = if round.known.contains(&near.unit.id) { WalkUnitState::Known } else { WalkUnitState::Reached };
        met.entry(near.unit.id).or_insert((state, &near.unit));
    }
    for considered in &round.support.considered {
        let state = if considered.enters { WalkUnitState::Kept } else { WalkUnitState::Considered };
        if let Some((known, _)) = met.get_mut(&considered.candidate.unit.id) {
            // One channel may keep a unit that another one drops.
            *known = (*known).min(state);
        }
    }
    let share = |id: UnitId| Some(impressions.of_unit(id)).filter(|_| !impressions.parts(id).is_empty());
    let mut units: Vec<(WalkUnitState, Option<f64>, &Arc<UnitBody>)> =
        met.into_values().map(|(state, unit)| (state, share(unit.id), unit)).collect();
    units.sort_by(|(a, near, one), (b, far, other)| {
        let nearness = |share: &Option<f64>| share.unwrap_or(f64::MIN);
        a.cmp(b).then(nearness(far).total_cmp(&nearness(near))).then(one.id.cmp(&other.id))
    });
    let truncated = units.len().saturating_sub(MAX_UNITS) as u64;
    units.truncate(MAX_UNITS);
    let shown: BTreeSet<UnitId> = units.iter().map(|(.., unit)| unit.id).collect();
    let steps = round.neighbours.iter().flat_map(|near| &near.path);
    let edges: BTreeSet<_> = steps.filter(|step| shown.contains(&step.from) && shown.contains(&step.to)).collect();
    WalkTrace {
        units: units.into_iter().map(|(state, share, unit)| walk_unit(state, share, unit, matching)).collect(),
        edges: edges
            .into_iter()
            .map(|step| EdgeStep { from: step.from, to: step.to, channel: step.channel, weight: step.weight.as_f64() })
            .collect(),
        truncated,
    }
}

fn walk_unit(state: WalkUnitState, share: Option<f64>, unit: &UnitBody, matching: Option<&MatchingParts>) -> WalkUnit {
    let label = match some_of(unit, matching) {
        None => unit.label().to_owned(),
        Some(_) => shown_restatement(unit, matching).chars().take(LABEL).collect(),
    };
    WalkUnit { id: unit.id, label, said_at: unit.said_at, share, state }
}
