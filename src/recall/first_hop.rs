//! What comes to mind first (paper, section 3.4): the channels' best units, or the most
//! familiar parts of the whole bank.
//!
//! In: the question's cues and vector. Out: candidates with their provenance, in the order
//! in which a trace shows them, not consolidated; and how familiar the bank's parts are,
//! by which anchors and support are chosen in either case. Which of the two is a setting.

use std::collections::BTreeMap;

use super::{Candidate, Failure, Impressions, Memory, depth, form::Form, words::words};
use crate::{
    config::{FirstHop, RecallSettings},
    language::{months::months, synonyms::synonyms},
    memory::{Answered, Familiar, FamiliarityProbe, FirstHopProbe, FixedVector, Hit},
    model::{Channel, Position, Provenance, Question, QuestionCues, Score, UnitId},
};

/// The parts that a familiarity probe gives: more than any answer or walk holds.
const MOST_PARTS: usize = 2_048;

/// What the first hop found.
pub(super) struct First {
    /// What came to mind.
    pub(super) candidates: Vec<Candidate>,
    /// How familiar the bank's parts are.
    pub(super) impressions: Impressions,
    /// The offsets that it reflects.
    pub(super) reflects: Vec<Position>,
}

/// Asks the memory.
pub(super) fn first_hop(
    memory: &dyn Memory,
    question: &Question,
    cues: &QuestionCues,
    vector: &FixedVector,
    form: Form,
    settings: &RecallSettings,
) -> Result<First, Failure> {
    let Answered { value: familiar, reflects, .. } =
        memory.familiar(familiarity(question, cues, vector.clone(), settings))?;
    let impressions = Impressions::of(&familiar);
    if settings.first_hop == FirstHop::Familiarity {
        return Ok(First { candidates: candidates(&familiar, form, settings), impressions, reflects });
    }
    let Answered { value: hits, reflects, .. } =
        memory.first_hop(channels(question, cues, vector.clone(), settings))?;
    let candidates = in_order(hits).iter().map(|hit| from_hit(hit, &impressions)).collect();
    Ok(First { candidates, impressions, reflects })
}

fn channels(question: &Question, cues: &QuestionCues, vector: FixedVector, settings: &RecallSettings) -> FirstHopProbe {
    FirstHopProbe {
        bank: question.bank.key(),
        vector,
        words: cues.keywords.join(" "),
        cues: cues.cues.clone(),
        semantic: settings.semantic,
        lexical: if cues.keywords.is_empty() { 0 } else { settings.lexical },
        // Without a cue there is nothing to be scored by: no cue channel.
        cue: if cues.cues.is_empty() { 0 } else { settings.cue },
    }
}

fn familiarity(
    question: &Question,
    cues: &QuestionCues,
    vector: FixedVector,
    settings: &RecallSettings,
) -> FamiliarityProbe {
    let words: Vec<String> = words(&question.text).into_iter().map(|w| w.lower).collect();
    let mut alike: BTreeMap<String, f64> = BTreeMap::new();
    for (word, weight) in words.iter().flat_map(|w| synonyms(w)) {
        let known = alike.entry(word.to_owned()).or_insert(0.0);
        *known = known.max(f64::from(weight));
    }
    FamiliarityProbe {
        bank: question.bank.key(),
        vector,
        words: question.text.clone(),
        synonyms: alike.into_iter().collect(),
        names: words.into_iter().chain(cues.cues.participants.iter().cloned()).collect(),
        months: months(&question.text),
        weights: settings.familiarity.clone(),
        limit: MOST_PARTS,
    }
}

/// The order in which a trace shows hits: semantic, lexical, cue; by rank.
fn in_order(mut hits: Vec<Hit>) -> Vec<Hit> {
    let place = |channel| match channel {
        Channel::Semantic => 0,
        Channel::Lexical => 1,
        Channel::Structural => 2,
    };
    hits.sort_by_key(|h| (place(h.channel), h.rank, h.unit.id));
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

/// The parts that are enough, as one candidate a unit, in the order of its best part.
fn candidates(familiar: &Familiar, form: Form, settings: &RecallSettings) -> Vec<Candidate> {
    let mut out: Vec<Candidate> = Vec::new();
    let mut place: BTreeMap<UnitId, usize> = BTreeMap::new();
    for (at, share) in depth::enough(familiar, form, settings) {
        let Some(part) = familiar.best.get(at) else { continue };
        let known = *place.entry(part.unit.id).or_insert(out.len());
        if let Some(candidate) = out.get_mut(known) {
            candidate.excerpt.get_or_insert_default().insert(part.part);
            continue;
        }
        let weight = settings.familiarity.meaning;
        let cosine = if weight > 0.0 { part.terms.meaning / weight } else { 0.0 };
        let rank = u32::try_from(at + 1).unwrap_or(u32::MAX);
        out.push(Candidate {
            unit: part.unit.clone(),
            alignment: Score::from_f64(cosine),
            provenance: vec![Provenance::Familiar { rank, score: part.score, terms: part.terms }],
            anchor: false,
            familiarity: share,
            excerpt: Some([part.part].into()),
        });
    }
    out
}
