//! The planner by rules. It decides whether the evidence is enough, and if not, what to look for and from which
//! units (section 3.4).
//!
//! In: the question, its cues, the evidence so far, the round. Out: a plan whose anchors are units of the evidence,
//! and the probability that the memory supports an answer (`agreement.rs`). It reads no clock and calls no model. More
//! or better evidence never lowers the sufficiency.

use std::collections::BTreeSet;

use super::{
    EvidenceCandidate,
    agreement::agreement,
    planner::{COVERED, NO_START, Planner, ROUNDS_SPENT},
    stem_sets::StemSetAnalyzer,
    target::target,
};
use crate::{
    index::FamiliarityResult,
    language::question::{ParsedQuestion, QuestionType},
};
use types::{
    config::{ModelSettings, RecallSettings},
    model::{Plan, QuestionCues, canonical_name},
};

/// Weight, in a unit's fit, of the share of the question's topics that it holds. The cosine weighs more, because a
/// vector also recognises other words for the same thing.
const COVERAGE: f64 = 0.40;
/// Weight, in a unit's fit, of its cosine with the question.
const ALIGNMENT: f64 = 0.50;
/// Weight, in a unit's fit, of a resolved time, if the question asks for a time.
const TIME: f64 = 0.10;
/// Factor on the fit of a unit that involves none of the persons whom the question names: the
/// right topic with the wrong person is half an answer at best.
const WRONG_PERSON: f64 = 0.50;
/// Weight of the best unit's fit in the sufficiency. The rest is the share of the topics that a
/// few units hold together.
const ONE_UNIT: f64 = 0.85;
/// Units that may hold the topics together.
const FEW_UNITS: usize = 3;
/// How far the bar rises from `recall.sufficient` towards 1 for a question that asks for several things: a
/// list is complete only when almost nothing is missing.
const SEVERAL_DEMAND: f64 = 0.60;
/// Share of common stems from which on two units count as the same starting point.
const NEAR_IDENTICAL: f64 = 0.80;

/// The planner without a language model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RulesPlanner {
    low: f64,
    high: f64,
}

impl RulesPlanner {
    /// A planner for a model's cosines. A unit is unrelated to the question at the model's floor, and
    /// answers the question at the model's ceiling.
    #[must_use]
    pub fn new(model: &ModelSettings) -> Self {
        Self { low: model.question_floor, high: model.question_ceiling }
    }

    /// How well the evidence covers the question, 0 to 1.
    #[must_use]
    pub fn sufficiency(
        &self,
        question: &ParsedQuestion<'_>,
        cues: &QuestionCues,
        evidence: &[EvidenceCandidate],
    ) -> f64 {
        EvidenceFit::of(self, cues, question, evidence).sufficiency()
    }

    /// A cosine on the model's scale: 0 at the model's floor, 1 at its ceiling.
    fn closeness(&self, cosine: f64) -> f64 {
        let width = self.high - self.low;
        if width > 0.0 { (cosine - self.low) / width } else { f64::from(u8::from(cosine >= self.high)) }
    }

    fn scaled(&self, cosine: f64) -> f64 {
        self.closeness(cosine).clamp(0.0, 1.0)
    }
}

impl Planner for RulesPlanner {
    fn plan(
        &self,
        question: &ParsedQuestion<'_>,
        cues: &QuestionCues,
        evidence: &[EvidenceCandidate],
        round: u32,
        settings: &RecallSettings,
    ) -> Plan {
        let question_type = question.question_type();
        let fits = EvidenceFit::of(self, cues, question, evidence);
        let sufficiency = fits.sufficiency();
        let stop = |reason: &str| Plan {
            proceed: false,
            sufficiency,
            reason: reason.to_owned(),
            anchors: Vec::new(),
            target: None,
            note: None,
        };
        if evidence.is_empty() || settings.anchors == 0 {
            return stop(NO_START);
        }
        if sufficiency >= required_sufficiency(question_type, settings) {
            return stop(COVERED);
        }
        if round > settings.rounds {
            return stop(ROUNDS_SPENT);
        }
        let anchors = fits.anchors(evidence, settings);
        let uncovered = fits.uncovered();
        Plan {
            proceed: true,
            sufficiency,
            reason: reason(question_type, &uncovered),
            target: Some(target(question, cues, &uncovered, &anchors)),
            anchors: anchors.iter().map(|a| a.unit.id).collect(),
            note: None,
        }
    }

