//! Writes a shard's changes as update tables, and snapshots of them.
//!
//! In: the reads of the shard's log in order, each with the choices that it changed. Out: segments of
//! files as they fill, and on request a manifest that lists them all. A listed file is never changed;
//! an unlisted one is deleted. The writer never reads the memory, so no question waits for a snapshot.
//!
//! It stores nothing before it has claimed the shard's snapshots and checked that the snapshot that it continues is
//! still the newest. It deletes in this order: it writes its manifest, lists what that manifest makes obsolete, checks
//! for a newer claim, and only then deletes. A later claimant has read that manifest, so no file that the next writer
//! needs is deleted.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use bytes::Bytes;

use super::{
    ClaimRule, DeletedTurn, HistoryGap, Manifest, ManifestId, PartitionReach, RestoredSnapshot, SnapshotError,
    SnapshotSegment, TableFile, UnreadableMemoryRecord,
    claim::SnapshotClaim,
    live_rows::{LiveRow, LiveRows},
    manifest::{DeletedTurns, shard_directory},
    rewrite,
    segment_files::{SegmentFiles, encode, parquet_failed},
    update_tables::{ChoiceRows, RowHead, TurnRows, UnitRows, UpdateTable},
};
use memory::index::{ChoiceChanges, RecordKey};
use types::{
    config::ForgetSettings,
    model::{Bank, BankKey, MemoryKey, MemoryRecord, SessionTitle},
};

/// A segment is closed once its rows exceed this many bytes.
const SEGMENT_BYTES: usize = 4 << 20;
/// How many encoded bytes may wait while the place is unavailable.
const PENDING_BYTES: usize = 64 << 20;
/// History is trimmed at most once in this period, because trimming reads every turn and rewrites files.
const DAY_MS: i64 = 24 * 3_600_000;
/// How many manifests are kept.
const KEPT_MANIFESTS: usize = 2;

/// One read of the memory log.
#[derive(Debug, Clone, Default)]
pub struct MemoryLogRead {
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
    /// Those of its records that could not be read; in `records` they appear as deletions of their keys.
    pub unreadable: Vec<UnreadableMemoryRecord>,
}

/// Writes the snapshots of one shard to one place.
pub struct SnapshotWriter {
    files: SegmentFiles,
    /// The manifest of the next snapshot.
    manifest: Manifest,
    /// The newest snapshot that was listed before this writer began.
    seen: Option<ManifestId>,
    /// The newest snapshot, if it is readable and this writer wrote or continues it.
    newest: Option<Manifest>,
    claim: Option<SnapshotClaim>,
    /// When it may claim the snapshots if too many bytes are pending.
    rule: ClaimRule,
    live: LiveRows,
    names: HashMap<BankKey, Bank>,
    /// Deleted turns of which some rows may be left.
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
    /// The settings that name the banks in which edits erase the earlier text; `None`: no bank.
    forget: Option<ForgetSettings>,
    /// Whether no snapshot was written yet since `forget` was set.
    edits_left: bool,
    /// The first offset that this run read after the snapshot that it continues; `None` after its own first snapshot.
    first_offset: Option<u64>,
    /// The last read of this run that wrote a row: an as-of question can ask for it.
    last_change: Option<(u64, i64)>,
    /// Whether encoding failed and lost rows, which every later snapshot would lack.
    rows_lost: bool,
    /// Whether there may be unlisted files or old manifests to delete.
    cleanup_due: bool,
    /// Whether the place failed; pending segments then wait for the next snapshot.
    unavailable: bool,
}

impl SnapshotWriter {
    /// Continues from what was restored, or from an empty shard.
    pub(super) fn new(
        files: SegmentFiles,
        first: Manifest,
        seen: Option<ManifestId>,
        restored: Option<&RestoredSnapshot>,
        history_days: u64,
        rule: ClaimRule,
    ) -> Self {
        let mut live = LiveRows::default();
        let mut names = HashMap::new();
        for record in restored.iter().flat_map(|restored| &restored.records) {
            let id = RecordKey::from(&record.key);
            names.entry(id.window.bank).or_insert_with(|| record.key.bank.clone());
            live.insert(&id, LiveRow::of_restored(record));
        }
        let deleted = deleted_turns(&first);
        let from = |last: Option<(u64, i64)>| last.map_or(0, |(offset, _)| offset + 1);
        let first_offset = first.reached.first().map(|reached| from(reached.last));
        let newest = restored.map(|restored| restored.manifest.clone()).filter(|of| seen == Some(of.id()));
        Self {
            files,
            manifest: first,
            seen,
            newest,
            claim: None,
            rule,
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
            forget: None,
            edits_left: false,
            first_offset,
            last_change: None,
            rows_lost: false,
            cleanup_due: true,
            unavailable: false,
        }
    }

