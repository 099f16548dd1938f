//! Reads snapshots of a shard: the newest, or a bank as of an earlier offset (decision 35).
//!
//! In: the files that a manifest of the shard lists. Out: the live records, ready for the dataflow, and the
//! choices of their units. A damaged snapshot is reported by name, and the one before it is used. No file of
//! another shard is read.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{
    AsOf, BankDiff, ClaimRule, Manifest, ManifestId, PartitionReach, RestoredNames, RestoredRecord, RestoredSnapshot,
    SnapshotError, SnapshotSegment, SnapshotWriter, TableFile,
    claim::SnapshotClaim,
    manifest::shard_directory,
    segment_files::SegmentFiles,
    store::SnapshotStore,
    update_tables::{ChoiceColumns, HeadColumns, TurnColumns, UnitColumns, UpdateTable, batches},
};
use memory::index::{GraphChoice, LiveUnit, RecordKey, RecordUnits, TurnFactTable};
use types::model::{Bank, MemoryKey, Statement, UnitId, WindowState, WindowTurn};

/// How many times the newest snapshot is tried if its writer replaces it during the restore.
const ATTEMPTS: usize = 3;

/// The snapshots of one log in one place.
pub struct LogSnapshots {
    store: Arc<SnapshotStore>,
    log: String,
    partitions: u32,
    settings: String,
}

/// The rows to read.
#[derive(Default)]
struct RestoreScope<'s> {
    banks: Option<&'s HashSet<String>>,
    /// The last offset, inclusive.
    until: Option<u64>,
    window_turns: bool,
    /// Whether only names are read: of turns and units, and no choice.
    names: bool,
}