    fn agreement(&self, question: &ParsedQuestion<'_>, cues: &QuestionCues, familiar: &FamiliarityResult) -> f64 {
        agreement(question, &cues.cues.participants, familiar, &|cosine| self.closeness(cosine))
    }
}

/// The sufficiency at which a question of this type counts as answered.
fn required_sufficiency(question_type: QuestionType, settings: &RecallSettings) -> f64 {
    let extra = if question_type.wants_several() { SEVERAL_DEMAND * (1.0 - settings.sufficient).max(0.0) } else { 0.0 };
    settings.sufficient + extra
}

fn reason(question_type: QuestionType, uncovered: &[String]) -> String {
    if !uncovered.is_empty() {
        format!("the best units do not hold: {}", uncovered.join(", "))
    } else if question_type.wants_several() {
        "the question asks for several things, and more may be linked".to_owned()
    } else {
        "no unit matches the question closely enough".to_owned()
    }
}

/// How well one unit of the evidence fits the question.
struct UnitFit {
    /// One bit for each topic: whether the unit holds all stems of the topic.
    topics: u8,
    fit: f64,
    /// Whether the unit involves a person whom the question names. True if the question names none.
    involved: bool,
    stems: BTreeSet<String>,
}

/// How well the evidence fits the question.
struct EvidenceFit {
    /// The keywords, without those that name a person of the question.
    topics: Vec<String>,
    units: Vec<UnitFit>,
}

impl EvidenceFit {
    fn of(
        planner: &RulesPlanner,
        cues: &QuestionCues,
        question: &ParsedQuestion<'_>,
        evidence: &[EvidenceCandidate],
    ) -> Self {
        let (question_type, language) = (question.question_type(), question.language().unwrap_or_default());
        let mut stems = StemSetAnalyzer::new();
        let persons: BTreeSet<&String> = cues.cues.participants.iter().collect();
        let topics: Vec<(String, BTreeSet<String>)> = cues
            .keywords
            .iter()
            .filter(|k| !persons.contains(&canonical_name(k)))
            .map(|k| (k.clone(), stems.of(k, language)))
            .filter(|(_, s)| !s.is_empty())
            .take(8)
            .collect();
        let units = evidence
            .iter()
            .map(|c| {
                let held = stems.of(c.unit.restatement(), c.unit.language());
                let bits =
                    topics.iter().enumerate().filter(|(_, (_, s))| s.is_subset(&held)).map(|(i, _)| 1u8 << i).sum();
                let present = persons.iter().filter(|p| c.unit.participants().any(|own| own == p.as_str())).count();
                let involved = if persons.is_empty() { 1.0 } else { present as f64 / persons.len() as f64 };
                let mut parts = vec![(ALIGNMENT, planner.scaled(c.alignment.as_f64()))];
                if !topics.is_empty() {
                    parts.push((COVERAGE, share(bits, topics.len())));
                }
                if question_type == QuestionType::Time {
                    parts.push((TIME, f64::from(u8::from(c.unit.time.is_some()))));
                }
                let weight: f64 = parts.iter().map(|(w, _)| w).sum();
                let base = parts.iter().map(|(w, x)| w * x).sum::<f64>() / weight;
                let fit = base * (WRONG_PERSON + (1.0 - WRONG_PERSON) * involved);
                UnitFit { topics: bits, fit, involved: involved > 0.0, stems: held }
            })
            .collect();
        Self { topics: topics.into_iter().map(|(k, _)| k).collect(), units }
    }

    /// `0.85 · fit of the best unit + 0.15 · share of the topics that a few units hold together`.
    fn sufficiency(&self) -> f64 {
        let one = self.units.iter().map(|s| s.fit).fold(0.0, f64::max);
        if self.topics.is_empty() || self.units.is_empty() {
            return one;
        }
        ONE_UNIT * one + (1.0 - ONE_UNIT) * self.joint_share()
    }

    /// The greatest share of the topics that [`FEW_UNITS`] units about the right persons hold together. All
    /// combinations are tried: sets of topics are few, and a greedy choice could lower the sufficiency when evidence is
    /// added.
    fn joint_share(&self) -> f64 {
        let single: BTreeSet<u8> = self.units.iter().filter(|s| s.involved).map(|s| s.topics).collect();
        let mut unions = single.clone();
        for _ in 1..FEW_UNITS {
            unions = unions.iter().flat_map(|a| single.iter().map(move |b| a | b)).collect();
        }
        unions.iter().map(|u| share(*u, self.topics.len())).fold(0.0, f64::max)
    }

