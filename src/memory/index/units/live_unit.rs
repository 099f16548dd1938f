//! Units as the dataflow holds them, and memory records as the dataflow takes them.
//!
//! In: [`MemoryRecord`]s. Out: keyed [`RecordUnits`]s. A key is ordered by its bank first, so that a bank's entries are
//! together in every arrangement.

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    association_score::{CueSet, TimelinePosition},
    turn_facts::{TurnFactTable, TurnFacts},
    unit_body::UnitBody,
};
use crate::index::{
    memory_footprint::COUNTS_BYTES,
    profile::live_statement::LiveStatement,
    vectors::unit_vector_rows::{UnitVectorRows, VectorRows},
};
use types::model::{BankKey, MemoryKey, MemoryRecord, Score, Statement, Unit, UnitId, UnitPart, Vector, WindowState};

/// About how many bytes a unit takes in the indexes and arrangements of its bank, besides its texts and vectors.
const INDEXED_BYTES: usize = 1_500;

/// A unit of a bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UnitKey {
    /// The bank.
    pub bank: BankKey,
    /// The unit.
    pub id: UnitId,
}

/// A window of a bank, by 128 bits of BLAKE3 of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WindowKey {
    /// The bank.
    pub bank: BankKey,
    /// The window.
    pub window: u128,
}

/// A memory record's key: a window or a part of it, or a turn of an open one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RecordKey {
    /// The window.
    pub window: WindowKey,
    /// The number of the part; for the record of a turn, 128 bits of BLAKE3 of the turn and the part.
    pub piece: u128,
}

/// 128 bits of BLAKE3 of a [`RecordKey`], a third of the key's size; used in sets of all live records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordHash([u8; 16]);

impl From<&RecordKey> for RecordHash {
    fn from(RecordKey { window, piece }: &RecordKey) -> Self {
        let all = [window.bank.0, window.window, *piece].map(u128::to_le_bytes);
        Self(hash(all.as_flattened()))
    }
}

/// 128 bits of BLAKE3.
fn hash(bytes: &[u8]) -> [u8; 16] {
    let mut low = [0u8; 16];
    low.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
    low
}

impl From<&MemoryKey> for RecordKey {
    fn from(key: &MemoryKey) -> Self {
        let numbered =
            |number: u32, name: &str| u128::from_le_bytes(hash(&[&number.to_le_bytes(), name.as_bytes()].concat()));
        Self {
            window: WindowKey { bank: key.bank.key(), window: numbered(key.window.start, &key.window.session.0) },
            piece: key.turn.as_ref().map_or(u128::from(key.part), |turn| numbered(key.part, turn)),
        }
    }
}

/// A unit as the indexes see it. Shared between arrangements and indexes, never copied.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LiveUnit {
    /// Which unit.
    pub id: UnitId,
    /// Where it is in time and in its session.
    pub position: TimelinePosition,
    /// Its cues.
    pub cues: CueSet,
    /// Its vector, and those of each part in turn.
    rows: UnitVectorRows,
    /// How many vectors each part has: those of its sentences, and one that includes the turn before it.
    layout: Box<[(u32, u32)]>,
    /// What it says.
    pub body: Arc<UnitBody>,
    /// What selectors compare of each source besides; empty if there is nothing of any.
    facts: Box<[Option<Arc<TurnFacts>>]>,
}

impl LiveUnit {
    /// A unit of a session. `dimensions` is the width of the model's vectors; `facts` are those of its record's turns.
    ///
    /// # Errors
    /// One of its vectors has another width.
    pub fn new(unit: &Unit, session: &str, dimensions: usize, facts: &TurnFactTable) -> Result<Self, String> {
        let of_parts = unit.parts.iter().flat_map(|part| part.vectors.iter().chain(&part.pair));
        let mut widths = std::iter::once(&unit.vector).chain(of_parts.clone()).map(Vector::len);
        if let Some(width) = widths.find(|width| *width != dimensions) {
            return Err(format!("unit {}: a vector of {width} components, not {dimensions}", unit.id));
        }
        let layout = |part: &UnitPart| (part.vectors.len() as u32, u32::from(part.pair.is_some()));
        Ok(Self {
            id: unit.id,
            position: TimelinePosition::new(session, unit.ordinal, unit.cues.time, unit.said_at),
            cues: CueSet::from(&unit.cues),
            rows: UnitVectorRows::of(dimensions, &unit.vector, of_parts),
            layout: unit.parts.iter().map(layout).collect(),
            body: Arc::new(UnitBody::of(unit, session)),
            facts: facts_of(unit.sources.iter().map(String::as_str), facts),
        })
    }

