//! The service on Kafka: starts the threads of its roles, and stops all of them when one fails.
//!
//! In: a pipeline whose log is on Kafka. Out: nothing; when `stop` is set, it returns once every thread has ended. Work
//! that was in flight is still in the topics, where another instance finds it.

use super::log_events;
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crossbeam_channel::unbounded;

use super::{
    apply_retention, edge_topic,
    error::ServeError,
    follow_memory, forget_requests, listed_partitions, question_topic, replay_topic,
    service_state::{ModelMeter, ServiceState, extracts_by_model},
    shard_assignment,
    v1::{self, ServerParts},
};
use ingest::ExtractionOrderSender;
use logs::{
    KafkaLog, Log, PartitionAssignment,
    kafka::group_member::{ConsumerGroup, GroupMember},
};
use models::embed::EmbedderPool;
use pipeline::PipelineError;
use replica::{Replica, ReplicaOptions, write_snapshots};
use snapshots::ArchiveTable;
use types::{
    config::{Pipeline, ServiceRole, ShardAssignmentMode},
    sync,
};

/// The time between two measurements of values that no event reports.
const MEASURE: Duration = Duration::from_secs(1);
/// The longest time until a stop is noticed.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Runs until `stop`.
///
/// # Errors
/// [`ServeError`] for problems that no retry can fix. While the cluster is unavailable the service retries.
pub(crate) fn run(pipeline: &Pipeline, state: &Arc<ServiceState>, stop: &AtomicBool) -> Result<(), ServeError> {
    let started = Instant::now();
    let roles = |role| pipeline.roles.contains(&role);
    if roles(ServiceRole::Serve) {
        erasure::check_forgetting(pipeline)?;
    }
    let log = Arc::new(KafkaLog::open(&pipeline.log)?);
    log.notices().iter().for_each(|notice| log_events::topic_noticed(notice));
    if pipeline.serve.edges && roles(ServiceRole::Serve) {
        log.ensure_edges()?;
    }
    if pipeline.serve.hold == ShardAssignmentMode::Assigned && roles(ServiceRole::Serve) {
        shard_assignment::check_partitions(&log)?;
        if !pipeline.http.listen.is_empty() {
            log.ensure_instances()?;
        }
    }
    if !pipeline.live.is_empty() {
        log.ensure_sources()?;
    }
    let (orders, arriving) = ExtractionOrderSender::new(&*log);
    if extracts_by_model(pipeline) {
        state.orders.get_or_init(|| orders);
    }
    let mut meter = ModelMeter::open(pipeline)?;
    let (edges_out, edges_in) = unbounded();
    let edge_changes = (pipeline.serve.edges && roles(ServiceRole::Serve)).then_some(edges_out);
    let serving = if roles(ServiceRole::Serve) {
        let embedders = Arc::new(EmbedderPool::open(&pipeline.embed, &pipeline.model()).map_err(PipelineError::from)?);
        let beginning = ReplicaOptions {
            hold: pipeline.serve.hold,
            edges: edge_changes,
            record: true,
            asks: embedders.known_model().cloned(),
            waking_log: Some(Arc::<KafkaLog>::clone(&log)),
            turns: None,
            progress: &mut |_, _| {},
        };
        Some((Arc::new(Replica::open(pipeline, &*log, beginning)?), embedders))
    } else {
        None
    };
    if let Some((replica, _)) = &serving {
        state.replica.get_or_init(|| Arc::clone(replica));
    }
    // With a memory, HTTP is served once questions can be answered.
    let _operations = if serving.is_none() && !pipeline.http.listen.is_empty() {
        let log: Arc<dyn Log> = Arc::<KafkaLog>::clone(&log);
        let parts = ServerParts { state: Arc::clone(state), log, memory: None, holders: None };
        Some(v1::start(pipeline, &pipeline.http.listen, parts)?)
    } else {
        None
    };
    // The first thread that fails stops the others.
    let stopping = AtomicBool::new(false);
    let failure: Mutex<Option<ServeError>> = Mutex::new(None);
    // The partitions of requests to forget turns that the group has given to this instance.
    let taken: Mutex<BTreeSet<u32>> = Mutex::default();
    let ended = |result: Result<(), ServeError>| {
        if let Err(error) = result {
            sync::lock(&failure).get_or_insert(error);
        }
        stopping.store(true, Ordering::Relaxed);
        log.news().raise();
    };
    std::thread::scope(|scope| {
        let (log, shared, state, stopping, ended, taken) = (&log, state, &**state, &stopping, &ended, &taken);
        if roles(ServiceRole::Extract) {
            let arriving = &arriving;
            let mut tell = |event| state.note_extraction(&event);
            scope.spawn(move || {
                let join = || -> Result<Box<dyn PartitionAssignment>, PipelineError> {
                    Ok(Box::new(GroupMember::join(log, ConsumerGroup::Extractors)?))
                };
                let extracted = ingest::extract_in_group(pipeline, &**log, join, arriving, stopping, &mut tell);
                ended(extracted.map_err(ServeError::from));
            });
        }
        if let Some((replica, embedders)) = &serving {
            let hold = pipeline.serve.hold;
            scope.spawn(move || ended(follow_memory::follow_memory(log, replica, hold, state, stopping, started)));
            if pipeline.memory.has_sleep() {
                scope.spawn(move || ended(listed_partitions::list_held_partitions(log, replica, state, stopping)));
            }
            if hold == ShardAssignmentMode::Assigned {
                scope.spawn(move || ended(shard_assignment::maintain_shards(log, replica, state, stopping)));
            }
            scope.spawn(move || {
                ended(question_topic::serve_questions(
                    pipeline,
                    log,
                    (replica, Arc::clone(embedders)),
                    shared,
                    stopping,
                ))
            });
            scope.spawn(move || {
                ended(forget_requests::serve_forget_requests(pipeline, log, replica, state, taken, stopping))
            });
            if !pipeline.retention.is_empty() {
                scope.spawn(move || apply_retention::run_retention(pipeline, &**log, replica, state, taken, stopping));
            }
            if !pipeline.snapshot.directory.is_empty() {
                let every = Duration::from_secs(pipeline.snapshot.interval_seconds);
                let is_loaded = || state.loaded.load(Ordering::Relaxed);
                scope.spawn(move || {
                    write_snapshots(replica, &**log, every, &is_loaded, stopping, &mut |is_written, took| {
                        state.note_snapshot(is_written, took);
                    });
                });
            }
            if pipeline.serve.edges {
                scope.spawn(move || ended(edge_topic::publish(log, replica, state, &edges_in, stopping)));
            }
        }
        if roles(ServiceRole::Replay) {
            for table in
                ArchiveTable::ALL.into_iter().filter(|t| pipeline.replay.topics.iter().any(|name| name == t.name()))
            {
                scope.spawn(move || ended(replay_topic::replay(pipeline, table, state, stopping)));
            }
        }
        if !pipeline.live.is_empty() {
            scope.spawn(move || ended(super::source_leases::run_leased_sources(pipeline, log, state, stopping)));
        }
        let mut measured = Instant::now();
        while !stopping.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
            if measured.elapsed() > MEASURE {
                state.measure(&**log);
                meter.count(&state.metrics);
                measured = Instant::now();
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
        stopping.store(true, Ordering::Relaxed);
        log.news().raise();
    });
    sync::into_inner(failure).map_or(Ok(()), Err)
}
