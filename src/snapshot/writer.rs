//! Writes a memory's changes as update tables, and snapshots of them.
//!
//! In: the reads of the memory log in order, each with the choices that it changed. Out: segments of
//! files as they fill, and on request a manifest that lists them all. A listed file is never changed;
//! an unlisted one is deleted. The writer asks the memory nothing, so no question waits for a snapshot.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use bytes::Bytes;

use super::{
    DeletedTurn, Gap, Manifest, Reached, Restored, Segment, SnapshotError, TableFile, UnreadableRecord,
    live_rows::{LiveRow, LiveRows},
    manifest::DeletedTurns,
    rewrite,
    segment_files::{SegmentFiles, encode, parquet_failed},
    store::SnapshotStore,
    update::{ChoiceRows, RowHead, TurnRows, UnitRows, UpdateTable},
};
use crate::{
    memory::{ChoiceChanges, RecordKey},
    model::{Bank, BankKey, MemoryKey, MemoryRecord},
};

/// A segment is closed beyond this many bytes of rows.
const SEGMENT_BYTES: usize = 32 << 20;
/// Encoded bytes that may wait for an unavailable place.
const PENDING_BYTES: usize = 256 << 20;
/// History is trimmed at most once in this time, because trimming reads every turn and rewrites files.
const DAY_MS: i64 = 24 * 3_600_000;
/// How many manifests are kept.
const KEPT_MANIFESTS: usize = 2;

/// One read of the memory log.
#[derive(Debug, Clone, Default)]
pub struct LogRead {
    /// The partition.
    pub partition: u32,
    /// The first offset that was not read.
    pub next_offset: u64,
    /// The offset of its last record.
    pub offset: u64,
    /// When that was appended, in milliseconds since 1970.
    pub append_ms: i64,
    /// Read positions: (turns partition, first offset that is not covered).
    pub covers: Vec<(u32, u64)>,
    /// Its records in order; `None` deletes the key.
    pub records: Vec<(MemoryKey, Option<MemoryRecord>)>,
    /// Those of its records that could not be read; in `records` they delete what their key held.
    pub unreadable: Vec<UnreadableRecord>,
}

/// Writes the snapshots of one memory to one place.
pub struct SnapshotWriter {
    files: SegmentFiles,
    /// The manifest of the next snapshot.
    manifest: Manifest,
    live: LiveRows,
    names: HashMap<BankKey, Bank>,
    /// Deleted turns of which rows may be left.
    deleted: DeletedTurns,
    turns: TurnRows,
    units: Option<UnitRows>,
    choices: ChoiceRows,
    bytes: usize,
    /// Whether there are rows that are in no segment.
    has_rows: bool,
    /// Encoded segments that are not stored yet.
    pending: VecDeque<Vec<(TableFile, Bytes)>>,
    /// How much history is kept; 0: all.
    history_ms: i64,
    /// The first offset that this run read, by partition, until its first snapshot.
    first_offsets: Option<BTreeMap<u32, u64>>,
    /// The last read of this run that wrote a row, by partition: an as-of question can ask for it.
    last_changes: BTreeMap<u32, (u64, i64)>,
    /// Whether encoding failed and lost rows, which every later snapshot would lack.
    rows_lost: bool,
    /// The last manifest that was sent; its write may have succeeded although the call failed.
    last_sent: Option<Manifest>,
    /// Whether there may be unlisted files or old manifests to delete.
    cleanup_due: bool,
    /// Whether the place failed; pending segments then wait for the next snapshot.
    unavailable: bool,
}

impl SnapshotWriter {
    /// Continues from what was restored, or from an empty memory. `run` is part of the file names, so
    /// that two runs never write the same file.
    pub(super) fn new(
        store: SnapshotStore,
        first: Manifest,
        restored: Option<&Restored>,
        run: String,
        history_days: u64,
    ) -> Self {
        let mut live = LiveRows::default();
        let mut names = HashMap::new();
        for record in restored.iter().flat_map(|restored| &restored.records) {
            let id = RecordKey::from(&record.key);
            names.entry(id.window.bank).or_insert_with(|| record.key.bank.clone());
            live.insert(id, LiveRow::of_restored(record.since, &record.turns, &record.extraction));
        }
        let deleted = deleted_turns(&first);
        let from = |last: Option<(u64, i64)>| last.map_or(0, |(offset, _)| offset + 1);
        let first_offsets = first.reached.iter().map(|reached| (reached.partition, from(reached.last))).collect();
        Self {
            files: SegmentFiles::new(store, run),
            manifest: first,
            live,
            names,
            deleted,
            turns: TurnRows::new(),
            units: None,
            choices: ChoiceRows::default(),
            bytes: 0,
            has_rows: false,
            pending: VecDeque::new(),
            history_ms: i64::try_from(history_days).unwrap_or(i64::MAX).saturating_mul(DAY_MS),
            first_offsets: Some(first_offsets),
            last_changes: BTreeMap::new(),
            rows_lost: false,
            last_sent: None,
            cleanup_due: true,
            unavailable: false,
        }
    }

