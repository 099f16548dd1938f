//! Rewrites the files of a snapshot: without deleted turns, without what edits replaced, without old history, and into
//! fewer files.
//!
//! In: a manifest and its files. Out: the manifest with some files replaced by new ones. The old files
//! stay until a manifest without them is stored (decision 34).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use arrow_array::{BooleanArray, RecordBatch};
use bytes::Bytes;

use super::{
    DeletedTurn, HistoryGap, Manifest, SnapshotError, SnapshotSegment, TableFile,
    live_rows::LiveRows,
    manifest::DeletedTurns,
    segment_files::SegmentFiles,
    update_tables::{ChoiceColumns, HeadColumns, TurnColumns, UnitColumns, UpdateTable, batches},
};
use memory::index::{GraphChoice, RecordKey};
use types::model::{Bank, UnitId};

/// Beyond this many segments, neighbours are merged.
const MAX_SEGMENTS: usize = 32;
/// The size limit of a merged segment, in bytes.
const MERGED_BYTES: u64 = 8 << 20;

/// The oldest point for as-of questions, if there is one: offset and append time.
type OldestPoint = Option<(u64, i64)>;
/// How often each choice exists, by bank: 0 or 1 in an undamaged snapshot.
type ChoiceCounts = BTreeMap<String, BTreeMap<GraphChoice, i64>>;
/// A version of a record: its key, and the offset that added it.
type RecordVersion = (RecordKey, u64);
/// A unit of a version of a record.
type UnitVersion = (RecordVersion, UnitId);
/// Ids of the turns that a version of a record still holds as they were before an edit.
type ReplacedTurns = HashMap<RecordVersion, HashSet<String>>;

/// Removes deleted turns from all rows that are not live: the turns, the units made from them, the units with a part
/// from the turn after them (whose vector was computed with the deleted turn as context), and the choices of those
/// units. Returns whether it removed anything.
pub(super) fn delete_turns(
    files: &mut SegmentFiles,
    manifest: &mut Manifest,
    live: &LiveRows,
    deleted: &DeletedTurns,
) -> Result<bool, SnapshotError> {
    manifest.deleted.clear();
    if deleted.is_empty() {
        return Ok(false);
    }
    let units = deleted_units(files, manifest, live, deleted)?;
    let live_units = live.unit_ids();
    let ids: HashSet<UnitId> = units.iter().map(|unit| unit.1).filter(|id| !live_units.contains(id)).collect();
    let mut still_live = BTreeSet::new();
    let any = keep_rows(files, manifest, |table, batch| match table {
        UpdateTable::Turns => keep_turns(live, deleted, batch, &mut still_live),
        UpdateTable::Units => keep_units(&units, batch),
        UpdateTable::Edges => keep_choices(&ids, batch),
    })?;
    manifest.deleted = still_live.into_iter().filter_map(|turn| deleted.get(&turn).cloned()).collect();
    Ok(any)
}

/// Removes from all rows that are not live what edits replaced, in the banks that `erases` passes: the turns as they
/// were before, the units made from them, and the choices of those units. Returns whether it removed anything.
pub(super) fn erase_edits(
    files: &mut SegmentFiles,
    manifest: &mut Manifest,
    live: &LiveRows,
    erases: &dyn Fn(&Bank) -> bool,
) -> Result<bool, SnapshotError> {
    let replaced = replaced_turns(files, manifest, live, erases)?;
    if replaced.is_empty() {
        return Ok(false);
    }
    let units = units_of(files, manifest, &replaced)?;
    let live_units = live.unit_ids();
    let ids: HashSet<UnitId> = units.iter().map(|unit| unit.1).filter(|id| !live_units.contains(id)).collect();
    keep_rows(files, manifest, |table, batch| match table {
        UpdateTable::Turns => keep_current(&replaced, batch),
        UpdateTable::Units => keep_units(&units, batch),
        UpdateTable::Edges => keep_choices(&ids, batch),
    })
}

