//! A memory's changes as update tables, and snapshots of it.
//!
//! In: the reads of the memory log in order, each with the choices that it changed. Out:
//! segments of files as they fill, and on request a manifest that lists them all. What a
//! manifest lists is never changed; what none lists is removed. Asks no memory: taking a
//! snapshot makes no question wait.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use arrow_array::RecordBatch;
use bytes::Bytes;
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};

use super::{
    Forgotten, Gap, Manifest, Reached, Restored, Segment, SnapshotError, TableFile, rewrite,
    store::Store,
    update::{ChoiceRows, Head, TurnRows, UnitRows, UpdateTable},
};
use crate::{
    memory::{ChoiceChanges, RecordKey},
    model::{Bank, BankKey, MemoryKey, MemoryRecord, UnitId},
};

/// A segment is closed past so many bytes of rows.
const SEGMENT_BYTES: usize = 32 << 20;
/// Encoded bytes that may wait for a place that cannot be reached.
const WAITING_BYTES: usize = 256 << 20;
/// Rows of a row group.
const GROUP_ROWS: usize = 8_192;
/// History is removed by steps of so much: each looks at every turn, and writes what it changes anew.
const DAY_MS: i64 = 24 * 3_600_000;
/// Manifests that are kept.
const KEPT: usize = 2;

/// One read of the memory log.
#[derive(Debug, Clone, Default)]
pub struct Update {
    /// The partition.
    pub partition: u32,
    /// The first offset that was not read.
    pub next_offset: u64,
    /// The offset of its last record.
    pub offset: u64,
    /// When that was appended, in milliseconds since 1970.
    pub append_ms: i64,
    /// The turns positions that it covers.
    pub covers: Vec<(u32, u64)>,
    /// Its records in order, and removals.
    pub records: Vec<(MemoryKey, Option<MemoryRecord>)>,
}

/// What a live record holds, by name.
#[derive(Debug, Clone)]
pub(super) struct Held {
    /// The offset with which it came.
    pub since: u64,
    pub turns: Box<[Box<str>]>,
    pub units: Box<[UnitId]>,
}

/// Writes the snapshots of one memory into one place.
pub struct Writer {
    pub(super) store: Store,
    /// What the next one will say.
    pub(super) manifest: Manifest,
    pub(super) held: HashMap<RecordKey, Held>,
    names: HashMap<BankKey, Bank>,
    /// Turns that were taken back since the last snapshot.
    pub(super) gone: BTreeMap<(Bank, String), Forgotten>,
    turns: TurnRows,
    units: Option<UnitRows>,
    choices: ChoiceRows,
    bytes: usize,
    /// Rows that are in no segment.
    open: bool,
    /// Encoded, and not in the place yet.
    waiting: VecDeque<Vec<(TableFile, Bytes)>>,
    run: String,
    /// How much history is kept; 0: all.
    history_ms: i64,
    files: u64,
    /// The first offset that this run read, by partition, until its first snapshot.
    begun: Option<BTreeMap<u32, u64>>,
    /// The last read of this run that left a row, by partition: such a read can be asked for.
    changed: BTreeMap<u32, (u64, i64)>,
    /// Rows were lost: a later snapshot would lack them.
    lost: bool,
    /// The manifest that was written last, whatever was said of it: the answer may be lost.
    tried: Option<Manifest>,
    /// What no manifest lists may be there, and manifests that are too old.
    littered: bool,
    /// The place failed: files wait until a snapshot is asked for.
    away: bool,
}

