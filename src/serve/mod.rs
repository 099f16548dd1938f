//! A running service: turns from Kafka in, memory kept, questions answered, until stopped.
//!
//! In: a pipeline whose log is on Kafka. Out: what its roles say. `extract` turns the
//! partitions that the group gives it into memory records; `serve` follows the memory topic
//! of every partition and answers questions from it; `replay` writes topics as Parquet. All run
//! side by side in one process, or in processes apart that share nothing but the topics. What
//! is in flight when the service stops is in the topics, and is done by whoever comes next.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, unbounded};
use tokio::sync::oneshot;

use crate::{
    config::{LLM, Pipeline, Role},
    embed::EmbedError,
    llm::{Contract, Llm},
    log::{KafkaLog, Log, LogError},
    model::Usage,
    pipeline::{self, Answerer, AnswererOptions, ExtractionEvent, PipelineError, ReextractRequest, ReplayError},
    snapshot::Table,
    sync,
    telemetry::{Metrics, OfPartition, Purpose},
};

mod client;
mod edges;
mod http;
mod questions;
mod replay;
mod request;
mod tap;

pub use client::{AskError, ask};
pub use request::{parse_after, parse_as_of};
pub use tap::{Lag, TOPICS, Tapped, lag, tap};

/// How long a follower of the memory topic rests when there is nothing new.
const IDLE: Duration = Duration::from_millis(5);
/// How long it rests when the cluster is away.
const AWAY: Duration = Duration::from_millis(500);
/// How often the lag is looked at.
const LAG: Duration = Duration::from_secs(1);

/// Why a service stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A room failed.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// A topic could not be written as Parquet.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The address of the metrics cannot be had.
    #[error("metrics.listen: {listen} cannot be listened on: {problem}; name another address")]
    Listen {
        /// The address.
        listen: String,
        /// Why.
        problem: String,
    },
    /// A thread cannot be started.
    #[error("a thread cannot be started: {0}; the system has too many")]
    Thread(std::io::Error),
    /// A part ended without a word.
    #[error("{0} has stopped; start again, the topics hold everything")]
    Ended(&'static str),
}

impl From<LogError> for ServeError {
    fn from(error: LogError) -> Self {
        Self::Pipeline(error.into())
    }
}

impl From<EmbedError> for ServeError {
    fn from(error: EmbedError) -> Self {
        Self::Pipeline(error.into())
    }
}

/// What the parts of a service share.
struct State {
    metrics: Metrics,
    /// The memory reflects what its log held at the start; true without `serve`.
    loaded: AtomicBool,
    /// Extraction is a member of its group; true without `extract`.
    joined: AtomicBool,
    /// Ends of owned partitions are compared with these.
    positions: Mutex<std::collections::BTreeMap<u32, u64>>,
    /// Whom to ask for a snapshot, where any are written.
    snapshots: Option<Sender<Reply>>,
    /// Whom to ask for windows to be read again, where a language model reads them.
    rereads: Option<Sender<ReextractRequest>>,
}

/// Takes what became of a snapshot that was asked for.
type Reply = oneshot::Sender<Result<String, String>>;

impl State {
    /// What a service that is not ready waits for.
    fn waiting_for(&self) -> Option<&'static str> {
        if !self.loaded.load(Ordering::Relaxed) {
            Some("the memory to be loaded")
        } else if !self.joined.load(Ordering::Relaxed) {
            Some("the group of extractors")
        } else {
            None
        }
    }
}

