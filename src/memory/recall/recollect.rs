//! The loop of recollection: first hop, then plan and expand, then assemble (paper, algorithm 1).
//!
//! In: a question, a memory that answers probes, and the models that it asks. Out: evidence with
//! its whole trace. It reads no clock and opens nothing.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    BoxError, EvidenceCandidate, RankedCandidate, RecallError, RecallMemory,
    abstain::abstention,
    asked_time, assemble,
    evidence_candidate::{shown_restatement, shown_sources},
    expand,
    expand::Support,
    familiarity_scale::{familiarity_scale, near_misses},
    first_hop, flat_rankings,
    later_words::LaterWords,
    planner::{self, Planner},
    question_cues,
    recollection::{PlannedRound, QuotedUnits, Recollection},
    reranker::Reranker,
    speaker_shares,
    standing_instructions::StandingSection,
    token_budget::{self, BudgetedEvidence, ContextNotes, ContextRoom},
    unknown_asker,
    walk_trace::walk_trace,
};
use crate::{
    index::{self, MatchProbe, MatchingParts, NeighbourhoodProbe},
    language::question::first_person_wording,
};
use types::{
    config::RecallSettings,
    model::{
        Channel, ConsideredUnit, Evidence, EvidenceUnit, Excerpt, MAX_NEAR_MISSES, MAX_QUESTION_BYTES, ModelRef, Plan,
        PrecedingTurn, Provenance, Question, QuestionCues, RecallRound, SCHEMA_VERSION, Target, Trace, UnitId, Vector,
    },
};

/// The weight of the last turn of the conversation in a question's vector.
const SAID_BEFORE: f32 = 0.2;

/// Turns texts into vectors, in order.
pub type EmbedFunction<'e> = dyn FnMut(&[&str]) -> Result<Vec<Vector>, BoxError> + 'e;

/// The models that a recollection asks.
pub struct RecallModels<'m> {
    /// Turns a question's wordings and last turn, or a target's sentence, into vectors of the bank's model.
    pub embed: &'m mut EmbedFunction<'m>,
    /// The bank's model.
    pub model: &'m ModelRef,
    /// Reads the best parts of the first hop together with the question, if `recall.rerank` is set.
    pub rerank: Option<&'m dyn Reranker>,
}

/// Answers a question with evidence (paper, algorithm 1).
///
/// At most `settings.rounds` rounds follow the first hop. The loop ends earlier if the plan stops, if it names no
/// anchor of the evidence, or if a round brings no new support.
///
/// # Errors
/// [`RecallError`] if the question cannot be asked, or if the memory or the embedder fails. If the reranker fails, the
/// evidence is chosen without it, and its trace says so.
pub fn recollect(
    memory: &dyn RecallMemory,
    models: RecallModels<'_>,
    question: &Question,
    planner: &dyn Planner,
    settings: &RecallSettings,
) -> Result<Evidence, RecallError> {
    let mut found = recollection(memory, models, question, planner, settings)?;
    if question.compare {
        let failed = |source| RecallError::Memory {
            bank: question.bank.to_string(),
            what: "rankings without the graph".to_owned(),
            source,
        };
        found.evidence.flat = Some(flat_rankings::flat_comparison(memory, &found).map_err(failed)?);
    }
    Ok(found.evidence)
}

