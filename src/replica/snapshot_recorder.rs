//! The thread that writes the snapshots of a memory's shards.
//!
//! In: the reads of each shard, in order, with the edge choices that each read changed. Out: snapshots, on request.
//! Neither reads nor questions wait for a file. If another process writes a shard's snapshots, or the place is
//! unavailable for too long, the recorder drops that shard, and the memory continues without it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::JoinHandle,
};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use memory::index::ChoiceChanges;
use snapshots::{ClaimRule, Manifest, ManifestId, MemoryLogRead, RestoredSnapshot, SnapshotError, SnapshotWriter};
use types::{model::MemoryRecord, sync};

/// The limit of the queued reads in bytes: beyond it, the reader blocks until a snapshot is written. About three
/// thousand turns of chat fit, with 8-bit vectors.
const WAITING_BYTES: usize = 8 << 20;

/// Identifies a shard from its creation to its end: a shard that is rebuilt gets another id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ShardId(pub(super) u64);

/// What was found of a shard at the start.
pub(super) struct ShardStartState {
    pub(super) partition: u32,
    /// The newest snapshot that was listed.
    pub(super) seen: Option<ManifestId>,
    pub(super) restored: Option<RestoredSnapshot>,
}

/// A snapshot of a shard.
#[derive(Debug, Clone)]
pub(super) struct ShardSnapshot {
    /// Whether this call wrote it; otherwise nothing has changed since.
    pub(super) written: bool,
    /// The newest snapshot's manifest.
    pub(super) manifest: Manifest,
}

enum RecorderMessage {
    Begin(ShardId, Box<SnapshotWriter>),
    End(ShardId),
    LogRead(ShardId, MemoryLogRead, Receiver<ChoiceChanges>),
    Snapshot(ShardId, i64, ClaimRule, Sender<Result<Option<ShardSnapshot>, SnapshotError>>),
}

/// A running recorder.
pub(super) struct SnapshotRecorder {
    messages: Option<Sender<RecorderMessage>>,
    thread: Option<JoinHandle<()>>,
    state: Arc<RecorderState>,
}

#[derive(Default)]
struct RecorderState {
    waiting_bytes: Mutex<usize>,
    drained: Condvar,
    /// The shards that are recorded.
    recorded: Mutex<BTreeSet<ShardId>>,
}

impl RecorderState {
    fn waiting(&self) -> MutexGuard<'_, usize> {
        sync::lock(&self.waiting_bytes)
    }

    fn take(&self, bytes: usize) {
        let mut waiting = self.waiting();
        *waiting = waiting.saturating_sub(bytes);
        self.drained.notify_all();
    }
}

/// The writers of the thread, and for those that ended, the reason.
#[derive(Default)]
struct ShardWriters {
    writers: BTreeMap<ShardId, Box<SnapshotWriter>>,
    failures: BTreeMap<ShardId, SnapshotError>,
    state: Arc<RecorderState>,
}

impl ShardWriters {
    fn take(&mut self, message: RecorderMessage) {
        match message {
            RecorderMessage::Begin(shard, writer) => drop(self.writers.insert(shard, writer)),
            RecorderMessage::End(shard) => {
                self.failures.remove(&shard);
                self.end(shard);
            }
            RecorderMessage::LogRead(shard, update, choices) => {
                // An error means that the shard has ended: when it is rebuilt, it begins with what was recorded before
                // this read.
                let changed = choices.recv();
                if let (Ok(changed), Some(writer)) = (changed, self.writers.get_mut(&shard))
                    && let Err(error) = writer.add(&update, &changed)
                {
                    self.failures.insert(shard, error);
                    self.end(shard);
                }
                self.state.take(bytes(&update));
            }
            RecorderMessage::Snapshot(shard, now_ms, rule, reply) => {
                drop(reply.send(self.snapshot(shard, now_ms, rule)))
            }
        }
    }

