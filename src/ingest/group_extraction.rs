//! Extraction in a group: the partitions that a consumer group assigns to this process.
//!
//! In: a log, and a group that decides which partitions belong to this process. Out: memory records, until it is
//! stopped. The memory follows the topic elsewhere.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use super::{
    ExtractionDriver, ExtractionEvent, ExtractionOrderReceiver, ExtractionRun, ExtractionSchedule, PipelineError,
};
use logs::{Log, PartitionAssignment};
use pipeline::model_of;
use types::config::Pipeline;

/// Extracts until `stop`, and takes orders. `join` joins the group once the model of the vectors is open.
///
/// # Errors
/// [`PipelineError`] that no retry can fix; everything acknowledged is in the log.
pub fn extract_in_group(
    pipeline: &Pipeline,
    log: &dyn Log,
    join: impl FnOnce() -> Result<Box<dyn PartitionAssignment>, PipelineError>,
    orders: &ExtractionOrderReceiver,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(ExtractionEvent),
) -> Result<(), PipelineError> {
    let mut extraction = ExtractionDriver::new(pipeline, log.news())?;
    let stop = || stop.load(Ordering::Relaxed);
    let Some(model) = extraction.open_model(&stop, log.news())? else { return Ok(()) };
    if let Some(found) = model_of(log, Some(&model))?.filter(|found| *found != model) {
        return Err(PipelineError::other_model(&found, &model));
    }
    let assignment = join()?;
    tell(ExtractionEvent::Joined);
    let schedule =
        ExtractionSchedule::ByGroup { fenced_pause: Duration::from_secs(2 * pipeline.log.kafka.session_seconds) };
    extraction.run(
        &ExtractionRun { log, assignment: &*assignment, schedule, follow: &|_| Ok(()), moves: None },
        orders,
        &stop,
        tell,
    )
}
