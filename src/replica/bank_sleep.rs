//! Which banks of a shard are in memory, who uses them, and which sleep (decision 63).
//!
//! In: uses of banks, each by a token or by no one; records that were loaded; the banks that are to sleep. Out: whether
//! a caller must wake a bank first, and which banks were not used for how long. A bank that someone uses does not fall
//! asleep; who asks a bank that falls asleep or wakes waits for the end of that, and for no other bank. Nothing is
//! loaded here.

use std::{
    cell::RefCell,
    collections::HashMap,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use memory::index::GraphCensus;
use types::{
    model::{BankKey, Language},
    sync,
};

/// The longest wait before a caller checks again whether it still waits.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    /// The token on whose behalf this thread reads.
    static TOKEN: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// Reads on behalf of a token: the banks that `read` wakes are charged to it.
pub fn charged_to<T>(token: Option<&Arc<str>>, read: impl FnOnce() -> T) -> T {
    let before = TOKEN.with(|of| of.replace(token.cloned()));
    let read = read();
    TOKEN.with(|of| of.replace(before));
    read
}

/// The banks of a shard, awake and asleep.
#[derive(Default)]
pub(super) struct BankSleep {
    state: Mutex<SleepState>,
    /// Signals that a bank fell asleep or woke.
    changed: Condvar,
    wakes: WakeCounts,
}

/// How often banks woke, and how long that took.
#[derive(Debug, Default)]
struct WakeCounts {
    wakes: AtomicU64,
    microseconds: AtomicU64,
    longest_microseconds: AtomicU64,
}

#[derive(Default)]
struct SleepState {
    awake: HashMap<BankKey, AwakeBank>,
    resting: HashMap<BankKey, Resting>,
}

/// A bank in memory.
struct AwakeBank {
    /// Who uses it now.
    uses: u32,
    /// When it was last used or changed.
    used: Instant,
    /// Its records, and about their bytes in memory.
    records: u64,
    bytes: u64,
    /// The token that woke it, or that used it first after its own turns woke it.
    token: Option<Arc<str>>,
}

/// A bank that answers nothing at the moment.
enum Resting {
    FallingAsleep,
    Asleep(Option<Box<KeptCounts>>),
    Waking(Option<Box<KeptCounts>>),
}

/// The counts of a bank when it fell asleep.
struct KeptCounts {
    units: u64,
    semantic_edges: u64,
    structural_edges: u64,
    languages: Box<[(Language, u64)]>,
}

/// An awake bank that no one uses.
pub(super) struct UnusedBank {
    pub(super) key: BankKey,
    pub(super) used: Instant,
    pub(super) bytes: u64,
    pub(super) token: Option<Arc<str>>,
}

/// How many banks are in memory and how many sleep, and how often they woke since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SleepStatus {
    /// Banks in memory.
    pub awake: u64,
    /// Banks that sleep.
    pub asleep: u64,
    /// About the bytes of the banks in memory.
    pub awake_bytes: u64,
    /// How often a bank woke.
    pub wakes: u64,
    /// How long that took, all of them together, in microseconds.
    pub wake_microseconds: u64,
    /// How long the longest took, in microseconds.
    pub longest_wake_microseconds: u64,
}

impl SleepStatus {
    pub(super) fn add(&mut self, other: &Self) {
        self.awake += other.awake;
        self.asleep += other.asleep;
        self.awake_bytes += other.awake_bytes;
        self.wakes += other.wakes;
        self.wake_microseconds += other.wake_microseconds;
        self.longest_wake_microseconds = self.longest_wake_microseconds.max(other.longest_wake_microseconds);
    }
}

/// What a caller that wants to use a bank has to do.
pub(super) enum BankEntry<'s> {
    /// Nothing: it is in use now, until [`BankSleep::release`].
    Awake,
    /// Load its records.
    Wake(WakingBank<'s>),
}

/// A bank that its holder wakes. It sleeps again if this is dropped before [`Self::finish`].
pub(super) struct WakingBank<'s> {
    sleep: &'s BankSleep,
    key: BankKey,
    began: Instant,
    is_done: bool,
}

/// Banks that their holder puts to sleep. They stay awake if this is dropped before [`Self::finish`].
pub(super) struct FallingBanks<'s> {
    sleep: &'s BankSleep,
    banks: Vec<(BankKey, Option<AwakeBank>)>,
    counts: HashMap<BankKey, Box<KeptCounts>>,
    is_done: bool,
}

