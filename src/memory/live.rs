//! Units as the dataflow holds them, and memory records as the dataflow takes them.
//!
//! In: [`MemoryRecord`]s. Out: keyed [`Extraction`]s. The order of a key begins with its bank, so
//! that a bank lies together in every arrangement.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{
    api::{FixedVector, UnitBody},
    kernel::{self, quantise},
    score::{CueSet, TimelinePosition},
};
use crate::model::{BankKey, MemoryKey, MemoryRecord, Score, Unit, UnitId, WindowState};

/// A unit of a bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UnitKey {
    /// The bank.
    pub bank: BankKey,
    /// The unit.
    pub id: UnitId,
}

/// A map by unit. A unit's id is a hash already: it is not hashed again.
pub(super) type ById<V> = HashMap<UnitId, V, BuildHasherDefault<IdHasher>>;

/// Takes the last 64-bit value it is given as the hash.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = id;
    }
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
    /// The turn, as 128 bits of BLAKE3, for the record of a turn.
    pub turn: Option<u128>,
    /// The part.
    pub part: u32,
}

impl From<&MemoryKey> for RecordKey {
    fn from(key: &MemoryKey) -> Self {
        let hash = |bytes: &[u8]| {
            let mut low = [0u8; 16];
            low.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
            u128::from_le_bytes(low)
        };
        let mut window = key.window.start.to_le_bytes().to_vec();
        window.extend_from_slice(key.window.session.0.as_bytes());
        Self {
            window: WindowKey { bank: key.bank.key(), window: hash(&window) },
            turn: key.turn.as_ref().map(|t| hash(t.as_bytes())),
            part: key.part,
        }
    }
}

/// A unit as the indexes see it. Shared between arrangements and indexes, never copied.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LiveUnit {
    /// Which unit.
    pub id: UnitId,
    /// Where it is in time and in its session.
    #[serde(rename = "place")]
    pub position: TimelinePosition,
    /// What it is cued by.
    pub cues: CueSet,
    /// Its vector, then those of each part in turn; all of one width.
    pub vectors: FixedVector,
    /// How many vectors each part has: its sentences', and one with the turn before it.
    layout: Vec<(usize, usize)>,
    /// Components of one vector.
    pub width: usize,
    /// What it says.
    pub body: Arc<UnitBody>,
}

impl LiveUnit {
    fn new(unit: &Unit, session: &str) -> Self {
        let mut vectors = quantise(&unit.vector.0).to_vec();
        let width = vectors.len();
        let layout = unit.parts.iter().map(|p| (p.vectors.len(), usize::from(p.pair.is_some()))).collect();
        for part in &unit.parts {
            vectors.extend(part.vectors.iter().chain(&part.pair).flat_map(|v| quantise(&v.0).to_vec()));
        }
        Self {
            id: unit.id,
            position: TimelinePosition::new(session, unit.ordinal, unit.cues.time, unit.said_at),
            cues: CueSet::from(&unit.cues),
            vectors: vectors.into(),
            layout,
            width,
            body: Arc::new(UnitBody::of(unit, session)),
        }
    }

    /// The vector that edges compare.
    #[must_use]
    pub fn vector(&self) -> &[i16] {
        &self.vectors[..self.width]
    }

    /// The vectors of one part; the unit's vector if the part has none.
    #[must_use]
    pub fn vectors_of(&self, part: usize) -> PartVectors<'_> {
        let before: usize = self.layout.iter().take(part).map(|(own, pair)| own + pair).sum();
        let (own, pair) = self.layout.get(part).copied().unwrap_or_default();
        let start = (1 + before) * self.width;
        let middle = start + own * self.width;
        let sentences = if own == 0 { self.vector() } else { &self.vectors[start..middle] };
        PartVectors { sentences, pair: &self.vectors[middle..middle + pair * self.width] }
    }
}

/// The best cosine of the query with the unit's vector or one of its parts'.
#[must_use]
pub fn best_part(query: &[i16], unit: &LiveUnit) -> Score {
    if query.is_empty() {
        return Score::ZERO;
    }
    let mut best = i32::MIN;
    kernel::scan(&[query], &unit.vectors, i32::MIN, &mut |_, _, score| best = best.max(score));
    if best == i32::MIN { Score::ZERO } else { Score(best) }
}

/// The vectors of a part, one after the other.
#[derive(Debug, Clone, Copy)]
pub struct PartVectors<'u> {
    /// Of its sentences, or of the whole part.
    pub sentences: &'u [i16],
    /// Of the part with the turn before it; empty where there is none.
    pub pair: &'u [i16],
}

/// The units of one memory record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Extraction {
    /// Whether it replaces the records of the window's turns.
    pub closes: bool,
    /// Its units by id, without repetition.
    pub units: Vec<Arc<LiveUnit>>,
}

impl Extraction {
    /// Converts a record. `dimensions` is the width of the model's vectors.
    ///
    /// # Errors
    /// The first vector that has another width.
    pub fn new(record: &MemoryRecord, dimensions: usize) -> Result<Self, String> {
        for unit in &record.units {
            let widths = unit
                .parts
                .iter()
                .flat_map(|p| p.vectors.iter().chain(&p.pair))
                .chain([&unit.vector])
                .map(|v| v.0.len());
            if let Some(width) = widths.into_iter().find(|w| *w != dimensions) {
                return Err(format!("unit {}: a vector of {width} components, not {dimensions}", unit.id));
            }
        }
        let mut units: Vec<_> =
            record.units.iter().map(|u| Arc::new(LiveUnit::new(u, &record.window.session.0))).collect();
        units.sort_by_key(|u| u.id);
        units.dedup_by_key(|u| u.id);
        Ok(Self { closes: record.state == WindowState::Final, units })
    }
}