/// As [`recollect`], with what the evidence was chosen from.
pub(super) fn recollection<'q>(
    memory: &dyn RecallMemory,
    models: RecallModels<'_>,
    question: &'q Question,
    planner: &dyn Planner,
    settings: &RecallSettings,
) -> Result<Recollection<'q>, RecallError> {
    let RecallModels { embed, model, rerank } = models;
    let within = asked_settings(question, settings)?;
    let settings = &within;
    let read = question_cues::parse_question(question)?;
    let cues = question_cues::with_asker(planner.cues(&read), &read);
    let failed_embed = |what: String| move |source| RecallError::Embed { what, source };
    let vectors = QuestionVectors::of(&cues, &question.said_before, embed)?;
    let failed = |what: String| {
        let bank = question.bank.to_string();
        move |source| RecallError::Memory { bank, what, source }
    };

    let select = question.narrowing().cloned().map(|select| MatchProbe { bank: question.bank.key(), select });
    let matched = select.map(|probe| memory.matching(probe)).transpose().map_err(failed("selector".to_owned()))?;
    // What the answer reflects is what the selector was compared with, which no later probe precedes.
    let (matching, matched_at) = matched.map(|matched| (matched.value, matched.reflects)).unzip();
    let matching = matching.as_ref();
    let asked = first_hop::FirstHopQuery { read: &read, cues: &cues, vector: &vectors.asking, matching };
    let mut first = first_hop::first_hop(memory, &asked, rerank, settings).map_err(failed("first hop".to_owned()))?;
    first.reflects = matched_at.unwrap_or(first.reflects);
    let asker = question.asker.as_deref().zip(first.familiar.unknown_asker.as_deref());
    let notice = asker.map(|(asker, known)| unknown_asker::unknown_asker_notice(asker, known));
    // What others said of themselves is no evidence about a person who has not spoken.
    let about_stranger = notice.is_some() && read.is_in_first_person();
    if about_stranger {
        first.candidates.clear();
    }
    let mut evidence = assemble::consolidate(first.candidates.clone());
    let mut rounds = Vec::new();
    let mut stop_reason = match &question.asker {
        Some(asker) if about_stranger => unknown_asker::no_words_of(asker),
        _ => planner::ROUNDS_SPENT.to_owned(),
    };
    let most_rounds = if about_stranger { 0 } else { settings.rounds };
    for round in 1..=most_rounds {
        let plan = enforce_plan_rules(planner.plan(&read, &cues, &evidence, round, settings), &evidence, settings);
        let Some(target) = plan.target.clone().filter(|_| plan.proceed) else {
            stop_reason.clone_from(&plan.reason);
            let (support, neighbours) = (Support::default(), Vec::new());
            rounds.push(PlannedRound { plan, support, neighbours, known: BTreeSet::new(), reflects: Vec::new() });
            break;
        };
        for candidate in &mut evidence {
            candidate.anchor |= plan.anchors.contains(&candidate.unit.id);
        }
        let what = format!("target of round {round}");
        let wanted = embed(&[&target.sentence]).map_err(failed_embed(what.clone()))?.pop();
        let wanted = wanted.ok_or_else(|| failed_embed(what)("no vector".into()))?;
        let probe = neighbourhood_probe(
            question,
            &plan,
            &target,
            vectors.asking.clone(),
            index::quantise(&wanted.floats()),
            matching,
            settings,
        );
        let answer = memory.neighbourhood(probe).map_err(failed(format!("expansion of round {round}")))?;
        let known: BTreeSet<UnitId> = evidence.iter().map(|c| c.unit.id).collect();
        let support = expand::expand(&answer.value, &known, &first.impressions, first.floor, settings);
        let ended = support.candidates.is_empty();
        evidence = assemble::consolidate(evidence.into_iter().chain(support.candidates.iter().cloned()).collect());
        rounds.push(PlannedRound { plan, support, neighbours: answer.value, known, reflects: answer.reflects });
        if ended {
            planner::NO_SUPPORT.clone_into(&mut stop_reason);
            break;
        }
    }

    let sufficiency =
        if about_stranger { 0.0 } else { planner.agreement(&read, &cues, &first.familiar).clamp(0.0, 1.0) };
    let taken = matching.map(|matching| &**matching);
    evidence.iter_mut().for_each(|candidate| candidate.narrow(taken));
    let assembled = assemble::assemble(evidence.clone(), settings);
    let unsupported = abstention(&assembled, &stop_reason, sufficiency, first.familiar.own_topics(), settings);
    let nothing = asked_time::nothing_of_time(&read, &first.familiar);
    // Where nothing supports the question anyway, this is the better reason.
    let unsupported = match &nothing {
        Some((reason, chooses)) if *chooses || unsupported.is_some() => Some(reason.clone()),
        _ => unsupported,
    };
    let standing = StandingSection::of(&first.profile, question, settings);
    let later = LaterWords::of(&first.profile, &standing.instructions);
    let notes = ContextNotes {
        later: Some(&later),
        unsupported: unsupported.as_deref(),
        remark: nothing.as_ref().map(|(reason, _)| reason.as_str()).filter(|_| unsupported.is_none()),
    };
    let room = ContextRoom { most: settings.stop.most_tokens, usual: settings.budget_tokens, taken: standing.tokens };
    let BudgetedEvidence { ranked, context, tokens, superseding } = token_budget::fit_evidence(
        assembled,
        &first.impressions,
        (&first.familiar, first.chosen.quoted()),
        room,
        notes,
    );
    let (context, tokens) = standing.behind(context, tokens);
    let kept: BTreeSet<UnitId> = ranked.iter().map(|r| r.candidate.unit.id).collect();
    let quoted: QuotedUnits = ranked.iter().map(|r| (r.candidate.unit.id, r.candidate.excerpt.clone())).collect();
    let asker = question.asker.clone().or_else(|| first.familiar.only_person.clone());
    let trace = Trace {
        cues,
        asker: asker.filter(|_| read.is_in_first_person()),
        period: asked_time::asked_period(&read, &first.familiar),
        form: speaker_shares::asked_form(&read, &first.familiar),
        vector_hash: vector_hash(&vectors.own, model),
        llm: planner.usage(),
        scale: familiarity_scale(&first),
        rerank: first.reranked.clone(),
        first_hop: first.candidates.iter().map(|candidate| considered_unit(candidate, &kept, taken, true)).collect(),
        near: near_misses(&first.familiar, &quoted, taken, question.near.unwrap_or_default() as usize),
        rounds: rounds
            .iter()
            .map(|round| RecallRound {
                plan: round.plan.clone(),
                reached: round.support.reached,
                support: round
                    .support
                    .considered
                    .iter()
                    .map(|c| considered_unit(&c.candidate, &kept, taken, c.enters))
                    .collect(),
                reflects: round.reflects.clone(),
                walk: (question.walk && round.plan.proceed)
                    .then(|| walk_trace(round, &evidence, &first.impressions, taken)),
            })
            .collect(),
    };
    let answer = Evidence {
        schema: SCHEMA_VERSION,
        question: question.clone(),
        context: context.text,
        context_turns: context.turns,
        tokens,
        instructions: standing.instructions,
        superseding,
        units: ranked.into_iter().map(|ranked| evidence_unit(ranked, taken)).collect(),
        sufficiency,
        supported: unsupported.is_none(),
        stop_reason,
        reflects: first.reflects.clone(),
        trace,
        forgotten: None,
        flat: None,
        notice,
    };
    let (vector, matching) = (vectors.asking, matching.cloned());
    Ok(Recollection {
        settings: within,
        read,
        vector,
        matching,
        first,
        rounds,
        found: evidence,
        quoted,
        evidence: answer,
    })
}

