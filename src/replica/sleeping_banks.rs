//! Banks that leave memory while nobody uses them, and come back when someone does (decision 63).
//!
//! In: uses of banks; the rules of `[memory]`; which banks extraction is at work for. Out: banks in memory for as long
//! as they are used. Only the thread that follows the log puts banks to sleep, once it has followed every record of
//! theirs. A bank is woken without waiting for any other bank. In a directory, extraction wakes a bank before it writes
//! a record of it: so the log holds nothing of a bank that sleeps but what it had in memory, and finds that by its key.
//! On Kafka, where other processes extract, the offsets of its records are kept, and the bank is woken from them before
//! the next record of it is followed.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use logs::Log;
use pipeline::redacted_error;
use types::{config::LLM, model::Bank, sync};

use super::{
    Cancellation, PipelineError,
    awake_shard::AwakeShard,
    bank_sleep::{BankSleep, SleepStatus, UnusedBank},
    log_events,
    replica::Replica,
    shard::ReplicaShard,
};

/// How many banks fall asleep in one load.
const ASLEEP_AT_ONCE: usize = 64;

impl Replica {
    /// The shard of a bank in which the bank is awake until the result is dropped. If the bank sleeps, it is woken
    /// first; `cancellation` says how long the caller waits while another one wakes it.
    ///
    /// # Errors
    /// [`PipelineError::Log`] or [`PipelineError::Record`] if the records of the bank cannot be read; the bank then
    /// still sleeps, and the next caller tries again.
    pub(super) fn awake(
        &self,
        shard: Arc<ReplicaShard>,
        bank: &Bank,
        cancellation: Option<&Cancellation>,
    ) -> Result<AwakeShard, PipelineError> {
        let Some(log) = self.waking_log.as_ref().filter(|_| shard.sleep.is_some()) else {
            return Ok(AwakeShard { shard, bank: None });
        };
        let may_wait = || cancellation.map_or(Ok(()), Cancellation::check).map_err(PipelineError::from);
        let entered = shard.enter(&**log, bank, may_wait);
        if !matches!(entered, Ok(false)) {
            // Its questions wait in the query queue.
            self.reached.news().raise();
        }
        entered?;
        Ok(AwakeShard { shard, bank: Some(bank.key()) })
    }

    /// The shard of a bank that can be read, with the bank in memory.
    ///
    /// # Errors
    /// [`PipelineError`] for an unknown bank and a quarantined one, also one of which a record turns out to be unreadable
    /// as it wakes.
    pub(super) fn readable(
        &self,
        shard: Arc<ReplicaShard>,
        bank: &Bank,
        cancellation: Option<&Cancellation>,
    ) -> Result<AwakeShard, PipelineError> {
        self.shards.check_bank(&shard, bank)?;
        let shard = self.awake(shard, bank, cancellation)?;
        self.shards.check_bank(&shard, bank)?;
        Ok(shard)
    }

