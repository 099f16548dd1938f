//! A memory as a snapshot holds it, newest or as of an earlier offset.
//!
//! In: the files that a manifest lists. Out: the records that were live, ready for the
//! dataflow, and what their units chose. A snapshot that is damaged is refused by name, and
//! the one before is used.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{
    Manifest, Reached, Segment, SnapshotError, TableFile, Writer,
    store::Store,
    update::{Choices, Heads, Turns, Units, UpdateTable, batches},
};
use crate::{
    memory::{Extraction, GraphChoice, GraphEdge, LiveUnit, RecordKey},
    model::{Bank, MemoryKey, MemoryRecord, ModelRef, SCHEMA_VERSION, UnitId, WindowState, WindowTurn},
};

/// The snapshots of one log in one place.
pub struct Snapshots {
    store: Store,
    log: String,
    partitions: u32,
    settings: String,
}

/// What was live.
#[derive(Debug)]
pub struct Restored {
    /// The snapshot.
    pub manifest: Manifest,
    /// Its records.
    pub records: Vec<RestoredRecord>,
    /// What the units of each bank chose.
    pub choices: BTreeMap<Bank, Vec<GraphChoice>>,
    /// Whether the choices were made under the settings of now.
    pub same_settings: bool,
}

/// A live record.
#[derive(Debug)]
pub struct RestoredRecord {
    /// Its key.
    pub key: MemoryKey,
    /// The offset with which it came.
    pub since: u64,
    /// The ids of its turns.
    pub turns: Vec<String>,
    /// The turns themselves, where they were asked for.
    pub window_turns: Vec<WindowTurn>,
    /// Who made its units, where the turns were asked for.
    pub extractor: String,
    /// Its units.
    pub extraction: Arc<Extraction>,
}

/// A point of a bank's past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsOf {
    /// An offset of the bank's partition of the memory topic; the record there is included.
    Offset(u64),
    /// A time of appending, in milliseconds since 1970.
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

/// What came and went in a bank.
#[derive(Debug)]
pub struct Diff {
    /// As of this offset at first.
    pub from: u64,
    /// As of this offset then.
    pub to: u64,
    /// Units that were there then and not at first.
    pub units_came: Vec<Arc<LiveUnit>>,
    /// Units that were there at first and not then.
    pub units_went: Vec<Arc<LiveUnit>>,
    /// Edges that were there then and not at first.
    pub edges_came: Vec<GraphEdge>,
    /// Edges that were there at first and not then.
    pub edges_went: Vec<GraphEdge>,
}

impl Restored {
    /// The units that are visible: those of the turns of a closed window are not.
    fn units(&self) -> BTreeMap<UnitId, Arc<LiveUnit>> {
        let window = |record: &RestoredRecord| RecordKey::from(&record.key).window;
        let closed: HashSet<_> = self.records.iter().filter(|r| r.extraction.closes).map(window).collect();
        let visible = self.records.iter().filter(|r| r.extraction.closes || !closed.contains(&window(r)));
        visible.flat_map(|record| &record.extraction.units).map(|unit| (unit.id, Arc::clone(unit))).collect()
    }

    fn edges(&self) -> BTreeSet<GraphEdge> {
        let edge = |bank: &Bank, choice: &GraphChoice| {
            let GraphChoice { channel, from, to, weight } = *choice;
            GraphEdge { bank: bank.key(), channel, a: from.min(to), b: from.max(to), weight }
        };
        self.choices.iter().flat_map(|(bank, choices)| choices.iter().map(move |choice| edge(bank, choice))).collect()
    }
}

/// Which rows count.
#[derive(Default)]
struct Scope<'s> {
    bank: Option<&'s Bank>,
    /// Rows up to this offset, inclusive.
    until: Option<u64>,
    window_turns: bool,
}

impl Scope<'_> {
    fn holds(&self, bank: &str, offset: u64) -> bool {
        self.bank.is_none_or(|wanted| wanted.as_str() == bank) && self.until.is_none_or(|until| offset <= until)
    }
}

/// Versions of records that were taken away again.
type Died = HashSet<(RecordKey, u64)>;