/// Removes history up to `until_ms`, in milliseconds since 1970. The oldest point for as-of questions
/// moves to the last read up to that time. Versions of records that were removed by then lose both of
/// their rows; each choice that existed then keeps one row. Answers for later points do not change.
pub(super) fn trim_history(
    files: &mut SegmentFiles,
    manifest: &mut Manifest,
    until_ms: i64,
) -> Result<(), SnapshotError> {
    let (oldest, removed) = history(files, manifest, until_ms)?;
    let mut counts = choice_counts(files, manifest, oldest)?;
    let mut segments = Vec::new();
    for segment in manifest.segments.clone() {
        let mut replaced = Vec::new();
        for table in UpdateTable::ALL {
            for file in segment.files.iter().filter(|file| file.table == table) {
                let kept = match table {
                    UpdateTable::Turns | UpdateTable::Units => {
                        kept(files, file, |batch| keep_versions(&removed, batch))?
                    }
                    UpdateTable::Edges => kept(files, file, |batch| keep_one(&mut counts, oldest, batch))?,
                };
                replace(files, file.clone(), kept, &mut replaced)?;
            }
        }
        if !replaced.is_empty() {
            segments.push(SnapshotSegment { files: replaced });
        }
    }
    manifest.segments = segments;
    for reached in &mut manifest.reached {
        reached.oldest = oldest.or(reached.oldest);
    }
    let is_later = |gap: &HistoryGap| oldest.is_none_or(|(offset, _)| gap.until > offset);
    manifest.gaps.retain(is_later);
    Ok(())
}

/// Merges small neighbours once there are many segments.
pub(super) fn merge_segments(files: &mut SegmentFiles, manifest: &mut Manifest) -> Result<(), SnapshotError> {
    if manifest.segments.len() <= MAX_SEGMENTS {
        return Ok(());
    }
    let mut runs: Vec<(u64, Vec<SnapshotSegment>)> = Vec::new();
    for segment in manifest.segments.clone() {
        let bytes: u64 = segment.files.iter().map(|file| file.bytes).sum();
        match runs.last_mut() {
            Some((run_bytes, run)) if *run_bytes + bytes <= MERGED_BYTES => {
                *run_bytes += bytes;
                run.push(segment);
            }
            _ => runs.push((bytes, vec![segment])),
        }
    }
    let mut merged = Vec::with_capacity(runs.len());
    for (_, run) in runs {
        if run.len() == 1 {
            merged.extend(run);
            continue;
        }
        let mut together = Vec::new();
        for table in UpdateTable::ALL {
            let path = files.new_path(table);
            let of_table = run.iter().flat_map(|segment| &segment.files).filter(|file| file.table == table);
            // One file at a time: its rows take ten times as much memory as its bytes.
            let rows = of_table.flat_map(|file| match files.read(file) {
                Ok(rows) => Box::new(rows) as Box<dyn Iterator<Item = _>>,
                Err(error) => Box::new(std::iter::once(Err(error))),
            });
            together.extend(files.write(table, path, rows)?);
        }
        merged.push(SnapshotSegment { files: together });
    }
    manifest.segments = merged;
    Ok(())
}

/// Keeps the rows of all files that `keep` selects. Returns whether any row was removed. The manifest changes only
/// after all files have succeeded: otherwise a retry would no longer find what belongs to the removed rows.
fn keep_rows(
    files: &mut SegmentFiles,
    manifest: &mut Manifest,
    mut keep: impl FnMut(UpdateTable, &RecordBatch) -> Result<Vec<bool>, String>,
) -> Result<bool, SnapshotError> {
    let (mut any, mut segments) = (false, Vec::new());
    for segment in manifest.segments.clone() {
        let mut replaced = Vec::new();
        for file in segment.files {
            let kept = kept(files, &file, |batch| keep(file.table, batch))?;
            any |= kept.is_some();
            replace(files, file, kept, &mut replaced)?;
        }
        if !replaced.is_empty() {
            segments.push(SnapshotSegment { files: replaced });
        }
    }
    manifest.segments = segments;
    Ok(any)
}

/// A file of which some rows are kept.
struct FilteredFile {
    bytes: Bytes,
    /// Whether each row is kept.
    rows: Vec<bool>,
}

/// Which rows of a file to keep; `None` if all of them are kept.
fn kept(
    files: &SegmentFiles,
    file: &TableFile,
    mut keep: impl FnMut(&RecordBatch) -> Result<Vec<bool>, String>,
) -> Result<Option<FilteredFile>, SnapshotError> {
    let (bytes, mut rows) = (file.read(&files.store)?, Vec::new());
    for batch in files.rows(file, bytes.clone())? {
        rows.append(&mut keep(&batch?).map_err(|problem| file.unfit(&files.store, problem))?);
    }
    Ok(rows.contains(&false).then_some(FilteredFile { bytes, rows }))
}

