//! What the baselines search: one bank's turns, or its units, as flat lists.
//!
//! In: the records of the memory topic. Out: items in the order of time, each with the memory's
//! own vectors, its words, its neighbours in the session, and the body that recollection's
//! renderer takes. No text is embedded again.

use std::collections::BTreeMap;

use memory::{
    index::{PartFields, TermAnalyzer, UnitBody, UnitFields},
    language::attachment_text::attachment_text,
};
use types::model::{MemoryRecord, Unit, UnitId, UnitPart, WindowTurn};

/// A turn or a unit.
pub(crate) struct CorpusItem {
    /// What the renderer shows.
    pub(crate) body: UnitBody,
    /// Its vectors; the one nearest to the question decides.
    pub(crate) vectors: Vec<Vec<f32>>,
    /// The vector of the item before it and this one together.
    pub(crate) pair: Option<Vec<f32>>,
    /// The number of occurrences of each stem.
    pub(crate) stems: BTreeMap<u64, f64>,
    /// The index of its session in [`Corpus::sessions`].
    pub(crate) session: usize,
}

/// One bank's turns or units, by time.
pub(crate) struct Corpus {
    /// The items.
    pub(crate) items: Vec<CorpusItem>,
    /// The items of each session, in order.
    pub(crate) sessions: Vec<Vec<usize>>,
}

/// The memory's vectors of an item: its own, and that of the item before it and this one together.
#[derive(Clone, Default)]
struct ItemVectors {
    own: Vec<Vec<f32>>,
    pair: Option<Vec<f32>>,
}

/// A question in the form that the baselines use.
pub(crate) struct BaselineQuery {
    /// Its vector.
    pub(crate) vector: Vec<f32>,
    /// Its stems, each once.
    pub(crate) stems: Vec<u64>,
}

impl BaselineQuery {
    /// A question from its vector and text.
    pub(crate) fn of(vector: Vec<f32>, text: &str, words: &mut TermAnalyzer) -> Self {
        Self { vector, stems: words.count(text).terms().map(|(t, _)| t).collect() }
    }
}

impl Corpus {
    /// The units of a bank.
    pub(crate) fn of_units(records: &[MemoryRecord], words: &mut TermAnalyzer) -> Self {
        let of = |unit: &Unit, session: &str| {
            let pair = unit.parts.first().and_then(|p| p.pair.as_ref()).map(floats);
            (UnitBody::of(unit, session), ItemVectors { own: unit_vectors(unit), pair })
        };
        let units = records.iter().flat_map(|r| r.units.iter().map(|unit| of(unit, &r.window.session.0)));
        Self::of(units.collect(), words)
    }

    /// The turns of a bank, each with the vectors of the parts made from it.
    pub(crate) fn of_turns(records: &[MemoryRecord], words: &mut TermAnalyzer) -> Self {
        let mut vectors: BTreeMap<&str, ItemVectors> = BTreeMap::new();
        for unit in records.iter().flat_map(|r| &r.units) {
            for part in &unit.parts {
                let known = vectors.entry(&part.turn).or_default();
                known.own.extend(part_vectors(unit, part));
                if known.pair.is_none() {
                    known.pair = part.pair.as_ref().map(floats);
                }
            }
        }
        let mut items = Vec::new();
        for record in records {
            for turn in record.turns.iter().filter(|t| !t.context && !t.deleted) {
                let known = vectors.get(turn.turn.turn.as_str()).cloned().unwrap_or_default();
                items.push((turn_body(turn, &record.window.session.0, items.len()), known));
            }
        }
        Self::of(items, words)
    }

    fn of(mut items: Vec<(UnitBody, ItemVectors)>, words: &mut TermAnalyzer) -> Self {
        items.sort_by(|(a, _), (b, _)| {
            (a.said_at, a.session(), a.ordinal, a.id).cmp(&(b.said_at, b.session(), b.ordinal, b.id))
        });
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        let mut sessions: Vec<Vec<usize>> = Vec::new();
        let mut made: Vec<CorpusItem> = Vec::with_capacity(items.len());
        for (at, (body, ItemVectors { own, pair })) in items.into_iter().enumerate() {
            // In the paper's profile a bank is one session, so each day counts as a session.
            let name = format!("{} {}", body.session(), body.said_at.local().date());
            let session = *numbers.entry(name).or_insert_with(|| {
                sessions.push(Vec::new());
                sessions.len() - 1
            });
            let before = sessions.get(session).and_then(|s| s.last()).and_then(|i| made.get(*i));
            let pair = pair.or_else(|| sum(before.and_then(|b| b.vectors.first()), own.first()));
            if let Some(items) = sessions.get_mut(session) {
                items.push(at);
            }
            let stems = words.count(body.restatement()).terms().map(|(t, n)| (t, f64::from(n))).collect();
            made.push(CorpusItem { body, vectors: own, pair, stems, session });
        }
        Self { items: made, sessions }
    }

