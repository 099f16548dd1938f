//! Question to evidence: adaptive associative recollection (paper, sections 3.4 and 3.5).
//!
//! In: a question, a memory that answers two kinds of probe, and something that embeds a
//! text. Out: evidence with the whole way to it. What is returned is a function of the
//! memory's log, the question's vector, its cues and the plan, and the trace records all
//! four (decision 16). Reads no clock, opens nothing; only `memory` and `embed` can fail.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    config::RecallSettings,
    memory::{
        self, Answered, FamiliarParts, FamiliarityProbe, FirstHopProbe, Hit, Neighbour, NeighbourhoodProbe, UnitBody,
    },
    model::{
        Channel, Evidence, EvidenceUnit, Excerpt, MAX_TEXT_BYTES, ModelRef, Plan, Provenance, Question, Round,
        SCHEMA_VERSION, Score, Seen, Target, Trace, UnitId, Vector,
    },
};

mod answer;
mod assemble;
mod context;
mod cues;
mod depth;
mod expand;
mod first_hop;
mod form;
mod impressions;
mod inflect;
mod llm;
mod person;
mod plan;
mod target;
mod trace;
mod unplanned;
mod words;

#[cfg(test)]
mod tests;

pub use answer::{Answer, Standing, answer};
pub use assemble::{Ranked, assemble, consolidate, rho};
pub use context::{Quoted, context};
pub use cues::cues;
pub use expand::{Considered, Support};
pub use impressions::Impressions;
pub use llm::LlmPlanner;
pub use plan::{Planner, RulesPlanner};
pub use trace::{trace, way};
pub use unplanned::Unplanned;

/// Why a memory or an embedder could not answer.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Why a question has no evidence.
#[derive(Debug, thiserror::Error)]
pub enum RecallError {
    /// There is no word in the question.
    #[error("question: empty; ask with at least one word")]
    EmptyQuestion,
    /// The question is longer than a turn may be.
    #[error("question: {bytes} bytes long; ask in at most {MAX_TEXT_BYTES}")]
    LongQuestion {
        /// Its length in bytes of UTF-8.
        bytes: usize,
    },
    /// A text could not be embedded.
    #[error("the {what} could not be embedded; check the model with `ripplemem validate`")]
    Embed {
        /// `question`, or `target` with its round.
        what: String,
        /// Why.
        #[source]
        source: Failure,
    },
    /// The memory did not answer.
    #[error("bank {bank}: the memory did not answer the {what}")]
    Memory {
        /// The bank that was asked.
        bank: String,
        /// `first hop`, or `expansion` with its round.
        what: String,
        /// Why.
        #[source]
        source: Failure,
    },
}

/// A memory that can be asked.
pub trait Memory {
    /// What comes to mind first.
    ///
    /// # Errors
    /// Why the memory did not answer.
    fn first_hop(&self, probe: FirstHopProbe) -> Result<Answered<Vec<Hit>>, Failure>;

    /// The most familiar parts of a bank.
    ///
    /// # Errors
    /// Why the memory did not answer.
    fn familiar(&self, probe: FamiliarityProbe) -> Result<Answered<FamiliarParts>, Failure>;

    /// What those memories lead to.
    ///
    /// # Errors
    /// Why the memory did not answer.
    fn neighbourhood(&self, probe: NeighbourhoodProbe) -> Result<Answered<Vec<Neighbour>>, Failure>;
}

/// A unit on its way into the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The unit.
    pub unit: Arc<UnitBody>,
    /// Cosine with the question: the best of the unit's parts.
    pub alignment: Score,
    /// Every way in which it was reached.
    pub provenance: Vec<Provenance>,
    /// Whether an expansion started from it.
    pub anchor: bool,
    /// How far its best part lies on the way from the zero of the scale (0) to the bank's best
    /// (1); below 0 for what is background.
    pub familiarity: f64,
    /// The parts that are quoted, by their place; absent when the whole unit is, in the
    /// words of its restatement.
    pub excerpt: Option<BTreeSet<usize>>,
}

