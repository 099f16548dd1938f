//! The first hop (paper, section 3.4): the best units of each channel, or the most familiar parts
//! of the whole bank; `recall.first_hop` chooses.
//!
//! In: the question as read, its cues and its vector. Out: candidates with their provenance, in the
//! order of the trace, not consolidated; and how familiar the bank's parts are. In both cases, anchors
//! and support are chosen by that familiarity. A reranker may change it before anything is chosen.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    BoxError, EvidenceCandidate, PartShares, RecallMemory, asked_time,
    cutoff::CutoffResult,
    reranker::{Reranker, rerank},
    speaker_shares,
    standing_instructions::asker_profile,
};
use crate::{
    index::{
        DataflowAnswer, FamiliarityProbe, FamiliarityResult, FirstHopHit, FirstHopProbe, FixedVector, MatchingParts,
        ProfileLine,
    },
    language::question::{ParsedQuestion, QuestionType},
};
use types::{
    config::{FamiliarityWeights, FirstHopMethod, RecallSettings},
    model::{LogPosition, Provenance, QuestionCues, RerankResult, UnitId, canonical_name},
};

/// Most parts that a familiarity probe returns: more than any answer or expansion uses.
const MAX_PARTS: usize = 1_024;

/// The result of the first hop.
pub(super) struct FirstHopResult {
    /// The candidates.
    pub(super) candidates: Vec<EvidenceCandidate>,
    /// How familiar the bank's parts are.
    pub(super) impressions: PartShares,
    /// Least familiarity of a unit that a round adds.
    pub(super) floor: f64,
    /// How the quoted parts were chosen.
    pub(super) chosen: PartChoice,
    /// The answer to the familiarity probe, in the order that a reranker gave it.
    pub(super) familiar: FamiliarityResult,
    /// What the reranker said, if there is one.
    pub(super) reranked: Option<RerankResult>,
    /// The profile of the person who asks; empty for a question about some turns alone, which gets no words of others.
    pub(super) profile: Vec<Arc<ProfileLine>>,
    /// The log offsets that the result reflects.
    pub(super) reflects: Vec<LogPosition>,
}

/// How a first hop chose what it quotes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PartChoice {
    /// By channels: whole units.
    ByChannels,
    /// Persons' and assistants' parts share the tokens. The indexes in `familiar.best` of the quoted parts, each with
    /// its share.
    ByShares(Vec<(usize, f64)>),
    /// The parts above the cutoff, and the cutoff after the last of them.
    AboveCutoff(Vec<(usize, f64)>, f64),
}

impl PartChoice {
    /// The indexes in `familiar.best` of the parts that are quoted, each with its share, best first.
    pub(super) fn quoted(&self) -> &[(usize, f64)] {
        match self {
            Self::ByChannels => &[],
            Self::ByShares(parts) | Self::AboveCutoff(parts, _) => parts,
        }
    }
}

/// A question with its cues and its vector, as the first hop needs it.
pub(super) struct FirstHopQuery<'q> {
    /// The question.
    pub(super) read: &'q ParsedQuestion<'q>,
    /// The question's cues.
    pub(super) cues: &'q QuestionCues,
    /// The question's vector.
    pub(super) vector: &'q FixedVector,
    /// The parts that its selector takes; `None` if it has none.
    pub(super) matching: Option<&'q Arc<MatchingParts>>,
}

/// Finds the first candidates for a question. A reranker is asked where there is one and the settings name it.
pub(super) fn first_hop(
    memory: &dyn RecallMemory,
    asked: &FirstHopQuery<'_>,
    reranker: Option<&dyn Reranker>,
    settings: &RecallSettings,
) -> Result<FirstHopResult, BoxError> {
    let DataflowAnswer { value: mut familiar, reflects, .. } = memory.familiar(familiarity_probe(asked, settings))?;
    let reranked = reranker.zip(settings.rerank.as_ref());
    let reranked = reranked.map(|(model, settings)| rerank(&mut familiar, asked.read, model, settings));
    let impressions = PartShares::of(&familiar);
    let profile = match asked.matching {
        Some(_) => Vec::new(),
        None => asker_profile(memory, asked.read.question(), familiar.only_person.as_deref(), settings)?,
    };
    if settings.first_hop == FirstHopMethod::Familiarity {
        let of_time = asked_time::parts_of_time(&familiar);
        let quotable = of_time.as_ref().unwrap_or(&familiar);
        let (quoted, by_shares) = speaker_shares::choose_parts(quotable, asked.read, &profile, settings);
        let CutoffResult { parts, cutoff } = quoted;
        let question = asked.read.question();
        return Ok(FirstHopResult {
            candidates: candidates(&familiar, &parts, question.near.is_some() || question.walk),
            impressions,
            // Where the time alone is asked for, nothing else is added.
            floor: if of_time.is_some() { f64::INFINITY } else { cutoff - settings.link_worth },
            chosen: if by_shares { PartChoice::ByShares(parts) } else { PartChoice::AboveCutoff(parts, cutoff) },
            familiar,
            reranked,
            profile,
            reflects,
        });
    }
    // This probe comes after the familiarity probe, so its answer reflects at least the same offsets.
    let DataflowAnswer { value: hits, .. } = memory.first_hop(channel_probe(asked, settings))?;
    let candidates = sort_hits(hits).iter().map(|hit| from_hit(hit, &impressions)).collect();
    let (floor, chosen) = (settings.support_floor, PartChoice::ByChannels);
    Ok(FirstHopResult { candidates, impressions, floor, chosen, familiar, reranked, profile, reflects })
}

