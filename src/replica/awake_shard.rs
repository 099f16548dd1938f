//! Moves the banks of a shard into memory and out of it.
//!
//! In: a log in a directory, banks. Out: a shard in which a bank stays awake. What a bank holds does not change, so
//! no listener gets anything.

use std::{
    collections::BTreeMap,
    ops::{ControlFlow, Deref},
    sync::Arc,
};

use logs::{Log, LogRecord, Topic};
use memory::index::{CensusProbe, RecordKey, RecordLoad};
use types::{
    model::{Bank, BankKey, MemoryKey},
    sync,
};

use super::{PipelineError, log_events, shard::ReplicaShard, shard_reader::take_record};

/// A shard in which a bank stays awake until this is dropped.
pub(super) struct AwakeShard {
    pub(super) shard: Arc<ReplicaShard>,
    /// The bank, if banks may sleep.
    pub(super) bank: Option<BankKey>,
}

impl Deref for AwakeShard {
    type Target = ReplicaShard;

    fn deref(&self) -> &ReplicaShard {
        &self.shard
    }
}

impl Drop for AwakeShard {
    fn drop(&mut self) {
        if let (Some(sleep), Some(bank)) = (&self.shard.sleep, self.bank) {
            sleep.release(bank);
        }
    }
}

impl ReplicaShard {
    /// Puts banks to sleep that can be read and that no one uses. Does nothing while the log has records that the shard
    /// did not follow, or while it has too many loads. Returns those that sleep now.
    pub(super) fn put_to_sleep(&self, log: &dyn Log, banks: &[Bank]) -> Result<Vec<Bank>, PipelineError> {
        let Some(sleep) = &self.sleep else { return Ok(Vec::new()) };
        let reader = sync::lock(&self.reader);
        if self.is_loading() || reader.next() != log.end(Topic::Memory, self.partition)? || !self.memory.has_room() {
            return Ok(Vec::new());
        }
        let may_sleep = |bank: &&Bank| sync::read(&self.held).may_sleep(bank);
        let by_key: BTreeMap<BankKey, &Bank> = banks.iter().filter(may_sleep).map(|bank| (bank.key(), bank)).collect();
        let mut falling = sleep.begin_to_sleep(by_key.keys().copied());
        let (mut asleep, mut changes) = (Vec::new(), Vec::new());
        for key in falling.keys().collect::<Vec<_>>() {
            let Some(bank) = by_key.get(&key) else { continue };
            let probe = CensusProbe { bank: Some(key), hashing: false, listing: false };
            falling.keep_counts(key, self.memory.census(probe)?.value);
            let mut note = |key: &[u8], _| {
                // A key that cannot be read makes its partition wait before it, so that it was not loaded.
                changes.extend(MemoryKey::from_bytes(key).ok().map(|key| (RecordKey::from(&key), None)));
                false
            };
            log.live_records(self.partition, &MemoryKey::prefix(bank), &mut note, &mut |_| ControlFlow::Continue(()))?;
            asleep.push((*bank).clone());
        }
        if asleep.is_empty() {
            return Ok(asleep);
        }
        self.memory.load(RecordLoad { changes, moves: true, ..RecordLoad::default() })?;
        {
            let mut held = sync::write(&self.held);
            asleep.iter().for_each(|bank| held.fall_asleep(bank));
        }
        falling.finish();
        log_events::banks_fell_asleep(self.partition, asleep.len());
        Ok(asleep)
    }

    /// Loads the records of a bank that sleeps. Returns their number, and about their bytes in memory.
    pub(super) fn load_bank(&self, log: &dyn Log, bank: &Bank) -> Result<(u64, u64), PipelineError> {
        let vectors = sync::read(&self.vectors).clone();
        let (mut changes, mut live, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
        let (mut bytes, mut failure) = (0, None);
        let mut take = |record: &LogRecord| {
            match take_record(log, record, vectors.as_ref()) {
                Ok(Some((key, taken))) => {
                    let state = taken.live(record.append_ms);
                    bytes += taken.extraction.as_ref().map_or(0, |extraction| extraction.held_bytes()) as u64;
                    changes.push((RecordKey::from(&key), taken.extraction));
                    live.extend(state.map(|state| (key, state)));
                    unreadable.extend(taken.unreadable);
                }
                Ok(None) => {}
                Err(problem) => {
                    let (partition, offset) = (self.partition, record.offset);
                    failure = Some(PipelineError::Record { partition, offset, problem });
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        };
        log.live_records(self.partition, &MemoryKey::prefix(bank), &mut |_, _| true, &mut take)?;
        failure.map_or(Ok(()), Err)?;
        let records = live.len() as u64;
        self.memory.load(RecordLoad { changes, moves: true, ..RecordLoad::default() })?;
        let mut held = sync::write(&self.held);
        held.wake(bank, live);
        unreadable.into_iter().for_each(|record| held.quarantine(record));
        Ok((records, bytes))
    }
}
