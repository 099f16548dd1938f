//! The threads behind an open memory: extraction, and snapshots by the interval.
//!
//! In: a service that was just opened. Out: memory records of what was put, snapshots, and problems for
//! [`MemoryStatus`]. A partition whose extraction fails is read again from the log after a pause that
//! grows; the others go on. Nothing ends a thread but the end of the memory.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded};

use super::{PipelineError, Replica, Service, status::MemoryStatus};
use crate::log::Log;
use nouns::{backoff::Backoff, config::Pipeline, sync};

/// Time between two looks at the log when nobody calls.
const IDLE: Duration = Duration::from_millis(250);
/// The same while the language model reads.
const MODEL_READS: Duration = Duration::from_millis(10);
/// The problem of writing snapshots, beside those of the partitions.
const SNAPSHOTS: usize = usize::MAX;

/// The running threads. They end when it is dropped.
pub(super) struct Upkeep {
    shared: Arc<Mutex<Shared>>,
    wake: Option<Sender<()>>,
    snapshots: Option<Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    status: MemoryStatus,
    /// Why the language model has not read what waits for it.
    model: Option<String>,
    /// By partition, or [`SNAPSHOTS`].
    problems: BTreeMap<usize, String>,
}

/// A partition whose extraction failed.
struct Failing {
    again_at: Instant,
    backoff: Backoff,
}

impl Upkeep {
    /// Starts the threads. `say` takes messages for people.
    pub(super) fn start(
        service: Service,
        pipeline: &Pipeline,
        say: Box<dyn Fn(&str) + Send>,
    ) -> Result<Self, PipelineError> {
        let shared: Arc<Mutex<Shared>> = Arc::default();
        let (wake, woken) = bounded(1);
        let mut upkeep = Self { shared, wake: Some(wake), snapshots: None, threads: Vec::new() };
        if !pipeline.snapshot.directory.is_empty() {
            let (stop, stopped) = bounded(1);
            upkeep.snapshots = Some(stop);
            let (replica, log) = service.shared();
            let every = Duration::from_secs(pipeline.snapshot.interval_seconds);
            upkeep.spawn("memory-snapshots", move |shared| {
                write_snapshots(&replica, &*log, every, &stopped, shared);
            })?;
        }
        upkeep.spawn("memory-extract", move |shared| extract(service, &woken, shared, &say))?;
        Ok(upkeep)
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce(&Mutex<Shared>) + Send + 'static) -> Result<(), PipelineError> {
        let shared = Arc::clone(&self.shared);
        let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || work(&shared));
        self.threads.push(started.map_err(PipelineError::Thread)?);
        Ok(())
    }

    /// Says that something was put.
    pub(super) fn wake(&self) {
        if let Some(wake) = &self.wake {
            // A full channel has woken it already.
            let _ = wake.try_send(());
        }
    }

    /// What the threads have done, and what they fail at.
    pub(super) fn status(&self) -> MemoryStatus {
        let shared = sync::lock(&self.shared);
        let problem = shared.problems.values().next().or(shared.model.as_ref()).cloned();
        MemoryStatus { problem, ..shared.status.clone() }
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        (self.wake, self.snapshots) = (None, None);
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}

/// Extracts until the other end of `woken` is dropped.
fn extract(mut service: Service, woken: &Receiver<()>, shared: &Mutex<Shared>, say: &dyn Fn(&str)) {
    let mut failing: BTreeMap<usize, Failing> = BTreeMap::new();
    let mut last_said = BTreeMap::new();
    loop {
        let mut any = false;
        for stage in 0..service.stages() {
            let before = failing.get(&stage);
            if before.is_some_and(|failing| Instant::now() < failing.again_at) {
                continue;
            }
            let again = before.is_some();
            let step = catch_unwind(AssertUnwindSafe(|| {
                if again {
                    service.read_again(stage)?;
                }
                service.step(stage)
            }));
            let problem = match step {
                Ok(Ok(done)) => {
                    any |= done.is_some();
                    if again {
                        failing.remove(&stage);
                        last_said.remove(&stage);
                    }
                    let mut shared = sync::lock(shared);
                    shared.problems.remove(&stage);
                    shared.status.written += done.unwrap_or_default();
                    continue;
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "extraction panicked; this is a defect, please report it".to_owned(),
            };
            let mut backoff = failing.get(&stage).map_or(Backoff::SERVICE, |before| before.backoff);
            let again_at = Instant::now() + backoff.pause();
            failing.insert(stage, Failing { again_at, backoff });
            if last_said.get(&stage) != Some(&problem) {
                say(&format!("{problem}; trying again"));
                last_said.insert(stage, problem.clone());
            }
            sync::lock(shared).problems.insert(stage, problem);
        }
        let (waiting, model) = service.waiting_for_model();
        {
            let mut shared = sync::lock(shared);
            (shared.status.waiting_for_model, shared.model) = (waiting, model);
        }
        service.take_warnings().iter().for_each(|warning| say(warning));
        let ended = if any {
            woken.try_recv() == Err(TryRecvError::Disconnected)
        } else {
            let patience = if waiting > 0 { MODEL_READS } else { IDLE };
            woken.recv_timeout(patience) == Err(RecvTimeoutError::Disconnected)
        };
        if ended {
            return;
        }
    }
}

/// Writes snapshots until the other end of `stopped` is dropped.
fn write_snapshots(replica: &Replica, log: &dyn Log, every: Duration, stopped: &Receiver<()>, shared: &Mutex<Shared>) {
    while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
        // The lock of the log leaves no other process that writes them; but a shard is recorded no more
        // after the place was away for too long.
        let written = replica.take_over(log).and_then(|_| replica.snapshot());
        let mut shared = sync::lock(shared);
        match written {
            Ok(_) => drop(shared.problems.remove(&SNAPSHOTS)),
            Err(error) => drop(shared.problems.insert(SNAPSHOTS, format!("no snapshot: {error}"))),
        }
    }
}
