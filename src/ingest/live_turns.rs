//! The turns of the live records of a partition, from which a stage restores its windows.
//!
//! In: the partition's records in log order. Out: the turns of the live ones. The turns of an unreadable record are
//! taken from the turns log, if applying its events again puts every turn of the bank's other records at the position
//! that those records have. Otherwise the turns are lost, and a warning says so: they are never put at another position
//! than before.

use crate::log_events;
use std::collections::{BTreeSet, HashMap};

use super::{PipelineError, model_worker_pool, write_groups::WriteGroups};
use logs::{Log, LogError, ReadProgress, Topic, partition_of};
use memory::window::Windower;
use types::{
    config::Pipeline,
    logged_bank::LoggedBank,
    model::{Bank, IN_PART, MemoryKey, TurnEvent, WindowTurn},
};

/// Turns read at once.
const READ_TURNS: usize = 1_024;

/// The turns of the live records of a partition.
#[derive(Debug, Default)]
pub struct LiveTurns {
    records: HashMap<MemoryKey, RecordTurns>,
    /// The live records that cannot be read.
    unreadable: BTreeSet<MemoryKey>,
}

/// The turns of a record.
#[derive(Debug)]
pub(super) struct RecordTurns {
    pub(super) turns: Vec<WindowTurn>,
    /// Whether the model has not read the window yet.
    pub(super) provisional: bool,
    /// Whether the window is to be extracted again.
    pub(super) in_part: bool,
}

impl LiveTurns {
    /// Takes the next record in log order: its turns and its extractor, or `None` for its removal.
    pub fn apply(&mut self, key: &MemoryKey, record: Option<(Vec<WindowTurn>, &str)>) {
        self.unreadable.remove(key);
        match record {
            Some((turns, extractor)) => {
                let provisional = model_worker_pool::is_provisional(extractor);
                let in_part = extractor.ends_with(IN_PART);
                drop(self.records.insert(key.clone(), RecordTurns { turns, provisional, in_part }));
            }
            None => drop(self.records.remove(key)),
        }
    }

    /// Notes a live record that cannot be read; what [`Self::apply`] received of it stays.
    pub fn take_unreadable(&mut self, key: &MemoryKey) {
        if !self.records.contains_key(key) {
            self.unreadable.insert(key.clone());
        }
    }

    /// The records whose turns are known.
    pub(super) fn records(&self) -> impl Iterator<Item = (&MemoryKey, &RecordTurns)> {
        self.records.iter()
    }

    /// Takes the turns of unreadable records from the turns log, as far as it is covered. Each record whose turns are
    /// lost is logged.
    pub(super) fn recover(
        &mut self,
        partition: u32,
        pipeline: &Pipeline,
        log: &dyn Log,
        progress: &ReadProgress,
    ) -> Result<(), PipelineError> {
        if self.unreadable.is_empty() {
            return Ok(());
        }
        let again = self.apply_again(partition, pipeline, log, progress)?;
        for key in std::mem::take(&mut self.unreadable) {
            match again.turns_of(&key).filter(|_| self.agrees(&key.bank, &again)) {
                Some(turns) => {
                    drop(self.records.insert(key, RecordTurns { turns, provisional: false, in_part: false }))
                }
                None => log_events::record_lost(partition, LoggedBank(&key.bank), key.window.start),
            }
        }
        Ok(())
    }

    /// The windows of the banks with unreadable records, made only from the turns log.
    fn apply_again(
        &self,
        partition: u32,
        pipeline: &Pipeline,
        log: &dyn Log,
        progress: &ReadProgress,
    ) -> Result<Windower, PipelineError> {
        let banks: BTreeSet<&Bank> = self.unreadable.iter().map(|key| &key.bank).collect();
        let (mut windower, mut groups, mut at) = (Windower::new(&pipeline.window), WriteGroups::default(), 0);
        while at < progress.through {
            let records = match log.read(Topic::Turns, partition, at, READ_TURNS) {
                Ok(batch) => batch.records,
                Err(LogError::Expired { earliest, .. }) if earliest > at => {
                    at = earliest;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let Some(last) = records.last() else { break };
            at = last.offset + 1;
            for record in records.iter().filter(|record| record.offset < progress.through && !record.key.is_empty()) {
                // An event that cannot be read here is already a dead letter.
                let Ok(event) = TurnEvent::from_log(record.value.as_deref().unwrap_or_default()) else { continue };
                let is_covered = record.offset < progress.of(event.bank());
                if is_covered
                    && banks.contains(event.bank())
                    && partition_of(event.bank(), log.partitions()) == partition
                {
                    if windower.lacks_salt_for(&event) {
                        windower.set_id_salt(log.id_salt()?);
                    }
                    match event {
                        TurnEvent::Conditional(write) => {
                            if let Some(group) = groups.add(record.offset, *write) {
                                windower.decide_stored(Some(record.append_ms), &group);
                            }
                        }
                        event => {
                            windower.apply_stored(record.offset, Some(record.append_ms), &event);
                        }
                    }
                }
            }
        }
        Ok(windower)
    }

    /// Whether `again` has every turn of the bank's readable records at the same position.
    fn agrees(&self, bank: &Bank, again: &Windower) -> bool {
        self.records.iter().filter(|(key, _)| key.bank == *bank).all(|(key, RecordTurns { turns, .. })| {
            turns.iter().all(|of| match again.position_of(bank, &of.turn.turn) {
                Some((session, ordinal)) => *session == key.window.session && ordinal == of.ordinal,
                // The turn was deleted before it arrived.
                None => again.turns_of(key).is_some(),
            })
        })
    }
}
