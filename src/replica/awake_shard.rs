//! Moves the banks of a shard into memory and out of it.
//!
//! In: a log, banks. Out: a shard in which a bank stays awake. What a bank holds does not change, so
//! no listener gets anything.

use std::{
    collections::BTreeMap,
    ops::{ControlFlow, Deref},
    sync::Arc,
};

use logs::{Log, LogRecord, Topic};
use memory::index::{CensusProbe, RecordKey, RecordLoad, ShardError};
use types::{
    logged_bank::LoggedBank,
    model::{Bank, BankKey, MemoryKey},
    sync,
};

use super::{PipelineError, bank_sleep::BankEntry, log_events, shard::ReplicaShard, shard_reader::take_record};

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

/// The live records of a bank in the log: their keys, and their offsets where other processes write to the log.
type PlacedRecords = (Vec<RecordKey>, Box<[u64]>);

impl ReplicaShard {
    /// Uses a bank once it is awake; wakes it if it sleeps. `may_wait` says how long the caller waits while another one
    /// wakes it. [`AwakeShard`] ends the use. Returns whether it slept.
    pub(super) fn enter(
        &self,
        log: &dyn Log,
        bank: &Bank,
        may_wait: impl Fn() -> Result<(), PipelineError>,
    ) -> Result<bool, PipelineError> {
        let Some(sleep) = &self.sleep else { return Ok(false) };
        let BankEntry::Wake(waking) = sleep.enter(bank.key(), may_wait)? else { return Ok(false) };
        // If that fails, it still sleeps.
        let (records, bytes) = self.load_bank(log, bank)?;
        waking.finish(records, bytes);
        Ok(true)
    }

    /// Wakes a bank of which another process wrote a record that is about to be loaded. What it held until then comes
    /// first, so that the record changes what it would have changed in a bank that never slept.
    pub(super) fn wake_for_record(&self, log: &dyn Log, bank: &Bank, offset: u64) -> Result<(), PipelineError> {
        let entered = match log.shared() {
            Some(_) => self.enter(log, bank, || Ok(())),
            // Extraction wakes a bank before it writes a record of it.
            None => Err(PipelineError::Loading { bank: bank.clone(), partition: self.partition }),
        };
        match entered {
            Ok(_) => {}
            Err(PipelineError::Loading { .. }) => {
                // This shard lost a state: it ends, and its holder builds it again.
                self.memory.panic();
                log_events::record_of_sleeping_bank(LoggedBank(bank), offset);
                return Err(ShardError::Stopped("a record of a bank that sleeps was written".to_owned()).into());
            }
            Err(error) => return Err(error),
        }
        self.sleep.iter().for_each(|sleep| sleep.release(bank.key()));
        Ok(())
    }

    /// Puts banks to sleep that can be read and that no one uses. Does nothing while the log has records of theirs that
    /// the shard did not follow, or while it has too many loads. Returns those that sleep now.
    pub(super) fn put_to_sleep(&self, log: &dyn Log, banks: &[Bank]) -> Result<Vec<Bank>, PipelineError> {
        let Some(sleep) = &self.sleep else { return Ok(Vec::new()) };
        let reader = sync::lock(&self.reader);
        let is_ready = match log.shared() {
            Some(shared) => shared.has_places(self.partition),
            None => reader.next() == log.end(Topic::Memory, self.partition)?,
        };
        if !is_ready || self.is_loading() || !self.memory.has_room() {
            return Ok(Vec::new());
        }
        let mut due = self.placed_records(log, banks, reader.next())?;
        let mut falling = sleep.begin_to_sleep(due.keys().copied());
        let (mut asleep, mut changes) = (Vec::new(), Vec::new());
        for key in falling.keys().collect::<Vec<_>>() {
            let Some((bank, (records, offsets))) = due.remove(&key) else { continue };
            let probe = CensusProbe { bank: Some(key), hashing: false, listing: false };
            falling.keep_counts(key, self.memory.census(probe)?.value);
            changes.extend(records.into_iter().map(|key| (key, None)));
            asleep.push((bank.clone(), offsets));
        }
        if asleep.is_empty() {
            return Ok(Vec::new());
        }
        self.memory.load(RecordLoad { changes, moves: true, ..RecordLoad::default() })?;
        {
            let mut held = sync::write(&self.held);
            asleep.iter_mut().for_each(|(bank, offsets)| held.fall_asleep(bank, std::mem::take(offsets)));
        }
        falling.finish();
        log_events::banks_fell_asleep(self.partition, asleep.len());
        Ok(asleep.into_iter().map(|(bank, _)| bank).collect())
    }