    /// Adds the next read of the log, with the choices that it changed.
    ///
    /// # Errors
    /// [`SnapshotError`] when the place was unavailable for so long that too much is pending.
    pub fn add(&mut self, read: &LogRead, choices: &ChoiceChanges) -> Result<(), SnapshotError> {
        let LogRead { partition, next_offset, offset, append_ms, .. } = *read;
        let last: HashMap<&MemoryKey, usize> = read.records.iter().enumerate().map(|(n, (key, _))| (key, n)).collect();
        for (n, (key, record)) in read.records.iter().enumerate() {
            if last.get(key) != Some(&n) {
                continue;
            }
            let id = RecordKey::from(key);
            let head = RowHead { key, partition, offset, append_ms, since: offset, diff: 1 };
            let old = self.live.remove(&id);
            if old.is_some() || record.is_some() {
                self.last_changes.insert(partition, (offset, append_ms));
            }
            if let Some(old) = old {
                self.remove_rows(&RowHead { since: old.since, diff: -1, ..head }, &old);
            }
            if let Some(record) = record {
                self.names.entry(id.window.bank).or_insert_with(|| key.bank.clone());
                self.add_rows(&head, record);
                self.live.insert(id, LiveRow::of_record(offset, record));
            }
        }
        self.manifest.unreadable.retain(|record| !last.contains_key(&record.key));
        self.manifest.unreadable.extend(read.unreadable.iter().cloned());
        self.add_choices((partition, offset, append_ms), choices);
        let place = self.manifest.reached.iter().position(|reached| reached.partition == partition);
        let place = place.unwrap_or_else(|| {
            self.manifest.reached.push(Reached::nothing(partition));
            self.manifest.reached.len() - 1
        });
        if let Some(reached) = self.manifest.reached.get_mut(place) {
            reached.next_offset = next_offset;
            if !read.records.is_empty() {
                reached.last = Some((offset, append_ms));
            }
        }
        let mut covers: BTreeMap<u32, u64> = self.manifest.covers.drain(..).collect();
        covers.extend(read.covers.iter().copied());
        self.manifest.covers = covers.into_iter().collect();
        if self.bytes > SEGMENT_BYTES {
            self.close()?;
            let pending: usize = self.pending.iter().flatten().map(|(_, bytes)| bytes.len()).sum();
            // While the place is unavailable, each attempt may take long and would delay the memory.
            if (!self.unavailable || pending > PENDING_BYTES)
                && let Err(failed) = self.store_pending()
                && pending > PENDING_BYTES
            {
                return Err(failed);
            }
        }
        Ok(())
    }

