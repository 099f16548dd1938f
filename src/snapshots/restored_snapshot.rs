//! What reading a snapshot returns, and the past points that can be asked for.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};

use super::Manifest;
use memory::index::{GraphChoice, GraphEdge, LiveUnit, RecordKey, RecordUnits};
use types::model::{Bank, MemoryKey, UnitId, WindowTurn};

/// What was live at the end of a snapshot, or as of an earlier offset.
#[derive(Debug)]
pub struct RestoredSnapshot {
    /// The manifest of the snapshot.
    pub manifest: Manifest,
    /// Its live records.
    pub records: Vec<RestoredRecord>,
    /// The choices of the units of each bank.
    pub choices: BTreeMap<Bank, Vec<GraphChoice>>,
    /// Whether the choices were made with the current settings.
    pub same_settings: bool,
}

/// A live record.
#[derive(Debug)]
pub struct RestoredRecord {
    /// Its key.
    pub key: MemoryKey,
    /// The offset of the read that added it.
    pub since: u64,
    /// When the last record of that read was appended, in milliseconds since 1970.
    pub append_ms: i64,
    /// The ids of its turns.
    pub turns: Vec<String>,
    /// Whether it has a turn that is not deleted, or a unit.
    pub filled: bool,
    /// The turns themselves, if requested.
    pub window_turns: Vec<WindowTurn>,
    /// The extractor of its units; empty for a record without turns.
    pub extractor: String,
    /// Its units; none if only names were requested.
    pub extraction: Arc<RecordUnits>,
    /// What was read in place of its units and turns, if only names were requested.
    pub names: Option<RestoredNames>,
}

/// The names in a live record of a bank that stays asleep.
#[derive(Debug, Default)]
pub struct RestoredNames {
    /// The ids of its units.
    pub units: Vec<UnitId>,
    /// The ids of its deleted turns, with the version up to which each is deleted.
    pub deleted: Vec<(String, u64)>,
}

/// A point of a bank's past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsOf {
    /// An offset of the bank's partition of the memory topic, inclusive.
    Offset(u64),
    /// An append time, in milliseconds since 1970, inclusive.
    Time(i64),
}

impl std::fmt::Display for AsOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Offset(offset) => write!(f, "offset {offset}"),
            Self::Time(ms) => match jiff::Timestamp::from_millisecond(*ms) {
                Ok(time) => write!(f, "{time}"),
                Err(_) => write!(f, "{ms} ms since 1970"),
            },
        }
    }
}

/// The units and edges of a bank that were added and removed between two points.
#[derive(Debug)]
pub struct BankDiff {
    /// The offset of the first point.
    pub from: u64,
    /// The offset of the second point.
    pub to: u64,
    /// When the read at each of the two points was appended, in milliseconds since 1970.
    pub append_ms: [i64; 2],
    /// How many turns that the bank held at one of the two points were forgotten since; neither point shows them. 0 if
    /// they were not counted.
    pub forgotten: u64,
    /// Units that exist only at the second point.
    pub units_added: Vec<Arc<LiveUnit>>,
    /// Units that exist only at the first point.
    pub units_removed: Vec<Arc<LiveUnit>>,
    /// Edges that exist only at the second point.
    pub edges_added: Vec<GraphEdge>,
    /// Edges that exist only at the first point.
    pub edges_removed: Vec<GraphEdge>,
}

impl BankDiff {
    /// Whether no unit and no edge was added or removed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.units_added.is_empty()
            && self.units_removed.is_empty()
            && self.edges_added.is_empty()
            && self.edges_removed.is_empty()
    }
}

impl RestoredSnapshot {
    /// The visible units: a final record hides the records of its window's single turns.
    pub(super) fn units(&self) -> BTreeMap<UnitId, Arc<LiveUnit>> {
        let window = |record: &RestoredRecord| RecordKey::from(&record.key).window;
        let closed: HashSet<_> = self.records.iter().filter(|r| r.extraction.closes).map(window).collect();
        let visible = self.records.iter().filter(|r| r.extraction.closes || !closed.contains(&window(r)));
        visible.flat_map(|record| &record.extraction.units).map(|unit| (unit.id, Arc::clone(unit))).collect()
    }

    pub(super) fn edges(&self) -> BTreeSet<GraphEdge> {
        let edge = |bank: &Bank, choice: &GraphChoice| {
            let GraphChoice { channel, from, to, weight } = *choice;
            GraphEdge { bank: bank.key(), channel, a: from.min(to), b: from.max(to), weight }
        };
        self.choices.iter().flat_map(|(bank, choices)| choices.iter().map(move |choice| edge(bank, choice))).collect()
    }
}
