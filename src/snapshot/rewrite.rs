//! Files written anew: without what was taken back, without history that is too old, and fewer
//! of them.
//!
//! In: a writer with its list of segments. Out: the same list with some replaced. The old
//! files stay until a manifest lists the new ones.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use arrow_array::{BooleanArray, RecordBatch};

use super::{
    Forgotten, Gap, Segment, SnapshotError, TableFile,
    update::{Choices, Heads, Turns, Units, UpdateTable, batches},
    writer::Writer,
};
use crate::{
    memory::{GraphChoice, RecordKey},
    model::{Bank, UnitId},
};

/// Past so many segments, neighbours are put together.
const SEGMENTS: usize = 32;
/// As long as they have at most so many bytes.
const MERGED_BYTES: u64 = 32 << 20;

/// The oldest point of each partition that can be asked for: offset and time of appending.
type Oldest = BTreeMap<u32, (u64, i64)>;
/// How often choices stand, by bank.
type Standing = BTreeMap<String, BTreeMap<GraphChoice, i64>>;
/// A unit of a version of a record.
type Version = (RecordKey, u64, UnitId);

/// Removes, from all that is not live, the turns that were taken back, the units made from
/// them, the units that a turn after them is part of, whose vectors know what stood before,
/// and their choices. False when there was nothing to remove.
pub(super) fn purge(writer: &mut Writer) -> Result<bool, SnapshotError> {
    writer.manifest.forgotten.clear();
    if writer.gone.is_empty() {
        return Ok(false);
    }
    let units = dead_units(writer)?;
    let live: HashSet<UnitId> = writer.held.values().flat_map(|held| held.units.iter().copied()).collect();
    let ids: HashSet<UnitId> = units.iter().map(|unit| unit.2).filter(|id| !live.contains(id)).collect();
    let mut any = false;
    // All of it or nothing: what is found here is not found again.
    let (mut segments, mut held) = (Vec::new(), BTreeSet::new());
    for segment in writer.manifest.segments.clone() {
        let mut files = Vec::new();
        for file in segment.files {
            let kept = filtered(writer, &file, |batch| match file.table {
                UpdateTable::Turns => keep_turns(writer, batch, &mut held),
                UpdateTable::Units => keep_units(&units, batch),
                UpdateTable::Edges => keep_choices(&ids, batch),
            })?;
            any |= kept.is_some();
            replace(writer, file, kept, &mut files)?;
        }
        if !files.is_empty() {
            segments.push(Segment { files });
        }
    }
    writer.manifest.segments = segments;
    writer.manifest.forgotten = held.into_iter().filter_map(|of| writer.gone.get(&of).cloned()).collect();
    Ok(any)
}

/// Removes what had gone by a time, in milliseconds since 1970: both rows of each version of a
/// record, and of the choices up to there all but one row of each that stood. The oldest point
/// that can be asked for moves to the last read up to that time; from there on every answer is
/// what it was.
pub(super) fn trim(writer: &mut Writer, until_ms: i64) -> Result<(), SnapshotError> {
    let (oldest, died) = history(writer, until_ms)?;
    let mut standing = standing(writer, &oldest)?;
    let mut segments = Vec::new();
    for segment in writer.manifest.segments.clone() {
        let mut files = Vec::new();
        for table in UpdateTable::ALL {
            for file in segment.files.iter().filter(|file| file.table == table) {
                let kept = match table {
                    UpdateTable::Turns | UpdateTable::Units => {
                        filtered(writer, file, |batch| keep_versions(&died, batch))?
                    }
                    UpdateTable::Edges => filtered(writer, file, |batch| keep_one(&mut standing, &oldest, batch))?,
                };
                replace(writer, file.clone(), kept, &mut files)?;
            }
        }
        if !files.is_empty() {
            segments.push(Segment { files });
        }
    }
    writer.manifest.segments = segments;
    for reached in &mut writer.manifest.reached {
        reached.oldest = oldest.get(&reached.partition).copied().or(reached.oldest);
    }
    let asked = |gap: &Gap| oldest.get(&gap.partition).is_none_or(|(offset, _)| gap.until > *offset);
    writer.manifest.gaps.retain(asked);
    Ok(())
}

