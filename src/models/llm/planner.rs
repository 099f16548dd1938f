//! Cues and plans from a language model, with rules as the fallback (paper, section 3.4).
//!
//! In: a question, the evidence so far. Out: cues whose names and keywords all occur in the question, and plans whose
//! anchors are units of the evidence. If the model fails, times out, or breaks these conditions again in its repair,
//! the rules take its place and the trace notes why. Recollection always embeds the question's own wording, and the
//! sufficiency is always the figure of the rules. The model sees only this question's evidence.

use std::{collections::BTreeMap, fmt::Display, sync::Arc, time::Instant};

use serde::Deserialize;
use serde_json::json;

use crate::llm::{Contract, LlmClient, LlmError, LlmRequest, ModelTimeSpan, RequestDependency, UsageMeter};
use memory::recall::{COVERED, EvidenceCandidate, Planner, RulesPlanner, cue_text, question_cues, rho};
use memory::{
    index::FamiliarityResult,
    language::{grounding::GroundingTexts, question::ParsedQuestion},
};
use types::{
    config::{LLM, RecallSettings},
    model::{Cues, ModelUsage, Plan, QuestionCues, Target, canonical_name},
};

/// The minimum and maximum number of keywords of a question (the cue contract of the paper's appendix).
const KEYWORDS: std::ops::RangeInclusive<usize> = 2..=6;
/// The stop reason if the model sees no way to continue.
const HOPELESS: &str = "nothing found so far leads on";

/// The planner that asks a language model.
pub struct LlmPlanner {
    llm: Arc<LlmClient>,
    rules: RulesPlanner,
    makes_plans: bool,
    makes_cues: bool,
    deadline: Instant,
    cacheable: bool,
    meter: UsageMeter,
}

impl LlmPlanner {
    /// A planner for one question. It asks `llm` for the cues, the plans or both, as the settings say. After `deadline`
    /// the rules answer. With `cacheable` the replies are cached for later runs of the same question.
    #[must_use]
    pub fn new(
        llm: Arc<LlmClient>,
        rules: RulesPlanner,
        settings: &RecallSettings,
        deadline: Instant,
        cacheable: bool,
    ) -> Self {
        Self {
            llm,
            rules,
            makes_plans: settings.planner == LLM,
            makes_cues: settings.cues_by == LLM,
            deadline,
            cacheable,
            meter: UsageMeter::default(),
        }
    }

    fn request<'r>(
        &'r self,
        contract: Contract,
        question: &'r ParsedQuestion<'_>,
        depends_on: RequestDependency<'r>,
        input: &'r str,
    ) -> LlmRequest<'r> {
        LlmRequest {
            contract,
            bank: &question.question().bank,
            depends_on,
            input,
            reply_tokens: None,
            deadline: Some(self.deadline),
            bypass_cache: false,
            cacheable: self.cacheable,
            meter: &self.meter,
        }
    }

    fn by_model(&self, contract: Contract) -> Option<String> {
        Some(format!("{} (prompt {})", self.llm.settings().model, contract.hash()))
    }

    fn ask_cues(&self, question: &ParsedQuestion<'_>, rules: &QuestionCues) -> Result<QuestionCues, LlmError> {
        let input = json!({"question": question.text(), "asked_at": question.question().asked_at}).to_string();
        let request = self.request(Contract::Cues, question, RequestDependency::Nothing, &input);
        let offset = question.question().asked_at.map_or(0, |at| at.offset_seconds);
        self.llm.ask(&request, &mut |reply: CuesReply| {
            let time = reply.time.as_ref().map(|span| span.interval(offset)).transpose()?;
            let mut wording = GroundingTexts::default();
            wording.add(question.text());
            let mut keywords: Vec<String> = Vec::new();
            for keyword in reply.keywords.iter().map(|k| k.trim()) {
                let new = !keywords.iter().any(|k| k.eq_ignore_ascii_case(keyword));
                if wording.contains(keyword) && new && keywords.len() < *KEYWORDS.end() {
                    keywords.push(keyword.to_owned());
                }
            }
            // A question of one word cannot have two keywords.
            if keywords.len() < (*KEYWORDS.start()).min(rules.keywords.len()) {
                return Err(format!(
                    "keywords: {} stand in the question, two to six are wanted, as they stand there",
                    keywords.len()
                ));
            }
            Ok(QuestionCues {
                semantic_query: rules.semantic_query.clone(),
                keywords,
                cues: Cues {
                    participants: wording.grounded(&reply.participants),
                    locations: wording.grounded(&reply.locations),
                    time,
                },
                note: self.by_model(Contract::Cues),
            })
        })
    }

    fn ask_plan(
        &self,
        question: &ParsedQuestion<'_>,
        cues: &QuestionCues,
        evidence: &[EvidenceCandidate],
        round: u32,
        settings: &RecallSettings,
    ) -> Result<Plan, LlmError> {
        // Best first, by ρ, which does not need the model.
        let mut best: Vec<(f64, &EvidenceCandidate)> = rho(evidence, settings).into_iter().zip(evidence).collect();
        best.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.unit.id.cmp(&b.1.unit.id)));
        let (mut labels, mut shown) = (BTreeMap::new(), Vec::with_capacity(best.len()));
        for (number, (_, candidate)) in (1..).zip(&best) {
            let label = format!("m{number}");
            shown.push(json!([label, candidate.unit.said_at.local().date().to_string(), words(candidate)]));
            labels.insert(label, candidate.unit.id);
        }
        let input = json!({
            "question": question.text(), "asked_at": question.question().asked_at, "cues": cue_text(&cues.cues),
            "round": round, "rounds": settings.rounds, "anchors_allowed": settings.anchors, "evidence": shown,
        })
        .to_string();
        let turns: Vec<String> = evidence.iter().flat_map(|c| c.unit.sources().map(str::to_owned)).collect();
        let request = self.request(Contract::Plan, question, RequestDependency::Turns(&turns), &input);
        let offset =
            question.question().asked_at.or(evidence.first().map(|c| c.unit.said_at)).map_or(0, |t| t.offset_seconds);
        let sufficiency = self.rules.sufficiency(question, cues, evidence);
        let stop = |reason: &str| Plan {
            proceed: false,
            sufficiency,
            reason: reason.to_owned(),
            anchors: Vec::new(),
            target: None,
            note: self.by_model(Contract::Plan),
        };
        self.llm.ask(&request, &mut |reply: PlanReply| {
            let target = match (reply.decision.as_str(), &reply.target) {
                ("enough", _) => return Ok(stop(COVERED)),
                ("hopeless", _) => return Ok(stop(HOPELESS)),
                (_, None) => return Err("target: null; with \"continue\" it says what is missing".to_owned()),
                (_, Some(target)) => target,
            };
            let mut anchors = Vec::new();
            for label in &reply.anchors {
                let id = labels.get(label).ok_or_else(|| format!("anchors: {label:?} is no label of the evidence"))?;
                if !anchors.contains(id) {
                    anchors.push(*id);
                }
            }
            if anchors.is_empty() || anchors.len() > settings.anchors {
                return Err(format!("anchors: {}; name one to {}", anchors.len(), settings.anchors));
            }
            let sentence = target.sentence.split_whitespace().collect::<Vec<_>>().join(" ");
            if sentence.is_empty() || alike(&sentence, question.text()) {
                return Err("target: the sentence is the question again; state what is missing".to_owned());
            }
            let names = |names: &[String]| -> Vec<String> {
                let all: std::collections::BTreeSet<String> =
                    names.iter().map(|n| canonical_name(n)).filter(|n| !n.is_empty()).collect();
                all.into_iter().collect()
            };
            let goal = target.goal.split_whitespace().collect::<Vec<_>>().join("_");
            Ok(Plan {
                proceed: true,
                sufficiency,
                reason: format!("the model misses {goal}"),
                anchors,
                target: Some(Target {
                    goal,
                    sentence,
                    cues: Cues {
                        participants: names(&target.participants),
                        locations: names(&target.locations),
                        time: target.time.as_ref().map(|span| span.interval(offset)).transpose()?,
                    },
                }),
                note: self.by_model(Contract::Plan),
            })
        })
    }
}

