//! Live sources of a service on Kafka: each runs on the instance that has its lease.
//!
//! In: the sources of a pipeline. Out: their turns. The consumer group assigns each partition of the topic `sources` to
//! one instance, which runs the sources of that partition, each on a thread. An instance that has lost a partition and
//! does not know it yet is fenced by the new owner.

use super::log_events;
use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{Scope, ScopedJoinHandle},
    time::Duration,
};

use super::{error::ServeError, followed_source::FollowedSource, service_state::ServiceState};
use ingest::follow_source;
use logs::{
    AssignmentChange, KafkaLog, Log, PartitionAssignment,
    kafka::{
        group_member::{ConsumerGroup, GroupMember},
        partition_of_source,
    },
};
use pipeline::PipelineError;
use types::{
    config::{LiveSourceSettings, Pipeline},
    sync,
};

/// The longest wait for a decision of the group.
const PATIENCE: Duration = Duration::from_millis(250);

/// Runs the sources that the group assigns to this instance, until `stopping`.
pub(super) fn run_leased_sources(
    pipeline: &Pipeline,
    log: &KafkaLog,
    state: &ServiceState,
    stopping: &AtomicBool,
) -> Result<(), ServeError> {
    let member = GroupMember::join(log, ConsumerGroup::Sources)?;
    let failure: Mutex<Option<PipelineError>> = Mutex::new(None);
    // Sources whose lease this instance has lost stop one by one.
    let stops: BTreeMap<&str, AtomicBool> =
        pipeline.live.iter().map(|source| (source.name.as_str(), AtomicBool::new(true))).collect();
    let in_partition = |partition: u32| pipeline.live.iter().filter(move |s| partition_of_source(&s.name) == partition);
    std::thread::scope(|scope| {
        let mut running: BTreeMap<&str, ScopedJoinHandle<'_, ()>> = BTreeMap::new();
        let ended = loop {
            if stopping.load(Ordering::Relaxed) || sync::lock(&failure).is_some() {
                break Ok(());
            }
            let seen = log.news().count();
            let changes = match member.changes() {
                Ok(changes) => changes,
                Err(error) => break Err(error.into()),
            };
            if changes.is_empty() {
                log.news().wait(seen, PATIENCE);
            }
            for change in changes {
                match change {
                    AssignmentChange::Assigned(partitions) => {
                        for settings in partitions.into_iter().flat_map(in_partition) {
                            let Some(stop) = stops.get(settings.name.as_str()) else { continue };
                            if running.contains_key(settings.name.as_str()) {
                                continue;
                            }
                            stop.store(false, Ordering::Relaxed);
                            let task = SourceTask { pipeline, log, state, settings, stop, stopping, failure: &failure };
                            running.insert(&settings.name, task.start(scope));
                        }
                    }
                    AssignmentChange::Revoked(partitions) => {
                        for settings in partitions.into_iter().flat_map(in_partition) {
                            let name = settings.name.as_str();
                            if let (Some(stop), Some(thread)) = (stops.get(name), running.remove(name)) {
                                stop.store(true, Ordering::Relaxed);
                                drop(thread.join());
                                log_events::source_left(name);
                            }
                        }
                    }
                }
            }
        };
        stops.values().for_each(|stop| stop.store(true, Ordering::Relaxed));
        ended
    })
    .and_then(|()| sync::into_inner(failure).map_or(Ok(()), |error| Err(error.into())))
}

/// One source on its thread.
struct SourceTask<'a> {
    pipeline: &'a Pipeline,
    log: &'a KafkaLog,
    state: &'a ServiceState,
    settings: &'a LiveSourceSettings,
    stop: &'a AtomicBool,
    stopping: &'a AtomicBool,
    failure: &'a Mutex<Option<PipelineError>>,
}

impl<'a> SourceTask<'a> {
    fn start<'scope>(self, scope: &'scope Scope<'scope, '_>) -> ScopedJoinHandle<'scope, ()>
    where
        'a: 'scope,
    {
        scope.spawn(move || {
            if let Err(error) = self.follow() {
                sync::lock(self.failure).get_or_insert(error);
            }
        })
    }

    fn follow(&self) -> Result<(), PipelineError> {
        let Self { pipeline, log, state, settings, stop, stopping, .. } = *self;
        let stop = || stop.load(Ordering::Relaxed) || stopping.load(Ordering::Relaxed);
        let followed = FollowedSource { pipeline, settings, state };
        followed.follow_with(|run, arriving, tell| follow_source(log, run, arriving, &stop, tell))
    }
}