/// Puts small neighbours together once there are many.
pub(super) fn merge(writer: &mut Writer) -> Result<(), SnapshotError> {
    if writer.manifest.segments.len() <= SEGMENTS {
        return Ok(());
    }
    let mut runs: Vec<(u64, Vec<Segment>)> = Vec::new();
    for segment in writer.manifest.segments.clone() {
        let bytes: u64 = segment.files.iter().map(|file| file.bytes).sum();
        match runs.last_mut() {
            Some((held, run)) if *held + bytes <= MERGED_BYTES => {
                *held += bytes;
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
        let mut files = Vec::new();
        for table in UpdateTable::ALL {
            let mut rows = Vec::new();
            for file in run.iter().flat_map(|segment| &segment.files).filter(|file| file.table == table) {
                rows.extend(read(writer, file)?);
            }
            files.extend(writer.write(table, &rows)?);
        }
        merged.push(Segment { files });
    }
    writer.manifest.segments = merged;
    Ok(())
}

/// What stays of a file; none when all of it does.
fn filtered(
    writer: &Writer,
    file: &TableFile,
    mut keep: impl FnMut(&RecordBatch) -> Result<Vec<bool>, String>,
) -> Result<Option<Vec<RecordBatch>>, SnapshotError> {
    let unfit = |problem| file.unfit(&writer.store, problem);
    let (mut kept, mut all) = (Vec::new(), true);
    for batch in read(writer, file)? {
        let keep = keep(&batch).map_err(unfit)?;
        all &= keep.iter().all(|keep| *keep);
        let filtered = arrow_select::filter::filter_record_batch(&batch, &BooleanArray::from(keep));
        kept.push(filtered.map_err(|e| unfit(e.to_string()))?);
    }
    Ok((!all).then_some(kept))
}

/// Lists a file, or one with what is kept of it.
fn replace(
    writer: &mut Writer,
    file: TableFile,
    kept: Option<Vec<RecordBatch>>,
    files: &mut Vec<TableFile>,
) -> Result<(), SnapshotError> {
    match kept {
        None => files.push(file),
        Some(rows) => files.extend(writer.write(file.table, &rows)?),
    }
    Ok(())
}

/// The last read of each partition up to a time, where that can be asked for, and the versions
/// of records that had gone by then.
fn history(writer: &Writer, until_ms: i64) -> Result<(Oldest, HashSet<(RecordKey, u64)>), SnapshotError> {
    let mut oldest = Oldest::new();
    let mut went = Vec::new();
    // A part of a long record may hold units alone.
    for file in writer.manifest.files(UpdateTable::Turns).chain(writer.manifest.files(UpdateTable::Units)) {
        let unfit = |problem| file.unfit(&writer.store, problem);
        let columns = [&Heads::COLUMNS[..], &["append_time"]].concat();
        for batch in batches(file.read(&writer.store)?, &columns).map_err(unfit)? {
            let batch = batch.map_err(unfit)?;
            let heads = Heads::of(&batch).map_err(unfit)?;
            for row in 0..batch.num_rows() {
                let (partition, offset) = (heads.partition(row), heads.offset(row));
                let append_ms = Heads::append_ms(&batch, row).map_err(unfit)?;
                if append_ms > until_ms {
                    continue;
                }
                if writer.manifest.knows(partition, offset) {
                    let at = oldest.entry(partition).or_insert((offset, append_ms));
                    *at = (*at).max((offset, append_ms));
                }
                if !heads.came(row) && !heads.continues(row) {
                    let id = RecordKey::from(&heads.key(row).map_err(unfit)?);
                    went.push((partition, offset, (id, heads.since(row))));
                }
            }
        }
    }
    let by_then = |(partition, offset, _): &(u32, u64, _)| oldest.get(partition).is_some_and(|at| *offset <= at.0);
    let died = went.into_iter().filter(by_then).map(|(.., version)| version).collect();
    Ok((oldest, died))
}

/// The choices that stood at these points.
fn standing(writer: &Writer, oldest: &Oldest) -> Result<Standing, SnapshotError> {
    let mut standing = Standing::new();
    for file in writer.manifest.files(UpdateTable::Edges) {
        let unfit = |problem| file.unfit(&writer.store, problem);
        for batch in read(writer, file)? {
            let choices = Choices::of(&batch).map_err(unfit)?;
            for row in (0..batch.num_rows()).filter(|row| is_old(oldest, &choices, *row)) {
                let choice = choices.choice(row).map_err(unfit)?;
                let diff = if choices.came(row) { 1 } else { -1 };
                match standing.get_mut(choices.bank(row)) {
                    Some(of_bank) => *of_bank.entry(choice).or_default() += diff,
                    None => drop(standing.insert(choices.bank(row).to_owned(), BTreeMap::from([(choice, diff)]))),
                }
            }
        }
    }
    Ok(standing)
}

fn is_old(oldest: &Oldest, choices: &Choices<'_>, row: usize) -> bool {
    oldest.get(&choices.partition(row)).is_some_and(|(offset, _)| choices.offset(row) <= *offset)
}

fn keep_versions(died: &HashSet<(RecordKey, u64)>, batch: &RecordBatch) -> Result<Vec<bool>, String> {
    let heads = Heads::of(batch)?;
    let keep = |row| Ok(!died.contains(&(RecordKey::from(&heads.key(row)?), heads.since(row))));
    (0..batch.num_rows()).map(keep).collect()
}

/// Of the rows of a choice up to these points one stays, where it stood.
fn keep_one(standing: &mut Standing, oldest: &Oldest, batch: &RecordBatch) -> Result<Vec<bool>, String> {
    let choices = Choices::of(batch)?;
    let mut keep = |row| {
        if !is_old(oldest, &choices, row) {
            return Ok(true);
        }
        let of = choices.choice(row)?;
        let count = standing.get_mut(choices.bank(row)).and_then(|of_bank| of_bank.get_mut(&of));
        Ok(choices.came(row) && count.is_some_and(|count| std::mem::take(count) > 0))
    };
    (0..batch.num_rows()).map(&mut keep).collect()
}

fn read(writer: &Writer, file: &TableFile) -> Result<Vec<RecordBatch>, SnapshotError> {
    let unfit = |problem| file.unfit(&writer.store, problem);
    batches(file.read(&writer.store)?, &[]).map_err(unfit)?.map(|batch| batch.map_err(unfit)).collect()
}

/// The units that must not stay: none that is live.
fn dead_units(writer: &Writer) -> Result<HashSet<Version>, SnapshotError> {
    let mut followers: BTreeMap<(&str, &str), HashSet<u32>> = BTreeMap::new();
    for Forgotten { bank, session, ordinal, .. } in writer.gone.values() {
        followers.entry((bank.as_str(), session)).or_default().insert(ordinal.saturating_add(1));
    }
    let mut dead = HashSet::new();
    for file in writer.manifest.files(UpdateTable::Units).cloned().collect::<Vec<_>>() {
        let unfit = |problem| file.unfit(&writer.store, problem);
        for batch in read(writer, &file)? {
            let (heads, units) = (Heads::of(&batch).map_err(unfit)?, Units::of(&batch).map_err(unfit)?);
            for row in (0..batch.num_rows()).filter(|row| heads.came(*row)) {
                let key = heads.key(row).map_err(unfit)?;
                let id = RecordKey::from(&key);
                if writer.is_live(&id, heads.since(row)) {
                    continue;
                }
                let sources = units.sources(row).map_err(unfit)?;
                let made_from = sources.into_iter().any(|turn| writer.gone.contains_key(&(key.bank.clone(), turn)));
                let after = followers.get(&(key.bank.as_str(), key.window.session.0.as_str()));
                let follows = |after: &HashSet<u32>| {
                    Ok::<_, String>(units.ordinals(row)?.into_iter().any(|ordinal| after.contains(&ordinal)))
                };
                if made_from || after.map_or(Ok(false), follows).map_err(unfit)? {
                    dead.insert((id, heads.since(row), units.id(row)));
                }
            }
        }
    }
    Ok(dead)
}

/// `held` takes the turns that were taken back and are live all the same.
fn keep_turns(writer: &Writer, batch: &RecordBatch, held: &mut BTreeSet<(Bank, String)>) -> Result<Vec<bool>, String> {
    let (heads, turns) = (Heads::of(batch)?, Turns::of(batch)?);
    let mut keep = |row| {
        let key = heads.key(row)?;
        let of = (key.bank.clone(), turns.name(row).to_owned());
        if !writer.gone.contains_key(&of) {
            return Ok(true);
        }
        let live = heads.came(row) && writer.is_live(&RecordKey::from(&key), heads.since(row));
        if live && !turns.deleted(row)? {
            held.insert(of);
        }
        Ok(live)
    };
    (0..batch.num_rows()).map(&mut keep).collect()
}

fn keep_units(dead: &HashSet<Version>, batch: &RecordBatch) -> Result<Vec<bool>, String> {
    let (heads, units) = (Heads::of(batch)?, Units::of(batch)?);
    let keep = |row| Ok(!dead.contains(&(RecordKey::from(&heads.key(row)?), heads.since(row), units.id(row))));
    (0..batch.num_rows()).map(keep).collect()
}

fn keep_choices(dead: &HashSet<UnitId>, batch: &RecordBatch) -> Result<Vec<bool>, String> {
    let choices = Choices::of(batch)?;
    let keep = |row| choices.choice(row).map(|choice| !dead.contains(&choice.from) && !dead.contains(&choice.to));
    (0..batch.num_rows()).map(keep).collect()
}