impl Snapshots {
    /// Opens a place: a directory, which is made. `settings` is a
    /// hash of all that the choices depend on.
    ///
    /// # Errors
    /// [`SnapshotError::Place`].
    pub fn open(place: &str, log: &str, partitions: u32, settings: String) -> Result<Self, SnapshotError> {
        Ok(Self { store: Store::open(place)?, log: log.to_owned(), partitions, settings })
    }

    #[cfg(test)]
    pub(super) fn over(objects: Box<dyn super::store::Objects>) -> Self {
        let (log, settings) = ("a test's log".to_owned(), "settings".to_owned());
        Self { store: Store::over(objects), log, partitions: 2, settings }
    }

    /// The newest whole snapshot; none where there is none. `say` is told which were refused;
    /// `progress`, how many bytes of how many are done.
    ///
    /// # Errors
    /// [`SnapshotError`] when the place cannot be reached, or holds snapshots of another log.
    pub fn newest(
        &self,
        window_turns: bool,
        say: &mut dyn FnMut(&str),
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Option<Restored>, SnapshotError> {
        let scope = Scope { window_turns, ..Scope::default() };
        for number in Manifest::numbers(&self.store)? {
            let read = self.numbered(number).and_then(|manifest| self.read(manifest, &scope, progress));
            match read {
                Ok(restored) => return Ok(Some(restored)),
                Err(unfit @ SnapshotError::Unfit { .. }) => {
                    say(&format!("{unfit}; it is left out, what was before it is used"))
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The newest manifest; none where there is none.
    ///
    /// # Errors
    /// [`SnapshotError`] when it cannot be read.
    pub fn manifest(&self) -> Result<Option<Manifest>, SnapshotError> {
        Manifest::numbers(&self.store)?.first().map(|number| self.numbered(*number)).transpose()
    }

    /// The last offset of the last read of a partition that ended at or before a point of the past.
    ///
    /// # Errors
    /// [`SnapshotError::Before`] when that is no longer known.
    pub fn round(&self, partition: u32, at: AsOf) -> Result<u64, SnapshotError> {
        match self.manifest()? {
            Some(manifest) => self.rounded(&manifest, partition, at),
            None => {
                Err(SnapshotError::Before { at: at.to_string(), oldest: "nothing: there is no snapshot".to_owned() })
            }
        }
    }

    /// A bank as of an offset that [`Self::round`] gave.
    ///
    /// # Errors
    /// [`SnapshotError`] when it cannot be read.
    pub fn as_of(&self, bank: &Bank, partition: u32, offset: u64) -> Result<Restored, SnapshotError> {
        let manifest = self.manifest()?.ok_or(SnapshotError::None)?;
        let scope = Scope { bank: Some(bank), until: Some(offset), window_turns: false };
        let mut restored = self.read(manifest, &scope, &mut |_, _| {})?;
        restored.manifest.reached = vec![Reached { next_offset: offset + 1, ..Reached::nothing(partition) }];
        restored.manifest.covers = Vec::new();
        Ok(restored)
    }

    /// What came and went in a bank between two offsets that [`Self::round`] gave.
    ///
    /// # Errors
    /// [`SnapshotError`] when it cannot be read.
    pub fn diff(&self, bank: &Bank, partition: u32, from: u64, to: u64) -> Result<Diff, SnapshotError> {
        let (before, after) = (self.as_of(bank, partition, from)?, self.as_of(bank, partition, to)?);
        let (old, new) = (before.units(), after.units());
        let (old_edges, new_edges) = (before.edges(), after.edges());
        let lacking = |units: &BTreeMap<UnitId, Arc<LiveUnit>>, others: &BTreeMap<UnitId, Arc<LiveUnit>>| {
            units.iter().filter(|(id, _)| !others.contains_key(*id)).map(|(_, unit)| Arc::clone(unit)).collect()
        };
        Ok(Diff {
            from,
            to,
            units_came: lacking(&new, &old),
            units_went: lacking(&old, &new),
            edges_came: new_edges.difference(&old_edges).copied().collect(),
            edges_went: old_edges.difference(&new_edges).copied().collect(),
        })
    }

    /// Writes from what was restored on, or from the start. `run` differs from that of every
    /// other process that wrote here. Of history `history_days` are kept; 0: all.
    ///
    /// # Errors
    /// [`SnapshotError::Place`].
    pub fn writer(self, restored: Option<&Restored>, run: String, history_days: u64) -> Result<Writer, SnapshotError> {
        self.store.sweep(&[&UpdateTable::ALL.map(UpdateTable::name)[..], &[Manifest::DIRECTORY]].concat())?;
        let numbers = Manifest::numbers(&self.store)?;
        let mut first = match restored {
            Some(restored) => Manifest { settings: self.settings, ..restored.manifest.clone() },
            None => Manifest::first(&self.log, self.partitions, &self.settings),
        };
        // One that was refused keeps its number.
        first.number = numbers.first().copied().unwrap_or_default();
        Ok(Writer::new(self.store, first, restored, run, history_days))
    }

    fn numbered(&self, number: u64) -> Result<Manifest, SnapshotError> {
        let manifest = Manifest::read(&self.store, number)?;
        if (manifest.log.as_str(), manifest.partitions) != (self.log.as_str(), self.partitions) {
            let (place, found, ours) = (self.store.place().to_owned(), manifest.log, self.log.clone());
            return Err(SnapshotError::Other { place, found, ours });
        }
        Ok(manifest)
    }

    /// The last offset of the last read of a partition that ended at or before a point.
    fn rounded(&self, manifest: &Manifest, partition: u32, at: AsOf) -> Result<u64, SnapshotError> {
        let Some(reached) = manifest.reached.iter().find(|reached| reached.partition == partition) else {
            return Err(SnapshotError::Before { at: at.to_string(), oldest: "nothing: it is empty".to_owned() });
        };
        let (oldest, oldest_ms) = reached.oldest.unwrap_or_default();
        let before = |offset, append_ms| match at {
            AsOf::Offset(at) => offset <= at,
            AsOf::Time(at) => append_ms <= at,
        };
        // Nothing may be left of that read but the point.
        let begins = reached.oldest.filter(|(_, append_ms)| manifest.trimmed_ms > 0 && *append_ms > 0);
        let mut best = begins.filter(|(offset, append_ms)| before(*offset, *append_ms)).map(|(offset, _)| offset);
        for file in manifest.files(UpdateTable::Turns).chain(manifest.files(UpdateTable::Units)) {
            let bytes = file.read(&self.store)?;
            let unfit = |problem| file.unfit(&self.store, problem);
            let columns = [&Heads::COLUMNS[..], &["append_time"]].concat();
            for batch in batches(bytes, &columns).map_err(unfit)? {
                let batch = batch.map_err(unfit)?;
                let heads = Heads::of(&batch).map_err(unfit)?;
                for row in (0..batch.num_rows()).filter(|row| heads.partition(*row) == partition) {
                    let offset = heads.offset(row);
                    let append_ms = Heads::append_ms(&batch, row).map_err(unfit)?;
                    if before(offset, append_ms) && manifest.knows(partition, offset) {
                        best = best.max(Some(offset));
                    }
                }
            }
        }
        best.ok_or_else(|| SnapshotError::Before {
            at: at.to_string(),
            oldest: format!("{}, of {}", AsOf::Offset(oldest), AsOf::Time(oldest_ms)),
        })
    }

    fn read(
        &self,
        manifest: Manifest,
        scope: &Scope<'_>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Restored, SnapshotError> {
        let total: u64 = manifest.segments.iter().flat_map(|segment| &segment.files).map(|file| file.bytes).sum();
        let died = self.died(&manifest, scope)?;
        let next = AtomicUsize::new(0);
        let (done, finished) = crossbeam_channel::unbounded();
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(manifest.segments.len());
        let (mut choices, mut parts): (BTreeMap<_, Vec<_>>, _) = (BTreeMap::new(), BTreeMap::new());
        std::thread::scope(|threads_scope| {
            for _ in 0..threads {
                let (done, next, died, manifest) = (done.clone(), &next, &died, &manifest);
                threads_scope.spawn(move || {
                    while let Some((at, segment)) = {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        manifest.segments.get(at).map(|segment| (at, segment))
                    } {
                        // Whoever listens goes away at the first error.
                        if done.send((at, self.segment(manifest, segment, scope, died))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(done);
            let mut bytes = 0;
            for (at, records) in finished {
                bytes += manifest.segments[at].files.iter().map(|file| file.bytes).sum::<u64>();
                progress(bytes, total);
                parts.insert(at, records?);
            }
            Ok(())
        })?;
        for file in manifest.files(UpdateTable::Edges) {
            self.choices(file, scope, &mut choices)?;
        }
        let mut live = BTreeMap::new();
        for (bank, mut changes) in choices {
            differential_dataflow::consolidation::consolidate(&mut changes);
            if let Some((choice, count)) = changes.iter().find(|(_, count)| *count != 1) {
                let problem = format!("bank {bank}: {choice:?} is there {count} times");
                let place = format!("{}: snapshot {}", self.store.place(), manifest.number);
                return Err(SnapshotError::Unfit { place, problem });
            }
            live.insert(bank, changes.into_iter().map(|(choice, _)| choice).collect());
        }
        Ok(Restored {
            choices: live,
            records: parts.into_values().flatten().collect(),
            same_settings: manifest.settings == self.settings,
            manifest,
        })
    }

    fn died(&self, manifest: &Manifest, scope: &Scope<'_>) -> Result<Died, SnapshotError> {
        let mut died = Died::new();
        // A part of a long record may hold units alone.
        for file in manifest.files(UpdateTable::Turns).chain(manifest.files(UpdateTable::Units)) {
            let unfit = |problem| file.unfit(&self.store, problem);
            for batch in batches(file.read(&self.store)?, &Heads::COLUMNS).map_err(unfit)? {
                let batch = batch.map_err(unfit)?;
                let heads = Heads::of(&batch).map_err(unfit)?;
                for row in 0..batch.num_rows() {
                    if !heads.came(row) && !heads.continues(row) && scope.holds(heads.bank(row), heads.offset(row)) {
                        let key = heads.key(row).map_err(unfit)?;
                        died.insert((RecordKey::from(&key), heads.since(row)));
                    }
                }
            }
        }
        Ok(died)
    }

    /// The records of a segment that are live.
    fn segment(
        &self,
        manifest: &Manifest,
        segment: &Segment,
        scope: &Scope<'_>,
        died: &Died,
    ) -> Result<Vec<RestoredRecord>, SnapshotError> {
        let mut found = Found { records: Vec::new(), places: HashMap::new(), died };
        let model = manifest.model.clone().unwrap_or_else(|| ModelRef { name: String::new(), hash: String::new() });
        let of = |table| segment.files.iter().filter(move |file| file.table == table);
        for file in of(UpdateTable::Turns) {
            let unfit = |problem| file.unfit(&self.store, problem);
            let columns = [&Heads::COLUMNS[..], &["turn", "state"]].concat();
            let columns = if scope.window_turns { &[][..] } else { &columns };
            for batch in batches(file.read(&self.store)?, columns).map_err(unfit)? {
                let batch = batch.map_err(unfit)?;
                let (heads, turns) = (Heads::of(&batch).map_err(unfit)?, Turns::of(&batch).map_err(unfit)?);
                let mut at = None;
                for row in 0..batch.num_rows() {
                    if !heads.came(row) || !scope.holds(heads.bank(row), heads.offset(row)) {
                        at = None;
                        continue;
                    }
                    if at.is_none() || !heads.continues(row) {
                        let key = heads.key(row).map_err(unfit)?;
                        let state = turns.state(row).map_err(unfit)?;
                        at = Some(found.place(key, heads.since(row), state, &model));
                    }
                    if let Some((record, key, _, names)) = at.flatten().and_then(|at| found.records.get_mut(at)) {
                        names.push(turns.name(row).to_owned());
                        if scope.window_turns {
                            turns.extractor(row).map_err(unfit)?.clone_into(&mut record.extractor);
                            record.turns.push(turns.turn(&key.bank, row).map_err(unfit)?);
                        }
                    }
                }
            }
        }
        for file in of(UpdateTable::Units) {
            let unfit = |problem| file.unfit(&self.store, problem);
            for batch in batches(file.read(&self.store)?, &[]).map_err(unfit)? {
                let batch = batch.map_err(unfit)?;
                let (heads, units) = (Heads::of(&batch).map_err(unfit)?, Units::of(&batch).map_err(unfit)?);
                let mut at: Option<Option<usize>> = None;
                for row in 0..batch.num_rows() {
                    if !heads.came(row) || !scope.holds(heads.bank(row), heads.offset(row)) {
                        at = None;
                        continue;
                    }
                    if at.is_none() || !heads.continues(row) {
                        let key = heads.key(row).map_err(unfit)?;
                        // Known already, unless it is a part without turns.
                        let state = if key.turn.is_some() { WindowState::Open } else { WindowState::Final };
                        at = Some(found.place(key, heads.since(row), state, &model));
                    }
                    if let Some((record, ..)) = at.flatten().and_then(|at| found.records.get_mut(at)) {
                        record.units.push(units.unit(row).map_err(unfit)?);
                    }
                }
            }
        }
        let made = found.records.into_iter().map(|(record, key, since, turns)| {
            let extraction = Extraction::new(&record, manifest.dimensions)
                .map_err(|problem| SnapshotError::Unfit { place: self.store.place().to_owned(), problem })?;
            let extraction = Arc::new(extraction);
            let MemoryRecord { turns: window_turns, extractor, .. } = record;
            Ok(RestoredRecord { key, since, turns, window_turns, extractor, extraction })
        });
        made.collect()
    }

    fn choices(
        &self,
        file: &TableFile,
        scope: &Scope<'_>,
        changes: &mut BTreeMap<Bank, Vec<(GraphChoice, isize)>>,
    ) -> Result<(), SnapshotError> {
        let unfit = |problem| file.unfit(&self.store, problem);
        for batch in batches(file.read(&self.store)?, &[]).map_err(unfit)? {
            let batch = batch.map_err(unfit)?;
            let choices = Choices::of(&batch).map_err(unfit)?;
            let mut last: Option<Bank> = None;
            for row in 0..batch.num_rows() {
                let name = choices.bank(row);
                if !scope.holds(name, choices.offset(row)) {
                    continue;
                }
                if last.as_ref().is_none_or(|bank| bank.as_str() != name) {
                    last = Some(Bank::parse(name).map_err(|e| unfit(e.to_string()))?);
                }
                let Some(bank) = &last else { continue };
                let change = (choices.choice(row).map_err(unfit)?, if choices.came(row) { 1 } else { -1 });
                match changes.get_mut(bank) {
                    Some(of_bank) => of_bank.push(change),
                    None => drop(changes.insert(bank.clone(), vec![change])),
                }
            }
        }
        Ok(())
    }
}

/// The live records of a segment, as far as they were read: with their keys, the offsets with
/// which they came, and the names of their turns.
struct Found<'d> {
    records: Vec<(MemoryRecord, MemoryKey, u64, Vec<String>)>,
    places: HashMap<(RecordKey, u64), usize>,
    died: &'d Died,
}

impl Found<'_> {
    /// Where a version of a record is, from now on if it was not there; none when it has gone.
    fn place(&mut self, key: MemoryKey, since: u64, state: WindowState, model: &ModelRef) -> Option<usize> {
        let id = (RecordKey::from(&key), since);
        if let Some(at) = self.places.get(&id) {
            return Some(*at);
        }
        if self.died.contains(&id) {
            return None;
        }
        self.places.insert(id, self.records.len());
        self.records.push((empty(&key, state, model), key, since, Vec::new()));
        Some(self.records.len() - 1)
    }
}

fn empty(key: &MemoryKey, state: WindowState, model: &ModelRef) -> MemoryRecord {
    MemoryRecord {
        schema: SCHEMA_VERSION,
        bank: key.bank.clone(),
        window: key.window.clone(),
        state,
        turns_hash: String::new(),
        extractor: String::new(),
        model: model.clone(),
        turns: Vec::new(),
        units: Vec::new(),
    }
}
