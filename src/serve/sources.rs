//! Live sources of a service: each runs where its lease lies.
//!
//! In: the sources of a pipeline. Out: their turns, metrics, and messages for people; a problem that
//! repeats is said once. The consumer group gives each partition of the topic `sources` to one
//! instance, which runs the sources of that partition, each on a thread. An instance that lost a
//! partition and does not know it yet is fenced by the one that has it. Requests of platforms come in at
//! `/sources/NAME`, on the listener that anybody may reach.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{Scope, ScopedJoinHandle},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::{Path, State as Shared},
    http::HeaderMap,
    routing::post,
};

use super::{error::ServeError, state::State};
use crate::{
    config::{LiveSettings, Pipeline},
    log::{
        KafkaLog,
        kafka::{
            members::{Group, Member, Membership},
            partition_of_source,
        },
    },
    pipeline::{LiveEvent, LiveRun, PipelineError, follow_source},
    sync,
    telemetry::{OfSource, Skipped},
};

/// How long the loop waits for changes of membership.
const WAIT: Duration = Duration::from_millis(100);

/// Takes what platforms send; a request without its platform's signature is refused.
pub(super) fn routes() -> Router<Arc<State>> {
    let taken = |Shared(state): Shared<Arc<State>>, Path(name): Path<String>, headers: HeaderMap, body: Bytes| async move {
        state.webhooks.reply(&name, &headers, &body).await
    };
    Router::new().route("/sources/{name}", post(taken))
}

/// Runs the sources that the group gives to this instance, until `stopping`.
pub(super) fn run(
    pipeline: &Pipeline,
    log: &KafkaLog,
    state: &State,
    stopping: &AtomicBool,
    say: &(dyn Fn(&str) + Sync),
) -> Result<(), ServeError> {
    let member = Member::join(log, Group::Sources)?;
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
            let changes = match member.changes(WAIT) {
                Ok(changes) => changes,
                Err(error) => break Err(error.into()),
            };
            for change in changes {
                match change {
                    Membership::Assigned(partitions) => {
                        for settings in partitions.into_iter().flat_map(in_partition) {
                            let Some(stop) = stops.get(settings.name.as_str()) else { continue };
                            if running.contains_key(settings.name.as_str()) {
                                continue;
                            }
                            stop.store(false, Ordering::Relaxed);
                            let task = Task { pipeline, log, state, settings, stop, stopping, failure: &failure, say };
                            running.insert(&settings.name, task.start(scope));
                        }
                    }
                    Membership::Revoked(partitions) => {
                        for settings in partitions.into_iter().flat_map(in_partition) {
                            let name = settings.name.as_str();
                            if let (Some(stop), Some(thread)) = (stops.get(name), running.remove(name)) {
                                stop.store(true, Ordering::Relaxed);
                                drop(thread.join());
                                say(&format!("source {name}: another instance has it"));
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
struct Task<'a> {
    pipeline: &'a Pipeline,
    log: &'a KafkaLog,
    state: &'a State,
    settings: &'a LiveSettings,
    stop: &'a AtomicBool,
    stopping: &'a AtomicBool,
    failure: &'a Mutex<Option<PipelineError>>,
    say: &'a (dyn Fn(&str) + Sync),
}

impl<'a> Task<'a> {
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
        let Self { pipeline, log, state, settings, stop, stopping, say, .. } = *self;
        let name = &settings.name;
        let of = OfSource { source: name.clone() };
        let gap = Duration::from_secs(u64::from(pipeline.window.gap_minutes) * 60);
        let run = LiveRun { settings, gap, fenced_pause: Duration::from_secs(2 * pipeline.log.kafka.session_seconds) };
        let arriving = state.webhooks.admit(name);
        let stop = || stop.load(Ordering::Relaxed) || stopping.load(Ordering::Relaxed);
        let mut last_problem = None;
        let result = follow_source(log, run, &arriving, &stop, &mut |event| match event {
            LiveEvent::Following => {
                last_problem = None;
                say(&format!("source {name}: followed by this instance"));
            }
            LiveEvent::Committed { events, rejects, skipped } => {
                state.metrics.source_events.get_or_create(&of).inc_by(events);
                state.metrics.source_rejects.get_or_create(&of).inc_by(rejects);
                for (reason, count) in skipped {
                    let of = Skipped { source: name.clone(), reason };
                    state.metrics.source_skips.get_or_create(&of).inc_by(count);
                }
            }
            LiveEvent::Notice(notice) => say(&format!("source {name}: {notice}")),
            LiveEvent::Interrupted { problem, after } => {
                state.metrics.source_interruptions.get_or_create(&of).inc();
                if last_problem.as_ref() != Some(&problem) {
                    say(&format!("source {name}: {problem}; trying again in {:.1} s", after.as_secs_f64()));
                }
                last_problem = Some(problem);
            }
        });
        state.webhooks.refuse(name);
        result
    }
}
