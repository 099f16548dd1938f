//! A live source that this process follows: its log lines and its metrics.
//!
//! In: a source, its webhooks, and who follows it. Out: a log line where something changes; a problem that
//! repeats is said once. Requests of the platform are let in for as long as the source is followed.

use std::{sync::Arc, time::Duration};

use crossbeam_channel::Receiver;

use tracing::{info, warn};

use super::{error::ServeError, state::State, webhooks::Webhooks};
use crate::telemetry::{OfSource, Skipped};
use nouns::config::{LiveSettings, Pipeline};
use ripplemem::pipeline::{LiveEvent, LiveRun, PipelineError};
use sources::live::{Delivered, LiveSource};

/// Checks the sources of a pipeline as far as that goes without their platforms, and reads the secrets of
/// their webhooks.
pub(super) fn open(pipeline: &Pipeline) -> Result<Arc<Webhooks>, ServeError> {
    pipeline.live.iter().try_for_each(LiveSource::check).map_err(PipelineError::from)?;
    Ok(Arc::new(Webhooks::open(&pipeline.live).map_err(PipelineError::from)?))
}

/// One source, and what counts its turns.
pub(super) struct FollowedSource<'a> {
    pub(super) pipeline: &'a Pipeline,
    pub(super) settings: &'a LiveSettings,
    pub(super) state: &'a State,
}

impl FollowedSource<'_> {
    /// Has `follow` follow it.
    pub(super) fn by(
        &self,
        follow: impl FnOnce(LiveRun<'_>, &Receiver<Delivered>, &mut dyn FnMut(LiveEvent)) -> Result<(), PipelineError>,
    ) -> Result<(), PipelineError> {
        let Self { pipeline, settings, state } = *self;
        let name = settings.name.as_str();
        let gap = Duration::from_secs(u64::from(pipeline.window.gap_minutes) * 60);
        let run = LiveRun { settings, gap, fenced_pause: Duration::from_secs(2 * pipeline.log.kafka.session_seconds) };
        let mut last_problem = None;
        let result = follow(run, &state.webhooks.admit(name), &mut |event| {
            self.count(&event);
            state.sources.note(name, &event);
            match event {
                LiveEvent::Following => {
                    last_problem = None;
                    info!(source = name, "the source is followed");
                }
                LiveEvent::Committed { .. } => {}
                LiveEvent::Notice(notice) => warn!(source = name, "{notice}"),
                LiveEvent::Interrupted { problem, after } => {
                    if last_problem.as_ref() != Some(&problem) {
                        let seconds = after.as_secs_f64();
                        warn!(source = name, problem, seconds, "the source is interrupted; it is opened again");
                    }
                    last_problem = Some(problem);
                }
            }
        });
        state.webhooks.refuse(name);
        state.sources.forget(name);
        result
    }

    fn count(&self, event: &LiveEvent) {
        let metrics = &self.state.metrics;
        let source = &self.settings.name;
        let of = OfSource { source: source.clone() };
        match event {
            LiveEvent::Committed { events, rejects, skipped } => {
                metrics.source_events.get_or_create(&of).inc_by(*events);
                metrics.source_rejects.get_or_create(&of).inc_by(*rejects);
                metrics.dead_letters.inc_by(*rejects);
                for (reason, count) in skipped {
                    metrics.source_skips.get_or_create(&Skipped { source: source.clone(), reason }).inc_by(*count);
                }
            }
            LiveEvent::Interrupted { .. } => drop(metrics.source_interruptions.get_or_create(&of).inc()),
            LiveEvent::Following | LiveEvent::Notice(_) => {}
        }
    }
}