impl Writer {
    /// Goes on from what was restored, or begins anew.
    /// `run` names it: two runs never write one file, whatever became of the first.
    pub(super) fn new(
        store: Store,
        first: Manifest,
        restored: Option<&Restored>,
        run: String,
        history_days: u64,
    ) -> Self {
        let mut held = HashMap::new();
        let mut names = HashMap::new();
        for record in restored.iter().flat_map(|restored| &restored.records) {
            let id = RecordKey::from(&record.key);
            names.entry(id.window.bank).or_insert_with(|| record.key.bank.clone());
            let turns = record.turns.iter().map(|turn| turn.as_str().into()).collect();
            let units = record.extraction.units.iter().map(|unit| unit.id).collect();
            held.insert(id, Held { since: record.since, turns, units });
        }
        let gone = first.forgotten.iter().map(|gone| ((gone.bank.clone(), gone.turn.clone()), gone.clone())).collect();
        let from = |last: Option<(u64, i64)>| last.map_or(0, |(offset, _)| offset + 1);
        let begun = first.reached.iter().map(|reached| (reached.partition, from(reached.last))).collect();
        Self {
            store,
            manifest: first,
            held,
            names,
            gone,
            turns: TurnRows::new(),
            units: None,
            choices: ChoiceRows::default(),
            bytes: 0,
            open: false,
            waiting: VecDeque::new(),
            run,
            history_ms: i64::try_from(history_days).unwrap_or(i64::MAX).saturating_mul(DAY_MS),
            files: 0,
            begun: Some(begun),
            changed: BTreeMap::new(),
            lost: false,
            tried: None,
            littered: true,
            away: false,
        }
    }

    /// Takes the next read of the log, with the choices that it changed.
    ///
    /// # Errors
    /// [`SnapshotError`] when the place cannot be reached for so long that too much waits.
    pub fn take(&mut self, update: &Update, choices: &ChoiceChanges) -> Result<(), SnapshotError> {
        let Update { partition, next_offset, offset, append_ms, .. } = *update;
        let last: HashMap<&MemoryKey, usize> =
            update.records.iter().enumerate().map(|(n, (key, _))| (key, n)).collect();
        for (n, (key, record)) in update.records.iter().enumerate() {
            if last.get(key) != Some(&n) {
                continue;
            }
            let id = RecordKey::from(key);
            let head = Head { key, partition, offset, append_ms, since: offset, diff: 1 };
            let old = self.held.remove(&id);
            if old.is_some() || record.is_some() {
                self.changed.insert(partition, (offset, append_ms));
            }
            if let Some(old) = old {
                self.went(&Head { since: old.since, diff: -1, ..head }, &old);
            }
            if let Some(record) = record {
                self.names.entry(id.window.bank).or_insert_with(|| key.bank.clone());
                self.came(&head, record);
                let turns = record.turns.iter().map(|held| held.turn.turn.as_str().into()).collect();
                let units = record.units.iter().map(|unit| unit.id).collect();
                self.held.insert(id, Held { since: offset, turns, units });
            }
        }
        self.choose((partition, offset, append_ms), choices);
        let place = self.manifest.reached.iter().position(|reached| reached.partition == partition);
        let place = place.unwrap_or_else(|| {
            self.manifest.reached.push(Reached::nothing(partition));
            self.manifest.reached.len() - 1
        });
        if let Some(reached) = self.manifest.reached.get_mut(place) {
            reached.next_offset = next_offset;
            if !update.records.is_empty() {
                reached.last = Some((offset, append_ms));
            }
        }
        let mut covers: BTreeMap<u32, u64> = self.manifest.covers.drain(..).collect();
        covers.extend(update.covers.iter().copied());
        self.manifest.covers = covers.into_iter().collect();
        if self.bytes > SEGMENT_BYTES {
            self.close()?;
            let waiting: usize = self.waiting.iter().flatten().map(|(_, bytes)| bytes.len()).sum();
            // Each try may take long, and the memory follows its log meanwhile.
            if (!self.away || waiting > WAITING_BYTES)
                && let Err(failed) = self.put()
                && waiting > WAITING_BYTES
            {
                return Err(failed);
            }
        }
        Ok(())
    }