    /// Where the live records of banks are in the log, without the banks that must not sleep, and without those of which
    /// the log has changed since the offset `next`, up to which the shard has followed it.
    fn placed_records<'b>(
        &self,
        log: &dyn Log,
        banks: &'b [Bank],
        next: u64,
    ) -> Result<BTreeMap<BankKey, (&'b Bank, PlacedRecords)>, PipelineError> {
        let counted = |bank: &'b Bank| {
            let held = sync::read(&self.held);
            held.may_sleep(bank).then(|| (bank, held.count(bank)))
        };
        let banks: Vec<(&Bank, usize)> = banks.iter().filter_map(counted).collect();
        let prefixes: Vec<Vec<u8>> = banks.iter().map(|(bank, _)| MemoryKey::prefix(bank)).collect();
        let mut placed: Vec<(Vec<RecordKey>, Vec<u64>)> = vec![<_>::default(); banks.len()];
        let mut note = |at: usize, key: &[u8], offset: u64| {
            // A key that cannot be read makes its partition wait before it, so that it was not loaded.
            if let (Some((records, offsets)), Ok(key)) = (placed.get_mut(at), MemoryKey::from_bytes(key)) {
                records.push(RecordKey::from(&key));
                offsets.push(offset);
            }
        };
        match log.shared() {
            Some(shared) => shared.places(self.partition, &prefixes, &mut note)?,
            None => {
                for (at, prefix) in prefixes.iter().enumerate() {
                    let mut note = |key: &[u8], offset| {
                        note(at, key, offset);
                        false
                    };
                    log.live_records(self.partition, prefix, &mut note, &mut |_| ControlFlow::Continue(()))?;
                }
            }
        }
        let mut due = BTreeMap::new();
        for ((bank, held), (records, offsets)) in banks.into_iter().zip(placed) {
            if log.shared().is_none() {
                due.insert(bank.key(), (bank, (records, Box::default())));
            } else if offsets.len() == held && offsets.iter().all(|offset| *offset < next) {
                due.insert(bank.key(), (bank, (records, offsets.into_boxed_slice())));
            }
        }
        Ok(due)
    }

    /// Loads the records of a bank that sleeps. Returns their number, and about their bytes in memory.
    ///
    /// # Errors
    /// [`PipelineError::Loading`] if compaction has removed one of them since it was replaced: the shard is about to
    /// follow what replaced it.
    fn load_bank(&self, log: &dyn Log, bank: &Bank) -> Result<(u64, u64), PipelineError> {
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
        match log.shared() {
            None => log.live_records(self.partition, &MemoryKey::prefix(bank), &mut |_, _| true, &mut take)?,
            Some(shared) => {
                let offsets = sync::read(&self.held).offsets(bank);
                let records = shared.records_at(self.partition, &offsets)?;
                if records.len() < offsets.len() {
                    return Err(PipelineError::Loading { bank: bank.clone(), partition: self.partition });
                }
                records.iter().take_while(|record| take(record).is_continue()).for_each(drop);
            }
        }
        failure.map_or(Ok(()), Err)?;
        let records = live.len() as u64;
        self.memory.load(RecordLoad { changes, moves: true, ..RecordLoad::default() })?;
        let mut held = sync::write(&self.held);
        held.wake(bank, live);
        unreadable.into_iter().for_each(|record| held.quarantine(record));
        Ok((records, bytes))
    }
}