    fn snapshot(
        &mut self,
        shard: ShardId,
        now_ms: i64,
        rule: ClaimRule,
    ) -> Result<Option<ShardSnapshot>, SnapshotError> {
        let Some(writer) = self.writers.get_mut(&shard) else {
            return self.failures.remove(&shard).map_or(Ok(None), Err);
        };
        match writer.snapshot(now_ms, rule) {
            Ok(written) => {
                Ok(writer.newest().map(|newest| ShardSnapshot { written: written.is_some(), manifest: newest.clone() }))
            }
            Err(error) => {
                if matches!(error, SnapshotError::Taken { .. } | SnapshotError::Stopped) {
                    self.end(shard);
                }
                Err(error)
            }
        }
    }

    fn end(&mut self, shard: ShardId) {
        sync::lock(&self.state.recorded).remove(&shard);
        if let Some(writer) = self.writers.remove(&shard) {
            writer.give_up();
        }
    }
}

impl SnapshotRecorder {
    /// Starts the thread.
    pub(super) fn start() -> std::io::Result<Self> {
        let (messages, incoming) = unbounded::<RecorderMessage>();
        let state = Arc::new(RecorderState::default());
        let mut writers = ShardWriters { state: Arc::clone(&state), ..ShardWriters::default() };
        let work = move || {
            for message in incoming {
                writers.take(message);
            }
            for shard in writers.writers.keys().copied().collect::<Vec<_>>() {
                writers.end(shard);
            }
            // Unblocks the reader.
            writers.state.take(usize::MAX);
        };
        let thread = std::thread::Builder::new().name("snapshots".to_owned()).spawn(work)?;
        Ok(Self { messages: Some(messages), thread: Some(thread), state })
    }

    /// Records a shard from now on.
    pub(super) fn begin(&self, shard: ShardId, writer: SnapshotWriter) {
        sync::lock(&self.state.recorded).insert(shard);
        self.send(RecorderMessage::Begin(shard, Box::new(writer)));
    }

    /// Stops recording a shard. Reads that are in no snapshot yet are dropped.
    pub(super) fn end(&self, shard: ShardId) {
        self.send(RecorderMessage::End(shard));
    }

    /// Whether a shard is recorded.
    pub(super) fn records(&self, shard: ShardId) -> bool {
        sync::lock(&self.state.recorded).contains(&shard)
    }

    /// Queues the next read of a shard, after the shard has loaded it; `choices` receives one message for each read of
    /// the shard, in order.
    pub(super) fn take(&self, shard: ShardId, update: MemoryLogRead, choices: &Receiver<ChoiceChanges>) {
        // Counted before the read is sent, because the thread may take it at once.
        *self.state.waiting() += bytes(&update);
        if self.send(RecorderMessage::LogRead(shard, update, choices.clone())) {
            let mut waiting = self.state.waiting();
            while *waiting > WAITING_BYTES && self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
                let patience = std::time::Duration::from_millis(100);
                waiting = sync::wait_timeout(&self.state.drained, waiting, patience);
            }
        }
    }

    /// Writes a snapshot of a shard's queued reads; `None` if this process does not record the shard.
    pub(super) fn snapshot(
        &self,
        shard: ShardId,
        now_ms: i64,
        rule: ClaimRule,
    ) -> Result<Option<ShardSnapshot>, SnapshotError> {
        let (reply, answer) = bounded(1);
        self.send(RecorderMessage::Snapshot(shard, now_ms, rule, reply));
        answer.recv().unwrap_or(Err(SnapshotError::Stopped))
    }

    fn send(&self, message: RecorderMessage) -> bool {
        self.messages.as_ref().is_some_and(|messages| messages.send(message).is_ok())
    }
}

/// Approximate size of a read in memory.
fn bytes(update: &MemoryLogRead) -> usize {
    let of_record = |record: &MemoryRecord| {
        let vectors = record.units.iter().flat_map(|unit| unit.parts.iter().map(|part| part.vectors.len() + 2));
        let vector_bytes = record.units.first().map_or(0, |unit| unit.vector.held_bytes());
        let texts: usize = record.turns.iter().map(|held| 4 * held.turn.text.len() + 512).sum();
        vectors.sum::<usize>() * vector_bytes + texts
    };
    update.records.iter().map(|(_, record)| record.as_ref().map_or(128, of_record)).sum()
}

impl Drop for SnapshotRecorder {
    fn drop(&mut self) {
        self.messages = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