    /// Each item's best cosine with a vector; −1 for an item without vectors.
    pub(crate) fn cosines(&self, vector: &[f32]) -> Vec<f64> {
        let best = |item: &CorpusItem| item.vectors.iter().map(|v| dot(v, vector)).fold(-1.0, f64::max);
        self.items.iter().map(best).collect()
    }

    /// The items at ±1 and ±2 of an item in its session.
    pub(crate) fn near(&self, at: usize) -> [Vec<usize>; 2] {
        let session = self.items.get(at).and_then(|i| self.sessions.get(i.session)).map_or(&[][..], Vec::as_slice);
        let place = session.iter().position(|i| *i == at).unwrap_or_default();
        [1, 2].map(|d| {
            let before = place.checked_sub(d).and_then(|p| session.get(p));
            before.into_iter().chain(session.get(place + d)).copied().collect()
        })
    }
}

/// The items by descending score, with ties in the order of time.
pub(crate) fn ranked(scores: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    let score = |i: usize| scores.get(i).copied().unwrap_or(f64::MIN);
    order.sort_by(|a, b| score(*b).total_cmp(&score(*a)).then(a.cmp(b)));
    order
}

/// The dot product of two vectors, which is their cosine because both have unit length.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f64 {
    f64::from(a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>())
}

/// The vector scaled to unit length; a zero vector stays zero.
pub(crate) fn unit_length(mut vector: Vec<f32>) -> Vec<f32> {
    let length = dot(&vector, &vector).sqrt();
    if length > 0.0 {
        for x in &mut vector {
            *x = (f64::from(*x) / length) as f32;
        }
    }
    vector
}

fn sum(before: Option<&Vec<f32>>, this: Option<&Vec<f32>>) -> Option<Vec<f32>> {
    let (before, this) = (before?, this?);
    Some(unit_length(before.iter().zip(this).map(|(a, b)| a + b).collect()))
}

fn floats(vector: &types::model::Vector) -> Vec<f32> {
    vector.floats().into_owned()
}

fn unit_vectors(unit: &Unit) -> Vec<Vec<f32>> {
    let own: Vec<Vec<f32>> = unit.parts.iter().flat_map(|p| p.vectors.iter().map(floats)).collect();
    if own.is_empty() { vec![floats(&unit.vector)] } else { own }
}

fn part_vectors(unit: &Unit, part: &UnitPart) -> Vec<Vec<f32>> {
    if part.vectors.is_empty() && unit.parts.len() == 1 {
        return vec![floats(&unit.vector)];
    }
    part.vectors.iter().map(floats).collect()
}

/// A turn as a unit, worded like other units.
fn turn_body(window_turn: &WindowTurn, session: &str, number: usize) -> UnitBody {
    let turn = &window_turn.turn;
    let said = turn.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let captions = turn.captions().map(|c| attachment_text(Some("photo"), c));
    let words: Vec<String> = std::iter::once(said).filter(|s| !s.is_empty()).chain(captions).collect();
    let text = words.join(" ");
    let part = PartFields {
        turn: turn.turn.clone(),
        ordinal: window_turn.ordinal,
        speaker: turn.speaker.clone(),
        kind: None,
        said_at: turn.time,
        text: text.clone(),
        range: None,
        marks: types::model::TextFeatures::default(),
    };
    UnitBody::from(UnitFields {
        id: UnitId(number as u64),
        restatement: format!("{} said, \"{text}\"", turn.speaker),
        cues: types::model::Cues::default(),
        said_at: turn.time,
        session: session.to_owned(),
        ordinal: window_turn.ordinal,
        sources: vec![turn.turn.clone()],
        parts: vec![part],
    })
}
