//! The points of a bank's past that as-of questions can ask for.
//!
//! In: the tables of a shard's newest snapshot. Out: for one bank, the ends of the reads that changed it, as far back
//! as its history is kept and while it holds something. Any later offset has the same answer as the last point before
//! it. Changes of other banks never add a point.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    LogSnapshots, Manifest, SnapshotError,
    update_tables::{HeadColumns, TurnColumns, UpdateTable, batches},
};
use memory::index::RecordKey;
use types::model::Bank;

/// A point of a bank's past: the end of a read of the memory log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HistoryPoint {
    /// The offset of the last record of the read, in the bank's partition of the memory topic.
    pub offset: u64,
    /// When that record was appended, in milliseconds since 1970.
    pub append_ms: i64,
}

/// A version of a record, from the read that added it to the one that removed it.
#[derive(Debug, Clone, Copy, Default)]
struct RecordLifetime {
    /// Whether it has a turn that is not deleted, or a unit.
    filled: bool,
    removed: Option<u64>,
}

/// What the tables say of a bank.
#[derive(Default)]
struct BankHistoryRows {
    /// The reads of the partition that have an answer, each with its append time.
    ends: BTreeMap<u64, i64>,
    /// The versions of the bank's records, by the offset that added each.
    versions: HashMap<(RecordKey, u64), RecordLifetime>,
}

impl LogSnapshots {
    /// The points of a bank's past in the newest snapshot, oldest first; none without a snapshot.
    ///
    /// # Errors
    /// [`SnapshotError`] when it cannot be read.
    pub fn points(&self, bank: &Bank, partition: u32) -> Result<Vec<HistoryPoint>, SnapshotError> {
        let Some(manifest) = self.manifest(partition)? else { return Ok(Vec::new()) };
        let changes = self.changes(&manifest, bank, partition)?;
        // From there on the bank is quarantined.
        let unreadable = manifest.unreadable.iter().filter(|record| record.key.bank == *bank);
        let readable_until = unreadable.map(|record| record.offset).min().unwrap_or(u64::MAX);
        Ok(changes.points(readable_until))
    }

    fn changes(&self, manifest: &Manifest, bank: &Bank, partition: u32) -> Result<BankHistoryRows, SnapshotError> {
        let mut changes = BankHistoryRows::default();
        changes.ends.extend(manifest.first_kept(partition));
        for table in [UpdateTable::Turns, UpdateTable::Units] {
            let of_turns: &[&str] = if table == UpdateTable::Turns { &["turn", "state", "deleted"] } else { &[] };
            let columns = [&HeadColumns::COLUMNS[..], &["append_time"], of_turns].concat();
            for file in manifest.files(table) {
                let unfit = |problem| file.unfit(self.store(), problem);
                for batch in batches(file.read(self.store())?, &columns).map_err(unfit)? {
                    let batch = batch.map_err(unfit)?;
                    let heads = HeadColumns::of(&batch).map_err(unfit)?;
                    let turns = (table == UpdateTable::Turns).then(|| TurnColumns::of(&batch)).transpose();
                    let turns = turns.map_err(unfit)?;
                    for row in 0..batch.num_rows() {
                        let offset = heads.offset(row);
                        if manifest.answers_for(partition, offset) {
                            changes.ends.insert(offset, HeadColumns::append_ms(&batch, row).map_err(unfit)?);
                        }
                        if heads.bank(row) != bank.as_str() {
                            continue;
                        }
                        let key = heads.key(row).map_err(unfit)?;
                        let version = changes.versions.entry((RecordKey::from(&key), heads.since(row))).or_default();
                        if heads.added(row) {
                            let is_deleted = turns.as_ref().map_or(Ok(false), |turns| turns.deleted(row));
                            version.filled |= !is_deleted.map_err(unfit)?;
                        } else {
                            version.removed = Some(offset);
                        }
                    }
                }
            }
        }
        // An unreadable record of a new key leaves no row.
        let found = manifest.unreadable.iter().filter_map(|record| record.found);
        changes.ends.extend(found.filter(|(offset, _)| manifest.answers_for(partition, *offset)));
        Ok(changes)
    }
}

impl BankHistoryRows {
    /// The points after which the bank differs from before and holds something. A change while no history was kept
    /// appears at the first point after it.
    fn points(&self, readable_until: u64) -> Vec<HistoryPoint> {
        let mut changed = BTreeSet::new();
        let mut filled: BTreeMap<u64, i64> = BTreeMap::new();
        for ((_, since), version) in &self.versions {
            changed.insert(*since);
            changed.extend(version.removed);
            if version.filled {
                *filled.entry(*since).or_default() += 1;
                if let Some(removed) = version.removed {
                    *filled.entry(removed).or_default() -= 1;
                }
            }
        }
        let shown = |change: &u64| self.ends.range(*change..).next().map(|(offset, append_ms)| (*offset, *append_ms));
        let ends: BTreeMap<u64, i64> = changed.iter().filter_map(shown).collect();
        let (mut filled, mut held) = (filled.into_iter().peekable(), 0);
        let mut points = Vec::new();
        for (offset, append_ms) in ends {
            while let Some((_, more)) = filled.next_if(|(at, _)| *at <= offset) {
                held += more;
            }
            if held > 0 && offset < readable_until {
                points.push(HistoryPoint { offset, append_ms });
            }
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::model::{MemoryKey, SessionId, WindowId};

    /// The points of a bank whose records were added and removed at these offsets.
    fn points(ends: &[u64], versions: &[(u64, bool, Option<u64>)], readable_until: u64) -> Vec<u64> {
        let ends = ends.iter().map(|end| (*end, 0)).collect();
        let version = |(n, (since, filled, removed)): (usize, &(u64, bool, Option<u64>))| {
            let window = WindowId { session: SessionId("s".to_owned()), start: n as u32 };
            let key = MemoryKey { bank: Bank::parse("b").expect("a name"), window, turn: None, part: 0 };
            ((RecordKey::from(&key), *since), RecordLifetime { filled: *filled, removed: *removed })
        };
        let changes = BankHistoryRows { ends, versions: versions.iter().enumerate().map(version).collect() };
        changes.points(readable_until).into_iter().map(|point| point.offset).collect()
    }

    #[test]
    fn a_point_is_the_end_of_a_read_after_which_the_bank_differs_and_holds_something() {
        let all = u64::MAX;
        assert_eq!(points(&[3, 5, 9], &[(3, true, None), (9, true, None)], all), [3, 9], "5 is of another bank");
        assert_eq!(points(&[3, 5, 9], &[(3, true, Some(9)), (9, true, None)], all), [3, 9], "an edit");
        assert_eq!(points(&[3, 5, 9], &[(3, true, Some(5)), (9, true, None)], all), [3, 9], "at 5 it holds nothing");
        assert_eq!(points(&[3], &[(3, false, None)], all), [] as [u64; 0], "a deletion alone is nothing");
        assert_eq!(points(&[7, 9], &[(2, true, Some(4)), (4, true, None)], all), [7], "no history is kept before 7");
        assert_eq!(points(&[3, 5], &[(3, true, None), (6, true, None)], all), [3], "6 is in no answer");
        assert_eq!(points(&[3, 5], &[(3, true, None), (5, true, None)], 5), [3], "from 5 on it is quarantined");
    }
}