    /// Wakes a bank of which a record is to be written. It stays awake as long as [`Self::sleep_unused`] is called
    /// with a function that says that extraction is at work for it.
    ///
    /// # Errors
    /// As for a question to the bank.
    pub fn wake(&self, bank: &Bank) -> Result<(), PipelineError> {
        match self.shards.get(self.shards.partition_of(bank)) {
            Some(shard) if shard.sleep.as_ref().is_some_and(|sleep| sleep.is_resting(bank.key())) => {
                self.awake(shard, bank, None).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Makes a bank fall asleep with the next [`Self::sleep_unused`], however recently it was used, if nothing uses it
    /// then.
    pub fn request_sleep(&self, bank: &Bank) {
        sync::lock(&self.sleep_requests).insert(bank.clone());
    }

    /// Puts those banks to sleep that were not used for `memory.sleep_after_seconds`, and as many as
    /// `memory.most_bytes` demands; returns them. Only the thread that follows the log calls it: no bank for which
    /// `is_busy` holds falls asleep, none that is watched, none with a window that is to be extracted again, and none
    /// that is quarantined.
    pub fn sleep_unused(&self, is_busy: &dyn Fn(&Bank) -> bool) -> Vec<Bank> {
        let Some(log) = &self.waking_log else { return Vec::new() };
        let requested = std::mem::take(&mut *sync::lock(&self.sleep_requests));
        let may_sleep = |bank: &Bank| !is_busy(bank) && !self.changes().is_watched(bank);
        let mut due: HashMap<u32, Vec<Bank>> = HashMap::new();
        for bank in requested.into_iter().filter(may_sleep).chain(self.unused_too_long(&may_sleep)) {
            due.entry(self.shards.partition_of(&bank)).or_default().push(bank);
        }
        let mut asleep = Vec::new();
        for (partition, banks) in due {
            let Some(shard) = self.shards.get(partition) else { continue };
            let put = shard.put_to_sleep(&**log, &banks);
            // Questions that waited for that wait in the query queue.
            self.reached.news().raise();
            match put {
                Ok(banks) => asleep.extend(banks),
                // They stay awake.
                Err(error) => log_events::banks_stay_awake(partition, &redacted_error(&error)),
            }
        }
        asleep
    }

    /// The banks that the settings put to sleep now, the longest unused first, and at most [`ASLEEP_AT_ONCE`].
    fn unused_too_long(&self, may_sleep: &dyn Fn(&Bank) -> bool) -> Vec<Bank> {
        let settings = &self.pipeline.memory;
        let (now, after) = (Instant::now(), Duration::from_secs(settings.sleep_after_seconds));
        let shards = self.shards.all();
        let (mut unused, mut bytes) = (Vec::new(), 0);
        for (at, sleep) in shards.iter().enumerate().filter_map(|(at, shard)| Some((at, shard.sleep.as_ref()?))) {
            bytes += sleep.status().awake_bytes;
            unused.extend(sleep.unused().into_iter().map(|of| (at, of)));
        }
        let is_idle = |of: &UnusedBank| !after.is_zero() && now.duration_since(of.used) >= after;
        let is_over = settings.most_bytes > 0 && bytes > settings.most_bytes;
        unused.retain(|(_, of)| is_over || is_idle(of));
        unused.sort_by_key(|(_, of)| of.used);
        // Names are looked up for the banks whose turn it is.
        let named = |(at, of): &(usize, UnusedBank)| {
            let held = sync::read(&shards.get(*at)?.held);
            held.bank(of.key).filter(|bank| held.may_sleep(bank) && may_sleep(bank))
        };
        let others = unused.split_off(unused.partition_point(|(_, of)| is_idle(of)));
        let mut due: Vec<Bank> = Vec::new();
        for of in &unused {
            if due.len() == ASLEEP_AT_ONCE {
                return due;
            }
            let found = named(of);
            bytes -= found.as_ref().map_or(0, |_| of.1.bytes);
            due.extend(found);
        }
        if is_over && bytes > settings.most_bytes {
            let (most, bytes) = (ASLEEP_AT_ONCE - due.len(), bytes - settings.most_bytes);
            due.extend(over_the_limit(others, bytes, most, named));
        }
        due
    }

    /// How many banks are awake and asleep, and how often they woke; `None` if no bank sleeps here.
    #[must_use]
    pub fn sleep_status(&self) -> Option<SleepStatus> {
        self.waking_log.as_ref()?;
        let mut whole = SleepStatus::default();
        self.shards.all().iter().filter_map(|shard| shard.sleep.as_ref()).for_each(|sleep| whole.add(&sleep.status()));
        Some(whole)
    }

    /// Whether a bank sleeps.
    #[must_use]
    pub fn is_asleep(&self, bank: &Bank) -> bool {
        let shard = self.shards.get(self.shards.partition_of(bank));
        shard.is_some_and(|shard| shard.sleep.as_ref().is_some_and(|sleep| sleep.is_resting(bank.key())))
    }

    /// Reads the log of a partition once and leaves its banks asleep, if [`Self::begins_asleep`]. Returns those that
    /// extraction wakes first, because there is something left to do for them.
    ///
    /// # Errors
    /// As [`Self::follow`].
    pub fn read_asleep(
        &self,
        log: &dyn Log,
        partition: u32,
        progress: &mut dyn FnMut(u64),
    ) -> Result<BTreeSet<Bank>, PipelineError> {
        let Some(shard) = self.shards.get(partition).filter(|_| self.begins_asleep(log)) else {
            return Ok(BTreeSet::new());
        };
        while shard.read_asleep(log)? {
            progress(shard.next());
        }
        self.leave_asleep(log, &shard)
    }

    /// Whether a partition that is taken is read without loading its banks: if no snapshots have what is not loaded, and
    /// no language model extracts here, which may not have read all windows yet.
    pub(super) fn begins_asleep(&self, log: &dyn Log) -> bool {
        self.waking_log.is_some()
            && !self.recording.writes()
            && self.recording.snapshots().is_none()
            && (self.pipeline.extract.extractor != LLM || log.shared().is_some())
    }

    /// Leaves the banks asleep that were read. Returns those for which something is left to do; they are awake.
    pub(super) fn leave_asleep(&self, log: &dyn Log, shard: &ReplicaShard) -> Result<BTreeSet<Bank>, PipelineError> {
        let unfinished = shard.leave_asleep(log);
        self.reached.extend(shard.covers());
        // What cannot be read is found, and said, at once.
        unfinished.iter().try_for_each(|bank| self.wake(bank))?;
        Ok(unfinished)
    }

    /// The banks that sleep.
    pub(super) fn sleeping(&self) -> BTreeSet<Bank> {
        let mut banks = BTreeSet::new();
        for shard in self.shards.all() {
            let keys = shard.sleep.as_ref().map(BankSleep::asleep).unwrap_or_default();
            let held = sync::read(&shard.held);
            banks.extend(keys.into_iter().filter_map(|key| held.bank(key)));
        }
        banks
    }
}

/// The bytes of a token's banks, and these, the longest unused first.
type TokenBanks = (u64, VecDeque<(usize, UnusedBank)>);

/// Banks whose sleep frees about these bytes, at most `most`: of the token that has most of them in memory, the one that
/// is unused the longest, and so on. So a token that asks every bank frees its own. `named` returns the name of a bank
/// that may sleep.
fn over_the_limit(
    unused: Vec<(usize, UnusedBank)>,
    bytes: u64,
    most: usize,
    named: impl Fn(&(usize, UnusedBank)) -> Option<Bank>,
) -> Vec<Bank> {
    // The bytes of each token, and its banks, the longest unused first.
    let mut by_token: BTreeMap<Option<Arc<str>>, TokenBanks> = BTreeMap::new();
    for of in unused {
        let (held, banks) = by_token.entry(of.1.token.clone()).or_default();
        *held += of.1.bytes;
        banks.push_back(of);
    }
    let (mut due, mut freed) = (Vec::new(), 0);
    while freed < bytes
        && due.len() < most
        && let Some((held, banks)) = by_token.values_mut().filter(|(_, banks)| !banks.is_empty()).max_by_key(|of| of.0)
        && let Some(of) = banks.pop_front()
    {
        *held = held.saturating_sub(of.1.bytes);
        if let Some(bank) = named(&of) {
            freed += of.1.bytes;
            due.push(bank);
        }
    }
    due
}