    /// From the next snapshot on, removes what edits replaced from rows that are not live, as the settings say.
    pub fn erase_edits(&mut self, settings: ForgetSettings) {
        self.edits_left = true;
        self.forget = Some(settings);
    }

    /// Adds the next read of the log, with the choices that it changed.
    ///
    /// # Errors
    /// [`SnapshotError`] when the place was unavailable for so long that too much is pending.
    pub fn add(&mut self, read: &MemoryLogRead, choices: &ChoiceChanges) -> Result<(), SnapshotError> {
        let MemoryLogRead { partition, next_offset, offset, append_ms, .. } = *read;
        let last: HashMap<&MemoryKey, usize> = read.records.iter().enumerate().map(|(n, (key, _))| (key, n)).collect();
        let mut closed = false;
        for (n, (key, record)) in read.records.iter().enumerate() {
            if last.get(key) != Some(&n) {
                continue;
            }
            let id = RecordKey::from(key);
            let head = RowHead { key, partition, offset, append_ms, since: offset, diff: 1 };
            let old = self.live.remove(&id);
            if old.is_some() || record.is_some() || read.unreadable.iter().any(|unreadable| unreadable.key == *key) {
                self.last_change = Some((offset, append_ms));
            }
            if let Some(old) = old {
                self.remove_rows(&RowHead { since: old.since, diff: -1, ..head }, &old);
            }
            if let Some(record) = record {
                self.names.entry(id.window.bank).or_insert_with(|| key.bank.clone());
                self.add_rows(&head, record);
                self.live.insert(&id, LiveRow::of_record(offset, record));
            }
            closed |= self.close_full()?;
        }
        self.manifest.unreadable.retain(|record| !last.contains_key(&record.key));
        let found = Some((offset, append_ms));
        self.manifest
            .unreadable
            .extend(read.unreadable.iter().map(|of| UnreadableMemoryRecord { found, ..of.clone() }));
        self.add_choices((partition, offset, append_ms), choices);
        let place = self.manifest.reached.iter().position(|reached| reached.partition == partition);
        let place = place.unwrap_or_else(|| {
            self.manifest.reached.push(PartitionReach::nothing(partition));
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
        if closed | self.close_full()? {
            let pending: usize = self.pending.iter().flatten().map(|(_, bytes)| bytes.len()).sum();
            // While the place is unavailable, each attempt may take long and would delay the memory.
            if (!self.unavailable || pending > PENDING_BYTES)
                && let Err(failed) = self.claim_and_store()
                && pending > PENDING_BYTES
            {
                return Err(failed);
            }
        }
        Ok(())
    }

    /// Writes a snapshot of everything that was added; `None` if nothing has changed since the last. Afterwards no
    /// stored file of the shard has the text of a deleted turn, nor text that an edit replaced, if
    /// [`Self::erase_edits`] erases it.
    ///
    /// # Errors
    /// [`SnapshotError::Elsewhere`] while `rule` leaves the snapshots to another process;
    /// [`SnapshotError::Taken`] once another process writes them: this writer is then useless. After
    /// any other error earlier snapshots are unchanged, and the next attempt continues.
    pub fn snapshot(&mut self, now_ms: i64, rule: ClaimRule) -> Result<Option<Manifest>, SnapshotError> {
        let partition = self.files.partition();
        let before = Manifest::ids(&self.files.store, partition)?;
        match &self.claim {
            Some(claim) if !claim.holds(&self.files.store, partition)? => return Err(self.taken()),
            // The response to the last manifest may have been lost.
            Some(claim) => {
                let last = before.first().filter(|last| last.epoch == claim.epoch).map_or(0, |last| last.number);
                self.manifest.number = self.manifest.number.max(last);
            }
            None if before.first().copied() != self.seen => return Err(self.taken()),
            None => {}
        }
        self.close()?;
        self.reach_ends();
        let until_ms = now_ms.saturating_sub(self.history_ms);
        let trims = self.history_ms > 0 && until_ms >= self.manifest.trimmed_ms + DAY_MS;
        if !trims
            && !self.edits_left
            && self.is_unchanged()
            && (self.claim.is_some() || self.obsolete(&before)?.is_empty())
        {
            self.clean(&before)?;
            if let Some(claim) = &mut self.claim {
                claim.renew(&self.files.store, partition, now_ms)?;
            }
            return Ok(None);
        }
        self.claim_shard(now_ms, rule)?;
        self.store_pending()?;
        if rewrite::delete_turns(&mut self.files, &mut self.manifest, &self.live, &self.deleted)? {
            self.manifest.last_deletion = self.manifest.number + 1;
        }
        if let Some(settings) = &self.forget {
            let erases = |bank: &Bank| settings.erases_edits_of(bank);
            if rewrite::erase_edits(&mut self.files, &mut self.manifest, &self.live, &erases)? {
                self.manifest.last_deletion = self.manifest.number + 1;
            }
        }
        if trims {
            rewrite::trim_history(&mut self.files, &mut self.manifest, until_ms)?;
            self.manifest.trimmed_ms = until_ms;
        }
        rewrite::merge_segments(&mut self.files, &mut self.manifest)?;
        let mut manifest = self.manifest.clone();
        manifest.epoch = self.claim.as_ref().map_or(0, |claim| claim.epoch);
        manifest.number += 1;
        manifest.taken_ms = now_ms;
        self.cleanup_due = true;
        if !manifest.write(&self.files.store, partition)? {
            // The store may have repeated a request whose response was lost.
            match Manifest::read(&self.files.store, partition, manifest.id()) {
                Ok(found) if found == manifest => {}
                Err(error @ SnapshotError::Place { .. }) => return Err(error),
                _ => return Err(self.taken()),
            }
        }
        self.manifest = manifest.clone();
        self.newest = Some(manifest.clone());
        self.deleted = deleted_turns(&manifest);
        self.edits_left = false;
        if let Some(claim) = &mut self.claim {
            claim.renew(&self.files.store, partition, now_ms)?;
        }
        self.clean(&before)?;
        Ok(Some(manifest))
    }

    /// The newest snapshot, once this writer has written or continued one.
    #[must_use]
    pub fn newest(&self) -> Option<&Manifest> {
        self.newest.as_ref()
    }

    /// Lets another process claim the shard's snapshots at once. Nothing is written afterwards.
    pub fn give_up(mut self) {
        if let Some(claim) = self.claim.as_mut().filter(|_| !self.unavailable) {
            // Without this, others wait until the claim is old.
            drop(claim.renew(&self.files.store, self.files.partition(), 0));
        }
    }

    /// Adds to the manifest how far the partition was read.
    fn reach_ends(&mut self) {
        let partition = self.files.partition();
        if self.manifest.reached.is_empty() {
            self.manifest.reached.push(PartitionReach::nothing(partition));
        }
        for reached in &mut self.manifest.reached {
            // Before the first snapshot there is no history: compaction may have removed versions.
            reached.oldest.get_or_insert(self.last_change.or(reached.last).unwrap_or_default());
        }
        if let Some(from) = self.first_offset.take() {
            let until = self.last_change.map_or(from, |(offset, _)| offset);
            if until > from {
                self.manifest.gaps.push(HistoryGap { partition, from, until });
            }
        }
        self.manifest.live.records = self.live.record_count();
        self.manifest.live.units = self.live.unit_count();
    }

    /// Whether the newest snapshot already holds everything.
    fn is_unchanged(&self) -> bool {
        let bare = |of: &Manifest| Manifest { epoch: 0, number: 0, taken_ms: 0, ..of.clone() };
        self.pending.is_empty() && self.newest.as_ref().is_some_and(|newest| bare(newest) == bare(&self.manifest))
    }

    /// Claims the shard's snapshots, unless this writer has.
    fn claim_shard(&mut self, now_ms: i64, rule: ClaimRule) -> Result<(), SnapshotError> {
        if self.claim.is_some() {
            return Ok(());
        }
        let (store, partition, run) = (&self.files.store, self.files.partition(), self.files.run());
        let elsewhere = || SnapshotError::Elsewhere { place: self.place() };
        if !SnapshotClaim::allows(store, partition, run, rule, now_ms)? {
            return Err(elsewhere());
        }
        let mut claim = SnapshotClaim::make(store, partition, run, now_ms)?.ok_or_else(elsewhere)?;
        // From here on, no one deletes what the newest snapshot lists.
        if Manifest::ids(store, partition)?.first().copied() != self.seen {
            claim.renew(store, partition, 0)?;
            return Err(self.taken());
        }
        self.claim = Some(claim);
        Ok(())
    }

    fn claim_and_store(&mut self) -> Result<(), SnapshotError> {
        self.claim_shard(jiff::Timestamp::now().as_millisecond(), self.rule)?;
        self.store_pending()
    }

    fn place(&self) -> String {
        format!("{}/{}", self.files.store.place(), shard_directory(self.files.partition()))
    }

    fn taken(&self) -> SnapshotError {
        SnapshotError::Taken { place: self.place() }
    }

    /// Deletes old manifests, unlisted files and older claims, unless there is a newer claim.
    fn clean(&mut self, ids: &[ManifestId]) -> Result<(), SnapshotError> {
        let obsolete = self.obsolete(ids)?;
        let Some(claim) = self.claim.as_ref().filter(|_| self.cleanup_due) else { return Ok(()) };
        let (store, partition) = (&self.files.store, self.files.partition());
        if !claim.holds(store, partition)? {
            return Ok(());
        }
        let epochs = SnapshotClaim::epochs(store, partition)?;
        let claims =
            epochs.iter().filter(|epoch| **epoch < claim.epoch).map(|epoch| SnapshotClaim::path(partition, *epoch));
        for path in obsolete.into_iter().chain(claims) {
            store.delete(&path)?;
        }
        self.cleanup_due = false;
        Ok(())
    }

    /// The objects to delete, manifests first, so that none lists a missing file.
    fn obsolete(&self, ids: &[ManifestId]) -> Result<Vec<String>, SnapshotError> {
        let mut obsolete = Vec::new();
        if !self.cleanup_due {
            return Ok(obsolete);
        }
        let (store, partition) = (&self.files.store, self.files.partition());
        // Older snapshots would restore the turns that were just deleted.
        let kept = if self.manifest.last_deletion == self.manifest.number { 0 } else { KEPT_MANIFESTS - 1 };
        let mut listed: BTreeSet<String> = paths(&self.manifest);
        for (n, id) in ids.iter().filter(|id| **id < self.manifest.id()).enumerate() {
            if n < kept {
                // The files of an unreadable manifest are useless.
                listed.extend(Manifest::read(store, partition, *id).iter().flat_map(paths));
            } else {
                obsolete.push(Manifest::path(partition, *id));
            }
        }
        for table in UpdateTable::ALL {
            let directory = SegmentFiles::directory(partition, table);
            obsolete.extend(store.list(&directory)?.into_iter().filter(|path| !listed.contains(path)));
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
            let width = unit.vector.len();
            if self.manifest.model.is_none() {
                self.manifest.model = Some(record.model.clone());
                self.manifest.dimensions = width;
            }
            self.bytes += self.units.get_or_insert_with(|| UnitRows::new(width)).added(head, unit);
        }
    }

    fn remove_rows(&mut self, head: &RowHead<'_>, old: &LiveRow) {
        self.has_rows = true;
        let session = &head.key.window.session.0;
        for turn in old.turns() {
            self.bytes += self.turns.removed(head, turn);
            // No deletion names a title: it goes with its record.
            if session == SessionTitle::RESERVED {
                let (bank, turn) = (head.key.bank.clone(), turn.to_owned());
                let title =
                    DeletedTurn { bank: bank.clone(), turn: turn.clone(), session: session.clone(), ordinal: 0 };
                self.deleted.insert((bank, turn), title);
            }
        }
        for unit in old.units() {
            let width = self.manifest.dimensions;
            self.bytes += self.units.get_or_insert_with(|| UnitRows::new(width)).removed(head, unit);
        }
    }

    /// Replaces the restored choices with those of the current settings. No read of the log caused this change.
    pub fn replace_choices(&mut self, restored: &RestoredSnapshot, now: ChoiceChanges) {
        let before = restored.choices.iter().flat_map(|(bank, choices)| choices.iter().map(|c| (bank.key(), *c)));
        let mut changes: ChoiceChanges = now.into_iter().chain(before.map(|choice| (choice, -1))).collect();
        differential_dataflow::consolidation::consolidate(&mut changes);
        for PartitionReach { partition, last, .. } in self.manifest.reached.clone() {
            let Some((offset, append_ms)) = last else { continue };
            self.add_choices((partition, offset, append_ms), &changes);
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

    /// Closes the segment if it has enough rows; returns whether it did.
    fn close_full(&mut self) -> Result<bool, SnapshotError> {
        let is_full = self.bytes > SEGMENT_BYTES;
        if is_full {
            self.close()?;
        }
        Ok(is_full)
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
        let named = tables
            .map(|(table, batch)| batch.map(|batch| (table, self.files.new_path(table), std::iter::once(Ok(batch)))));
        let place = self.files.store.place();
        let files = std::thread::scope(|scope| {
            let encoding =
                named.map(|of| of.map(|(table, path, rows)| scope.spawn(move || encode(place, table, path, rows))));
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
            self.manifest.segments.push(SnapshotSegment { files });
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
