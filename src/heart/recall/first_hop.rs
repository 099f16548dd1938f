//! The first hop (paper, section 3.4): the best units of each channel, or the most familiar parts
//! of the whole bank; `recall.first_hop` chooses.
//!
//! In: the question as read, its cues and its vector. Out: candidates with their provenance, in the
//! order of the trace, not consolidated; and how familiar the bank's parts are. In both cases, anchors
//! and support are chosen by that familiarity. A reranker may change it before anything is chosen.

use std::collections::BTreeMap;

use super::{
    Candidate, Failure, Impressions, Memory,
    cutoff::{self, QuotedParts},
    rerank::{Rerank, rerank},
    shares,
};
use crate::{
    language::question::{QuestionType, ReadQuestion},
    memory::{Answered, FamiliarParts, FamiliarityProbe, FirstHopProbe, FixedVector, Hit},
};
use nouns::{
    config::{FamiliarityWeights, FirstHop, RecallSettings},
    model::{Position, Provenance, QuestionCues, Reranked, UnitId, canonical_name},
};

/// Most parts that a familiarity probe returns: more than any answer or expansion uses.
const MOST_PARTS: usize = 1_024;

/// The result of the first hop.
pub(super) struct FirstHopResult {
    /// The candidates.
    pub(super) candidates: Vec<Candidate>,
    /// How familiar the bank's parts are.
    pub(super) impressions: Impressions,
    /// Least familiarity of a unit that a round adds.
    pub(super) floor: f64,
    /// How the parts were chosen that the first hop quotes.
    pub(super) chosen: ChosenParts,
    /// The answer to the familiarity probe, in the order that a reranker gave it.
    pub(super) familiar: FamiliarParts,
    /// What the reranker said, if there is one.
    pub(super) reranked: Option<Reranked>,
    /// The log offsets that the result reflects.
    pub(super) reflects: Vec<Position>,
}

/// How a first hop chose what it quotes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ChosenParts {
    /// By channels: whole units.
    ByChannels,
    /// Persons' and assistants' parts shared the tokens; the indexes in `familiar.best` of those that are quoted, each
    /// with its share.
    ByShares(Vec<(usize, f64)>),
    /// The parts above the cutoff, and the cutoff after the last of them.
    AboveCutoff(Vec<(usize, f64)>, f64),
}

impl ChosenParts {
    /// The indexes in `familiar.best` of the parts that are quoted, each with its share, best first.
    pub(super) fn quoted(&self) -> &[(usize, f64)] {
        match self {
            Self::ByChannels => &[],
            Self::ByShares(parts) | Self::AboveCutoff(parts, _) => parts,
        }
    }
}

/// A question with its cues and its vector, by which the first hop looks it up.
pub(super) struct FirstHopQuestion<'q> {
    /// The question.
    pub(super) read: &'q ReadQuestion<'q>,
    /// The question's cues.
    pub(super) cues: &'q QuestionCues,
    /// The question's vector.
    pub(super) vector: &'q FixedVector,
}

/// Finds the first candidates for a question. A reranker is asked where there is one and the settings name it.
pub(super) fn first_hop(
    memory: &dyn Memory,
    asked: &FirstHopQuestion<'_>,
    reranker: Option<&dyn Rerank>,
    settings: &RecallSettings,
) -> Result<FirstHopResult, Failure> {
    let Answered { value: mut familiar, reflects, .. } = memory.familiar(familiarity(asked, settings))?;
    let reranked = reranker.zip(settings.rerank.as_ref());
    let reranked = reranked.map(|(model, settings)| rerank(&mut familiar, asked.read, model, settings));
    let impressions = Impressions::of(&familiar);
    if settings.first_hop == FirstHop::Familiarity {
        let (quoted, by_shares) = if shares::is_with_assistants(&familiar) {
            (shares::by_shares(&familiar, asked.read.form(), settings), true)
        } else {
            (cutoff::above_cutoff(&familiar, asked.read.question_type(), settings), false)
        };
        let QuotedParts { parts, cutoff } = quoted;
        let question = asked.read.question();
        return Ok(FirstHopResult {
            candidates: candidates(&familiar, &parts, question.near.is_some() || question.walk),
            impressions,
            floor: cutoff - settings.link_worth,
            chosen: if by_shares { ChosenParts::ByShares(parts) } else { ChosenParts::AboveCutoff(parts, cutoff) },
            familiar,
            reranked,
            reflects,
        });
    }
    // This probe comes after the familiarity probe, so its answer reflects at least the same offsets.
    let Answered { value: hits, .. } = memory.first_hop(channels(asked, settings))?;
    let candidates = in_order(hits).iter().map(|hit| from_hit(hit, &impressions)).collect();
    let (floor, chosen) = (settings.support_floor, ChosenParts::ByChannels);
    Ok(FirstHopResult { candidates, impressions, floor, chosen, familiar, reranked, reflects })
}