    /// The topics that none of the [`FEW_UNITS`] best units holds.
    fn uncovered(&self) -> Vec<String> {
        let mut by_fit: Vec<&UnitFit> = self.units.iter().collect();
        by_fit.sort_by(|a, b| b.fit.total_cmp(&a.fit));
        let held = by_fit.iter().take(FEW_UNITS).fold(0u8, |held, s| held | s.topics);
        self.topics.iter().enumerate().filter(|(i, _)| held & (1 << i) == 0).map(|(_, k)| k.clone()).collect()
    }

    /// The most familiar units; near-identical units count once. Units from a session, or a day of it, that has no
    /// anchor yet come first.
    fn anchors<'e>(&self, evidence: &'e [EvidenceCandidate], settings: &RecallSettings) -> Vec<&'e EvidenceCandidate> {
        let mut ranked: Vec<(&EvidenceCandidate, &UnitFit)> = evidence.iter().zip(&self.units).collect();
        ranked
            .sort_by(|(a, _), (b, _)| b.familiarity.total_cmp(&a.familiarity).then_with(|| a.unit.id.cmp(&b.unit.id)));
        let mut chosen: Vec<(&EvidenceCandidate, &UnitFit)> = Vec::new();
        let mut sessions = BTreeSet::new();
        for spread in [true, false] {
            for (candidate, fit) in &ranked {
                if chosen.len() >= settings.anchors {
                    break;
                }
                let session = (candidate.unit.session(), candidate.unit.said_at.local().date());
                let again = chosen.iter().any(|(c, s)| c.unit.id == candidate.unit.id || alike(&s.stems, &fit.stems));
                if again || (spread && sessions.contains(&session)) {
                    continue;
                }
                sessions.insert(session);
                chosen.push((candidate, fit));
            }
        }
        chosen.into_iter().map(|(c, _)| c).collect()
    }
}

fn share(bits: u8, of: usize) -> f64 {
    if of == 0 { 0.0 } else { f64::from(bits.count_ones()) / of as f64 }
}