impl RestoreScope<'_> {
    fn includes(&self, bank: &str, offset: u64) -> bool {
        self.banks.is_none_or(|wanted| wanted.contains(bank)) && self.until.is_none_or(|until| offset <= until)
    }

    /// The columns to read: all, or those of names.
    fn columns(&self, names: &[&'static str]) -> Vec<&'static str> {
        if self.names { [&HeadColumns::COLUMNS[..], names].concat() } else { Vec::new() }
    }
}

/// Versions of records that were removed: the record, and the offset that added it.
type RemovedVersions = HashSet<(RecordKey, u64)>;

impl LogSnapshots {
    /// Opens a place: a directory, which is created, or the URL of a bucket. `settings` is a hash of the
    /// settings that the choices depend on.
    ///
    /// # Errors
    /// [`SnapshotError::Place`].
    pub fn open(place: &str, log: &str, partitions: u32, settings: String) -> Result<Self, SnapshotError> {
        let store = Arc::new(SnapshotStore::open(place)?);
        Ok(Self { store, log: log.to_owned(), partitions, settings })
    }

    /// The place.
    pub(super) fn store(&self) -> &SnapshotStore {
        &self.store
    }

    #[cfg(test)]
    pub(super) fn over(objects: Box<dyn super::store::ObjectBackend>) -> Self {
        let (log, settings) = ("a test's log".to_owned(), "settings".to_owned());
        Self { store: Arc::new(SnapshotStore::over(objects)), log, partitions: 2, settings }
    }

    /// The newest undamaged snapshot of a shard, if any. Calls `warn` for each damaged one, and `progress` with the
    /// bytes that have been read and the total.
    ///
    /// # Errors
    /// [`SnapshotError`] when the place cannot be reached, or holds snapshots of another log.
    pub fn newest(
        &self,
        partition: u32,
        window_turns: bool,
        warn: &mut dyn FnMut(&str),
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Option<RestoredSnapshot>, SnapshotError> {
        self.newest_in(partition, &RestoreScope { window_turns, ..RestoreScope::default() }, warn, progress)
    }

    /// As [`Self::newest`], but only the names of turns and units, and no choice: enough for banks that stay asleep.
    ///
    /// # Errors
    /// As [`Self::newest`].
    pub fn newest_names(
        &self,
        partition: u32,
        warn: &mut dyn FnMut(&str),
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Option<RestoredSnapshot>, SnapshotError> {
        self.newest_in(partition, &RestoreScope { names: true, ..RestoreScope::default() }, warn, progress)
    }

    /// What a snapshot holds of some banks.
    ///
    /// # Errors
    /// [`SnapshotError`] when it cannot be read.
    pub fn banks_of(
        &self,
        partition: u32,
        manifest: &Manifest,
        banks: &BTreeSet<Bank>,
        window_turns: bool,
    ) -> Result<RestoredSnapshot, SnapshotError> {
        let banks: HashSet<String> = banks.iter().map(|bank| bank.as_str().to_owned()).collect();
        let scope = RestoreScope { banks: Some(&banks), window_turns, ..RestoreScope::default() };
        self.read(partition, manifest.clone(), &scope, &mut |_, _| {})
    }

    fn newest_in(
        &self,
        partition: u32,
        scope: &RestoreScope<'_>,
        warn: &mut dyn FnMut(&str),
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Option<RestoredSnapshot>, SnapshotError> {
        let mut damaged = Vec::new();
        'again: for attempt in 1..=ATTEMPTS {
            let ids = Manifest::ids(&self.store, partition)?;
            damaged.clear();
            for id in &ids {
                let listed = self.listed(partition, *id);
                match listed.and_then(|manifest| self.read(partition, manifest, scope, progress)) {
                    Ok(restored) => {
                        damaged.iter().for_each(|what: &String| warn(what));
                        return Ok(Some(restored));
                    }
                    Err(unfit @ SnapshotError::Unfit { .. }) => {
                        // Its writer may have replaced it while it was read.
                        if attempt < ATTEMPTS && Manifest::ids(&self.store, partition)? != ids {
                            continue 'again;
                        }
                        damaged.push(format!("{unfit}; this snapshot is skipped, and the one before it is used"));
                    }
                    Err(error) => return Err(error),
                }
            }
            break;
        }
        damaged.iter().for_each(|what| warn(what));
        Ok(None)
    }

    /// The newest manifest of a shard, if any.
    ///
    /// # Errors
    /// [`SnapshotError`] when it cannot be read.
    pub fn manifest(&self, partition: u32) -> Result<Option<Manifest>, SnapshotError> {
        self.newest_id(partition)?.map(|id| self.listed(partition, id)).transpose()
    }

    /// The newest snapshot that is listed, damaged or not. A writer that continues from there must still find it. Ask
    /// for it before [`Self::newest`].
    ///
    /// # Errors
    /// [`SnapshotError`] when the place cannot be reached.
    pub fn newest_id(&self, partition: u32) -> Result<Option<ManifestId>, SnapshotError> {
        Ok(Manifest::ids(&self.store, partition)?.first().copied())
    }

    /// The error of a shard whose snapshots another process writes.
    #[must_use]
    pub fn other_writer_error(&self, partition: u32) -> SnapshotError {
        SnapshotError::Elsewhere { place: format!("{}/{}", self.store.place(), shard_directory(partition)) }
    }

    /// Whether a process may write a shard's snapshots now.
    ///
    /// # Errors
    /// [`SnapshotError`] when the place cannot be reached.
    pub fn may_claim(&self, partition: u32, run: &str, rule: ClaimRule, now_ms: i64) -> Result<bool, SnapshotError> {
        SnapshotClaim::allows(&self.store, partition, run, rule, now_ms)
    }

    /// Where the last read of a partition at or before a point ended: the offset to ask for, and when its last record
    /// was appended, in milliseconds since 1970.
    ///
    /// # Errors
    /// [`SnapshotError::Before`] when no history is kept for that point.
    pub fn point(&self, partition: u32, at: AsOf) -> Result<(u64, i64), SnapshotError> {
        match self.manifest(partition)? {
            Some(manifest) => self.point_in(&manifest, partition, at),
            None => Err(SnapshotError::Before {
                at: at.to_string(),
                oldest: "none, because there is no snapshot".to_owned(),
            }),
        }
    }

    /// A bank as of an offset from [`Self::point`].
    ///
    /// # Errors
    /// [`SnapshotError`] when it cannot be read.
    pub fn as_of(&self, bank: &Bank, partition: u32, offset: u64) -> Result<RestoredSnapshot, SnapshotError> {
        let manifest = self.manifest(partition)?.ok_or(SnapshotError::None)?;
        let banks = HashSet::from([bank.as_str().to_owned()]);
        let scope = RestoreScope { banks: Some(&banks), until: Some(offset), ..RestoreScope::default() };
        let mut restored = self.read(partition, manifest, &scope, &mut |_, _| {})?;
        restored.manifest.reached =
            vec![PartitionReach { next_offset: offset + 1, ..PartitionReach::nothing(partition) }];
        restored.manifest.covers = Vec::new();
        restored.manifest.unreadable.retain(|record| record.key.bank == *bank && record.offset <= offset);
        Ok(restored)
    }

    /// What was added to and removed from a bank between two points from [`Self::point`]. Counts nothing that was
    /// forgotten.
    ///
    /// # Errors
    /// [`SnapshotError`] when it cannot be read.
    pub fn diff(
        &self,
        bank: &Bank,
        partition: u32,
        (from, from_ms): (u64, i64),
        (to, to_ms): (u64, i64),
    ) -> Result<BankDiff, SnapshotError> {
        let (before, after) = (self.as_of(bank, partition, from)?, self.as_of(bank, partition, to)?);
        let (old, new) = (before.units(), after.units());
        let (old_edges, new_edges) = (before.edges(), after.edges());
        let lacking = |units: &BTreeMap<UnitId, Arc<LiveUnit>>, others: &BTreeMap<UnitId, Arc<LiveUnit>>| {
            units.iter().filter(|(id, _)| !others.contains_key(*id)).map(|(_, unit)| Arc::clone(unit)).collect()
        };
        Ok(BankDiff {
            from,
            to,
            append_ms: [from_ms, to_ms],
            forgotten: 0,
            units_added: lacking(&new, &old),
            units_removed: lacking(&old, &new),
            edges_added: new_edges.difference(&old_edges).copied().collect(),
            edges_removed: old_edges.difference(&new_edges).copied().collect(),
        })
    }

    /// A writer of a shard's snapshots that continues from what was restored, or from an empty shard; `seen`
    /// is [`Self::newest_id`] from before the restore. It claims them with its first snapshot, or by `rule` when the
    /// rows that wait for that snapshot grow too large. `run` must differ from the `run` of every other writer that
    /// wrote here; the part before the dot names the process. `history_days` of history are kept; 0: all.
    ///
    /// # Errors
    /// [`SnapshotError::Place`].
    pub fn writer(
        &self,
        partition: u32,
        seen: Option<ManifestId>,
        restored: Option<&RestoredSnapshot>,
        run: String,
        history_days: u64,
        rule: ClaimRule,
    ) -> Result<SnapshotWriter, SnapshotError> {
        let tables = UpdateTable::ALL.map(|table| SegmentFiles::directory(partition, table));
        let others = [Manifest::directory(partition), SnapshotClaim::directory(partition)];
        self.store.sweep(&[&tables[..], &others].concat())?;
        let mut first = match restored {
            Some(restored) => Manifest { settings: self.settings.clone(), ..restored.manifest.clone() },
            None => Manifest::first(&self.log, self.partitions, &self.settings),
        };
        // The number of a damaged snapshot is not used again.
        first.number = first.number.max(seen.map_or(0, |seen| seen.number));
        let files = SegmentFiles::new(Arc::clone(&self.store), partition, run);
        Ok(SnapshotWriter::new(files, first, seen, restored, history_days, rule))
    }

    /// Deletes the snapshots of every shard, unless they are of another log.
    ///
    /// # Errors
    /// [`SnapshotError::Place`].
    pub fn delete(&self) -> Result<(), SnapshotError> {
        for partition in 0..self.partitions {
            let newest = Manifest::ids(&self.store, partition)?.first().copied();
            if newest.is_some_and(|id| matches!(self.listed(partition, id), Err(SnapshotError::Other { .. }))) {
                continue;
            }
            let tables = UpdateTable::ALL.map(|table| SegmentFiles::directory(partition, table));
            // Manifests first, so that none names files that are gone.
            let directories: Vec<String> = std::iter::once(Manifest::directory(partition))
                .chain(tables)
                .chain([SnapshotClaim::directory(partition)])
                .collect();
            self.store.sweep(&directories)?;
            for directory in &directories {
                self.store.list(directory)?.iter().try_for_each(|path| self.store.delete(path))?;
            }
        }
        Ok(())
    }

    fn listed(&self, partition: u32, id: ManifestId) -> Result<Manifest, SnapshotError> {
        let manifest = Manifest::read(&self.store, partition, id)?;
        if (manifest.log.as_str(), manifest.partitions) != (self.log.as_str(), self.partitions) {
            let (place, found, ours) = (self.store.place().to_owned(), manifest.log, self.log.clone());
            return Err(SnapshotError::Other { place, found, ours });
        }
        Ok(manifest)
    }

    /// As [`Self::point`], for a manifest.
    fn point_in(&self, manifest: &Manifest, partition: u32, at: AsOf) -> Result<(u64, i64), SnapshotError> {
        let Some(reached) = manifest.reached.iter().find(|reached| reached.partition == partition) else {
            return Err(SnapshotError::Before {
                at: at.to_string(),
                oldest: "none, because the snapshot is empty".to_owned(),
            });
        };
        let (oldest, oldest_ms) = reached.oldest.unwrap_or_default();
        let before = |offset, append_ms| match at {
            AsOf::Offset(at) => offset <= at,
            AsOf::Time(at) => append_ms <= at,
        };
        let start = manifest.first_kept(partition);
        let mut best = start.filter(|(offset, append_ms)| before(*offset, *append_ms));
        // The first read that has an answer.
        let mut first = start;
        for file in manifest.files(UpdateTable::Turns).chain(manifest.files(UpdateTable::Units)) {
            let bytes = file.read(&self.store)?;
            let unfit = |problem| file.unfit(&self.store, problem);
            let columns = [&HeadColumns::COLUMNS[..], &["append_time"]].concat();
            for batch in batches(bytes, &columns).map_err(unfit)? {
                let batch = batch.map_err(unfit)?;
                let heads = HeadColumns::of(&batch).map_err(unfit)?;
                for row in 0..batch.num_rows() {
                    let offset = heads.offset(row);
                    let append_ms = HeadColumns::append_ms(&batch, row).map_err(unfit)?;
                    if manifest.answers_for(partition, offset) {
                        first = Some(first.unwrap_or((offset, append_ms)).min((offset, append_ms)));
                    }
                    if before(offset, append_ms) && manifest.answers_for(partition, offset) {
                        best = best.max(Some((offset, append_ms)));
                    }
                }
            }
        }
        // An unreadable record of a new key leaves no row.
        for (offset, append_ms) in manifest.unreadable.iter().filter_map(|record| record.found) {
            if before(offset, append_ms) && manifest.answers_for(partition, offset) {
                best = best.max(Some((offset, append_ms)));
            }
        }
        best.ok_or_else(|| {
            // History begins at the end of a read: an offset inside the first one has no answer of its own.
            let begins = first.filter(|_| before(oldest, oldest_ms)).unwrap_or((oldest, oldest_ms));
            let oldest = format!("{}, of {}", AsOf::Offset(begins.0), AsOf::Time(begins.1));
            SnapshotError::Before { at: at.to_string(), oldest }
        })
    }

    fn read(
        &self,
        partition: u32,
        manifest: Manifest,
        scope: &RestoreScope<'_>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<RestoredSnapshot, SnapshotError> {
        let total = manifest.bytes();
        let removed = self.removed_versions(&manifest, scope)?;
        let next = AtomicUsize::new(0);
        let (done, finished) = crossbeam_channel::unbounded();
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(manifest.segments.len());
        let (mut choices, mut parts): (BTreeMap<_, Vec<_>>, _) = (BTreeMap::new(), BTreeMap::new());
        std::thread::scope(|threads_scope| {
            for _ in 0..threads {
                let (done, next, removed, manifest) = (done.clone(), &next, &removed, &manifest);
                threads_scope.spawn(move || {
                    while let Some((at, segment)) = {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        manifest.segments.get(at).map(|segment| (at, segment))
                    } {
                        // The receiver is dropped at the first error.
                        if done.send((at, self.segment(manifest, segment, scope, removed))).is_err() {
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
        for file in manifest.files(UpdateTable::Edges).filter(|_| !scope.names) {
            self.choices(file, scope, &mut choices)?;
        }
        let mut live = BTreeMap::new();
        for (bank, mut changes) in choices {
            differential_dataflow::consolidation::consolidate(&mut changes);
            if let Some((choice, count)) = changes.iter().find(|(_, count)| *count != 1) {
                let problem = format!("bank {bank}: {choice:?} has the count {count}, not 1");
                let shard = shard_directory(partition);
                let place = format!("{}/{shard}: snapshot {}", self.store.place(), manifest.number);
                return Err(SnapshotError::Unfit { place, problem });
            }
            live.insert(bank, changes.into_iter().map(|(choice, _)| choice).collect());
        }
        let records: Vec<RestoredRecord> = parts.into_values().flatten().collect();
        Ok(RestoredSnapshot { choices: live, records, same_settings: manifest.settings == self.settings, manifest })
    }

    /// The versions of records that were removed within the scope.
    fn removed_versions(
        &self,
        manifest: &Manifest,
        scope: &RestoreScope<'_>,
    ) -> Result<RemovedVersions, SnapshotError> {
        let mut removed = RemovedVersions::new();
        // A part of a long record may have units only.
        for file in manifest.files(UpdateTable::Turns).chain(manifest.files(UpdateTable::Units)) {
            let unfit = |problem| file.unfit(&self.store, problem);
            for batch in batches(file.read(&self.store)?, &HeadColumns::COLUMNS).map_err(unfit)? {
                let batch = batch.map_err(unfit)?;
                let heads = HeadColumns::of(&batch).map_err(unfit)?;
                for row in 0..batch.num_rows() {
                    let is_in = scope.includes(heads.bank(row), heads.offset(row));
                    if is_in && !heads.added(row) && !heads.continues(row) {
                        let key = heads.key(row).map_err(unfit)?;
                        removed.insert((RecordKey::from(&key), heads.since(row)));
                    }
                }
            }
        }
        Ok(removed)
    }

    /// The records of a segment that are live.
    fn segment(
        &self,
        manifest: &Manifest,
        segment: &SnapshotSegment,
        scope: &RestoreScope<'_>,
        removed: &RemovedVersions,
    ) -> Result<Vec<RestoredRecord>, SnapshotError> {
        let mut live = SegmentRecords { records: Vec::new(), indexes: HashMap::new(), removed };
        let of = |table| segment.files.iter().filter(move |file| file.table == table);
        for file in of(UpdateTable::Turns) {
            let unfit = |problem| file.unfit(&self.store, problem);
            let columns = scope.columns(&TurnColumns::NAMES);
            for batch in batches(file.read(&self.store)?, &columns).map_err(unfit)? {
                let batch = batch.map_err(unfit)?;
                let (heads, turns) = (HeadColumns::of(&batch).map_err(unfit)?, TurnColumns::of(&batch).map_err(unfit)?);
                let mut at = None;
                for row in 0..batch.num_rows() {
                    if !heads.added(row) || !scope.includes(heads.bank(row), heads.offset(row)) {
                        at = None;
                        continue;
                    }
                    if at.is_none() || !heads.continues(row) {
                        let key = heads.key(row).map_err(unfit)?;
                        let state = turns.state(row).map_err(unfit)?;
                        let append_ms = HeadColumns::append_ms(&batch, row).map_err(unfit)?;
                        at = Some(live.index_of(key, (heads.since(row), append_ms), state));
                    }
                    if let Some(of) = at.flatten().and_then(|at| live.records.get_mut(at)) {
                        of.names.push(turns.name(row).to_owned());
                        let is_deleted = turns.deleted(row).map_err(unfit)?;
                        of.filled |= !is_deleted;
                        turns.extractor(row).map_err(unfit)?.clone_into(&mut of.extractor);
                        if scope.names {
                            if is_deleted {
                                let (version, _) = turns.version(row).map_err(unfit)?;
                                of.only_names.deleted.push((turns.name(row).to_owned(), version));
                            }
                            continue;
                        }
                        of.statements.extend(turns.statements(row).map_err(unfit)?);
                        let turn = turns.turn(&of.key.bank, row).map_err(unfit)?;
                        of.facts.add(&turn, &of.key.window.session.0, &of.extractor);
                        if scope.window_turns {
                            of.window_turns.push(turn);
                        }
                    }
                }
            }
        }
        for file in of(UpdateTable::Units) {
            let unfit = |problem| file.unfit(&self.store, problem);
            let columns = scope.columns(&UnitColumns::NAMES);
            for batch in batches(file.read(&self.store)?, &columns).map_err(unfit)? {
                let batch = batch.map_err(unfit)?;
                let heads = HeadColumns::of(&batch).map_err(unfit)?;
                let ids = UnitColumns::ids(&batch).map_err(unfit)?;
                let units = if scope.names { None } else { Some(UnitColumns::of(&batch).map_err(unfit)?) };
                let mut at: Option<Option<usize>> = None;
                for row in 0..batch.num_rows() {
                    if !heads.added(row) || !scope.includes(heads.bank(row), heads.offset(row)) {
                        at = None;
                        continue;
                    }
                    if at.is_none() || !heads.continues(row) {
                        let key = heads.key(row).map_err(unfit)?;
                        // A record that first appears here is a part without turns.
                        let state = if key.turn.is_some() { WindowState::Open } else { WindowState::Final };
                        let append_ms = HeadColumns::append_ms(&batch, row).map_err(unfit)?;
                        at = Some(live.index_of(key, (heads.since(row), append_ms), state));
                    }
                    if let Some(of) = at.flatten().and_then(|at| live.records.get_mut(at)) {
                        of.filled = true;
                        let Some(units) = &units else {
                            of.only_names.units.extend(ids.get(row).map(|id| UnitId(*id)));
                            continue;
                        };
                        let unit = units.unit(row).map_err(unfit)?;
                        let unfit = |problem| SnapshotError::Unfit { place: self.store.place().to_owned(), problem };
                        let session = &of.key.window.session.0;
                        let unit = LiveUnit::new(&unit, session, manifest.dimensions, &of.facts).map_err(unfit)?;
                        of.units.push(Arc::new(unit));
                    }
                }
            }
        }
        let restored = live.records.into_iter().map(|record| {
            let SegmentRecord {
                key,
                since,
                append_ms,
                closes,
                names: turns,
                filled,
                window_turns,
                facts,
                extractor,
                statements,
                units,
                only_names,
            } = record;
            let extraction = Arc::new(RecordUnits::of(closes, units, statements, facts));
            let names = scope.names.then_some(only_names);
            RestoredRecord { key, since, append_ms, turns, filled, window_turns, extractor, extraction, names }
        });
        Ok(restored.collect())
    }

    fn choices(
        &self,
        file: &TableFile,
        scope: &RestoreScope<'_>,
        changes: &mut BTreeMap<Bank, Vec<(GraphChoice, isize)>>,
    ) -> Result<(), SnapshotError> {
        let unfit = |problem| file.unfit(&self.store, problem);
        for batch in batches(file.read(&self.store)?, &[]).map_err(unfit)? {
            let batch = batch.map_err(unfit)?;
            let choices = ChoiceColumns::of(&batch).map_err(unfit)?;
            let mut last: Option<Bank> = None;
            for row in 0..batch.num_rows() {
                let name = choices.bank(row);
                if !scope.includes(name, choices.offset(row)) {
                    continue;
                }
                if last.as_ref().is_none_or(|bank| bank.as_str() != name) {
                    last = Some(Bank::parse(name).map_err(|e| unfit(e.to_string()))?);
                }
                let Some(bank) = &last else { continue };
                let change = (choices.choice(row).map_err(unfit)?, if choices.added(row) { 1 } else { -1 });
                match changes.get_mut(bank) {
                    Some(of_bank) => of_bank.push(change),
                    None => drop(changes.insert(bank.clone(), vec![change])),
                }
            }
        }
        Ok(())
    }
}

/// A live record of a segment, as far as it was read.
struct SegmentRecord {
    key: MemoryKey,
    /// The offset that added it.
    since: u64,
    append_ms: i64,
    /// Whether it replaces the records of the window's turns.
    closes: bool,
    /// The names of its turns.
    names: Vec<String>,
    /// Whether it has a turn that is not deleted, or a unit.
    filled: bool,
    /// The turns themselves, if requested.
    window_turns: Vec<WindowTurn>,
    /// What selectors compare of its turns.
    facts: TurnFactTable,
    /// The extractor of its units.
    extractor: String,
    /// What its turns state.
    statements: Vec<Statement>,
    /// Converted one by one: in their stored form, the vectors of all of them would take several times the memory.
    units: Vec<Arc<LiveUnit>>,
    /// What is read in place of its content, if only names are.
    only_names: RestoredNames,
}

/// The live records of a segment that have been read so far.
struct SegmentRecords<'r> {
    records: Vec<SegmentRecord>,
    indexes: HashMap<(RecordKey, u64), usize>,
    removed: &'r RemovedVersions,
}

impl SegmentRecords<'_> {
    /// The index of a version of a record, which is added if it is new; `None` if it was removed.
    fn index_of(&mut self, key: MemoryKey, (since, append_ms): (u64, i64), state: WindowState) -> Option<usize> {
        let id = (RecordKey::from(&key), since);
        if let Some(at) = self.indexes.get(&id) {
            return Some(*at);
        }
        if self.removed.contains(&id) {
            return None;
        }
        self.indexes.insert(id, self.records.len());
        self.records.push(SegmentRecord {
            key,
            since,
            append_ms,
            closes: state == WindowState::Final,
            names: Vec::new(),
            filled: false,
            window_turns: Vec::new(),
            facts: TurnFactTable::default(),
            extractor: String::new(),
            statements: Vec::new(),
            units: Vec::new(),
            only_names: RestoredNames::default(),
        });
        Some(self.records.len() - 1)
    }
}
