//! Expansion without planning, for comparison (paper, section 4.3: without planned recollection).
//!
//! In: the evidence so far. Out: a plan that starts at the best units and has the question itself as its target. It
//! continues as long as there is evidence, within the same limits of rounds and anchors.

use super::{
    EvidenceCandidate, assemble,
    planner::{NO_START, Planner, ROUNDS_SPENT},
    rules_planner::RulesPlanner,
};
use crate::{index::FamiliarityResult, language::question::ParsedQuestion};
use types::{
    config::RecallSettings,
    model::{Plan, QuestionCues, Target},
};

/// The planner that never asks whether the evidence is enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExhaustivePlanner(pub RulesPlanner);

impl Planner for ExhaustivePlanner {
    fn plan(
        &self,
        question: &ParsedQuestion<'_>,
        cues: &QuestionCues,
        evidence: &[EvidenceCandidate],
        round: u32,
        settings: &RecallSettings,
    ) -> Plan {
        let mut best: Vec<(f64, &EvidenceCandidate)> =
            assemble::rho(evidence, settings).into_iter().zip(evidence).collect();
        best.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.unit.id.cmp(&b.1.unit.id)));
        let proceed = !best.is_empty() && settings.anchors > 0 && round <= settings.rounds;
        let anchors = best.iter().take(settings.anchors).map(|(_, c)| c.unit.id);
        Plan {
            proceed,
            sufficiency: self.0.sufficiency(question, cues, evidence),
            reason: match (proceed, round > settings.rounds) {
                (true, _) => "no plan: the best units, and the question itself",
                (false, true) => ROUNDS_SPENT,
                (false, false) => NO_START,
            }
            .to_owned(),
            anchors: if proceed { anchors.collect() } else { Vec::new() },
            target: proceed.then(|| Target {
                goal: "the question".to_owned(),
                sentence: cues.semantic_query.clone(),
                cues: cues.cues.clone(),
            }),
            note: None,
        }
    }

    fn agreement(&self, question: &ParsedQuestion<'_>, cues: &QuestionCues, familiar: &FamiliarityResult) -> f64 {
        self.0.agreement(question, cues, familiar)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::{
        question_cues::{parse_question, question_cues},
        tests::{candidate, model, settings},
    };
    use types::model::{Bank, Channel, Provenance, Question, Score};

    #[test]
    fn it_starts_at_the_best_units_and_looks_for_the_question() {
        let question = Question::new(Bank::parse("b").unwrap(), "Where is the violin?");
        let question = parse_question(&question).unwrap();
        let cues = question_cues(&question);
        let evidence: Vec<EvidenceCandidate> = [(1, 0.2), (2, 0.9), (3, 0.5), (4, 0.8)]
            .map(|(id, alignment)| {
                let mut made = candidate(id, "the violin is in the shed", "2024-01-01T00:00:00Z");
                made.alignment = Score::from_f64(alignment);
                made.provenance = vec![Provenance::FirstHop { channel: Channel::Semantic, rank: 1, score: 0.5 }];
                made
            })
            .into();
        let planner = ExhaustivePlanner(RulesPlanner::new(&model()));
        let plan = planner.plan(&question, &cues, &evidence, 1, &settings());
        assert_eq!(plan.anchors.iter().map(|a| a.0).collect::<Vec<_>>(), [2, 4, 3]);
        assert_eq!(plan.target.unwrap().sentence, "Where is the violin?");
        assert!(!planner.plan(&question, &cues, &evidence, 2, &settings()).proceed, "the budget of rounds is kept");
        assert!(!planner.plan(&question, &cues, &[], 1, &settings()).proceed);
    }
}
