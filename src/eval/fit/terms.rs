//! The parts of a question's bank, with every term of the familiarity score before it is weighted.
//!
//! In: a memory and a question with its evidence. Out: the parts in the order of sessions and ordinals, each with its
//! terms, its cost if it is quoted, and which piece of evidence it is. Each term is read from the memory's own score
//! under weights that isolate it.

use std::collections::BTreeMap;

use memory::{
    index::{FamiliarityResult, PartBody},
    language::{
        question::{ParsedQuestion, QuestionForm, QuestionType},
        token_count,
    },
    recall::{PartWishes, is_standing, line_tokens, shared_part},
};
use models::embed::Embedder;
use pipeline::PipelineError;
use replica::Replica;
use types::{
    config::{FamiliarityWeights, RecallSettings},
    model::{FamiliarityTerms, Question, SpeakerKind, UnitId},
};

/// Number of terms.
pub(super) const TERMS: usize = 10;

/// The weights of the terms, in their order; a subtracted term has a negative weight.
pub(super) fn weights_of(w: &FamiliarityWeights, asks_time: bool) -> [f64; TERMS] {
    [
        w.meaning,
        w.pair,
        w.trio,
        w.words,
        w.speaker,
        w.month,
        w.day,
        if asks_time { w.times_asked } else { w.times },
        -w.asks,
        w.names,
    ]
}

/// A question with the terms of every part of its bank.
pub(super) struct QuestionTerms {
    /// Index of its dialogue, over all sets.
    pub(super) dialogue: usize,
    pub(super) question_type: QuestionType,
    /// Its form, if persons and assistants share all tokens.
    pub(super) form: Option<QuestionForm>,
    /// Number of its pieces of evidence.
    pub(super) evidence: usize,
    pub(super) parts: Vec<PartTerms>,
}

/// A part of the bank, with its terms for a question.
pub(super) struct PartTerms {
    pub(super) terms: [f32; TERMS],
    /// Whether it is a passage of a long turn, which has no neighbours and is not a neighbour of other parts.
    pub(super) is_passage: bool,
    /// Number of its session in the order of the parts, and how many sessions came after it.
    pub(super) session: usize,
    pub(super) age: usize,
    /// Whether a person said it, and what it says of what is wanted.
    pub(super) is_of_person: bool,
    pub(super) wishes: PartWishes,
    /// Number of its unit, and of its day in its session.
    pub(super) unit: usize,
    pub(super) heading: usize,
    /// Estimated tokens, which the memory's stop counts, and o200k tokens.
    pub(super) estimated: f64,
    pub(super) tokens: f64,
    /// Tokens of its line if persons and assistants share the tokens, otherwise 0.
    pub(super) line: usize,
    /// Which piece of the evidence it is.
    pub(super) piece: Option<usize>,
}

/// Reads the terms of a question; `evidence` are the turns that hold the answer, `dialogue` is the number of its
/// dialogue.
///
/// # Errors
/// [`PipelineError`] when the memory or the embedder fails.
pub(super) fn terms_of(
    replica: &Replica,
    embedder: &mut dyn Embedder,
    question: &Question,
    evidence: &[String],
    dialogue: usize,
    settings: &RecallSettings,
) -> Result<QuestionTerms, PipelineError> {
    let mut embed = |texts: &[&str]| {
        let vectors: Result<Vec<_>, _> = texts.iter().map(|text| embedder.embed_query(text)).collect();
        vectors.map_err(Into::into)
    };
    let looks = replica.every_part(question, &mut embed, &TERM_PROBES.map(|look| look.settings(settings)))?;
    let mut parts: PartsInOrder<'_> = BTreeMap::new();
    for (look, found) in TERM_PROBES.iter().zip(&looks) {
        look.read(found, &mut parts);
    }
    let read = ParsedQuestion::of(question);
    let form = looks.first().is_some_and(|look| shared_part(look, read.form()) >= 1.0).then(|| read.form());
    let looked = looks.first().filter(|_| form.is_some());
    let preferences = looked.map(|look| replica.stated_preferences(question, look, settings)).transpose()?;
    let ages = ages(&parts);
    let mut numbers = NameNumbers::default();
    let parts = parts.into_iter().map(|((session, _, unit, _), (terms, body))| {
        let is_of_person = matches!(body.kind, None | Some(SpeakerKind::Person));
        PartTerms {
            terms,
            is_passage: body.range.is_some(),
            session: numbers.of(format!("session {session}")),
            age: ages.get(session).copied().unwrap_or_default(),
            is_of_person,
            wishes: PartWishes {
                stands: form.is_some() && is_of_person && is_standing(body.text),
                prefers: preferences.as_ref().is_some_and(|preferences| preferences.are_in(&body)),
            },
            unit: numbers.of(format!("unit {unit}")),
            heading: numbers.of(format!("day {session} {}", body.said_at.local().date())),
            estimated: body.estimated_tokens(),
            tokens: token_count::count_tokens(&format!("{}: {}\n", body.speaker, body.text)) as f64,
            line: if form.is_some() { line_tokens(body.text) } else { 0 },
            piece: evidence.iter().position(|turn| *turn == body.turn),
        }
    });
    let (question_type, parts) = (read.question_type(), parts.collect());
    Ok(QuestionTerms { dialogue, question_type, form, evidence: evidence.len(), parts })
}

