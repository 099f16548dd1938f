//! The service on an embedded log: a memory that stays open, reached over HTTP.
//!
//! In: a pipeline with an embedded log and `http.listen`. Out: answers at that address until `stop`. A file that the
//! pipeline names as its source is read to its end meanwhile, and its platforms are followed. The directory's lock is
//! the lease of every source. At the end, requests that have begun are answered, a snapshot is written, and the
//! directory is released. A kill loses nothing that was acknowledged.

use crate::log_events;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    ServeError,
    followed_source::FollowedSource,
    served_memory::ServedMemory,
    service_state::{ModelMeter, ServiceState},
    systemd_notify,
};
use pipeline::{PipelineError, Progress, redacted_error};
use ripplemem::Memory;
use types::{
    config::{Pipeline, SourceSettings},
    sync,
};

/// The longest time until a stop is noticed.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// The time between two measurements of values that no event reports.
const MEASURE: Duration = Duration::from_secs(1);

/// Runs until `stop`. `progress` receives how far opening is.
///
/// # Errors
/// [`ServeError`]: the directory is in use, the address is taken, the memory cannot be opened, or a platform
/// cannot be followed as the pipeline says.
pub(super) fn run(
    pipeline: &Pipeline,
    state: &Arc<ServiceState>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), ServeError> {
    let started = Instant::now();
    let served = ServedMemory::open(pipeline, &pipeline.http.listen, state, progress)?;
    let took = started.elapsed().as_secs_f64();
    state.metrics.recovery_seconds.set(took);
    log_events::memory_ready(took, pipeline.log.directory.display());
    systemd_notify::notify_started();
    let mut meter = ModelMeter::open(pipeline)?;
    let failure: Mutex<Option<PipelineError>> = Mutex::new(None);
    let stopping = || stop.load(Ordering::Relaxed) || sync::lock(&failure).is_some();
    std::thread::scope(|scope| {
        let memory = served.memory();
        if let Some(settings) = &pipeline.source {
            let read_turns = pipeline.embed.read_turns;
            scope.spawn(move || {
                if let Err(error) = read_source(memory, state, settings, read_turns, stop) {
                    let path = settings.path.display();
                    log_events::source_failed(path, &redacted_error(&error));
                }
            });
        }
        for settings in &pipeline.live {
            let (failure, stopping) = (&failure, &stopping);
            scope.spawn(move || {
                let followed = FollowedSource { pipeline, settings, state };
                let ended =
                    followed.follow_with(|run, arriving, tell| memory.follow_source(run, arriving, stopping, tell));
                if let Err(error) = ended {
                    sync::lock(failure).get_or_insert(error);
                }
            });
        }
        let mut measured = Instant::now();
        while !stopping() {
            if measured.elapsed() > MEASURE {
                state.measure(&**memory.log());
                meter.count(&state.metrics);
                measured = Instant::now();
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
    });
    served.close()?;
    sync::into_inner(failure).map_or(Ok(()), |error| Err(error.into()))
}

/// Reads a source to its end.
fn read_source(
    memory: &Memory,
    state: &ServiceState,
    settings: &SourceSettings,
    read_turns: usize,
    stop: &AtomicBool,
) -> Result<(), PipelineError> {
    let mut source = sources::open(settings)?;
    source.hide_ids(memory.log().id_salt()?);
    let name = source.describe();
    if let Some(notice) = source.notice() {
        log_events::source_noticed(&name, &notice);
    }
    let (mut turns, mut rejects) = (0, 0);
    while let Some(batch) = source.next(read_turns)? {
        rejects += batch.rejects.len();
        turns += batch.events.len();
        state.metrics.dead_letters.inc_by(batch.rejects.len() as u64);
        memory.put_dead_letters(&batch.rejects)?;
        memory.put(batch.events)?;
        if stop.load(Ordering::Relaxed) {
            log_events::source_left_unread(&name, turns);
            return Ok(());
        }
    }
    log_events::source_read(&name, turns, rejects);
    Ok(())
}
