//! Reads the verdicts that other instances write into the turns topic.
//!
//! In: requests whose callers wait in this process. Out: their verdicts, told to the callers. A thread reads the
//! partition from its present end on until nobody waits. If this process extracts the partition itself, its verdicts
//! arrive earlier than they are read.

use std::{sync::Arc, thread, time::Duration};

use logs::{Log, Topic};
use pipeline::PipelineError;
use types::model::TurnEvent;

/// Records read at once.
const READ_AT_ONCE: usize = 256;
/// The pause at the end of the partition.
const PAUSE: Duration = Duration::from_millis(20);
/// The pause after the log failed.
const FAILED_PAUSE: Duration = Duration::from_millis(500);

/// Begins to read the verdicts of a partition, for these requests.
///
/// # Errors
/// [`PipelineError::Log`]; [`PipelineError::Thread`] if no thread can be started.
pub(super) fn follow_verdicts(log: &Arc<dyn Log>, partition: u32, requests: &[String]) -> Result<(), PipelineError> {
    let mut at = log.end(Topic::Turns, partition)?;
    let (log, requests) = (Arc::clone(log), requests.to_vec());
    let read = move || {
        while log.outcomes().awaits_any(&requests) {
            let Ok(batch) = log.read(Topic::Turns, partition, at, READ_AT_ONCE) else {
                thread::sleep(FAILED_PAUSE);
                continue;
            };
            for record in &batch.records {
                if let Ok(TurnEvent::Verdict(verdict)) =
                    TurnEvent::from_log(record.value.as_deref().unwrap_or_default())
                {
                    log.outcomes().tell(&verdict);
                }
            }
            at = batch.next.max(at);
            if batch.records.is_empty() {
                thread::sleep(PAUSE);
            }
        }
    };
    thread::Builder::new().name("verdicts".to_owned()).spawn(read).map_err(PipelineError::Thread)?;
    Ok(())
}