/// The vectors of a question.
pub(super) struct QuestionVectors {
    /// The vector of its own wording.
    pub(super) own: Vector,
    /// The vector by which the memory is probed, in fixed point. If the question names a person, it lies halfway to
    /// the vector of the wording in the first person: people say "I", not their name, so a name is nearer to what
    /// others say to that person. The last turn of the conversation is added with a small weight.
    pub(super) asking: index::FixedVector,
}

impl QuestionVectors {
    /// Embeds a question, and the last turn of the conversation in which it is asked.
    ///
    /// # Errors
    /// [`RecallError::Embed`] if `embed` fails.
    pub(super) fn of(
        cues: &QuestionCues,
        said_before: &[PrecedingTurn],
        embed: &mut EmbedFunction<'_>,
    ) -> Result<Self, RecallError> {
        let text = cues.semantic_query.as_str();
        let first_person = first_person_wording(text, &cues.cues.participants);
        let before = said_before.last().map(|said| said.text.as_str()).filter(|text| !text.trim().is_empty());
        let wordings: Vec<&str> = std::iter::once(text).chain(first_person.as_deref()).chain(before).collect();
        let failed = |source| RecallError::Embed { what: "question".to_owned(), source };
        let vectors = embed(&wordings).map_err(failed)?;
        let own = vectors.first().cloned().ok_or_else(|| failed("no vector".into()))?;
        let floats = own.floats();
        let halfway =
            |other: &Vector| floats.iter().zip(other.floats().iter()).map(|(x, y)| x + y).collect::<Vec<f32>>();
        let wording = vectors.get(1).filter(|_| first_person.is_some());
        let asking = wording.map_or_else(|| floats.to_vec(), halfway);
        let asking = match vectors.last().filter(|_| before.is_some()) {
            None => index::quantise(&asking),
            Some(before) => index::quantise(&turned_vector(&asking, &before.floats())),
        };
        Ok(Self { own, asking })
    }
}

/// Checks the question's time, its conversation and its `most_tokens`. Takes the settings of its profile, and fits them
/// to that number of tokens.
pub(super) fn asked_settings(question: &Question, settings: &RecallSettings) -> Result<RecallSettings, RecallError> {
    let bound = settings.stop.bound_tokens;
    question.asked_at.map_or(Ok(()), |time| time.check_offset("asked_at"))?;
    if let Some(select) = question.select.as_ref().filter(|select| !select.is_empty()) {
        select.check().map_err(|problem| RecallError::WrongSelector { problem })?;
    }
    let bytes = question.said_before.iter().map(|said| said.speaker.len() + said.text.len()).sum();
    if bytes > MAX_QUESTION_BYTES {
        return Err(RecallError::LongConversation { bytes });
    }
    if let Some(near) = question.near.filter(|near| *near > MAX_NEAR_MISSES) {
        return Err(RecallError::ManyNearMisses { near });
    }
    let settings = match &question.profile {
        None => settings.clone(),
        Some(name) => settings.of_profile(name).map_err(|problem| RecallError::UnknownProfile { problem })?,
    };
    match question.most_tokens {
        None => Ok(settings),
        Some(0) => Err(RecallError::NoTokens),
        Some(most) if most as usize <= bound => Ok(settings.with_most_tokens(most as usize)),
        Some(most) => Err(RecallError::ManyTokens { most, bound }),
    }
}