/// Answers a question with evidence (paper, algorithm 1).
///
/// `embed` turns a question or a target's sentence into a vector of the bank's model,
/// which `model_ref` names. At most `settings.rounds` rounds follow the
/// first hop; the loop ends when the plan stops, has no anchor in the evidence, or
/// brings no new support.
///
/// # Errors
/// [`RecallError`] for an empty question, or when `memory` or `embed` fails.
pub fn recollect(
    memory: &dyn Memory,
    embed: &mut dyn FnMut(&str) -> Result<Vector, Failure>,
    question: &Question,
    planner: &dyn Planner,
    settings: &RecallSettings,
    model_ref: &ModelRef,
) -> Result<Evidence, RecallError> {
    let cues = planner.cues(question)?;
    let vector =
        embed(&cues.semantic_query).map_err(|source| RecallError::Embed { what: "question".to_owned(), source })?;
    let fixed = memory::quantise(&vector.0);
    let form = form::form(&question.text);
    let first_person_vector =
        match (form.gathered(), person::first_person_wording(&question.text, &cues.cues.participants)) {
            (false, _) => None,
            (true, None) => Some(fixed.clone()),
            (true, Some(text)) => {
                let failed = |source| RecallError::Embed { what: "question in its own form".to_owned(), source };
                Some(memory::quantise(&embed(&text).map_err(failed)?.0))
            }
        };
    let failed = |what: String| {
        let bank = question.bank.to_string();
        move |source| RecallError::Memory { bank, what, source }
    };

    let asked = first_hop::Asked { question, cues: &cues, form, vector: &fixed, first_person_vector };
    let first = first_hop::first_hop(memory, &asked, settings).map_err(failed("first hop".to_owned()))?;
    let mut evidence = assemble::consolidate(first.candidates.clone());
    let mut rounds = Vec::new();
    let mut stop_reason = plan::ROUNDS_SPENT.to_owned();
    for round in 1..=settings.rounds {
        let plan = within(planner.plan(question, &cues, &evidence, round, settings), &evidence, settings);
        let Some(target) = plan.target.clone().filter(|_| plan.proceed) else {
            stop_reason.clone_from(&plan.reason);
            rounds.push((plan, Support::default(), Vec::new()));
            break;
        };
        for candidate in &mut evidence {
            candidate.anchor |= plan.anchors.contains(&candidate.unit.id);
        }
        let wanted = embed(&target.sentence)
            .map_err(|source| RecallError::Embed { what: format!("target of round {round}"), source })?;
        let probe = neighbourhood_probe(question, &plan, &target, fixed.clone(), memory::quantise(&wanted.0), settings);
        let answer = memory.neighbourhood(probe).map_err(failed(format!("expansion of round {round}")))?;
        let known: BTreeSet<UnitId> = evidence.iter().map(|c| c.unit.id).collect();
        let support = expand::expand(&answer.value, &known, &first.impressions, form, settings);
        let ended = support.candidates.is_empty();
        evidence = assemble::consolidate(evidence.into_iter().chain(support.candidates.iter().cloned()).collect());
        rounds.push((plan, support, answer.reflects));
        if ended {
            plan::NO_SUPPORT.clone_into(&mut stop_reason);
            break;
        }
    }

    let sufficiency = planner.sufficiency(question, &cues, &evidence).clamp(0.0, 1.0);
    let ranked = assemble::assemble(evidence, settings);
    // A planner that finds the question covered says more than the figure does.
    let supported = !ranked.is_empty() && (stop_reason == plan::COVERED || sufficiency >= settings.supported);
    let kept: BTreeSet<UnitId> = ranked.iter().map(|r| r.candidate.unit.id).collect();
    let trace = Trace {
        cues,
        vector_hash: vector_hash(&vector, model_ref),
        llm: planner.took(),
        first_hop: first.candidates.iter().map(|candidate| seen(candidate, &kept, true)).collect(),
        rounds: rounds
            .into_iter()
            .map(|(plan, support, reflects)| Round {
                plan,
                reached: support.reached,
                support: support.considered.iter().map(|c| seen(&c.candidate, &kept, c.enters)).collect(),
                reflects,
            })
            .collect(),
    };
    Ok(Evidence {
        schema: SCHEMA_VERSION,
        question: question.clone(),
        context: context::context(
            ranked.iter().map(|r| (&*r.candidate.unit, r.candidate.excerpt.as_ref())),
            (!supported).then_some(stop_reason.as_str()),
        ),
        units: ranked.into_iter().map(evidence_unit).collect(),
        sufficiency,
        supported,
        stop_reason,
        reflects: first.reflects,
        trace,
    })
}