/// The rows of a file that are kept, one batch at a time: all of them take ten times as much memory as its bytes.
fn filtered<'f>(
    files: &'f SegmentFiles,
    file: &'f TableFile,
    bytes: Bytes,
    mut keep: impl FnMut(&RecordBatch) -> Result<Vec<bool>, String> + 'f,
) -> Result<impl Iterator<Item = Result<RecordBatch, SnapshotError>> + 'f, SnapshotError> {
    Ok(files.rows(file, bytes)?.map(move |batch| {
        let (batch, unfit) = (batch?, |problem| file.unfit(&files.store, problem));
        let keep = BooleanArray::from(keep(&batch).map_err(unfit)?);
        arrow_select::filter::filter_record_batch(&batch, &keep).map_err(|e| unfit(e.to_string()))
    }))
}

/// Lists the file, or a new one with the rows to keep.
fn replace(
    files: &mut SegmentFiles,
    file: TableFile,
    kept: Option<FilteredFile>,
    listed: &mut Vec<TableFile>,
) -> Result<(), SnapshotError> {
    let Some(FilteredFile { bytes, rows: kept }) = kept else {
        listed.push(file);
        return Ok(());
    };
    let path = files.new_path(file.table);
    let mut kept = kept.into_iter();
    let rows = filtered(files, &file, bytes, |batch| Ok(kept.by_ref().take(batch.num_rows()).collect()))?;
    listed.extend(files.write(file.table, path, rows)?);
    Ok(())
}

/// The last read up to a time that as-of questions can ask for, and the versions of records that were
/// removed by then.
fn history(
    files: &SegmentFiles,
    manifest: &Manifest,
    until_ms: i64,
) -> Result<(OldestPoint, HashSet<RecordVersion>), SnapshotError> {
    let mut oldest: OldestPoint = None;
    let mut removals = Vec::new();
    // A part of a long record may have units only.
    for file in manifest.files(UpdateTable::Turns).chain(manifest.files(UpdateTable::Units)) {
        let unfit = |problem| file.unfit(&files.store, problem);
        let columns = [&HeadColumns::COLUMNS[..], &["append_time"]].concat();
        for batch in batches(file.read(&files.store)?, &columns).map_err(unfit)? {
            let batch = batch.map_err(unfit)?;
            let heads = HeadColumns::of(&batch).map_err(unfit)?;
            for row in 0..batch.num_rows() {
                let offset = heads.offset(row);
                let append_ms = HeadColumns::append_ms(&batch, row).map_err(unfit)?;
                if append_ms > until_ms {
                    continue;
                }
                if manifest.answers_for(files.partition(), offset) {
                    oldest = oldest.max(Some((offset, append_ms)));
                }
                if !heads.added(row) && !heads.continues(row) {
                    let id = RecordKey::from(&heads.key(row).map_err(unfit)?);
                    removals.push((offset, (id, heads.since(row))));
                }
            }
        }
    }
    let by_then = |(offset, _): &(u64, _)| oldest.is_some_and(|at| *offset <= at.0);
    let removed = removals.into_iter().filter(by_then).map(|(_, version)| version).collect();
    Ok((oldest, removed))
}

/// The choices that existed at this point.
fn choice_counts(
    files: &SegmentFiles,
    manifest: &Manifest,
    oldest: OldestPoint,
) -> Result<ChoiceCounts, SnapshotError> {
    let mut counts = ChoiceCounts::new();
    for file in manifest.files(UpdateTable::Edges) {
        let unfit = |problem| file.unfit(&files.store, problem);
        for batch in files.read(file)? {
            let batch = batch?;
            let choices = ChoiceColumns::of(&batch).map_err(unfit)?;
            for row in (0..batch.num_rows()).filter(|row| is_old(oldest, choices.offset(*row))) {
                let choice = choices.choice(row).map_err(unfit)?;
                let diff = if choices.added(row) { 1 } else { -1 };
                match counts.get_mut(choices.bank(row)) {
                    Some(of_bank) => *of_bank.entry(choice).or_default() += diff,
                    None => drop(counts.insert(choices.bank(row).to_owned(), BTreeMap::from([(choice, diff)]))),
                }
            }
        }
    }
    Ok(counts)
}

fn is_old(oldest: OldestPoint, offset: u64) -> bool {
    oldest.is_some_and(|(oldest, _)| offset <= oldest)
}