/// Every part of the bank, scored as by [`first_hop`].
pub(super) fn every_part(
    memory: &dyn Memory,
    asked: &FirstHopQuestion<'_>,
    settings: &RecallSettings,
) -> Result<FamiliarParts, Failure> {
    Ok(memory.familiar(FamiliarityProbe { limit: usize::MAX, candidates: 0, ..familiarity(asked, settings) })?.value)
}

/// The most familiar parts if these weights alone made their score.
pub(super) fn by_weights(
    memory: &dyn Memory,
    asked: &FirstHopQuestion<'_>,
    settings: &RecallSettings,
    weights: FamiliarityWeights,
) -> Result<FamiliarParts, Failure> {
    Ok(memory.familiar(FamiliarityProbe { weights, ..familiarity(asked, settings) })?.value)
}

pub(super) fn channels(asked: &FirstHopQuestion<'_>, settings: &RecallSettings) -> FirstHopProbe {
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
    }
}

fn familiarity(asked: &FirstHopQuestion<'_>, settings: &RecallSettings) -> FamiliarityProbe {
    let read = asked.read;
    let persons = &asked.cues.cues.participants;
    let of_a_person = |word: &str| persons.iter().any(|p| p.split(' ').any(|n| n == word));
    FamiliarityProbe {
        bank: asked.read.question().bank.key(),
        vector: asked.vector.clone(),
        words: read.text().to_owned(),
        language: read.language(),
        topics: read.topics().filter(|word| !of_a_person(word)).map(str::to_owned).collect(),
        persons: persons.iter().flat_map(|person| person.split(' ')).map(str::to_owned).collect(),
        names: read.names().chain(persons.iter().cloned()).collect(),
        subject: read.subject(persons),
        asker: read.question().asker.as_deref().map(canonical_name),
        asks_time: asked.read.question_type() == QuestionType::Time,
        months: read.months().to_vec(),
        days: read.days().to_vec(),
        weights: settings.familiarity.weights.clone(),
        cosines: settings.familiarity.cosines,
        greeted_names: settings.familiarity.greeted_names,
        zero: settings.familiarity.zero,
        scale_tokens: settings.familiarity.scale_tokens,
        candidates: settings.familiarity.candidates,
        linked_units: settings.familiarity.linked_units,
        limit: MOST_PARTS,
    }
}

/// Sorts hits into the trace's order: by channel (semantic, lexical, cue), then by rank.
fn in_order(mut hits: Vec<Hit>) -> Vec<Hit> {
    hits.sort_by_key(|h| (h.channel.order(), h.rank, h.unit.id));
    hits
}

fn from_hit(hit: &Hit, impressions: &Impressions) -> Candidate {
    Candidate {
        unit: hit.unit.clone(),
        alignment: hit.alignment,
        provenance: vec![Provenance::FirstHop { channel: hit.channel, rank: hit.rank, score: hit.score.as_f64() }],
        anchor: false,
        familiarity: impressions.of_unit(hit.unit.id),
        excerpt: None,
    }
}

/// The quoted parts as one candidate a unit, in the order of each unit's best part; `told` says whether each tells its share.
pub(super) fn candidates(familiar: &FamiliarParts, quoted: &[(usize, f64)], told: bool) -> Vec<Candidate> {
    let mut out: Vec<Candidate> = Vec::new();
    let mut index: BTreeMap<UnitId, usize> = BTreeMap::new();
    for &(at, share) in quoted {
        let Some(part) = familiar.best.get(at) else { continue };
        let known = *index.entry(part.unit.id).or_insert(out.len());
        if let Some(candidate) = out.get_mut(known) {
            candidate.excerpt.get_or_insert_default().insert(part.part);
            continue;
        }
        let rank = u32::try_from(at + 1).unwrap_or(u32::MAX);
        out.push(Candidate {
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
