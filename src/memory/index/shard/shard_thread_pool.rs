//! The threads that step the shards.
//!
//! In: new shards. Out: their answers, through their own channels. A thread has several shards. It answers the
//! questions of all of them before each slice of their loads and scans, and the shards take turns in these slices. A
//! panic in a shard ends that shard alone. A thread without work sleeps until someone sends something; no clock is
//! read.

use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread::JoinHandle,
};

use crossbeam_channel::{Receiver, Sender, TryRecvError, unbounded};

use super::shard_worker::{ShardSeed, ShardWorker};
use crate::index::{
    dataflow::shard_command::LoadBacklog, lexical::tantivy_postings::TantivyPostings, work_budget::SLICE,
};

/// How many steps a shard takes when it has nothing else to do, to clean up after its last epoch.
const SETTLING_STEPS: u32 = 3;

/// Threads that step shards. They end when the last shard and this value are gone.
#[derive(Debug)]
pub struct ShardThreadPool {
    threads: Vec<ShardThread>,
    slice: u64,
}

#[derive(Debug)]
struct ShardThread {
    seeds: Option<Sender<(ShardSeed, ShardPresence)>>,
    runner: Option<JoinHandle<()>>,
    /// How many shards it has.
    shards: Arc<AtomicUsize>,
}

/// Lives as long as its shard.
struct ShardPresence {
    backlog: Arc<LoadBacklog>,
    shards: Arc<AtomicUsize>,
    /// Disconnects when the shard is gone.
    _gone: Sender<()>,
}

impl Drop for ShardPresence {
    fn drop(&mut self) {
        self.shards.fetch_sub(1, Ordering::Relaxed);
        self.backlog.stop();
    }
}

/// A shard that was handed to a thread.
#[derive(Debug)]
pub(in crate::index) struct PlacedShard {
    /// The thread, to wake it.
    pub thread: std::thread::Thread,
    /// Disconnects when the shard is gone.
    pub gone: Receiver<()>,
}

impl ShardThreadPool {
    /// Starts `threads` threads, at least one.
    ///
    /// # Errors
    /// When one cannot be started.
    pub fn start(threads: usize) -> std::io::Result<Arc<Self>> {
        Self::with_slices(threads, SLICE)
    }

    /// As [`Self::start`], with another `slice`: a load or a long scan gives way to questions after about that many
    /// nanoseconds. No answer depends on `slice`.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn with_slices(threads: usize, slice: u64) -> std::io::Result<Arc<Self>> {
        let mut started = Vec::with_capacity(threads);
        for n in 0..threads.max(1) {
            let (seeds, incoming) = unbounded();
            let runner = std::thread::Builder::new().name(format!("memory-{n}")).spawn(move || run(&incoming))?;
            started.push(ShardThread { seeds: Some(seeds), runner: Some(runner), shards: Arc::default() });
        }
        Ok(Arc::new(Self { threads: started, slice: slice.max(1) }))
    }

    /// The work of a slice.
    pub(in crate::index) fn slice(&self) -> u64 {
        self.slice
    }

    /// Makes a shard on the thread that has the fewest shards; None if that thread has ended.
    pub(in crate::index) fn place_shard(&self, seed: ShardSeed) -> Option<PlacedShard> {
        let thread = self.threads.iter().min_by_key(|thread| thread.shards.load(Ordering::Relaxed))?;
        let (alive, gone) = crossbeam_channel::bounded(0);
        thread.shards.fetch_add(1, Ordering::Relaxed);
        let presence =
            ShardPresence { backlog: Arc::clone(&seed.backlog), shards: Arc::clone(&thread.shards), _gone: alive };
        thread.seeds.as_ref()?.send((seed, presence)).ok()?;
        let runner = thread.runner.as_ref()?.thread().clone();
        runner.unpark();
        Some(PlacedShard { thread: runner, gone })
    }
}

impl Drop for ShardThreadPool {
    fn drop(&mut self) {
        for thread in &mut self.threads {
            thread.seeds = None;
            if let Some(runner) = thread.runner.take() {
                runner.thread().unpark();
                drop(runner.join());
            }
        }
    }
}

/// A shard, and what its handle holds on to.
struct RunningShard {
    // Dropped before `_presence`: the shard counts as gone only once its worker is.
    shard: ShardWorker,
    settled: u32,
    _presence: ShardPresence,
}

fn run(seeds: &Receiver<(ShardSeed, ShardPresence)>) {
    let postings = Rc::new(RefCell::new(TantivyPostings::default()));
    let mut shards: Vec<RunningShard> = Vec::new();
    let mut turn = 0;
    loop {
        let open = loop {
            match seeds.try_recv() {
                Ok((seed, presence)) => {
                    let made = catch_unwind(AssertUnwindSafe(|| ShardWorker::new(seed, Rc::clone(&postings))));
                    shards.extend(made.ok().map(|shard| RunningShard { shard, settled: 0, _presence: presence }));
                }
                Err(TryRecvError::Empty) => break true,
                Err(TryRecvError::Disconnected) => break false,
            }
        };
        let mut any = false;
        step_each(&mut shards, |running| {
            let answered = running.shard.answer();
            any |= answered;
            if answered {
                running.settled = 0;
            }
        });
        // Does one slice of the next shard that has work.
        let mut looked = 0;
        let mut worked = false;
        while looked < shards.len() && !worked {
            turn = (turn + 1) % shards.len();
            looked += 1;
            step_one(&mut shards, turn, |running| {
                worked = running.shard.work_slice();
                if worked {
                    running.settled = 0;
                }
            });
        }
        if any || worked {
            continue;
        }
        let mut settling = false;
        step_each(&mut shards, |running| {
            if running.settled < SETTLING_STEPS {
                running.settled = if running.shard.merge_arrangements() { 0 } else { running.settled + 1 };
                settling = true;
            }
        });
        if settling {
            continue;
        }
        if !open && shards.is_empty() {
            return;
        }
        std::thread::park();
    }
}

/// Calls `step` for every shard.
fn step_each(shards: &mut Vec<RunningShard>, mut step: impl FnMut(&mut RunningShard)) {
    let mut at = 0;
    while at < shards.len() {
        if step_one(shards, at, &mut step) {
            at += 1;
        }
    }
}

/// Calls `step` for a shard; false if the shard is gone: it panicked, or its handle was dropped.
fn step_one(shards: &mut Vec<RunningShard>, at: usize, mut step: impl FnMut(&mut RunningShard)) -> bool {
    let Some(running) = shards.get_mut(at) else { return true };
    let ended = catch_unwind(AssertUnwindSafe(|| step(running))).is_err();
    if ended || running.shard.is_closed() {
        let gone = shards.swap_remove(at);
        // Dropping what a panic left behind may panic again.
        drop(catch_unwind(AssertUnwindSafe(|| drop(gone))));
        return false;
    }
    true
}