fn neighbourhood_probe(
    question: &Question,
    plan: &Plan,
    target: &Target,
    question_vector: memory::FixedVector,
    target_vector: memory::FixedVector,
    settings: &RecallSettings,
) -> NeighbourhoodProbe {
    NeighbourhoodProbe {
        bank: question.bank.key(),
        anchors: plan.anchors.clone(),
        hops: settings.hops,
        mixed: settings.mixed_paths,
        question: question_vector,
        target: target_vector,
        target_cues: target.cues.clone(),
    }
}

/// A plan that keeps to the rules, whoever made it: anchors of the evidence only, each
/// once, at most as many as are allowed; without one it stops.
fn within(mut plan: Plan, evidence: &[Candidate], settings: &RecallSettings) -> Plan {
    let mut seen = BTreeSet::new();
    plan.anchors.retain(|a| evidence.iter().any(|c| c.unit.id == *a) && seen.insert(*a));
    plan.anchors.truncate(settings.anchors);
    if plan.proceed && (plan.anchors.is_empty() || plan.target.is_none()) {
        plan.proceed = false;
        plan::NO_START.clone_into(&mut plan.reason);
    }
    if !plan.proceed {
        plan.anchors.clear();
        plan.target = None;
    }
    plan
}

/// A candidate of one provenance, as the trace shows it: kept when this way let it in and
/// the budget holds it.
fn seen(candidate: &Candidate, kept: &BTreeSet<UnitId>, enters: bool) -> Seen {
    Seen {
        id: candidate.unit.id,
        restatement: candidate.unit.restatement.clone(),
        provenance: candidate.provenance.first().cloned().unwrap_or(Provenance::FirstHop {
            channel: Channel::Semantic,
            rank: 0,
            score: 0.0,
        }),
        kept: enters && kept.contains(&candidate.unit.id),
    }
}

fn evidence_unit(ranked: Ranked) -> EvidenceUnit {
    let Candidate { unit, provenance, anchor, excerpt, .. } = ranked.candidate;
    let quoted = unit.parts.iter().enumerate().filter(|(at, _)| excerpt.as_ref().is_none_or(|e| e.contains(at)));
    EvidenceUnit {
        id: unit.id,
        restatement: unit.restatement.clone(),
        cues: unit.cues.clone(),
        said_at: unit.said_at,
        sources: unit.sources.clone(),
        excerpts: quoted.map(|(_, part)| self::excerpt(part)).collect(),
        rho: ranked.rho,
        anchor,
        provenance,
    }
}

fn excerpt(part: &memory::PartBody) -> Excerpt {
    let memory::PartBody { turn, speaker, said_at, text, .. } = part.clone();
    Excerpt { turn, speaker, said_at, text }
}

/// BLAKE3 of the vector's little-endian bytes and its model's hash.
fn vector_hash(vector: &Vector, model: &ModelRef) -> String {
    let mut hash = blake3::Hasher::new();
    for x in vector.0.iter() {
        hash.update(&x.to_le_bytes());
    }
    hash.update(model.hash.as_bytes());
    hash.finalize().to_hex().to_string()
}
