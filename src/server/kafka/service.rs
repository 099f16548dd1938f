//! A running service: starts the threads of its roles, and stops all when one fails.
//!
//! In: a pipeline whose log is on Kafka. Out: nothing until `stop`; then every thread has ended. What
//! was in flight is still in the topics, where another instance finds it.

use std::{
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crossbeam_channel::unbounded;

use super::{
    admin, edges, error::ServeError, extraction::extract, follow, hold, http, questions, replay, snapshots,
    state::State,
};
use crate::telemetry::{Metrics, OfPartition, Purpose};
use models::llm::{Contract, Llm};
use nouns::{
    config::{Hold, LLM, Pipeline, Role},
    model::Usage,
    sync,
};
use ripplemem::{
    log::{KafkaLog, Log},
    pipeline::{PipelineError, Replica, ReplicaOptions},
    snapshot::Table,
};

/// Time between two measurements of the lag.
const LAG_INTERVAL: Duration = Duration::from_secs(1);

/// Runs until `stop`. `say` takes messages for people.
///
/// # Errors
/// [`ServeError`] for what no retry can mend. While the cluster is unavailable the service retries.
pub fn run(pipeline: &Pipeline, stop: &AtomicBool, say: &(dyn Fn(&str) + Sync)) -> Result<(), ServeError> {
    let started = Instant::now();
    let roles = |role| pipeline.roles.contains(&role);
    let log = Arc::new(KafkaLog::open(&pipeline.log)?);
    log.notices().iter().for_each(|notice| say(notice));
    if pipeline.serve.edges && roles(Role::Serve) {
        log.ensure_edges()?;
    }
    if pipeline.serve.hold == Hold::Assigned && roles(Role::Serve) {
        hold::check(&log)?;
        if !pipeline.http.listen.is_empty() {
            log.ensure_instances()?;
        }
    }
    let webhooks = super::platforms::open(pipeline)?;
    if !pipeline.live.is_empty() {
        log.ensure_sources()?;
    }
    let (requests_out, requests) = unbounded();
    let (reextractions_out, reextractions) = unbounded();
    let by_model = roles(Role::Extract) && pipeline.extract.extractor == LLM;
    let state = Arc::new(State {
        metrics: Metrics::new(),
        loaded: AtomicBool::new(!roles(Role::Serve)),
        joined: AtomicBool::new(!roles(Role::Extract)),
        replica: OnceLock::new(),
        positions: Mutex::default(),
        snapshots: (roles(Role::Serve) && !pipeline.snapshot.directory.is_empty()).then_some(requests_out),
        reextractions: by_model.then_some(reextractions_out),
        webhooks,
    });
    if !pipeline.metrics.listen.is_empty() {
        http::start(&pipeline.metrics.listen, Arc::clone(&state))?;
    }
    if !pipeline.admin.listen.is_empty() {
        let address = admin::start(pipeline, Arc::clone(&state))?;
        say(&format!("administration: http://{address}/v1/admin"));
    }
    let llm = if pipeline.llm.is_set() {
        Some(Llm::open(&pipeline.llm, pipeline.responses()).map_err(PipelineError::from)?)
    } else {
        None
    };
    let (edges_out, edges_in) = unbounded();
    let edge_changes = (pipeline.serve.edges && roles(Role::Serve)).then_some(edges_out);
    let beginning = ReplicaOptions {
        hold: pipeline.serve.hold,
        edges: edge_changes,
        record: true,
        turns: None,
        say: &mut |what| say(what),
        progress: &mut |_, _| {},
    };
    let replica = if roles(Role::Serve) { Some(Arc::new(Replica::open(pipeline, &*log, beginning)?)) } else { None };
    if let Some(replica) = &replica {
        state.replica.get_or_init(|| Arc::clone(replica));
    }
    // The first thread that fails stops the others.
    let stopping = AtomicBool::new(false);
    let failure: Mutex<Option<ServeError>> = Mutex::new(None);
    let ended = |result: Result<(), ServeError>| {
        if let Err(error) = result {
            sync::lock(&failure).get_or_insert(error);
        }
        stopping.store(true, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        let (log, shared, state, stopping, ended) = (&log, &state, &*state, &stopping, &ended);
        if roles(Role::Extract) {
            let reextractions = &reextractions;
            scope.spawn(move || ended(extract(pipeline, log, state, reextractions, stopping, say)));
        }
        if let Some(replica) = &replica {
            let hold = pipeline.serve.hold;
            scope.spawn(move || ended(follow::follow(log, replica, hold, state, stopping, started, say)));
            if hold == Hold::Assigned {
                scope.spawn(move || ended(hold::hold(log, replica, state, stopping, say)));
            }
            scope.spawn(move || ended(questions::answer(pipeline, log, replica, shared, stopping, say)));
            if !pipeline.snapshot.directory.is_empty() {
                scope.spawn(move || snapshots::write(pipeline, &**log, replica, state, &requests, stopping, say));
            }
            if pipeline.serve.edges {
                scope.spawn(move || ended(edges::publish(log, replica, state, &edges_in, stopping)));
            }
        }
        if roles(Role::Replay) {
            for table in Table::ALL.into_iter().filter(|t| pipeline.replay.topics.iter().any(|name| name == t.name())) {
                scope.spawn(move || ended(replay::replay(pipeline, table, state, stopping, say)));
            }
        }
        if !pipeline.live.is_empty() {
            scope.spawn(move || ended(super::leases::run(pipeline, log, state, stopping, say)));
        }
        let mut measured = Instant::now();
        let mut counted = [Usage::default(); Contract::ALL.len()];
        while !stopping.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
            if measured.elapsed() > LAG_INTERVAL {
                measure_lag(log, state);
                replica.iter().for_each(|replica| follow::measure(log, replica, state));
                if let Some(llm) = &llm {
                    count_model(llm, &mut counted, &state.metrics);
                }
                measured = Instant::now();
            }
        }
        stopping.store(true, Ordering::Relaxed);
    });
    sync::into_inner(failure).map_or(Ok(()), Err)
}

/// Adds what the language model used since the last call.
fn count_model(llm: &Llm, counted: &mut [Usage; Contract::ALL.len()], metrics: &Metrics) {
    for ((contract, now), before) in llm.spent().into_iter().zip(counted) {
        let of = Purpose { purpose: contract.name() };
        metrics.llm_calls.get_or_create(&of).inc_by(now.calls - before.calls);
        metrics.llm_tokens.get_or_create(&of).inc_by(now.tokens() - before.tokens());
        metrics.llm_seconds.get_or_create(&of).inc_by((now.milliseconds - before.milliseconds) as f64 / 1_000.0);
        *before = now;
    }
}

/// Measures the lag of the owned partitions; while the cluster is unavailable the last figures stay.
fn measure_lag(log: &KafkaLog, state: &State) {
    let positions = sync::lock(&state.positions).clone();
    for (partition, position) in positions {
        if let Ok(lag) = log.lag(partition, position) {
            let lag = lag.min(i64::MAX.unsigned_abs());
            state.metrics.lag.get_or_create(&OfPartition { partition }).set(lag as i64);
        }
    }
}