/// Every part of the bank, scored as by [`first_hop`].
pub(super) fn every_part(
    memory: &dyn RecallMemory,
    asked: &FirstHopQuery<'_>,
    settings: &RecallSettings,
) -> Result<FamiliarityResult, BoxError> {
    Ok(memory
        .familiar(FamiliarityProbe { limit: usize::MAX, candidates: 0, ..familiarity_probe(asked, settings) })?
        .value)
}

/// The most familiar parts if these weights alone made their score.
pub(super) fn by_weights(
    memory: &dyn RecallMemory,
    asked: &FirstHopQuery<'_>,
    settings: &RecallSettings,
    weights: FamiliarityWeights,
) -> Result<FamiliarityResult, BoxError> {
    Ok(memory.familiar(FamiliarityProbe { weights, ..familiarity_probe(asked, settings) })?.value)
}

pub(super) fn channel_probe(asked: &FirstHopQuery<'_>, settings: &RecallSettings) -> FirstHopProbe {
    let cues = asked.cues;
    FirstHopProbe {
        bank: asked.read.question().bank.key(),
        vector: asked.vector.clone(),
        words: cues.keywords.join(" "),
        language: asked.read.language().unwrap_or_default(),
        cues: cues.cues.clone(),
        semantic: settings.semantic,
        lexical: if cues.keywords.is_empty() { 0 } else { settings.lexical },
        // Without cues, the cue channel has nothing to score by.
        cue: if cues.cues.is_empty() { 0 } else { settings.cue },
        matching: asked.matching.cloned(),
    }
}

fn familiarity_probe(asked: &FirstHopQuery<'_>, settings: &RecallSettings) -> FamiliarityProbe {
    let read = asked.read;
    let persons = &asked.cues.cues.participants;
    let of_a_person = |word: &str| persons.iter().any(|p| p.split(' ').any(|n| n == word));
    FamiliarityProbe {
        bank: asked.read.question().bank.key(),
        vector: asked.vector.clone(),
        words: read.searched_text(),
        language: read.language(),
        topics: read.topics().filter(|word| !of_a_person(word)).map(str::to_owned).collect(),
        persons: persons.iter().flat_map(|person| person.split(' ')).map(str::to_owned).collect(),
        names: read.names().chain(persons.iter().cloned()).collect(),
        subject: read.subject(persons),
        asker: read.question().asker.as_deref().map(canonical_name),
        asks_time: asked.read.question_type() == QuestionType::Time,
        time: asked_time::probed_time(read),
        weights: settings.familiarity.weights.clone(),
        cosines: settings.familiarity.cosines,
        greeted_names: settings.familiarity.greeted_names,
        zero: settings.familiarity.zero,
        scale_tokens: settings.familiarity.scale_tokens,
        candidates: settings.familiarity.candidates,
        linked_units: settings.familiarity.linked_units,
        limit: MAX_PARTS,
        matching: asked.matching.cloned(),
    }
}

/// Sorts hits into the trace's order: by channel (semantic, lexical, cue), then by rank.
fn sort_hits(mut hits: Vec<FirstHopHit>) -> Vec<FirstHopHit> {
    hits.sort_by_key(|h| (h.channel.order(), h.rank, h.unit.id));
    hits
}

fn from_hit(hit: &FirstHopHit, impressions: &PartShares) -> EvidenceCandidate {
    EvidenceCandidate {
        unit: hit.unit.clone(),
        alignment: hit.alignment,
        provenance: vec![Provenance::FirstHop { channel: hit.channel, rank: hit.rank, score: hit.score.as_f64() }],
        anchor: false,
        familiarity: impressions.of_unit(hit.unit.id),
        excerpt: None,
    }
}

/// The quoted parts, one candidate per unit, in the order of each unit's best part; with its share if `told`.
pub(super) fn candidates(familiar: &FamiliarityResult, quoted: &[(usize, f64)], told: bool) -> Vec<EvidenceCandidate> {
    let mut out: Vec<EvidenceCandidate> = Vec::new();
    let mut index: BTreeMap<UnitId, usize> = BTreeMap::new();
    for &(at, share) in quoted {
        let Some(part) = familiar.best.get(at) else { continue };
        let known = *index.entry(part.unit.id).or_insert(out.len());
        if let Some(candidate) = out.get_mut(known) {
            candidate.excerpt.get_or_insert_default().insert(part.part);
            continue;
        }
        let rank = u32::try_from(at + 1).unwrap_or(u32::MAX);
        out.push(EvidenceCandidate {
            unit: part.unit.clone(),
            alignment: part.cosine,
            provenance: vec![Provenance::Familiar {
                rank,
                score: part.score,
                share: told.then_some(share),
                terms: part.terms,
            }],
            anchor: false,
            familiarity: share,
            excerpt: Some([part.part].into()),
        });
    }
    out
}
