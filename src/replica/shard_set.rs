//! The shards that this process holds: one for each partition of the memory that it has taken.
//!
//! In: partitions to take and to leave, and banks. Out: the shard of a bank. A bank is in the shard of its partition
//! and in no other. A shard that has panicked is rebuilt, after a pause that grows if it panics again and again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crossbeam_channel::{Sender, unbounded};

use super::{PipelineError, shard::ReplicaShard, snapshot_recorder::ShardId};
use logs::partition_of;
use memory::index::{ChangeListeners, EdgeChanges, ShardHandle, ShardThreadPool};
use types::{
    backoff::Backoff,
    config::{MemorySettings, Pipeline},
    model::{Bank, BankKey, ModelRef, Score},
    sync,
    wake_signal::WakeSignal,
};

/// How many names the message about an unknown bank lists.
const NAMED_BANKS: usize = 8;
/// An attempt after a longer time than this counts as the first one.
const SAME_CAUSE: Duration = Duration::from_secs(600);

/// The shards of this process.
pub(super) struct ShardSet {
    partitions: u32,
    threads: Arc<ShardThreadPool>,
    settings: MemorySettings,
    semantic_threshold: Score,
    edges: Option<Sender<EdgeChanges>>,
    /// Raised when a shard accepts loads again.
    room: Arc<WakeSignal>,
    /// Whether changes of choices are recorded.
    records: bool,
    /// The model that embeds the questions, if known.
    asks: Option<ModelRef>,
    held: RwLock<BTreeMap<u32, Arc<ReplicaShard>>>,
    /// The partitions that a group has assigned to this process; `None` before its first decision.
    assigned: RwLock<Option<BTreeSet<u32>>>,
    falls: Mutex<BTreeMap<u32, ShardPanics>>,
    made: AtomicU64,
    /// Whether banks of its shards may sleep.
    has_sleep: bool,
}

/// A shard that has panicked: how often it was rebuilt, and when that was last attempted.
#[derive(Debug, Clone, Copy)]
struct ShardPanics {
    rebuilds: u64,
    last_attempt: Instant,
    /// Time from the last attempt to the next.
    pause: Duration,
    backoff: Backoff,
}

impl ShardSet {
    /// No shard yet; `partitions` is the number of partitions of the memory. `room` is raised when a shard accepts
    /// loads again after it was full.
    pub(super) fn new(
        pipeline: &Pipeline,
        partitions: u32,
        threads: Arc<ShardThreadPool>,
        edges: Option<Sender<EdgeChanges>>,
        room: Arc<WakeSignal>,
        records: bool,
        asks: Option<ModelRef>,
    ) -> Self {
        let semantic_threshold = Score::from_f64(pipeline.model().semantic_threshold);
        let settings = pipeline.memory.clone();
        let (held, assigned) = (RwLock::default(), RwLock::default());
        let (falls, made) = (Mutex::default(), AtomicU64::default());
        Self {
            partitions,
            threads,
            settings,
            semantic_threshold,
            edges,
            room,
            records,
            asks,
            held,
            assigned,
            falls,
            made,
            has_sleep: false,
        }
    }

    /// The same, whose banks may sleep.
    pub(super) fn with_sleep(self) -> Self {
        Self { has_sleep: true, ..self }
    }

    /// The number of partitions of the memory.
    pub(super) fn partitions(&self) -> u32 {
        self.partitions
    }

    /// The threads that step them.
    pub(super) fn threads(&self) -> &Arc<ShardThreadPool> {
        &self.threads
    }

    /// An empty shard, which takes no questions yet.
    pub(super) fn new_shard(&self, partition: u32) -> Result<ReplicaShard, PipelineError> {
        let (choices_out, choices_in) = unbounded();
        let listeners = ChangeListeners {
            edges: self.edges.clone(),
            choices: self.records.then_some(choices_out),
            room: Some(Arc::clone(&self.room)),
        };
        let memory = ShardHandle::start_on(&self.threads, &self.settings, self.semantic_threshold, listeners)?;
        let id = ShardId(self.made.fetch_add(1, Ordering::Relaxed));
        let choices = self.records.then_some(choices_in);
        Ok(ReplicaShard::new(id, partition, memory, choices, self.asks.clone(), self.has_sleep))
    }

    /// Adds a shard; from now on, questions reach it.
    pub(super) fn put(&self, shard: ReplicaShard) {
        let before = sync::write(&self.held).insert(shard.partition, Arc::new(shard));
        // Its worker is dropped here, outside the lock.
        drop(before);
    }

    /// Removes a shard; from now on, no question reaches the partition. `None` if it was not held.
    pub(super) fn remove(&self, partition: u32) -> Option<Arc<ReplicaShard>> {
        sync::write(&self.held).remove(&partition)
    }

    /// Notes what a group has decided.
    pub(super) fn assign(&self, change: impl FnOnce(&mut BTreeSet<u32>)) {
        change(sync::write(&self.assigned).get_or_insert_default());
    }

    /// What a group has decided.
    pub(super) fn assigned(&self) -> Vec<u32> {
        sync::read(&self.assigned).iter().flatten().copied().collect()
    }

