//! The thread that writes a memory's snapshots.
//!
//! In: the reads of each shard and the edge choices that each read changed, a shard's in their order.
//! Out: snapshots, on request. Neither reads nor questions wait for a file. When the place of snapshots
//! is unavailable for too long the recorder stops, and the memory continues without it.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::JoinHandle,
};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use crate::{
    memory::ChoiceChanges,
    model::MemoryRecord,
    snapshot::{LogRead, Manifest, SnapshotError, SnapshotWriter},
    sync,
};

/// Limit of the queued reads: past it the reader blocks. Enough for the reads that arrive while a
/// snapshot is written.
const WAITING_BYTES: usize = 128 << 20;

enum Message {
    LogRead(LogRead, Receiver<ChoiceChanges>),
    Snapshot(i64, Sender<Result<Option<Manifest>, SnapshotError>>),
}

/// A running recorder.
pub(super) struct Recorder {
    messages: Option<Sender<Message>>,
    thread: Option<JoinHandle<()>>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    waiting_bytes: Mutex<usize>,
    drained: Condvar,
    failure: Mutex<Option<SnapshotError>>,
}

impl State {
    fn waiting(&self) -> MutexGuard<'_, usize> {
        sync::lock(&self.waiting_bytes)
    }

    fn take(&self, bytes: usize) {
        let mut waiting = self.waiting();
        *waiting = waiting.saturating_sub(bytes);
        self.drained.notify_all();
    }
}

impl Recorder {
    /// Starts the thread.
    pub(super) fn start(mut writer: SnapshotWriter) -> std::io::Result<Self> {
        let (messages, incoming) = unbounded::<Message>();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let work = move || {
            for message in incoming {
                match message {
                    Message::LogRead(update, choices) => {
                        // An error means that the shard is gone: who makes it again begins with what was
                        // recorded before this read.
                        let Ok(changed) = choices.recv() else {
                            shared.take(bytes(&update));
                            continue;
                        };
                        if let Err(error) = writer.add(&update, &changed) {
                            *sync::lock(&shared.failure) = Some(error);
                            break;
                        }
                        shared.take(bytes(&update));
                    }
                    Message::Snapshot(now_ms, reply) => drop(reply.send(writer.snapshot(now_ms))),
                }
            }
            // Unblocks the reader.
            shared.take(usize::MAX);
        };
        let thread = std::thread::Builder::new().name("snapshots".to_owned()).spawn(work)?;
        Ok(Self { messages: Some(messages), thread: Some(thread), state })
    }

    /// Queues the next read of a shard, after the shard has loaded it; `choices` brings one message for
    /// each read of the shard, in their order.
    pub(super) fn take(&self, update: LogRead, choices: &Receiver<ChoiceChanges>) {
        let Some(messages) = &self.messages else { return };
        let bytes = bytes(&update);
        // A recorder that has stopped reports its failure at the next snapshot.
        if messages.send(Message::LogRead(update, choices.clone())).is_ok() {
            let mut waiting = self.state.waiting();
            *waiting += bytes;
            while *waiting > WAITING_BYTES && self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
                let patience = std::time::Duration::from_millis(100);
                waiting = sync::wait_timeout(&self.state.drained, waiting, patience);
            }
        }
    }

    /// Writes a snapshot of all queued reads; None when nothing has changed.
    pub(super) fn snapshot(&self, now_ms: i64) -> Result<Option<Manifest>, SnapshotError> {
        let (reply, answer) = bounded(1);
        if let Some(messages) = &self.messages {
            drop(messages.send(Message::Snapshot(now_ms, reply)));
        }
        answer.recv().unwrap_or_else(|_| {
            let failure = sync::lock(&self.state.failure).take();
            Err(failure.unwrap_or(SnapshotError::Stopped))
        })
    }
}

/// Approximate size of a read in memory.
fn bytes(update: &LogRead) -> usize {
    let of_record = |record: &MemoryRecord| {
        let vectors = record.units.iter().flat_map(|unit| unit.parts.iter().map(|part| part.vectors.len() + 2));
        let width = record.units.first().map_or(0, |unit| unit.vector.0.len() * size_of::<f32>());
        let texts: usize = record.turns.iter().map(|held| 4 * held.turn.text.len() + 512).sum();
        vectors.sum::<usize>() * width + texts
    };
    update.records.iter().map(|(_, record)| record.as_ref().map_or(128, of_record)).sum()
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.messages = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