    /// Writes a snapshot of all that was taken; none when nothing has changed since the last.
    /// Afterwards no stored file holds a turn that was taken back.
    ///
    /// # Errors
    /// [`SnapshotError`]; the snapshots before stay as they were, and the next attempt goes on.
    pub fn snapshot(&mut self, now_ms: i64) -> Result<Option<Manifest>, SnapshotError> {
        let before = Manifest::numbers(&self.store)?;
        if let Some(newest) = before.first().filter(|newest| **newest > self.manifest.number) {
            self.recognise(*newest)?;
            self.manifest.number = *newest;
        }
        self.close()?;
        self.put()?;
        for partition in 0..self.manifest.partitions {
            if !self.manifest.reached.iter().any(|reached| reached.partition == partition) {
                self.manifest.reached.push(Reached::nothing(partition));
            }
        }
        self.manifest.reached.sort_unstable_by_key(|reached| reached.partition);
        for reached in &mut self.manifest.reached {
            // Before the first snapshot a log had only what compaction left of it.
            let changed = self.changed.get(&reached.partition).copied();
            reached.oldest.get_or_insert(changed.or(reached.last).unwrap_or_default());
        }
        for (partition, from) in self.begun.take().into_iter().flatten() {
            let until = self.changed.get(&partition).map_or(from, |(offset, _)| *offset);
            if until > from {
                self.manifest.gaps.push(Gap { partition, from, until });
            }
        }
        self.manifest.live.records = self.held.len() as u64;
        self.manifest.live.units = self.held.values().map(|held| held.units.len() as u64).sum();
        if rewrite::purge(self)? {
            self.manifest.purged = self.manifest.number + 1;
        }
        let until_ms = now_ms.saturating_sub(self.history_ms);
        if self.history_ms > 0 && until_ms >= self.manifest.trimmed_ms + DAY_MS {
            rewrite::trim(self, until_ms)?;
            self.manifest.trimmed_ms = until_ms;
        }
        rewrite::merge(self)?;
        let mut manifest = self.manifest.clone();
        if let Some(newest) = before.first() {
            let same = |old: Manifest| Manifest { number: 0, taken_ms: 0, ..old };
            let last = Manifest::read(&self.store, *newest).ok();
            if last.is_some_and(|last| same(last) == same(manifest.clone())) {
                // What is no longer wanted is removed by the one whose manifest is the newest.
                if self.tried.is_some() || self.litter(&before)?.is_empty() {
                    self.clean(&before)?;
                    return Ok(None);
                }
            }
        }
        manifest.number += 1;
        manifest.taken_ms = now_ms;
        self.tried = Some(manifest.clone());
        self.littered = true;
        if !manifest.write(&self.store)? {
            self.recognise(manifest.number)?;
        }
        self.manifest = manifest.clone();
        let forgotten = manifest.forgotten.iter().map(|gone| ((gone.bank.clone(), gone.turn.clone()), gone.clone()));
        self.gone = forgotten.collect();
        self.clean(&before)?;
        Ok(Some(manifest))
    }

    /// Fails unless a manifest is the one that was tried last: it came to the place, and the
    /// answer did not come back.
    fn recognise(&self, number: u64) -> Result<(), SnapshotError> {
        let tried = self.tried.as_ref().filter(|tried| tried.number == number);
        match tried.map(|tried| (tried, Manifest::read(&self.store, number))) {
            Some((tried, Ok(found))) if found == *tried => Ok(()),
            Some((_, Err(error @ SnapshotError::Place { .. }))) => Err(error),
            _ => Err(SnapshotError::Taken { place: self.store.place().to_owned() }),
        }
    }

    /// Removes manifests but for the newest, and files that none lists, until that was done.
    fn clean(&mut self, numbers: &[u64]) -> Result<(), SnapshotError> {
        for path in self.litter(numbers)? {
            self.store.delete(&path)?;
        }
        self.littered = false;
        Ok(())
    }