/// How many sessions came after each.
fn ages<'f>(parts: &PartsInOrder<'f>) -> BTreeMap<&'f str, usize> {
    let mut last_said: BTreeMap<&str, i64> = BTreeMap::new();
    for ((session, ..), (_, body)) in parts {
        let last = last_said.entry(session).or_insert(i64::MIN);
        *last = (*last).max(body.said_at.unix_ms);
    }
    let mut sessions: Vec<(i64, &str)> = last_said.into_iter().map(|(session, last)| (last, session)).collect();
    sessions.sort_unstable_by(|a, b| b.cmp(a));
    sessions.into_iter().enumerate().map(|(age, (_, session))| (session, age)).collect()
}

/// The terms of each part, by session, ordinal, unit and part.
type PartsInOrder<'f> = BTreeMap<(&'f str, u32, UnitId, usize), ([f32; TERMS], PartBody<'f>)>;

/// Small numbers for names, in the order in which they first appear.
#[derive(Default)]
struct NameNumbers(BTreeMap<String, usize>);

impl NameNumbers {
    fn of(&mut self, name: String) -> usize {
        let next = self.0.len();
        *self.0.entry(name).or_insert(next)
    }
}

/// The index of a term, and its value in the terms of the score.
type TermReading = (usize, fn(&FamiliarityTerms) -> f64);

/// A query of the bank with weights for some terms only; each term can then be read from a field of the score.
#[derive(Clone, Copy)]
struct TermProbe {
    open: fn(&mut FamiliarityWeights),
    read: &'static [TermReading],
}

/// Queries that together read every term.
const TERM_PROBES: [TermProbe; 3] = [
    TermProbe {
        open: |w| {
            (w.meaning, w.pair, w.words) = (1.0, 1.0, 1.0);
            (w.speaker, w.month, w.times, w.times_asked) = (1.0, 1.0, 1.0, 1.0);
        },
        read: &[
            (0, |t| t.meaning),
            (1, |t| t.pair),
            (3, |t| t.words),
            (4, |t| t.speaker),
            (5, |t| t.month),
            (7, |t| t.marks),
        ],
    },
    TermProbe {
        open: |w| (w.trio, w.day, w.asks) = (1.0, 1.0, 1.0),
        read: &[(2, |t| t.pair), (6, |t| t.month), (8, |t| -t.marks)],
    },
    TermProbe { open: |w| w.names = 1.0, read: &[(9, |t| t.marks)] },
];

impl TermProbe {
    fn settings(self, settings: &RecallSettings) -> RecallSettings {
        let mut weights = FamiliarityWeights::default();
        (self.open)(&mut weights);
        let mut settings = settings.clone();
        settings.familiarity.weights = weights;
        settings
    }

    fn read<'f>(&self, found: &'f FamiliarityResult, parts: &mut PartsInOrder<'f>) {
        for part in &found.best {
            let Some(body) = part.unit.part(part.part) else { continue };
            let key = (part.unit.session(), body.ordinal, part.unit.id, part.part);
            let (terms, _) = parts.entry(key).or_insert(([0.0; TERMS], body));
            for (term, value) in self.read {
                if let Some(place) = terms.get_mut(*term) {
                    *place = value(&part.terms) as f32;
                }
            }
        }
    }
}