    /// Assigned partitions without a shard; `None` before the group's first decision.
    pub(super) fn awaited(&self) -> Option<Vec<u32>> {
        let (assigned, held) = (sync::read(&self.assigned), sync::read(&self.held));
        let awaited = assigned.as_ref()?.iter().filter(|partition| !held.contains_key(partition));
        Some(awaited.copied().collect())
    }

    /// Whether a partition is assigned and has no shard yet.
    pub(super) fn is_awaited(&self, partition: u32) -> bool {
        let assigned = sync::read(&self.assigned);
        assigned.as_ref().is_some_and(|assigned| assigned.contains(&partition)) && self.get(partition).is_none()
    }

    /// Shards whose partition is no longer assigned.
    pub(super) fn revoked(&self) -> Vec<u32> {
        let (assigned, held) = (sync::read(&self.assigned), sync::read(&self.held));
        let stays = |partition: &u32| assigned.as_ref().is_none_or(|assigned| assigned.contains(partition));
        held.keys().filter(|partition| !stays(partition)).copied().collect()
    }

    /// The shard of a partition.
    pub(super) fn get(&self, partition: u32) -> Option<Arc<ReplicaShard>> {
        sync::read(&self.held).get(&partition).cloned()
    }

    /// All of them, by partition.
    pub(super) fn all(&self) -> Vec<Arc<ReplicaShard>> {
        sync::read(&self.held).values().cloned().collect()
    }

    /// The partition of a bank.
    pub(super) fn partition_of(&self, bank: &Bank) -> u32 {
        partition_of(bank, self.partitions)
    }

    /// The shard of a bank.
    ///
    /// # Errors
    /// [`PipelineError::OtherInstance`] if its partition is not held here.
    pub(super) fn of(&self, bank: &Bank) -> Result<Arc<ReplicaShard>, PipelineError> {
        let partition = self.partition_of(bank);
        self.get(partition).ok_or_else(|| PipelineError::OtherInstance { bank: bank.clone(), partition })
    }

    /// Fails for a bank that holds nothing, and for one that is quarantined.
    pub(super) fn check_bank(&self, shard: &ReplicaShard, bank: &Bank) -> Result<(), PipelineError> {
        if sync::read(&shard.held).has(bank, shard.partition)? {
            return Ok(());
        }
        Err(PipelineError::UnknownBank { bank: bank.clone(), known: self.named() })
    }

    /// The name of a bank that has or had a live record.
    pub(super) fn bank(&self, key: BankKey) -> Option<Bank> {
        self.all().iter().find_map(|shard| sync::read(&shard.held).bank(key))
    }

    /// The model of the vectors: the one that embeds the questions if a shard has it, otherwise the first shard's.
    pub(super) fn model(&self) -> Option<ModelRef> {
        let shards = self.all();
        let mut models = shards.iter().filter_map(|shard| sync::read(&shard.held).model().cloned()).peekable();
        let first = models.peek().cloned();
        models.find(|model| Some(model) == self.asks.as_ref()).or(first)
    }

    /// The known banks, for an error message.
    fn named(&self) -> String {
        let mut names: BTreeSet<String> = BTreeSet::new();
        let mut all = 0;
        for shard in self.all() {
            let held = sync::read(&shard.held);
            all += held.banks().count();
            names.extend(held.banks().take(NAMED_BANKS).map(|bank| bank.as_str().to_owned()));
        }
        if names.is_empty() {
            return "the memory is empty: ingest something first".to_owned();
        }
        let some: Vec<String> = names.into_iter().take(NAMED_BANKS).collect();
        let more = if all > some.len() { format!(" and {} more", all - some.len()) } else { String::new() };
        format!("known: {}{more}", some.join(", "))
    }

    /// Notes an attempt to rebuild a shard that has panicked; false while it is too early for an attempt. The pause
    /// doubles with each attempt, even if the previous one failed.
    pub(super) fn try_rebuild(&self, partition: u32) -> bool {
        let mut falls = sync::lock(&self.falls);
        let now = Instant::now();
        let Some(before) = falls.get_mut(&partition) else {
            let mut backoff = Backoff::SERVICE;
            falls.insert(partition, ShardPanics { rebuilds: 0, last_attempt: now, pause: backoff.pause(), backoff });
            return true;
        };
        let since = now.duration_since(before.last_attempt);
        if since < before.pause {
            return false;
        }
        if since > SAME_CAUSE {
            before.backoff.reset();
        }
        before.pause = before.backoff.pause();
        before.last_attempt = now;
        true
    }

    /// Notes that a shard was rebuilt.
    pub(super) fn note_rebuilt(&self, partition: u32) {
        if let Some(falls) = sync::lock(&self.falls).get_mut(&partition) {
            falls.rebuilds += 1;
        }
    }

    /// How often a shard was rebuilt after a panic.
    pub(super) fn rebuilds(&self, partition: u32) -> u64 {
        sync::lock(&self.falls).get(&partition).map_or(0, |falls| falls.rebuilds)
    }
}