/// The direction of a question's vector, turned towards the vector of what was said before it.
fn turned_vector(question: &[f32], before: &[f32]) -> Vec<f32> {
    let length = |vector: &[f32]| vector.iter().map(|x| x * x).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    let (of_question, of_before) = ((1.0 - SAID_BEFORE) / length(question), SAID_BEFORE / length(before));
    question.iter().zip(before).map(|(x, y)| x * of_question + y * of_before).collect()
}

fn neighbourhood_probe(
    question: &Question,
    plan: &Plan,
    target: &Target,
    question_vector: index::FixedVector,
    target_vector: index::FixedVector,
    matching: Option<&Arc<MatchingParts>>,
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
        itself: false,
        matching: matching.cloned(),
    }
}

/// Enforces the rules of a plan, whichever planner made it: anchors are units of the evidence, each
/// once, at most `settings.anchors`. A plan without an anchor or without a target stops.
fn enforce_plan_rules(mut plan: Plan, evidence: &[EvidenceCandidate], settings: &RecallSettings) -> Plan {
    let mut seen = BTreeSet::new();
    plan.anchors.retain(|a| evidence.iter().any(|c| c.unit.id == *a) && seen.insert(*a));
    plan.anchors.truncate(settings.anchors);
    if plan.proceed && (plan.anchors.is_empty() || plan.target.is_none()) {
        plan.proceed = false;
        planner::NO_START.clone_into(&mut plan.reason);
    }
    if !plan.proceed {
        plan.anchors.clear();
        plan.target = None;
    }
    plan
}

/// A candidate with one provenance, as the trace shows it: kept if it entered this way and is in
/// the final evidence.
fn considered_unit(
    candidate: &EvidenceCandidate,
    kept: &BTreeSet<UnitId>,
    matching: Option<&MatchingParts>,
    enters: bool,
) -> ConsideredUnit {
    ConsideredUnit {
        id: candidate.unit.id,
        restatement: shown_restatement(&candidate.unit, matching),
        provenance: candidate.provenance.first().cloned().unwrap_or(Provenance::FirstHop {
            channel: Channel::Semantic,
            rank: 0,
            score: 0.0,
        }),
        kept: enters && kept.contains(&candidate.unit.id),
    }
}

fn evidence_unit(ranked: RankedCandidate, matching: Option<&MatchingParts>) -> EvidenceUnit {
    let EvidenceCandidate { unit, provenance, anchor, excerpt, .. } = ranked.candidate;
    let quoted = unit.parts().enumerate().filter(|(at, _)| excerpt.as_ref().is_none_or(|e| e.contains(at)));
    EvidenceUnit {
        id: unit.id,
        restatement: shown_restatement(&unit, matching),
        cues: unit.cues(),
        said_at: unit.said_at,
        sources: shown_sources(&unit, matching),
        excerpts: quoted.map(|(_, part)| Excerpt::from(part)).collect(),
        rho: ranked.rho,
        anchor,
        provenance,
    }
}

/// BLAKE3 of the vector's little-endian bytes and its model's hash.
fn vector_hash(vector: &Vector, model: &ModelRef) -> String {
    let mut hash = blake3::Hasher::new();
    for x in vector.floats().iter() {
        hash.update(&x.to_le_bytes());
    }
    hash.update(model.hash.as_bytes());
    hash.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vector_hash_depends_on_vector_and_model() {
        let hash =
            |x: f32, model: &str| vector_hash(&Vector::from([x]), &ModelRef { name: "m".into(), hash: model.into() });
        assert_ne!(hash(0.5, "a"), hash(0.25, "a"));
        assert_ne!(hash(0.5, "a"), hash(0.5, "b"));
        let mut bytes = 0.5f32.to_le_bytes().to_vec();
        bytes.push(b'a');
        assert_eq!(hash(0.5, "a"), blake3::hash(&bytes).to_hex().to_string());
    }
}