fn keep_versions(removed: &HashSet<RecordVersion>, batch: &RecordBatch) -> Result<Vec<bool>, String> {
    let heads = HeadColumns::of(batch)?;
    let keep = |row| Ok(!removed.contains(&(RecordKey::from(&heads.key(row)?), heads.since(row))));
    (0..batch.num_rows()).map(keep).collect()
}

/// Keeps one of a choice's rows up to this point if the choice existed then.
fn keep_one(counts: &mut ChoiceCounts, oldest: OldestPoint, batch: &RecordBatch) -> Result<Vec<bool>, String> {
    let choices = ChoiceColumns::of(batch)?;
    let mut keep = |row| {
        if !is_old(oldest, choices.offset(row)) {
            return Ok(true);
        }
        let of = choices.choice(row)?;
        let count = counts.get_mut(choices.bank(row)).and_then(|of_bank| of_bank.get_mut(&of));
        Ok(choices.added(row) && count.is_some_and(|count| std::mem::take(count) > 0))
    };
    (0..batch.num_rows()).map(&mut keep).collect()
}

/// The units to remove: those with a deleted turn, or with a turn that follows one. None is live.
fn deleted_units(
    files: &SegmentFiles,
    manifest: &Manifest,
    live: &LiveRows,
    deleted: &DeletedTurns,
) -> Result<HashSet<UnitVersion>, SnapshotError> {
    let mut followers: BTreeMap<(&str, &str), HashSet<u32>> = BTreeMap::new();
    for DeletedTurn { bank, session, ordinal, .. } in deleted.values() {
        followers.entry((bank.as_str(), session)).or_default().insert(ordinal.saturating_add(1));
    }
    let mut units_to_remove = HashSet::new();
    for file in manifest.files(UpdateTable::Units) {
        let unfit = |problem| file.unfit(&files.store, problem);
        for batch in files.read(file)? {
            let batch = batch?;
            let (heads, units) = (HeadColumns::of(&batch).map_err(unfit)?, UnitColumns::of(&batch).map_err(unfit)?);
            for row in (0..batch.num_rows()).filter(|row| heads.added(*row)) {
                let key = heads.key(row).map_err(unfit)?;
                let id = RecordKey::from(&key);
                if live.is_live(&id, heads.since(row)) {
                    continue;
                }
                let sources = units.sources(row).map_err(unfit)?;
                let made_from = sources.into_iter().any(|turn| deleted.contains_key(&(key.bank.clone(), turn)));
                let after = followers.get(&(key.bank.as_str(), key.window.session.0.as_str()));
                let follows = |after: &HashSet<u32>| {
                    Ok::<_, String>(units.ordinals(row)?.into_iter().any(|ordinal| after.contains(&ordinal)))
                };
                if made_from || after.map_or(Ok(false), follows).map_err(unfit)? {
                    units_to_remove.insert(((id, heads.since(row)), units.id(row)));
                }
            }
        }
    }
    Ok(units_to_remove)
}

/// The turns as they were before an edit, in rows that are not live.
fn replaced_turns(
    files: &SegmentFiles,
    manifest: &Manifest,
    live: &LiveRows,
    erases: &dyn Fn(&Bank) -> bool,
) -> Result<ReplacedTurns, SnapshotError> {
    let mut newest: HashMap<[u8; 16], (u64, u64)> = HashMap::new();
    each_turn(files, manifest, &mut |heads, turns, row| {
        let version = turns.version(row)?;
        let of_turn = newest.entry(turn_hash(heads.bank(row), turns.name(row))).or_insert(version);
        *of_turn = version.max(*of_turn);
        Ok(())
    })?;
    let mut replaced = ReplacedTurns::new();
    each_turn(files, manifest, &mut |heads, turns, row| {
        let version = turns.version(row)?;
        let is_replaced = |newest: &(u64, u64)| version < *newest;
        if newest.get(&turn_hash(heads.bank(row), turns.name(row))).is_some_and(is_replaced) {
            let key = heads.key(row)?;
            let of_record = (RecordKey::from(&key), heads.since(row));
            if erases(&key.bank) && !live.is_live(&of_record.0, of_record.1) {
                replaced.entry(of_record).or_default().insert(turns.name(row).to_owned());
            }
        }
        Ok(())
    })?;
    Ok(replaced)
}

