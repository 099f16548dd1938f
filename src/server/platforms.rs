//! A live source that this process follows: what people and metrics learn of it.
//!
//! In: a source, its webhooks, and who follows it. Out: a message where something changes; a problem that
//! repeats is said once. Requests of the platform are let in for as long as the source is followed.

use std::{sync::Arc, time::Duration};

use crossbeam_channel::Receiver;

use super::{error::ServeError, webhooks::Webhooks};
use crate::telemetry::{Metrics, OfSource, Skipped};
use nouns::config::{LiveSettings, Pipeline};
use ripplemem::pipeline::{LiveEvent, LiveRun, PipelineError};
use sources::live::{Delivered, LiveSource};

/// Checks the sources of a pipeline as far as that goes without their platforms, and reads the secrets of
/// their webhooks.
pub(super) fn open(pipeline: &Pipeline) -> Result<Arc<Webhooks>, ServeError> {
    pipeline.live.iter().try_for_each(LiveSource::check).map_err(PipelineError::from)?;
    Ok(Arc::new(Webhooks::open(&pipeline.live).map_err(PipelineError::from)?))
}

/// One source, and who hears of it.
pub(super) struct Followed<'a> {
    pub(super) pipeline: &'a Pipeline,
    pub(super) settings: &'a LiveSettings,
    pub(super) webhooks: &'a Webhooks,
    pub(super) metrics: Option<&'a Metrics>,
    pub(super) say: &'a (dyn Fn(&str) + Sync),
}

impl Followed<'_> {
    /// Has `follow` follow it.
    pub(super) fn by(
        &self,
        follow: impl FnOnce(LiveRun<'_>, &Receiver<Delivered>, &mut dyn FnMut(LiveEvent)) -> Result<(), PipelineError>,
    ) -> Result<(), PipelineError> {
        let Self { pipeline, settings, webhooks, say, .. } = *self;
        let name = &settings.name;
        let gap = Duration::from_secs(u64::from(pipeline.window.gap_minutes) * 60);
        let run = LiveRun { settings, gap, fenced_pause: Duration::from_secs(2 * pipeline.log.kafka.session_seconds) };
        let mut last_problem = None;
        let result = follow(run, &webhooks.admit(name), &mut |event| {
            self.count(&event);
            match event {
                LiveEvent::Following => {
                    last_problem = None;
                    say(&format!("source {name}: followed"));
                }
                LiveEvent::Committed { .. } => {}
                LiveEvent::Notice(notice) => say(&format!("source {name}: {notice}")),
                LiveEvent::Interrupted { problem, after } => {
                    if last_problem.as_ref() != Some(&problem) {
                        say(&format!("source {name}: {problem}; trying again in {:.1} s", after.as_secs_f64()));
                    }
                    last_problem = Some(problem);
                }
            }
        });
        webhooks.refuse(name);
        result
    }

    fn count(&self, event: &LiveEvent) {
        let Some(metrics) = self.metrics else { return };
        let source = &self.settings.name;
        let of = OfSource { source: source.clone() };
        match event {
            LiveEvent::Committed { events, rejects, skipped } => {
                metrics.source_events.get_or_create(&of).inc_by(*events);
                metrics.source_rejects.get_or_create(&of).inc_by(*rejects);
                for (reason, count) in skipped {
                    metrics.source_skips.get_or_create(&Skipped { source: source.clone(), reason }).inc_by(*count);
                }
            }
            LiveEvent::Interrupted { .. } => drop(metrics.source_interruptions.get_or_create(&of).inc()),
            LiveEvent::Following | LiveEvent::Notice(_) => {}
        }
    }
}