impl Planner for LlmPlanner {
    fn cues(&self, question: &ParsedQuestion<'_>) -> QuestionCues {
        let rules = question_cues(question);
        if !self.makes_cues {
            return rules;
        }
        self.ask_cues(question, &rules).unwrap_or_else(|error| QuestionCues { note: fallback_note(&error), ..rules })
    }

    fn plan(
        &self,
        question: &ParsedQuestion<'_>,
        cues: &QuestionCues,
        evidence: &[EvidenceCandidate],
        round: u32,
        settings: &RecallSettings,
    ) -> Plan {
        let rules = || self.rules.plan(question, cues, evidence, round, settings);
        // There is nothing to decide, so the call is saved.
        if !self.makes_plans || evidence.is_empty() || settings.anchors == 0 || round > settings.rounds {
            return rules();
        }
        self.ask_plan(question, cues, evidence, round, settings)
            .unwrap_or_else(|error| Plan { note: fallback_note(&error), ..rules() })
    }

    fn agreement(&self, question: &ParsedQuestion<'_>, cues: &QuestionCues, familiar: &FamiliarityResult) -> f64 {
        self.rules.agreement(question, cues, familiar)
    }

    fn usage(&self) -> Option<ModelUsage> {
        Some(self.meter.total())
    }
}

fn fallback_note(error: &dyn Display) -> Option<String> {
    Some(format!("the rules, because: {error}"))
}

/// The words of a unit: its quoted parts, or its restatement.
fn words(candidate: &EvidenceCandidate) -> String {
    match &candidate.excerpt {
        Some(excerpt) if !candidate.unit.is_restated() => {
            let parts = excerpt.iter().filter_map(|at| candidate.unit.part(*at));
            parts.map(|part| format!("{}: {}", part.speaker, part.text)).collect::<Vec<_>>().join(" ")
        }
        _ => candidate.unit.restatement().to_owned(),
    }
}

/// Whether two texts have the same words.
fn alike(a: &str, b: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_lowercase).collect()
    };
    words(a) == words(b)
}

#[derive(Debug, Deserialize)]
struct CuesReply {
    keywords: Vec<String>,
    participants: Vec<String>,
    locations: Vec<String>,
    time: Option<ModelTimeSpan>,
}

#[derive(Debug, Deserialize)]
struct PlanReply {
    decision: String,
    anchors: Vec<String>,
    target: Option<TargetReply>,
}

#[derive(Debug, Deserialize)]
struct TargetReply {
    goal: String,
    sentence: String,
    participants: Vec<String>,
    locations: Vec<String>,
    time: Option<ModelTimeSpan>,
}