    /// The same unit with the facts of turns that another part of its window's record holds; `None` if it lacks none
    /// of these.
    fn with_facts(&self, others: &TurnFactTable) -> Option<Self> {
        let found = facts_of(self.body.sources(), others);
        let own = |at: usize| self.facts.get(at).and_then(Option::as_ref);
        let facts: Box<[_]> = (0..found.len()).map(|at| own(at).or(found[at].as_ref()).cloned()).collect();
        (!facts.is_empty() && facts != self.facts).then(|| Self { facts, ..self.clone() })
    }

    /// What is known of a turn besides, if it is one of its sources.
    pub(in crate::index) fn facts_of(&self, turn: &str) -> Option<&Arc<TurnFacts>> {
        if self.facts.is_empty() {
            return None;
        }
        self.facts.get(self.body.sources().position(|source| source == turn)?)?.as_ref()
    }

    /// The vector that edges compare.
    #[must_use]
    pub fn vector(&self) -> Cow<'_, [i16]> {
        self.rows.own().in_16_bits().next().unwrap_or_default()
    }

    /// Whether the product of a vector and the one that edges compare may be at least `least`.
    pub(in crate::index) fn may_reach_product(&self, vector: &[i16], least: i32) -> bool {
        self.rows.own().may_reach(vector, least)
    }

    /// Has the processor fetch the vector that edges compare
    /// ([`kernel::fetch_ahead`](crate::index::vectors::kernel::fetch_ahead)).
    pub(in crate::index) fn fetch_vector(&self) {
        self.rows.own().fetch_ahead();
    }

    /// Its vector, and those of all parts.
    #[must_use]
    pub fn vectors(&self) -> [VectorRows<'_>; 2] {
        self.rows.all()
    }

    /// The best cosine of its vectors with a question's vector; none if they have another width.
    #[must_use]
    pub fn best_cosine(&self, question: &[i16]) -> Option<Score> {
        let [own, of_parts] = self.vectors().map(|rows| rows.best_cosine(question));
        own.max(of_parts)
    }

    /// The vectors of one part; the unit's vector if the part has none.
    #[must_use]
    pub fn vectors_of(&self, part: usize) -> PartVectors<'_> {
        self.vectors_at(self.rows_of(part))
    }

    /// The vectors of a part, at the place that [`Self::rows_of`] returned.
    pub(in crate::index) fn vectors_at(&self, PartRows { before, sentences, pair }: PartRows) -> PartVectors<'_> {
        let (pairs, of_parts) = (before + sentences, self.rows.of_parts());
        let sentences = if sentences == 0 { self.rows.own() } else { of_parts.range(before..pairs) };
        PartVectors { sentences, pair: of_parts.range(pairs..pairs + pair) }
    }

    /// Where the vectors of a part are; to find out, the vectors of all parts before it are counted.
    pub(in crate::index) fn rows_of(&self, part: usize) -> PartRows {
        let before = self.layout.iter().take(part).map(|(sentences, pair)| sentences + pair).sum();
        let (sentences, pair) = self.layout.get(part).copied().unwrap_or_default();
        PartRows { before, sentences, pair }
    }

    /// Bytes in memory of what it says.
    pub(in crate::index) fn text_bytes(&self) -> usize {
        let CueSet { participants, locations, time } = &self.cues;
        let keys = size_of_val(&**participants) + size_of_val(&**locations) + time.as_deref().map_or(0, size_of_val);
        // Those of a turn are shared by the units that it is a source of, and count at each.
        let facts: usize = self.facts.iter().flatten().map(|facts| facts.bytes()).sum();
        let facts = size_of_val(&*self.facts) + facts;
        COUNTS_BYTES + size_of::<Self>() + size_of_val(&*self.layout) + keys + facts + self.body.text_bytes()
    }

    /// Bytes in memory of its vectors.
    pub(in crate::index) fn vector_bytes(&self) -> usize {
        self.vectors().map(|rows| rows.bytes()).iter().sum()
    }

    /// The form that a census (`dataflow::census`) hashes. It does not depend on the form in which the rows are held,
    /// so that a bank's digest stays the one that an export states.
    pub(in crate::index) fn hashed_form(&self) -> impl Serialize + '_ {
        HashedUnit {
            id: self.id,
            place: &self.position,
            cues: &self.cues,
            vectors: self.vectors().into_iter().flat_map(|rows| rows.in_16_bits()).collect::<Vec<_>>().concat(),
            layout: &self.layout,
            width: self.rows.own().width(),
            body: &self.body,
        }
    }
}