impl BankSleep {
    /// Uses a bank once it is awake. Waits while it falls asleep or another caller wakes it, as long as `may_wait`
    /// passes.
    pub(super) fn enter<E>(&self, key: BankKey, may_wait: impl Fn() -> Result<(), E>) -> Result<BankEntry<'_>, E> {
        let mut state = sync::lock(&self.state);
        loop {
            match state.resting.get_mut(&key) {
                None => {
                    state.awake.entry(key).or_insert_with(AwakeBank::new).enter();
                    return Ok(BankEntry::Awake);
                }
                Some(resting @ Resting::Asleep(_)) => {
                    resting.begin_to_wake();
                    return Ok(BankEntry::Wake(WakingBank { sleep: self, key, began: Instant::now(), is_done: false }));
                }
                Some(_) => {
                    may_wait()?;
                    state = sync::wait_timeout(&self.changed, state, CHECK_INTERVAL);
                }
            }
        }
    }

    /// Ends a use of a bank.
    pub(super) fn release(&self, key: BankKey) {
        let mut state = sync::lock(&self.state);
        let Some(awake) = state.awake.get_mut(&key) else { return };
        awake.uses = awake.uses.saturating_sub(1);
        awake.used = Instant::now();
        // Its last record was removed while it was in use, or it never had one.
        if awake.uses == 0 && awake.records == 0 {
            state.awake.remove(&key);
        }
    }

    /// Whether someone wakes the bank or puts it to sleep at the moment, so that its questions wait.
    pub(super) fn is_moving(&self, key: BankKey) -> bool {
        let state = sync::lock(&self.state);
        matches!(state.resting.get(&key), Some(Resting::FallingAsleep | Resting::Waking(_)))
    }

    /// Whether the bank is not in memory, or not as a whole.
    pub(super) fn is_resting(&self, key: BankKey) -> bool {
        sync::lock(&self.state).resting.contains_key(&key)
    }

    /// What a bank that sleeps held when it fell asleep; `None` if it is awake or that is not known.
    pub(super) fn kept_counts(&self, key: BankKey) -> Option<GraphCensus> {
        let state = sync::lock(&self.state);
        let Some(Resting::Asleep(Some(kept)) | Resting::Waking(Some(kept))) = state.resting.get(&key) else {
            return None;
        };
        Some(GraphCensus {
            units: kept.units,
            semantic_edges: kept.semantic_edges,
            structural_edges: kept.structural_edges,
            languages: kept.languages.iter().copied().collect(),
            ..GraphCensus::default()
        })
    }

    /// Notes that a record of an awake bank was loaded, in place of another one or not, with about its bytes; `None`
    /// for a record that was removed.
    pub(super) fn note_record(&self, key: BankKey, bytes: Option<usize>, replaces: bool) {
        let mut state = sync::lock(&self.state);
        let awake = state.awake.entry(key).or_insert_with(AwakeBank::new);
        awake.used = Instant::now();
        if replaces {
            awake.bytes -= awake.bytes / awake.records.max(1);
            awake.records = awake.records.saturating_sub(1);
        }
        if let Some(bytes) = bytes {
            awake.records += 1;
            awake.bytes += bytes as u64;
        }
        if awake.records == 0 && awake.uses == 0 {
            state.awake.remove(&key);
        }
    }

    /// Notes that a bank sleeps from the beginning.
    pub(super) fn note_asleep(&self, key: BankKey) {
        let mut state = sync::lock(&self.state);
        state.awake.remove(&key);
        state.resting.entry(key).or_insert(Resting::Asleep(None));
    }

    /// The awake banks that no one uses.
    pub(super) fn unused(&self) -> Vec<UnusedBank> {
        let state = sync::lock(&self.state);
        let unused = state.awake.iter().filter(|(_, awake)| awake.uses == 0);
        let unused = unused.map(|(key, awake)| UnusedBank {
            key: *key,
            used: awake.used,
            bytes: awake.bytes,
            token: awake.token.clone(),
        });
        unused.collect()
    }

    /// The banks that sleep.
    pub(super) fn asleep(&self) -> Vec<BankKey> {
        let state = sync::lock(&self.state);
        state.resting.iter().filter(|(_, of)| matches!(of, Resting::Asleep(_))).map(|(key, _)| *key).collect()
    }

    /// Begins to put banks to sleep: those of them that are awake, and that no one uses.
    pub(super) fn begin_to_sleep(&self, keys: impl IntoIterator<Item = BankKey>) -> FallingBanks<'_> {
        let mut state = sync::lock(&self.state);
        let mut banks = Vec::new();
        for key in keys {
            if state.resting.contains_key(&key) || state.awake.get(&key).is_some_and(|awake| awake.uses > 0) {
                continue;
            }
            banks.push((key, state.awake.remove(&key)));
            state.resting.insert(key, Resting::FallingAsleep);
        }
        FallingBanks { sleep: self, banks, counts: HashMap::new(), is_done: false }
    }

    /// The numbers of this shard.
    pub(super) fn status(&self) -> SleepStatus {
        let state = sync::lock(&self.state);
        SleepStatus {
            awake: state.awake.len() as u64,
            asleep: state.resting.len() as u64,
            awake_bytes: state.awake.values().map(|awake| awake.bytes).sum(),
            wakes: self.wakes.wakes.load(Ordering::Relaxed),
            wake_microseconds: self.wakes.microseconds.load(Ordering::Relaxed),
            longest_wake_microseconds: self.wakes.longest_microseconds.load(Ordering::Relaxed),
        }
    }
}