    /// What there is to remove, manifests first: one must not list what is gone.
    fn litter(&self, numbers: &[u64]) -> Result<Vec<String>, SnapshotError> {
        let mut litter = Vec::new();
        if !self.littered {
            return Ok(litter);
        }
        // Older snapshots would bring back what was taken back since.
        let kept = if self.manifest.purged == self.manifest.number { 0 } else { KEPT - 1 };
        let mut listed: BTreeSet<String> = paths(&self.manifest);
        for (n, number) in numbers.iter().filter(|number| **number < self.manifest.number).enumerate() {
            if n < kept {
                // One that cannot be read lists nothing that could be used.
                listed.extend(Manifest::read(&self.store, *number).iter().flat_map(paths));
            } else {
                litter.push(Manifest::path(*number));
            }
        }
        for table in UpdateTable::ALL {
            litter.extend(self.store.list(table.name())?.into_iter().filter(|path| !listed.contains(path)));
        }
        Ok(litter)
    }

    fn came(&mut self, head: &Head<'_>, record: &MemoryRecord) {
        self.open = true;
        for held in &record.turns {
            self.bytes += self.turns.came(head, record, held);
            if held.deleted {
                let (bank, turn) = (head.key.bank.clone(), held.turn.turn.clone());
                let (session, ordinal) = (head.key.window.session.0.clone(), held.ordinal);
                let gone = Forgotten { bank: bank.clone(), turn: turn.clone(), session, ordinal };
                self.gone.insert((bank, turn), gone);
            }
        }
        for unit in &record.units {
            let width = unit.vector.0.len();
            if self.manifest.model.is_none() {
                self.manifest.model = Some(record.model.clone());
                self.manifest.dimensions = width;
            }
            self.bytes += self.units.get_or_insert_with(|| UnitRows::new(width)).came(head, unit);
        }
    }

    fn went(&mut self, head: &Head<'_>, old: &Held) {
        self.open = true;
        for turn in &old.turns {
            self.bytes += self.turns.went(head, turn);
        }
        for unit in &old.units {
            let width = self.manifest.dimensions;
            self.bytes += self.units.get_or_insert_with(|| UnitRows::new(width)).went(head, *unit);
        }
    }

    /// Takes other choices than those that were restored, which no read of the log made: those of
    /// other settings.
    pub fn rechoose(&mut self, restored: &Restored, now: ChoiceChanges, partition_of: impl Fn(&Bank) -> u32) {
        let before = restored.choices.iter().flat_map(|(bank, choices)| choices.iter().map(|c| (bank.key(), *c)));
        let mut changes: ChoiceChanges = now.into_iter().chain(before.map(|choice| (choice, -1))).collect();
        differential_dataflow::consolidation::consolidate(&mut changes);
        let mut by_partition: BTreeMap<u32, ChoiceChanges> = BTreeMap::new();
        for change in changes {
            if let Some(bank) = self.names.get(&change.0.0) {
                by_partition.entry(partition_of(bank)).or_default().push(change);
            }
        }
        for reached in self.manifest.reached.clone() {
            let Some((offset, append_ms)) = reached.last else { continue };
            let changes = by_partition.remove(&reached.partition).unwrap_or_default();
            self.choose((reached.partition, offset, append_ms), &changes);
        }
    }

    fn choose(&mut self, place: (u32, u64, i64), choices: &ChoiceChanges) {
        for ((bank, choice), diff) in choices {
            let Some(name) = self.names.get(bank) else { continue };
            let diff: i8 = if *diff > 0 { 1 } else { -1 };
            self.bytes += self.choices.push(name.as_str(), place, choice, diff);
            self.open = true;
            self.manifest.live.choices = self.manifest.live.choices.saturating_add_signed(diff.into());
        }
    }

    /// Whether a version of a record is the one that counts.
    pub(super) fn is_live(&self, id: &RecordKey, since: u64) -> bool {
        self.held.get(id).is_some_and(|held| held.since == since)
    }

