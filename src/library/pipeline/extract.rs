//! Extraction in a group: the partitions that the consumer group assigns to this process.
//!
//! In: a log on Kafka. Out: memory records, until told to stop. The memory follows the topic elsewhere.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use super::{
    PipelineError,
    ingest::{ArrivingOrders, Extraction, ExtractionEvent, Run, Schedule},
    replica::model_of,
};
use crate::log::{
    KafkaLog, Log,
    kafka::members::{Group, Member},
};
use nouns::config::Pipeline;

/// Extracts until `stop`, and takes orders.
///
/// # Errors
/// [`PipelineError`] that no retry mends; everything acknowledged is in the log.
pub fn extract(
    pipeline: &Pipeline,
    log: &KafkaLog,
    orders: &ArrivingOrders,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(ExtractionEvent),
) -> Result<(), PipelineError> {
    let mut extraction = Extraction::new(pipeline, log.news())?;
    let stop = || stop.load(Ordering::Relaxed);
    let Some(model) = extraction.open_model(&stop, log.news())? else { return Ok(()) };
    if let Some(found) = model_of(log)?.filter(|found| *found != model) {
        return Err(PipelineError::other_model(&found, &model));
    }
    let member = Member::join(log, Group::Extractors)?;
    tell(ExtractionEvent::Joined);
    let schedule = Schedule::ByGroup { fenced_pause: Duration::from_secs(2 * pipeline.log.kafka.session_seconds) };
    extraction.run(&Run { log, assignment: &member, schedule, follow: &|_| Ok(()) }, orders, &stop, tell)
}
