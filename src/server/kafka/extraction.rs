//! The role `extract`: turns to memory records, with metrics and messages.
//!
//! In: events of the extraction. Out: metrics, and messages for people; a problem that repeats is
//! said once.

use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::Receiver;

use super::{error::ServeError, state::State};
use crate::telemetry::OfPartition;
use nouns::{config::Pipeline, sync};
use ripplemem::{
    log::KafkaLog,
    pipeline::{self, ExtractionEvent, ReextractRequest},
};

/// Extracts until `stopping`, and counts what happens.
pub(super) fn extract(
    pipeline: &Pipeline,
    log: &KafkaLog,
    state: &State,
    reextractions: &Receiver<ReextractRequest>,
    stopping: &AtomicBool,
    say: &(dyn Fn(&str) + Sync),
) -> Result<(), ServeError> {
    let metrics = &state.metrics;
    let mut last_problem = None;
    pipeline::extract(pipeline, log, reextractions, stopping, &mut |event| {
        state.joined.store(true, Ordering::Relaxed);
        let mut positions = sync::lock(&state.positions);
        match event {
            ExtractionEvent::Joined => {}
            ExtractionEvent::TakenOver { partition, position, took } => {
                positions.insert(partition, position);
                metrics.owned.set(positions.len() as i64);
                metrics.takeover_seconds.set(took.as_secs_f64());
                last_problem = None;
                say(&format!(
                    "partition {partition}: assigned to this instance, from offset {position} ({:.2} s)",
                    took.as_secs_f64()
                ));
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
                model_usage,
            } => {
                positions.insert(partition, position);
                metrics.commits.inc();
                metrics.events.inc_by(events);
                metrics.rejects.inc_by(rejects);
                metrics.forwards.inc_by(forwards);
                metrics.firings.inc_by(windows);
                metrics.units.inc_by(units);
                metrics.step_seconds.observe(took.as_secs_f64());
                for usage in model_usage {
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
                if last_problem.as_ref() != Some(&problem) {
                    say(&format!("partition {partition}: {problem}; trying again"));
                }
                last_problem = Some(problem);
            }
            ExtractionEvent::Warning(warning) => say(&warning),
        }
    })?;
    Ok(())
}
