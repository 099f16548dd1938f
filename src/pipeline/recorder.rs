//! What a memory's snapshots are written by, beside the dataflow.
//!
//! In: the reads of the memory log and the choices that each changed, in one order. Out:
//! snapshots, on request. Runs on a thread of its own: neither what is read nor a question
//! waits for a file. When the place of snapshots is away for too long it gives up, and the
//! memory goes on without.

use std::{
    sync::{Mutex, PoisonError},
    thread::JoinHandle,
};

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::{
    memory::ChoiceChanges,
    snapshot::{Manifest, SnapshotError, Update, Writer},
};

/// Reads that wait at most before the reader does; one is 8 MiB of records at most.
const WAITING: usize = 4;

enum Message {
    Update(Update),
    Snapshot(i64, Sender<Result<Option<Manifest>, SnapshotError>>),
}

/// A running recorder.
pub(super) struct Recorder {
    messages: Option<Sender<Message>>,
    thread: Option<JoinHandle<()>>,
    failure: std::sync::Arc<Mutex<Option<SnapshotError>>>,
}

impl Recorder {
    /// Starts it. `choices` brings one message for each update.
    pub(super) fn start(mut writer: Writer, choices: Receiver<ChoiceChanges>) -> std::io::Result<Self> {
        let (messages, incoming) = bounded::<Message>(WAITING);
        let failure = std::sync::Arc::new(Mutex::new(None));
        let failed = std::sync::Arc::clone(&failure);
        let work = move || {
            for message in incoming {
                match message {
                    Message::Update(update) => {
                        // The memory has stopped; whoever asks it next is told.
                        let Ok(changed) = choices.recv() else { return };
                        if let Err(error) = writer.take(&update, &changed) {
                            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                            return;
                        }
                    }
                    Message::Snapshot(now_ms, reply) => drop(reply.send(writer.snapshot(now_ms))),
                }
            }
        };
        let thread = std::thread::Builder::new().name("snapshots".to_owned()).spawn(work)?;
        Ok(Self { messages: Some(messages), thread: Some(thread), failure })
    }

    /// Hands over the next read, after the memory got it.
    pub(super) fn take(&self, update: Update) {
        if let Some(messages) = &self.messages {
            // One that gave up says so when it is asked for a snapshot.
            drop(messages.send(Message::Update(update)));
        }
    }

    /// Takes a snapshot of all that was handed over; none when nothing has changed.
    pub(super) fn snapshot(&self, now_ms: i64) -> Result<Option<Manifest>, SnapshotError> {
        let (reply, answer) = bounded(1);
        if let Some(messages) = &self.messages {
            drop(messages.send(Message::Snapshot(now_ms, reply)));
        }
        answer.recv().unwrap_or_else(|_| {
            let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
            Err(failure.unwrap_or(SnapshotError::Stopped))
        })
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.messages = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