/// Calls `each` with every added row of the turns, without reading its text.
fn each_turn(
    files: &SegmentFiles,
    manifest: &Manifest,
    each: &mut dyn FnMut(&HeadColumns<'_>, &TurnColumns<'_>, usize) -> Result<(), String>,
) -> Result<(), SnapshotError> {
    let columns = [&HeadColumns::COLUMNS[..], &["turn", "state", "version", "source_offset"]].concat();
    for file in manifest.files(UpdateTable::Turns) {
        let unfit = |problem| file.unfit(&files.store, problem);
        for batch in batches(file.read(&files.store)?, &columns).map_err(unfit)? {
            let batch = batch.map_err(unfit)?;
            let (heads, turns) = (HeadColumns::of(&batch).map_err(unfit)?, TurnColumns::of(&batch).map_err(unfit)?);
            for row in (0..batch.num_rows()).filter(|row| heads.added(*row)) {
                each(&heads, &turns, row).map_err(unfit)?;
            }
        }
    }
    Ok(())
}

/// The units that were made from turns before an edit.
fn units_of(
    files: &SegmentFiles,
    manifest: &Manifest,
    replaced: &ReplacedTurns,
) -> Result<HashSet<UnitVersion>, SnapshotError> {
    let mut found = HashSet::new();
    for file in manifest.files(UpdateTable::Units) {
        let unfit = |problem| file.unfit(&files.store, problem);
        for batch in files.read(file)? {
            let batch = batch?;
            let (heads, units) = (HeadColumns::of(&batch).map_err(unfit)?, UnitColumns::of(&batch).map_err(unfit)?);
            for row in (0..batch.num_rows()).filter(|row| heads.added(*row)) {
                let of_record = (RecordKey::from(&heads.key(row).map_err(unfit)?), heads.since(row));
                let Some(turns) = replaced.get(&of_record) else { continue };
                if units.sources(row).map_err(unfit)?.iter().any(|turn| turns.contains(turn)) {
                    found.insert((of_record, units.id(row)));
                }
            }
        }
    }
    Ok(found)
}

fn turn_hash(bank: &str, turn: &str) -> [u8; 16] {
    let mut hash = blake3::Hasher::new();
    hash.update(&(bank.len() as u64).to_le_bytes()).update(bank.as_bytes()).update(turn.as_bytes());
    let mut short = [0; 16];
    hash.finalize_xof().fill(&mut short);
    short
}

fn keep_current(replaced: &ReplacedTurns, batch: &RecordBatch) -> Result<Vec<bool>, String> {
    let (heads, turns) = (HeadColumns::of(batch)?, TurnColumns::of(batch)?);
    let keep = |row| {
        let of_record = (RecordKey::from(&heads.key(row)?), heads.since(row));
        Ok(replaced.get(&of_record).is_none_or(|names| !names.contains(turns.name(row))))
    };
    (0..batch.num_rows()).map(keep).collect()
}

/// Adds to `still_live` the deleted turns that a live record still holds with their text.
fn keep_turns(
    live: &LiveRows,
    deleted: &DeletedTurns,
    batch: &RecordBatch,
    still_live: &mut BTreeSet<(Bank, String)>,
) -> Result<Vec<bool>, String> {
    let (heads, turns) = (HeadColumns::of(batch)?, TurnColumns::of(batch)?);
    let mut keep = |row| {
        let key = heads.key(row)?;
        let turn = (key.bank.clone(), turns.name(row).to_owned());
        if !deleted.contains_key(&turn) {
            return Ok(true);
        }
        let is_live = heads.added(row) && live.is_live(&RecordKey::from(&key), heads.since(row));
        if is_live && !turns.deleted(row)? {
            still_live.insert(turn);
        }
        Ok(is_live)
    };
    (0..batch.num_rows()).map(&mut keep).collect()
}

fn keep_units(removed: &HashSet<UnitVersion>, batch: &RecordBatch) -> Result<Vec<bool>, String> {
    let (heads, units) = (HeadColumns::of(batch)?, UnitColumns::of(batch)?);
    let keep = |row| Ok(!removed.contains(&((RecordKey::from(&heads.key(row)?), heads.since(row)), units.id(row))));
    (0..batch.num_rows()).map(keep).collect()
}

fn keep_choices(removed: &HashSet<UnitId>, batch: &RecordBatch) -> Result<Vec<bool>, String> {
    let choices = ChoiceColumns::of(batch)?;
    let keep = |row| choices.choice(row).map(|choice| !removed.contains(&choice.from) && !removed.contains(&choice.to));
    (0..batch.num_rows()).map(keep).collect()
}