impl AwakeBank {
    fn new() -> Self {
        Self { uses: 0, used: Instant::now(), records: 0, bytes: 0, token: None }
    }

    fn enter(&mut self) {
        self.uses += 1;
        self.used = Instant::now();
        if self.token.is_none() {
            self.token = TOKEN.with(|token| token.borrow().clone());
        }
    }
}

impl Resting {
    fn begin_to_wake(&mut self) {
        if let Self::Asleep(kept) = self {
            *self = Self::Waking(kept.take());
        }
    }
}

impl WakingBank<'_> {
    /// The bank is awake, with this number of records, of about these bytes, and in use by its waker.
    pub(super) fn finish(mut self, records: u64, bytes: u64) {
        self.is_done = true;
        let took = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let WakeCounts { wakes, microseconds, longest_microseconds } = &self.sleep.wakes;
        wakes.fetch_add(1, Ordering::Relaxed);
        microseconds.fetch_add(took, Ordering::Relaxed);
        longest_microseconds.fetch_max(took, Ordering::Relaxed);
        let mut state = sync::lock(&self.sleep.state);
        state.resting.remove(&self.key);
        let mut awake = AwakeBank { records, bytes, ..AwakeBank::new() };
        awake.enter();
        state.awake.insert(self.key, awake);
        drop(state);
        self.sleep.changed.notify_all();
    }
}

impl Drop for WakingBank<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            let mut state = sync::lock(&self.sleep.state);
            if let Some(resting) = state.resting.get_mut(&self.key)
                && let Resting::Waking(kept) = resting
            {
                *resting = Resting::Asleep(kept.take());
            }
            drop(state);
            self.sleep.changed.notify_all();
        }
    }
}

impl FallingBanks<'_> {
    /// The banks.
    pub(super) fn keys(&self) -> impl Iterator<Item = BankKey> {
        self.banks.iter().map(|(key, _)| *key)
    }

    /// Keeps what a bank holds.
    pub(super) fn keep_counts(&mut self, key: BankKey, census: GraphCensus) {
        let GraphCensus { units, semantic_edges, structural_edges, languages, .. } = census;
        let languages = languages.into_iter().collect();
        self.counts.insert(key, Box::new(KeptCounts { units, semantic_edges, structural_edges, languages }));
    }

    /// The banks sleep.
    pub(super) fn finish(mut self) {
        self.is_done = true;
        let mut state = sync::lock(&self.sleep.state);
        for (key, _) in &self.banks {
            state.resting.insert(*key, Resting::Asleep(self.counts.remove(key)));
        }
        drop(state);
        self.sleep.changed.notify_all();
    }
}

impl Drop for FallingBanks<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            let mut state = sync::lock(&self.sleep.state);
            for (key, awake) in self.banks.drain(..) {
                state.resting.remove(&key);
                awake.into_iter().for_each(|awake| drop(state.awake.insert(key, awake)));
            }
            drop(state);
            self.sleep.changed.notify_all();
        }
    }
}
