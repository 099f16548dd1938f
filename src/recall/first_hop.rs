//! What comes to mind first (paper, section 3.4): the channels' best units, or the most
//! familiar parts of the whole bank.
//!
//! In: the question's cues and vector. Out: candidates with their provenance, in the order
//! in which a trace shows them, not consolidated; and how familiar the bank's parts are,
//! by which anchors and support are chosen in either case. Which of the two is a setting.

use std::collections::BTreeMap;

use super::{Candidate, Failure, Impressions, Memory, cutoff};
use crate::{
    config::{FirstHop, RecallSettings},
    language::{
        question::{QuestionType, ReadQuestion},
        sentences::is_empty_word,
        synonyms::synonyms,
    },
    memory::{Answered, FamiliarParts, FamiliarityProbe, FirstHopProbe, FixedVector, Hit},
    model::{Position, Provenance, QuestionCues, UnitId},
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

/// A question on its way into a probe.
pub(super) struct FirstHopQuestion<'q> {
    /// The question.
    pub(super) read: &'q ReadQuestion<'q>,
    /// What it is looked up by.
    pub(super) cues: &'q QuestionCues,
    /// Its vector.
    pub(super) vector: &'q FixedVector,
    /// The vector of the question as the one who is asked about would put it.
    pub(super) first_person_vector: Option<FixedVector>,
}

/// Asks the memory.
pub(super) fn first_hop(
    memory: &dyn Memory,
    asked: &FirstHopQuestion<'_>,
    settings: &RecallSettings,
) -> Result<First, Failure> {
    let Answered { value: familiar, reflects, .. } = memory.familiar(familiarity(asked, settings))?;
    let impressions = Impressions::of(&familiar);
    if settings.first_hop == FirstHop::Familiarity {
        return Ok(First {
            candidates: candidates(&familiar, asked.read.question_type(), settings),
            impressions,
            reflects,
        });
    }
    // Asked later, the channels include at least what the familiarity does: its offsets hold for both.
    let Answered { value: hits, .. } = memory.first_hop(channels(asked, settings))?;
    let candidates = in_order(hits).iter().map(|hit| from_hit(hit, &impressions)).collect();
    Ok(First { candidates, impressions, reflects })
}

fn channels(asked: &FirstHopQuestion<'_>, settings: &RecallSettings) -> FirstHopProbe {
    let cues = asked.cues;
    FirstHopProbe {
        bank: asked.read.question().bank.key(),
        vector: asked.vector.clone(),
        words: cues.keywords.join(" "),
        cues: cues.cues.clone(),
        semantic: settings.semantic,
        lexical: if cues.keywords.is_empty() { 0 } else { settings.lexical },
        // Without a cue there is nothing to be scored by: no cue channel.
        cue: if cues.cues.is_empty() { 0 } else { settings.cue },
    }
}

fn familiarity(asked: &FirstHopQuestion<'_>, settings: &RecallSettings) -> FamiliarityProbe {
    let read = asked.read;
    let persons = &asked.cues.cues.participants;
    let of_a_person = |word: &str| persons.iter().any(|p| p.split(' ').any(|n| n == word));
    let topics: Vec<&str> = read.words().filter(|w| !of_a_person(w)).collect();
    let base = settings.familiarity.synonym_base;
    let of_word = |word: &str| -> Vec<(String, f64)> {
        synonyms(word).map(|(w, cosine)| (w.to_owned(), f64::from(cosine) - base)).filter(|(_, w)| *w > 0.0).collect()
    };
    let weights = if asked.read.question_type().gathered() {
        &settings.familiarity.gathered
    } else {
        &settings.familiarity.single
    };
    FamiliarityProbe {
        bank: asked.read.question().bank.key(),
        vector: asked.vector.clone(),
        first_person_vector: asked.first_person_vector.clone(),
        words: read.text().to_owned(),
        topics: topics.join(" "),
        synonyms: topics.iter().filter(|w| !is_empty_word(w)).map(|w| of_word(w)).collect(),
        names: read.words().map(str::to_owned).chain(persons.iter().cloned()).collect(),
        subject: read.subject(persons),
        asks_time: asked.read.question_type() == QuestionType::Time,
        months: read.months().to_vec(),
        weights: weights.clone(),
        zero: settings.familiarity.zero,
        scale_parts: settings.familiarity.scale_parts,
        limit: MOST_PARTS,
    }
}

/// The order in which a trace shows hits: semantic, lexical, cue; by rank.
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

/// The parts that are enough, as one candidate a unit, in the order of its best part.
fn candidates(familiar: &FamiliarParts, question_type: QuestionType, settings: &RecallSettings) -> Vec<Candidate> {
    let mut out: Vec<Candidate> = Vec::new();
    let mut place: BTreeMap<UnitId, usize> = BTreeMap::new();
    for (at, share) in cutoff::enough(familiar, question_type, settings) {
        let Some(part) = familiar.best.get(at) else { continue };
        let known = *place.entry(part.unit.id).or_insert(out.len());
        if let Some(candidate) = out.get_mut(known) {
            candidate.excerpt.get_or_insert_default().insert(part.part);
            continue;
        }
        let rank = u32::try_from(at + 1).unwrap_or(u32::MAX);
        out.push(Candidate {
            unit: part.unit.clone(),
            alignment: part.cosine,
            provenance: vec![Provenance::Familiar { rank, score: part.score, terms: part.terms }],
            anchor: false,
            familiarity: share,
            excerpt: Some([part.part].into()),
        });
    }
    out
}
