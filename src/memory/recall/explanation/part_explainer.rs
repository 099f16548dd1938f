//! The steps from a unit to its line in the context.

use serde_json::{Value, json};

use super::explained_part::ExplainedPart;
use crate::{
    index::{FirstHopHit, Neighbour},
    recall::{assemble, recollection::Recollection, turn_quotation::quotes},
};
use types::model::{Channel, ExplanationStep, ExplanationStepName, ExplanationStepState, ModelRef};

/// Edges of each kind that are shown.
const SHOWN_EDGES: usize = 3;

/// A part that is explained, with what the question's recollection found.
pub(super) struct PartExplainer<'e> {
    pub(super) found: &'e Recollection<'e>,
    pub(super) part: &'e ExplainedPart,
    /// The units that edges of its unit lead to.
    pub(super) linked: Vec<Neighbour>,
    pub(super) model: &'e ModelRef,
    /// If the first hop is by channels: its hits, and more than it takes.
    pub(super) hits: Vec<FirstHopHit>,
    /// The part's rank among all parts of the bank, and its share, if they were asked for.
    pub(super) rank_of_every_part: Option<(usize, f64)>,
}

impl PartExplainer<'_> {
    /// All of them, in order.
    pub(super) fn steps(&self) -> Vec<ExplanationStep> {
        vec![
            self.unit(),
            self.vectors(),
            self.edges(),
            self.candidate(),
            self.score(),
            self.cutoff(),
            self.walk(),
            self.assembly(),
            self.context(),
        ]
    }

    /// The unit that holds the part.
    fn unit(&self) -> ExplanationStep {
        let (unit, at) = (&self.part.unit, self.part.at);
        let count = unit.parts().len();
        let sentence = match count {
            1 if unit.is_restated() => format!("Unit {} restates it.", unit.id),
            1 => format!("Unit {} holds it.", unit.id),
            _ => format!("Unit {} holds it, as part {} of {count}.", unit.id, at + 1),
        };
        let cues = unit.cues();
        ExplanationStep::new(ExplanationStepName::Unit, ExplanationStepState::Passed, sentence)
            .with("unit", json!(unit.id))
            .with("part", at)
            .with("parts", count)
            .with("restatement", unit.restatement())
            .with("participants", cues.participants)
            .with("locations", cues.locations)
            .with("sources", unit.sources().collect::<Vec<_>>())
    }

    /// The vectors of question and part.
    fn vectors(&self) -> ExplanationStep {
        let model = &self.model.name;
        let cosine = self.part.score().map(|part| part.cosine.as_f64());
        let sentence = match cosine {
            Some(cosine) => format!(
                "Its vectors and that of the question are of {model}; the cosine of its best sentence is {cosine:.2}."
            ),
            None => format!("Its vectors and that of the question are of {model}."),
        };
        ExplanationStep::new(ExplanationStepName::Vectors, ExplanationStepState::Passed, sentence)
            .with("model", model.as_str())
            .with("cosine", cosine)
            .with("vector_hash", self.found.evidence.trace.vector_hash.as_str())
    }

    /// The edges of its unit. The first hop needs none, so a unit without edges does not fail this step.
    fn edges(&self) -> ExplanationStep {
        let of = |channel: Channel| {
            let mut edges: Vec<&Neighbour> = self.linked.iter().filter(|near| near.channel == channel).collect();
            edges.sort_by_key(|near| (std::cmp::Reverse(near.path_weight), near.unit.id));
            edges
        };
        let [semantic, structural] = [of(Channel::Semantic), of(Channel::Structural)];
        let (state, sentence) = match (semantic.len(), structural.len()) {
            (0, 0) => (ExplanationStepState::NotReached, "Its unit has no edge, so no walk can lead to it.".to_owned()),
            (semantic, structural) => (
                ExplanationStepState::Passed,
                format!(
                    "A walk can take {} and {} of its unit.",
                    edge_count_text(semantic, "semantic"),
                    edge_count_text(structural, "structural")
                ),
            ),
        };
        let strongest = |edges: &[&Neighbour]| -> Vec<Value> {
            let edge = |near: &&Neighbour| json!({ "unit": near.unit.id, "weight": near.path_weight.as_f64() });
            edges.iter().take(SHOWN_EDGES).map(edge).collect()
        };
        ExplanationStep::new(ExplanationStepName::Edges, state, sentence)
            .with("semantic", semantic.len())
            .with("structural", structural.len())
            .with("strongest_semantic", strongest(&semantic))
            .with("strongest_structural", strongest(&structural))
    }

    /// Whether the first hop and the walks found the part.
    pub(super) fn is_in_evidence(&self) -> bool {
        let of_unit = self.found.found.iter().find(|candidate| candidate.unit.id == self.part.unit.id);
        of_unit.is_some_and(|candidate| candidate.excerpt.as_ref().is_none_or(|parts| parts.contains(&self.part.at)))
    }

    /// Whether it is among the units of the answer, and within its tokens.
    fn assembly(&self) -> ExplanationStep {
        if !self.is_in_evidence() {
            return ExplanationStep::not_reached(ExplanationStepName::Assembly);
        }
        let (settings, unit) = (&self.found.settings, self.part.unit.id);
        let ranked = assemble::rank_candidates(self.found.found.clone(), settings);
        let place = ranked.iter().position(|one| one.candidate.unit.id == unit);
        let rho = place.and_then(|at| ranked.get(at)).map(|one| one.rho);
        let place = place.map_or(0, |at| at + 1);
        let (units, tokens) = (ranked.len(), self.found.evidence.tokens);
        let step = |state, sentence: String| {
            ExplanationStep::new(ExplanationStepName::Assembly, state, sentence)
                .with("rho", rho)
                .with("place", place)
                .with("units", units)
                .with("budget", settings.budget)
                .with("tokens", tokens.spent)
                .with("most_tokens", tokens.most)
        };
        if self.part.is_quoted {
            let within = units.min(settings.budget);
            return step(
                ExplanationStepState::Passed,
                format!("Its unit is number {place} of {within} in the evidence."),
            );
        }
        if place > settings.budget {
            let sentence =
                format!("Its unit is number {place} of {units}, and an answer has {} units.", settings.budget);
            return step(ExplanationStepState::Failed, sentence)
                .change(format!("It would be quoted with recall.budget of {place}."));
        }
        let sentence = format!(
            "Its unit is number {place} of {units} in the evidence, but the lines before it left no room for it within {} \
             tokens; the context has {}.",
            tokens.most, tokens.spent
        );
        step(ExplanationStepState::Failed, sentence).change("Ask with a larger most_tokens.")
    }

    /// Its line in the context.
    fn context(&self) -> ExplanationStep {
        if !self.part.is_quoted {
            return ExplanationStep::not_reached(ExplanationStepName::Context);
        }
        let evidence = &self.found.evidence;
        let turn = self.part.unit.part(self.part.at).map_or("", |body| body.turn);
        let mut lines = quotes(&evidence.context, !evidence.supported).zip(&evidence.context_turns);
        let line = lines.find(|(_, turns)| turns.iter().any(|of| of == turn)).map(|(line, _)| line.trim_end());
        let unsupported =
            if evidence.supported { "" } else { " The context says first that nothing supports the question." };
        ExplanationStep::new(
            ExplanationStepName::Context,
            ExplanationStepState::Passed,
            format!("The context quotes it.{unsupported}"),
        )
        .with("text", line)
        .with("context", evidence.context.as_str())
        .with("supported", evidence.supported)
    }
}

fn edge_count_text(edges: usize, kind: &str) -> String {
    format!("{edges} {kind} {}", if edges == 1 { "edge" } else { "edges" })
}