/// A unit as it is hashed: its own vector comes first; `width` is the number of components of each.
#[derive(Serialize)]
struct HashedUnit<'u> {
    id: UnitId,
    place: &'u TimelinePosition,
    cues: &'u CueSet,
    vectors: Vec<i16>,
    layout: &'u [(u32, u32)],
    width: usize,
    body: &'u UnitBody,
}

/// Where the vectors of a part are among those of its unit.
#[derive(Debug, Clone, Copy)]
pub(in crate::index) struct PartRows {
    before: u32,
    sentences: u32,
    pair: u32,
}

/// The vectors of a part.
#[derive(Debug, Clone, Copy)]
pub struct PartVectors<'u> {
    /// The vectors of its sentences, or one of the whole part.
    pub sentences: VectorRows<'u>,
    /// The vector of the part with the turn before it; none if there is no such turn.
    pub pair: VectorRows<'u>,
}

impl PartVectors<'_> {
    /// Has the processor fetch them.
    pub(in crate::index) fn fetch_ahead(&self) {
        self.sentences.fetch_ahead();
        self.pair.fetch_ahead();
    }
}

/// The units and statements of one memory record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RecordUnits {
    /// Whether it replaces the records of the window's turns.
    pub closes: bool,
    /// Its units by id, without repetition.
    pub units: Vec<Arc<LiveUnit>>,
    /// What its turns state that lasts, in order, without repetition.
    pub statements: Vec<Arc<LiveStatement>>,
    /// The facts of its turns, by id. Units in other parts of a long window's record may have these turns as sources.
    turns: Vec<(Box<str>, Arc<TurnFacts>)>,
}

impl RecordUnits {
    /// Converts a record. `dimensions` is the width of the model's vectors.
    ///
    /// # Errors
    /// The first vector that has another width.
    pub fn new(record: &MemoryRecord, dimensions: usize) -> Result<Self, String> {
        let facts = TurnFactTable::of_record(record);
        let live = |unit| LiveUnit::new(unit, &record.window.session.0, dimensions, &facts).map(Arc::new);
        let units = record.units.iter().map(live).collect::<Result<_, _>>()?;
        let statements = record.statements.iter().flat_map(|of| &of.found).cloned();
        Ok(Self::of(record.state == WindowState::Final, units, statements.collect(), facts))
    }

    /// The units and statements of a record, in any order, and the facts of its turns.
    #[must_use]
    pub fn of(closes: bool, mut units: Vec<Arc<LiveUnit>>, statements: Vec<Statement>, facts: TurnFactTable) -> Self {
        units.sort_by_key(|unit| unit.id);
        units.dedup_by_key(|unit| unit.id);
        units.shrink_to_fit();
        let mut statements: Vec<Arc<LiveStatement>> =
            statements.into_iter().map(|statement| Arc::new(statement.into())).collect();
        statements.sort();
        statements.dedup();
        Self { closes, units, statements, turns: facts.into_sorted() }
    }

    /// About how many bytes its units take in memory, with their share of the indexes of their bank.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.units.iter().map(|unit| unit.text_bytes() + unit.vector_bytes() + INDEXED_BYTES).sum()
    }

    /// The units of several parts of a window's record, each with the facts of its sources, whichever part holds them.
    pub(in crate::index) fn joined(parts: &[&Arc<Self>]) -> Vec<Arc<Self>> {
        let turns: TurnFactTable = parts.iter().flat_map(|part| part.turns.iter().cloned()).collect();
        let complete = |part: &&Arc<Self>| {
            let completed = |unit: &Arc<LiveUnit>| unit.with_facts(&turns).map_or_else(|| unit.clone(), Arc::new);
            let units: Vec<Arc<LiveUnit>> = part.units.iter().map(completed).collect();
            if units.iter().zip(&part.units).all(|(now, before)| Arc::ptr_eq(now, before)) {
                Arc::clone(part)
            } else {
                Arc::new(Self { units, ..(***part).clone() })
            }
        };
        parts.iter().map(complete).collect()
    }
}

