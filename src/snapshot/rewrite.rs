//! Files written anew: without what was taken back, and fewer of them.
//!
//! In: a writer with its list of segments. Out: the same list with some replaced. The old
//! files stay until a manifest lists the new ones.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use arrow_array::{BooleanArray, RecordBatch};

use super::{
    Forgotten, Segment, SnapshotError, TableFile,
    update::{Choices, Heads, Turns, Units, UpdateTable, batches},
    writer::Writer,
};
use crate::{
    memory::RecordKey,
    model::{Bank, UnitId},
};

/// Past so many segments, neighbours are put together.
const SEGMENTS: usize = 32;
/// As long as they have at most so many bytes.
const MERGED_BYTES: u64 = 32 << 20;

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
            let mut kept = Vec::new();
            let mut all = true;
            for batch in read(writer, &file)? {
                let keep = match file.table {
                    UpdateTable::Turns => keep_turns(writer, &batch, &mut held),
                    UpdateTable::Units => keep_units(&units, &batch),
                    UpdateTable::Edges => keep_choices(&ids, &batch),
                }
                .map_err(|problem| file.unfit(&writer.store, problem))?;
                all &= keep.iter().all(|keep| *keep);
                let filtered = arrow_select::filter::filter_record_batch(&batch, &BooleanArray::from(keep));
                kept.push(filtered.map_err(|e| file.unfit(&writer.store, e.to_string()))?);
            }
            if all {
                files.push(file);
            } else {
                any = true;
                files.extend(writer.write(file.table, &kept)?);
            }
        }
        if !files.is_empty() {
            segments.push(Segment { files });
        }
    }
    writer.manifest.segments = segments;
    writer.manifest.forgotten = held.into_iter().filter_map(|of| writer.gone.get(&of).cloned()).collect();
    Ok(any)
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
