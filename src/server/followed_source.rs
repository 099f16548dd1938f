//! A live source that this process follows: its log lines and its metrics.
//!
//! In: a source, its webhooks, and who follows it. Out: a log line for each change; a problem that repeats is logged
//! once. Requests of the platform are admitted while the source is followed.

use crate::log_events;
use std::{sync::Arc, time::Duration};

use crossbeam_channel::Receiver;

use super::{error::ServeError, service_state::ServiceState, webhooks::Webhooks};
use crate::telemetry::{SkippedTurnLabels, SourceLabel};
use ingest::{LiveSourceEvent, LiveSourceOptions};
use pipeline::PipelineError;
use sources::live::{LiveSource, WebhookDelivery};
use types::config::{LiveSourceSettings, Pipeline};

/// Checks the sources of a pipeline as far as that is possible without their platforms, and reads the secrets of their
/// webhooks.
pub(super) fn open(pipeline: &Pipeline) -> Result<Arc<Webhooks>, ServeError> {
    pipeline.live.iter().try_for_each(LiveSource::check).map_err(PipelineError::from)?;
    Ok(Arc::new(Webhooks::open(&pipeline.live).map_err(PipelineError::from)?))
}

/// One source, and what counts its turns.
pub(super) struct FollowedSource<'a> {
    pub(super) pipeline: &'a Pipeline,
    pub(super) settings: &'a LiveSourceSettings,
    pub(super) state: &'a ServiceState,
}

impl FollowedSource<'_> {
    /// Runs `follow` for the source, and logs and counts its events.
    pub(super) fn follow_with(
        &self,
        follow: impl FnOnce(
            LiveSourceOptions<'_>,
            &Receiver<WebhookDelivery>,
            &mut dyn FnMut(LiveSourceEvent),
        ) -> Result<(), PipelineError>,
    ) -> Result<(), PipelineError> {
        let Self { pipeline, settings, state } = *self;
        let name = settings.name.as_str();
        let gap = Duration::from_secs(u64::from(pipeline.window.gap_minutes) * 60);
        let run = LiveSourceOptions {
            settings,
            gap,
            fenced_pause: Duration::from_secs(2 * pipeline.log.kafka.session_seconds),
        };
        let mut last_problem = None;
        let result = follow(run, &state.webhooks.admit(name), &mut |event| {
            self.count(&event);
            state.sources.note(name, &event);
            match event {
                LiveSourceEvent::Following => {
                    last_problem = None;
                    log_events::source_followed(name);
                }
                LiveSourceEvent::Committed { .. } => {}
                LiveSourceEvent::Notice(notice) => log_events::live_source_noticed(name, &notice),
                LiveSourceEvent::Interrupted { problem, after } => {
                    if last_problem.as_ref() != Some(&problem) {
                        let seconds = after.as_secs_f64();
                        log_events::source_interrupted(name, &problem, seconds);
                    }
                    last_problem = Some(problem);
                }
            }
        });
        state.webhooks.refuse(name);
        state.sources.forget(name);
        result
    }

    fn count(&self, event: &LiveSourceEvent) {
        let metrics = &self.state.metrics;
        let source = &self.settings.name;
        let of = SourceLabel { source: source.clone() };
        match event {
            LiveSourceEvent::Committed { events, rejects, skipped } => {
                metrics.source_events.get_or_create(&of).inc_by(*events);
                metrics.source_rejects.get_or_create(&of).inc_by(*rejects);
                metrics.dead_letters.inc_by(*rejects);
                for (reason, count) in skipped {
                    metrics
                        .source_skips
                        .get_or_create(&SkippedTurnLabels { source: source.clone(), reason })
                        .inc_by(*count);
                }
            }
            LiveSourceEvent::Interrupted { .. } => drop(metrics.source_interruptions.get_or_create(&of).inc()),
            LiveSourceEvent::Following | LiveSourceEvent::Notice(_) => {}
        }
    }
}