/// The facts of sources, in their order; empty if there are none of any.
fn facts_of<'s>(
    sources: impl Iterator<Item = &'s str> + Clone,
    facts: &TurnFactTable,
) -> Box<[Option<Arc<TurnFacts>>]> {
    if sources.clone().all(|source| facts.get(source).is_none()) {
        return Box::default();
    }
    sources.map(|source| facts.get(source).cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::vectors::kernel::quantise;
    use types::model::{Cues, EventTime, TextFeatures};

    fn vector(seed: usize) -> Vector {
        (0..40).map(|i| ((i * 7 + seed * 31) % 23) as f32 / 100.0 - 0.1).collect()
    }

    fn unit(kept: fn(Vector) -> Vector) -> Unit {
        let said_at = EventTime::parse("2024-01-01T00:00:00Z").expect("a time");
        let part = |ordinal: u32, vectors: Vec<Vector>, pair: Option<Vector>| UnitPart {
            turn: ordinal.to_string(),
            ordinal,
            speaker: "Ann".to_owned(),
            kind: None,
            said_at,
            text: "kayaks".to_owned(),
            range: None,
            marks: TextFeatures::default(),
            vectors: vectors.into_iter().map(kept).collect(),
            pair: pair.map(kept),
        };
        let parts = vec![
            part(0, vec![vector(1), vector(2)], None),
            part(1, vec![vector(3)], Some(vector(4))),
            part(2, Vec::new(), None),
        ];
        Unit {
            id: UnitId(7),
            restatement: "kayaks".to_owned(),
            vector: kept(vector(0)),
            cues: Cues::default(),
            said_at,
            sources: vec!["0".to_owned()],
            ordinal: 0,
            parts,
        }
    }

    fn json(value: &impl Serialize) -> String {
        serde_json::to_string(value).expect("JSON")
    }

    #[test]
    fn a_unit_is_hashed_as_its_vectors_in_16_bits_whatever_they_are_held_in() {
        for kept in [|vector: Vector| vector, |vector: Vector| vector.in_steps()] {
            let made = unit(kept);
            let live =
                LiveUnit::new(&made, "s", made.vector.len(), &TurnFactTable::default()).expect("vectors of one width");
            let rows = made.parts.iter().flat_map(|part| part.vectors.iter().chain(&part.pair));
            let vectors: Vec<i16> = std::iter::once(&made.vector)
                .chain(rows)
                .flat_map(|vector| quantise(&vector.floats()).to_vec())
                .collect();
            let expected = format!(
                r#"{{"id":{},"place":{},"cues":{},"vectors":{},"layout":[[2,0],[1,1],[0,0]],"width":64,"body":{}}}"#,
                json(&live.id),
                json(&live.position),
                json(&live.cues),
                json(&vectors),
                json(&live.body)
            );
            assert_eq!(json(&live.hashed_form()), expected);
        }
    }

    #[test]
    fn the_vectors_of_a_part_are_its_sentences_and_its_pair() {
        for kept in [|vector: Vector| vector, |vector: Vector| vector.in_steps()] {
            let made = unit(kept);
            let live =
                LiveUnit::new(&made, "s", made.vector.len(), &TurnFactTable::default()).expect("vectors of one width");
            for (at, part) in made.parts.iter().enumerate() {
                let fixed =
                    |vectors: &[Vector]| vectors.iter().map(|v| quantise(&v.floats()).to_vec()).collect::<Vec<_>>();
                let read = |rows: VectorRows<'_>| rows.in_16_bits().map(Cow::into_owned).collect::<Vec<_>>();
                let own = if part.vectors.is_empty() { std::slice::from_ref(&made.vector) } else { &part.vectors };
                let vectors = live.vectors_of(at);
                assert_eq!(read(vectors.sentences), fixed(own));
                assert_eq!(read(vectors.pair), fixed(part.pair.as_slice()));
            }
        }
    }
}