fn alike(a: &BTreeSet<String>, b: &BTreeSet<String>) -> bool {
    let common = a.intersection(b).count();
    let all = a.len() + b.len() - common;
    all == 0 || common as f64 / all as f64 >= NEAR_IDENTICAL
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::recall::{
        question_cues::{parse_question, question_cues},
        tests::{candidate, changed, model, settings},
    };
    use types::model::{Bank, Channel, Provenance, Question, Score};

    fn unit(id: u64, said: &str, persons: &[&str], alignment: f64, session: &str) -> EvidenceCandidate {
        let mut made = candidate(id, said, "2024-01-01T00:00:00Z");
        made.unit = changed(&made.unit, |unit| {
            unit.cues.participants = persons.iter().map(|&p| p.to_owned()).collect();
            unit.session = session.to_owned();
        });
        made.alignment = Score::from_f64(alignment);
        made.familiarity = alignment;
        made.provenance = vec![Provenance::FirstHop { channel: Channel::Semantic, rank: id as u32, score: alignment }];
        made
    }

    fn plan(text: &str, evidence: &[EvidenceCandidate]) -> Plan {
        let question = Question::new(Bank::parse("b").unwrap(), text);
        let question = parse_question(&question).unwrap();
        RulesPlanner::new(&model()).plan(&question, &question_cues(&question), evidence, 1, &settings())
    }

    fn check(text: &str, evidence: &[EvidenceCandidate], proceed: bool, reason: &str, anchors: &[u64]) {
        let found = plan(text, evidence);
        assert_eq!((found.proceed, found.reason.as_str()), (proceed, reason), "{text}: {found:?}");
        assert_eq!(found.anchors.iter().map(|a| a.0).collect::<Vec<_>>(), anchors, "{text}");
        assert_eq!(found.target.is_some(), proceed);
    }

    #[test]
    fn the_plan_stops_or_goes_on_by_the_evidence() {
        let answer = unit(1, "Omar repaired the copper kettle with Priya", &["omar", "priya"], 0.74, "s");
        let wrong = unit(2, "Leo repaired a copper kettle", &["leo"], 0.60, "s");
        let far = unit(3, "Priya swam in the lake", &["priya"], 0.20, "s");
        check("Who repaired the copper kettle?", &[answer.clone(), far.clone()], false, COVERED, &[]);
        check("Did Omar repair the copper kettle?", &[answer.clone(), far.clone()], false, COVERED, &[]);
        check("Did Omar repair the copper kettle?", &[], false, NO_START, &[]);
        check(
            "Did Omar repair the copper kettle?",
            &[wrong, far.clone()],
            true,
            "no unit matches the question closely enough",
            &[2, 3],
        );
        check("Where is the violin?", &[far], true, "the best units do not hold: violin", &[3]);
    }

    #[test]
    fn a_question_for_several_things_has_a_higher_bar() {
        let near = unit(1, "Omar repaired a kettle", &["omar"], 0.64, "s");
        assert!(!plan("What kettle did Omar repair?", std::slice::from_ref(&near)).proceed);
        assert!(plan("What kettles did Omar repair?", std::slice::from_ref(&near)).proceed);
        let certain = unit(1, "Omar repaired a kettle", &["omar"], 0.80, "s");
        assert!(!plan("What kettles did Omar repair?", &[certain]).proceed);
    }

    #[test]
    fn a_time_question_prefers_a_unit_with_a_resolved_time() {
        let vague = unit(1, "Omar repaired a kettle", &["omar"], 0.60, "s");
        let mut dated = vague.clone();
        std::sync::Arc::make_mut(&mut dated.unit).time = Some(Box::new(types::model::Interval::at(vague.unit.said_at)));
        let text = "When did Omar repair a kettle?";
        assert!(plan(text, &[dated.clone()]).sufficiency > plan(text, std::slice::from_ref(&vague)).sufficiency);
        let other = "Why did Omar repair a kettle?";
        assert!((plan(other, &[dated]).sufficiency - plan(other, &[vague]).sufficiency).abs() < 1e-12);
    }

    #[test]
    fn anchors_spread_over_sessions_and_are_never_near_identical() {
        let evidence = [
            unit(1, "Omar mended the blue bowl for the market", &["omar"], 0.60, "a"),
            unit(2, "Omar mended the blue bowl for a market", &["omar"], 0.59, "a"),
            unit(3, "Omar sold a bowl to the baker", &["omar"], 0.58, "a"),
            unit(4, "Omar wished for a new wheel", &["omar"], 0.35, "b"),
        ];
        check(
            "Which bowl did Omar sell to the tailor?",
            &evidence,
            true,
            "the best units do not hold: sell, tailor",
            &[1, 4, 3],
        );
    }

    #[test]
    fn the_plan_stops_when_the_round_budget_is_spent() {
        let question = Question::new(Bank::parse("b").unwrap(), "Where is the violin?");
        let question = parse_question(&question).unwrap();
        let evidence = [unit(1, "Priya swam", &[], 0.2, "s")];
        let found = RulesPlanner::new(&model()).plan(&question, &question_cues(&question), &evidence, 2, &settings());
        assert_eq!((found.proceed, found.reason.as_str()), (false, ROUNDS_SPENT));
    }

    proptest! {
        #[test]
        fn more_evidence_never_lowers_sufficiency_and_anchors_are_members(
            picks in prop::collection::vec((0usize..5, 0.0f64..1.0, any::<bool>()), 0..12),
            question in 0usize..4,
        ) {
            let said = ["Omar glazed a bowl", "Priya sold a bowl", "the kiln broke", "Omar and Priya met", ""];
            let texts = ["Which bowl did Omar glaze?", "When did the kiln break?", "What do Omar and Priya sell?", "Who?"];
            let all: Vec<EvidenceCandidate> = (1u64..)
                .zip(&picks)
                .map(|(id, (text, alignment, named))| unit(id, said[*text], if *named { &["omar"] } else { &[] }, *alignment, "s"))
                .collect();
            let mut before = 0.0;
            for n in 0..=all.len() {
                let found = plan(texts[question], &all[..n]);
                prop_assert!((0.0..=1.0).contains(&found.sufficiency));
                prop_assert!(found.sufficiency >= before - 1e-12);
                prop_assert!(found.anchors.len() <= settings().anchors);
                prop_assert!(found.anchors.iter().all(|a| all[..n].iter().any(|c| c.unit.id == *a)));
                prop_assert_eq!(found.anchors.iter().collect::<BTreeSet<_>>().len(), found.anchors.len());
                before = found.sufficiency;
            }
        }
    }
}
