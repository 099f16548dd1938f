//! The step of the walks: from anchors along edges to the unit.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{first_hop_steps::share_text, part_explainer::PartExplainer};
use crate::recall::{expand, expand::ExpansionHit, recollection::PlannedRound};
use types::{
    config::{FirstHopMethod, RecallSettings},
    model::{Channel, ExplanationStep, ExplanationStepName, ExplanationStepState, Provenance},
};

impl PartExplainer<'_> {
    /// Whether a walk adds the part.
    pub(super) fn walk(&self) -> ExplanationStep {
        let step = |state, sentence: String| ExplanationStep::new(ExplanationStepName::Walk, state, sentence);
        if self.is_quoted_or_taken() {
            return step(ExplanationStepState::NotReached, "The first hop took it, so no walk had to.".to_owned());
        }
        let walked: Vec<&PlannedRound> = self.found.rounds.iter().filter(|round| round.plan.proceed).collect();
        let Some(last) = walked.last() else {
            let reason = &self.found.evidence.stop_reason;
            return step(ExplanationStepState::NotReached, format!("There was no walk: {reason}."));
        };
        if !self.found.first.floor.is_finite() {
            let sentence = "Persons and assistants share the tokens, so that no walk adds a unit.";
            return step(ExplanationStepState::NotReached, sentence.to_owned());
        }
        let unit = self.part.unit.id;
        let rounds: Vec<Value> = walked.iter().map(|round| self.round(round)).collect();
        let step = |state, sentence: String| {
            step(state, sentence).with("floor", self.found.first.floor).with("rounds", rounds.clone())
        };
        let enters = |round: &&&PlannedRound| round.support.candidates.iter().any(|found| found.unit.id == unit);
        if walked.iter().find(enters).is_some() {
            let state = if self.is_in_evidence() { ExplanationStepState::Passed } else { ExplanationStepState::Failed };
            let sentence = match state {
                ExplanationStepState::Passed => format!("A walk added its unit: {}.", self.way_text(&walked)),
                _ => "A walk added its unit, but the part itself lies below the floor.".to_owned(),
            };
            return step(state, sentence);
        }
        if walked.iter().any(|round| round.known.contains(&unit)) {
            let sentence = "Its unit was in the evidence by another part, and a walk adds no part to it.";
            return step(ExplanationStepState::NotReached, sentence.to_owned());
        }
        let anchors = last.plan.anchors.len();
        let best = walked.iter().flat_map(|round| self.ranked(round)).min_by_key(|hit| (hit.is_below, hit.rank));
        let Some(best) = best else {
            let hops = self.found.settings.hops;
            let sentence = format!(
                "No walk of {hops} edges at most from {anchors} anchor{} leads to its unit.",
                if anchors == 1 { "" } else { "s" }
            );
            return step(ExplanationStepState::Failed, sentence)
                .change("An edge from an anchor, or an anchor nearer to it.");
        };
        let channel = best.channel.name();
        if best.is_below {
            let floor = self.found.first.floor;
            let sentence = format!(
                "A walk over {channel} edges reached its unit, whose familiarity of {} lies below the floor of {}.",
                share_text(best.familiarity, floor),
                share_text(floor, best.familiarity)
            );
            let change = match self.found.settings.first_hop {
                FirstHopMethod::Familiarity => format!(
                    "A walk would add it with recall.link_worth of {:.4} or more.",
                    self.found.settings.link_worth + (floor - best.familiarity)
                ),
                FirstHopMethod::Channels => {
                    format!("A walk would add it with recall.support_floor of {:.4} or less.", best.familiarity)
                }
            };
            return step(ExplanationStepState::Failed, sentence).change(change);
        }
        let (most, setting) = match best.channel {
            Channel::Semantic => (self.found.settings.semantic_support, "recall.semantic_support"),
            _ => (self.found.settings.structural_support, "recall.structural_support"),
        };
        let sentence = format!(
            "A walk over {channel} edges reached its unit, as number {} of those above the floor; a round adds {most}.",
            best.rank
        );
        step(ExplanationStepState::Failed, sentence)
            .change(format!("A walk would add it with {setting} of {}.", best.rank))
    }

    /// How each channel of a round ranks the unit if the number of units that a round adds is not limited.
    fn ranked(&self, round: &PlannedRound) -> Vec<RankedHit> {
        let every = RecallSettings {
            semantic_support: usize::MAX,
            structural_support: usize::MAX,
            ..self.found.settings.clone()
        };
        let first = &self.found.first;
        let support = expand::expand(&round.neighbours, &round.known, &first.impressions, first.floor, &every);
        support.considered.iter().filter(|hit| hit.candidate.unit.id == self.part.unit.id).filter_map(ranked).collect()
    }

    /// A round as JSON, with its paths to the unit.
    fn round(&self, round: &PlannedRound) -> Value {
        let reached = round.neighbours.iter().map(|near| near.unit.id).collect::<BTreeSet<_>>().len();
        let ways: Vec<Value> = round
            .neighbours
            .iter()
            .filter(|near| near.unit.id == self.part.unit.id)
            .map(|near| {
                let ranked = self.ranked(round).into_iter().find(|hit| hit.channel == near.channel);
                let steps: Vec<Value> = near
                    .path
                    .iter()
                    .map(|step| json!({ "from": step.from, "to": step.to, "weight": step.weight.as_f64() }))
                    .collect();
                json!({
                    "channel": near.channel,
                    "path": steps,
                    "path_weight": near.path_weight.as_f64(),
                    "familiarity": ranked.as_ref().map(|hit| hit.familiarity),
                    "rank": ranked.as_ref().map(|hit| hit.rank),
                })
            })
            .collect();
        json!({ "anchors": round.plan.anchors, "reached": reached, "ways": ways })
    }

    /// The path by which a walk added the unit, in words.
    fn way_text(&self, walked: &[&PlannedRound]) -> String {
        let hits = walked.iter().flat_map(|round| &round.support.considered);
        let way = hits.filter(|hit| hit.enters && hit.candidate.unit.id == self.part.unit.id).find_map(|hit| {
            let Provenance::Expansion { channel, rank, hops, path, .. } = hit.candidate.provenance.first()? else {
                return None;
            };
            let from = path.first().map(|step| format!(" from anchor {}", step.from)).unwrap_or_default();
            let edges = if *hops == 1 { "edge" } else { "edges" };
            Some(format!("{hops} {channel} {edges}{from}, as number {rank} of its channel"))
        });
        way.unwrap_or_else(|| "over edges".to_owned())
    }
}

/// A unit as one channel of a walk ranks it.
struct RankedHit {
    channel: Channel,
    rank: u32,
    familiarity: f64,
    is_below: bool,
}

fn ranked(hit: &ExpansionHit) -> Option<RankedHit> {
    let Provenance::Expansion { channel, rank, familiarity, .. } = hit.candidate.provenance.first()? else {
        return None;
    };
    Some(RankedHit { channel: *channel, rank: *rank, familiarity: *familiarity, is_below: !hit.enters })
}