    /// Writes a snapshot of everything that was added; `None` when nothing has changed since the last.
    /// Afterwards no stored file has the text of a deleted turn.
    ///
    /// # Errors
    /// [`SnapshotError`]; earlier snapshots are unchanged, and the next attempt continues.
    pub fn snapshot(&mut self, now_ms: i64) -> Result<Option<Manifest>, SnapshotError> {
        let before = Manifest::numbers(&self.files.store)?;
        if let Some(newest) = before.first().filter(|newest| **newest > self.manifest.number) {
            self.require_own(*newest)?;
            self.manifest.number = *newest;
        }
        self.close()?;
        self.store_pending()?;
        for partition in 0..self.manifest.partitions {
            if !self.manifest.reached.iter().any(|reached| reached.partition == partition) {
                self.manifest.reached.push(Reached::nothing(partition));
            }
        }
        self.manifest.reached.sort_unstable_by_key(|reached| reached.partition);
        for reached in &mut self.manifest.reached {
            // Before the first snapshot there is no history: compaction may have removed versions.
            let changed = self.last_changes.get(&reached.partition).copied();
            reached.oldest.get_or_insert(changed.or(reached.last).unwrap_or_default());
        }
        for (partition, from) in self.first_offsets.take().into_iter().flatten() {
            let until = self.last_changes.get(&partition).map_or(from, |(offset, _)| *offset);
            if until > from {
                self.manifest.gaps.push(Gap { partition, from, until });
            }
        }
        self.manifest.live.records = self.live.record_count();
        self.manifest.live.units = self.live.unit_count();
        if rewrite::delete_turns(&mut self.files, &mut self.manifest, &self.live, &self.deleted)? {
            self.manifest.last_deletion = self.manifest.number + 1;
        }
        let until_ms = now_ms.saturating_sub(self.history_ms);
        if self.history_ms > 0 && until_ms >= self.manifest.trimmed_ms + DAY_MS {
            rewrite::trim_history(&mut self.files, &mut self.manifest, until_ms)?;
            self.manifest.trimmed_ms = until_ms;
        }
        rewrite::merge_segments(&mut self.files, &mut self.manifest)?;
        let mut manifest = self.manifest.clone();
        if let Some(newest) = before.first() {
            let same = |old: Manifest| Manifest { number: 0, taken_ms: 0, ..old };
            let last = Manifest::read(&self.files.store, *newest).ok();
            if last.is_some_and(|last| same(last) == same(manifest.clone())) {
                // Only the process that wrote the newest manifest deletes; another must write one first.
                if self.last_sent.is_some() || self.obsolete(&before)?.is_empty() {
                    self.clean(&before)?;
                    return Ok(None);
                }
            }
        }
        manifest.number += 1;
        manifest.taken_ms = now_ms;
        self.last_sent = Some(manifest.clone());
        self.cleanup_due = true;
        if !manifest.write(&self.files.store)? {
            self.require_own(manifest.number)?;
        }
        self.manifest = manifest.clone();
        self.deleted = deleted_turns(&manifest);
        self.clean(&before)?;
        Ok(Some(manifest))
    }

    /// Fails unless a manifest is the last one that was sent, whose response was lost.
    fn require_own(&self, number: u64) -> Result<(), SnapshotError> {
        let sent = self.last_sent.as_ref().filter(|sent| sent.number == number);
        match sent.map(|sent| (sent, Manifest::read(&self.files.store, number))) {
            Some((sent, Ok(found))) if found == *sent => Ok(()),
            Some((_, Err(error @ SnapshotError::Place { .. }))) => Err(error),
            _ => Err(SnapshotError::Taken { place: self.files.store.place().to_owned() }),
        }
    }

    /// Deletes old manifests and unlisted files.
    fn clean(&mut self, numbers: &[u64]) -> Result<(), SnapshotError> {
        for path in self.obsolete(numbers)? {
            self.files.store.delete(&path)?;
        }
        self.cleanup_due = false;
        Ok(())
    }

    /// The objects to delete, manifests first, so that none lists a missing file.
    fn obsolete(&self, numbers: &[u64]) -> Result<Vec<String>, SnapshotError> {
        let mut obsolete = Vec::new();
        if !self.cleanup_due {
            return Ok(obsolete);
        }
        // Older snapshots would restore the turns that were just deleted.
        let kept = if self.manifest.last_deletion == self.manifest.number { 0 } else { KEPT_MANIFESTS - 1 };
        let mut listed: BTreeSet<String> = paths(&self.manifest);
        for (n, number) in numbers.iter().filter(|number| **number < self.manifest.number).enumerate() {
            if n < kept {
                // The files of an unreadable manifest are useless.
                listed.extend(Manifest::read(&self.files.store, *number).iter().flat_map(paths));
            } else {
                obsolete.push(Manifest::path(*number));
            }
        }
        for table in UpdateTable::ALL {
            obsolete.extend(self.files.store.list(table.name())?.into_iter().filter(|path| !listed.contains(path)));
        }
        Ok(obsolete)
    }