/// Runs until `stop`. `say` is told what a person should know.
///
/// # Errors
/// [`ServeError`] for what does not pass by itself. A cluster that is away passes: the
/// service waits and goes on.
pub fn run(pipeline: &Pipeline, stop: &AtomicBool, say: &(dyn Fn(&str) + Sync)) -> Result<(), ServeError> {
    let begun = Instant::now();
    let roles = |role| pipeline.roles.contains(&role);
    let log = KafkaLog::open(&pipeline.log)?;
    log.notices().iter().for_each(|notice| say(notice));
    if pipeline.serve.edges && roles(Role::Serve) {
        log.ensure_edges()?;
    }
    let (asks, asked) = unbounded();
    let (rereads, to_reread) = unbounded();
    let reads = roles(Role::Extract) && pipeline.extract.extractor == LLM;
    let state = Arc::new(State {
        metrics: Metrics::new(),
        loaded: AtomicBool::new(!roles(Role::Serve)),
        joined: AtomicBool::new(!roles(Role::Extract)),
        positions: Mutex::default(),
        snapshots: (roles(Role::Serve) && !pipeline.snapshot.directory.is_empty()).then_some(asks),
        rereads: reads.then_some(rereads),
    });
    if !pipeline.metrics.listen.is_empty() {
        http::start(&pipeline.metrics.listen, Arc::clone(&state))?;
    }
    let set = pipeline.llm.is_set();
    let llm =
        if set { Some(Llm::open(&pipeline.llm, pipeline.responses()).map_err(PipelineError::from)?) } else { None };
    let (edges_out, edges_in) = unbounded();
    let told = (pipeline.serve.edges && roles(Role::Serve)).then_some(edges_out);
    let beginning = AnswererOptions {
        edges: told,
        record: true,
        turns: None,
        say: &mut |what| say(what),
        progress: &mut |_, _| {},
    };
    let answerer = if roles(Role::Serve) { Some(Answerer::open(pipeline, &log, beginning)?) } else { None };
    // The first part that fails stops the others.
    let over = AtomicBool::new(false);
    let failure: Mutex<Option<ServeError>> = Mutex::new(None);
    let ended = |result: Result<(), ServeError>| {
        if let Err(error) = result {
            sync::lock(&failure).get_or_insert(error);
        }
        over.store(true, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        let (log, state, over, ended) = (&log, &*state, &over, &ended);
        if roles(Role::Extract) {
            let to_reread = &to_reread;
            scope.spawn(move || ended(extract(pipeline, log, state, to_reread, over, say)));
        }
        if let Some(answerer) = &answerer {
            scope.spawn(move || ended(follow(log, answerer, state, over, begun, say)));
            scope.spawn(move || ended(questions::answer(pipeline, log.cluster(), answerer, state, over)));
            if !pipeline.snapshot.directory.is_empty() {
                scope.spawn(move || snapshots(pipeline, answerer, state, &asked, over, say));
            }
            if pipeline.serve.edges {
                scope.spawn(move || ended(edges::publish(log, answerer, state, &edges_in, over)));
            }
        }
        if roles(Role::Replay) {
            for table in Table::ALL.into_iter().filter(|t| pipeline.replay.topics.iter().any(|name| name == t.name())) {
                scope.spawn(move || ended(replay::replay(pipeline, table, state, over, say)));
            }
        }
        let mut looked = Instant::now();
        let mut shown = [Usage::default(); Contract::ALL.len()];
        while !over.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
            if looked.elapsed() > LAG {
                look_at_lag(log, state);
                if let Some(llm) = &llm {
                    count_model(llm, &mut shown, &state.metrics);
                }
                looked = Instant::now();
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    sync::into_inner(failure).map_or(Ok(()), Err)
}

fn extract(
    pipeline: &Pipeline,
    log: &KafkaLog,
    state: &State,
    to_reread: &Receiver<ReextractRequest>,
    over: &AtomicBool,
    say: &(dyn Fn(&str) + Sync),
) -> Result<(), ServeError> {
    let metrics = &state.metrics;
    let mut complained = None;
    pipeline::extract(pipeline, log, to_reread, over, &mut |told| {
        state.joined.store(true, Ordering::Relaxed);
        let mut positions = sync::lock(&state.positions);
        match told {
            ExtractionEvent::Joined => {}
            ExtractionEvent::TakenOver { partition, position, took } => {
                positions.insert(partition, position);
                metrics.owned.set(positions.len() as i64);
                metrics.takeover_seconds.set(took.as_secs_f64());
                complained = None;
                say(&format!("partition {partition}: ours, from offset {position} ({:.2} s)", took.as_secs_f64()));
            }
            ExtractionEvent::Left { partition } => {
                positions.remove(&partition);
                metrics.owned.set(positions.len() as i64);
                metrics.lag.remove(&OfPartition { partition });
                metrics.llm_windows_waiting.remove(&OfPartition { partition });
                metrics.watermark_seconds.remove(&OfPartition { partition });
                say(&format!("partition {partition}: another instance has it"));
            }
            ExtractionEvent::Committed {
                partition,
                position,
                append_ms,
                events,
                rejects,
                forwards,
                windows,
                units,
                took,
                model_took,
            } => {
                positions.insert(partition, position);
                metrics.commits.inc();
                metrics.events.inc_by(events);
                metrics.rejects.inc_by(rejects);
                metrics.forwards.inc_by(forwards);
                metrics.firings.inc_by(windows);
                metrics.units.inc_by(units);
                metrics.step_seconds.observe(took.as_secs_f64());
                for usage in model_took {
                    metrics.llm_window_tokens.observe(usage.tokens() as f64);
                    metrics.llm_window_seconds.observe(usage.milliseconds as f64 / 1_000.0);
                }
                if let Some(append_ms) = append_ms {
                    let of = OfPartition { partition };
                    metrics.watermark_seconds.get_or_create(&of).set(append_ms as f64 / 1_000.0);
                }
            }
            ExtractionEvent::Waiting { partition, windows } => {
                metrics.llm_windows_waiting.get_or_create(&OfPartition { partition }).set(windows as i64);
            }
            ExtractionEvent::Aborted { partition, problem } => {
                metrics.aborts.inc();
                if complained.as_ref() != Some(&problem) {
                    say(&format!("partition {partition}: {problem}; trying again"));
                }
                complained = Some(problem);
            }
            ExtractionEvent::Warning(warning) => say(&warning),
        }
    })?;
    Ok(())
}

/// A cluster that is away: told once, and waited for.
struct Away<'s> {
    state: &'s State,
    say: &'s (dyn Fn(&str) + Sync),
    told: bool,
}

impl Away<'_> {
    fn wait(&mut self, error: &LogError) {
        self.state.metrics.read_failures.inc();
        if !self.told {
            (self.say)(&format!("{error}; trying again"));
        }
        self.told = true;
        std::thread::sleep(AWAY);
    }
}

/// Follows every partition of the memory topic.
fn follow(
    log: &KafkaLog,
    answerer: &Answerer,
    state: &State,
    over: &AtomicBool,
    begun: Instant,
    say: &(dyn Fn(&str) + Sync),
) -> Result<(), ServeError> {
    let mut away = Away { state, say, told: false };
    while !over.load(Ordering::Relaxed) {
        let mut any = false;
        for partition in 0..log.partitions() {
            let mut records = 0;
            match answerer.follow(log, partition, |_, _, _| records += 1) {
                Ok(some) => any |= some,
                Err(PipelineError::Log(error @ LogError::Cluster { retriable: true, .. })) => away.wait(&error),
                Err(error) => return Err(error.into()),
            }
            state.metrics.records.inc_by(records);
        }
        if any {
            away.told = false;
            continue;
        }
        if !away.told && !state.loaded.load(Ordering::Relaxed) {
            answerer.wait_until_visible()?;
            let took = begun.elapsed().as_secs_f64();
            state.metrics.recovery_seconds.set(took);
            state.loaded.store(true, Ordering::Relaxed);
            say(&format!("ready: the memory reflects its log ({took:.2} s)"));
        }
        std::thread::sleep(IDLE);
    }
    Ok(())
}

/// Writes a snapshot once the memory is loaded, then by the interval, and whenever one is asked
/// for. A place that cannot be reached stops none of the others.
fn snapshots(
    pipeline: &Pipeline,
    answerer: &Answerer,
    state: &State,
    asked: &Receiver<Reply>,
    over: &AtomicBool,
    say: &(dyn Fn(&str) + Sync),
) {
    let every = Duration::from_secs(pipeline.snapshot.interval_seconds);
    let mut complained = None;
    let mut last: Option<Instant> = None;
    while !over.load(Ordering::Relaxed) {
        let reply = asked.recv_timeout(Duration::from_millis(100)).ok();
        let due = state.loaded.load(Ordering::Relaxed) && last.is_none_or(|last| last.elapsed() >= every);
        if !due && reply.is_none() {
            continue;
        }
        let begun = Instant::now();
        let became = match answerer.snapshot() {
            Ok(None) => Ok("nothing has changed since the last snapshot".to_owned()),
            Ok(Some(manifest)) => {
                state.metrics.snapshots.inc();
                state.metrics.snapshot_seconds.observe(begun.elapsed().as_secs_f64());
                if complained.take().is_some() {
                    say(&format!("snapshot {}: written again", manifest.number));
                }
                Ok(format!("{}: {}", pipeline.snapshot.directory, manifest.summary()))
            }
            Err(error) => {
                state.metrics.snapshot_failures.inc();
                let problem = error.to_string();
                if complained.as_ref() != Some(&problem) {
                    say(&format!("no snapshot: {problem}"));
                }
                complained = Some(problem.clone());
                Err(problem)
            }
        };
        if let Some(reply) = reply {
            drop(reply.send(became));
        }
        last = Some(begun);
    }
}

/// What the language model took since it was last counted.
fn count_model(llm: &Llm, shown: &mut [Usage; Contract::ALL.len()], metrics: &Metrics) {
    for ((contract, now), before) in llm.spent().into_iter().zip(shown) {
        let of = Purpose { purpose: contract.name() };
        metrics.llm_calls.get_or_create(&of).inc_by(now.calls - before.calls);
        metrics.llm_tokens.get_or_create(&of).inc_by(now.tokens() - before.tokens());
        metrics.llm_seconds.get_or_create(&of).inc_by((now.milliseconds - before.milliseconds) as f64 / 1_000.0);
        *before = now;
    }
}

/// Only for show: a cluster that is away leaves the last figures standing.
fn look_at_lag(log: &KafkaLog, state: &State) {
    let positions = sync::lock(&state.positions).clone();
    for (partition, position) in positions {
        if let Ok(lag) = log.lag(partition, position) {
            let lag = lag.min(i64::MAX.unsigned_abs());
            state.metrics.lag.get_or_create(&OfPartition { partition }).set(lag as i64);
        }
    }
}