    /// Makes a segment of the rows.
    fn close(&mut self) -> Result<(), SnapshotError> {
        if self.lost {
            return Err(SnapshotError::Stopped);
        }
        if !std::mem::take(&mut self.open) {
            return Ok(());
        }
        (self.bytes, self.lost) = (0, true);
        let failed = |e: arrow_schema::ArrowError| self::failed(self.store.place(), &e);
        let turns = self.turns.finish().map_err(failed)?;
        let units = self.units.take().map(|mut units| units.finish()).transpose().map_err(failed)?;
        let choices = self.choices.finish().map_err(failed)?;
        let tables =
            [(UpdateTable::Turns, Some(turns)), (UpdateTable::Units, units), (UpdateTable::Edges, Some(choices))];
        let named = tables.map(|(table, batch)| batch.map(|batch| (table, self.path(table), [batch])));
        let place = self.store.place();
        let files = std::thread::scope(|scope| {
            let encoding =
                named.map(|of| of.map(|(table, path, rows)| scope.spawn(move || encode(place, table, path, &rows))));
            let made = encoding
                .into_iter()
                .flatten()
                .map(|thread| thread.join().unwrap_or_else(|_| Err(self::failed(place, &"the library failed"))));
            made.collect::<Result<Vec<_>, _>>()
        })?;
        let files = files.into_iter().flatten().collect();
        self.waiting.push_back(files);
        self.lost = false;
        Ok(())
    }

    /// Brings what waits to the place, and lists it.
    fn put(&mut self) -> Result<(), SnapshotError> {
        while let Some(files) = self.waiting.front() {
            self.away = true;
            for (file, bytes) in files {
                self.store.put(&file.path, bytes.clone())?;
            }
            self.away = false;
            let files = self.waiting.pop_front().into_iter().flatten().map(|(file, _)| file).collect();
            self.manifest.segments.push(Segment { files });
        }
        Ok(())
    }

    /// Writes rows of a table as a file of its own; none without rows.
    pub(super) fn write(
        &mut self,
        table: UpdateTable,
        rows: &[RecordBatch],
    ) -> Result<Option<TableFile>, SnapshotError> {
        let path = self.path(table);
        let Some((file, bytes)) = encode(self.store.place(), table, path, rows)? else { return Ok(None) };
        self.store.put(&file.path, bytes)?;
        Ok(Some(file))
    }

    /// A name that no file has.
    fn path(&mut self, table: UpdateTable) -> String {
        self.files += 1;
        format!("{}/{}-{:06}.parquet", table.name(), self.run, self.files)
    }
}

fn encode(
    place: &str,
    table: UpdateTable,
    path: String,
    rows: &[RecordBatch],
) -> Result<Option<(TableFile, Bytes)>, SnapshotError> {
    let count: usize = rows.iter().map(RecordBatch::num_rows).sum();
    let Some(first) = rows.first().filter(|_| count > 0) else { return Ok(None) };
    let failed = |e: &dyn std::fmt::Display| self::failed(&format!("{place}/{path}"), e);
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), first.schema(), Some(properties)).map_err(|e| failed(&e))?;
    for batch in rows {
        writer.write(batch).map_err(|e| failed(&e))?;
    }
    let bytes = Bytes::from(writer.into_inner().map_err(|e| failed(&e))?);
    let blake3 = blake3::hash(&bytes).to_hex().to_string();
    let file = TableFile { table, path, rows: count as u64, bytes: bytes.len() as u64, blake3 };
    Ok(Some((file, bytes)))
}

fn paths(manifest: &Manifest) -> BTreeSet<String> {
    manifest.segments.iter().flat_map(|segment| &segment.files).map(|file| file.path.clone()).collect()
}

fn failed(place: &str, e: &dyn std::fmt::Display) -> SnapshotError {
    SnapshotError::Place { place: place.to_owned(), doing: "making a file of Parquet", problem: e.to_string() }
}