    fn add_rows(&mut self, head: &RowHead<'_>, record: &MemoryRecord) {
        self.has_rows = true;
        for window_turn in &record.turns {
            self.bytes += self.turns.added(head, record, window_turn);
            if window_turn.deleted {
                let (bank, turn) = (head.key.bank.clone(), window_turn.turn.turn.clone());
                let (session, ordinal) = (head.key.window.session.0.clone(), window_turn.ordinal);
                let deleted = DeletedTurn { bank: bank.clone(), turn: turn.clone(), session, ordinal };
                self.deleted.insert((bank, turn), deleted);
            }
        }
        for unit in &record.units {
            let width = unit.vector.0.len();
            if self.manifest.model.is_none() {
                self.manifest.model = Some(record.model.clone());
                self.manifest.dimensions = width;
            }
            self.bytes += self.units.get_or_insert_with(|| UnitRows::new(width)).added(head, unit);
        }
    }

    fn remove_rows(&mut self, head: &RowHead<'_>, old: &LiveRow) {
        self.has_rows = true;
        for turn in &old.turns {
            self.bytes += self.turns.removed(head, turn);
        }
        for unit in &old.units {
            let width = self.manifest.dimensions;
            self.bytes += self.units.get_or_insert_with(|| UnitRows::new(width)).removed(head, *unit);
        }
    }

    /// Replaces the restored choices by those of the current settings, which no read of the log changed.
    pub fn replace_choices(&mut self, restored: &Restored, now: ChoiceChanges, partition_of: impl Fn(&Bank) -> u32) {
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
            self.add_choices((reached.partition, offset, append_ms), &changes);
        }
    }

    fn add_choices(&mut self, position: (u32, u64, i64), choices: &ChoiceChanges) {
        for ((bank, choice), diff) in choices {
            let Some(name) = self.names.get(bank) else { continue };
            let diff: i8 = if *diff > 0 { 1 } else { -1 };
            self.bytes += self.choices.push(name.as_str(), position, choice, diff);
            self.has_rows = true;
            self.manifest.live.choices = self.manifest.live.choices.saturating_add_signed(diff.into());
        }
    }

    /// Encodes the rows as a pending segment.
    fn close(&mut self) -> Result<(), SnapshotError> {
        if self.rows_lost {
            return Err(SnapshotError::Stopped);
        }
        if !std::mem::take(&mut self.has_rows) {
            return Ok(());
        }
        (self.bytes, self.rows_lost) = (0, true);
        let failed = |e: arrow_schema::ArrowError| parquet_failed(self.files.store.place(), &e);
        let turns = self.turns.finish().map_err(failed)?;
        let units = self.units.take().map(|mut units| units.finish()).transpose().map_err(failed)?;
        let choices = self.choices.finish().map_err(failed)?;
        let tables =
            [(UpdateTable::Turns, Some(turns)), (UpdateTable::Units, units), (UpdateTable::Edges, Some(choices))];
        let named = tables.map(|(table, batch)| batch.map(|batch| (table, self.files.new_path(table), [batch])));
        let place = self.files.store.place();
        let files = std::thread::scope(|scope| {
            let encoding =
                named.map(|of| of.map(|(table, path, rows)| scope.spawn(move || encode(place, table, path, &rows))));
            let files = encoding
                .into_iter()
                .flatten()
                .map(|thread| thread.join().unwrap_or_else(|_| Err(parquet_failed(place, &"the library panicked"))));
            files.collect::<Result<Vec<_>, _>>()
        })?;
        let files = files.into_iter().flatten().collect();
        self.pending.push_back(files);
        self.rows_lost = false;
        Ok(())
    }

    /// Stores the pending segments, and lists them in the next manifest.
    fn store_pending(&mut self) -> Result<(), SnapshotError> {
        while let Some(files) = self.pending.front() {
            self.unavailable = true;
            for (file, bytes) in files {
                self.files.store.put(&file.path, bytes.clone())?;
            }
            self.unavailable = false;
            let files = self.pending.pop_front().into_iter().flatten().map(|(file, _)| file).collect();
            self.manifest.segments.push(Segment { files });
        }
        Ok(())
    }
}

fn deleted_turns(manifest: &Manifest) -> DeletedTurns {
    manifest.deleted.iter().map(|deleted| ((deleted.bank.clone(), deleted.turn.clone()), deleted.clone())).collect()
}

fn paths(manifest: &Manifest) -> BTreeSet<String> {
    manifest.segments.iter().flat_map(|segment| &segment.files).map(|file| file.path.clone()).collect()
}
