//! An explanation with the steps that the log knows.

use super::{PipelineError, Replica, log_steps::log_steps};
use crate::log::Log;
use heart::recall::Explained;
use nouns::model::{Bank, Explanation};

/// Adds what the log knows of the turn. Reads the log.
///
/// # Errors
/// [`PipelineError`] where the log failed.
pub(in crate::pipeline) fn complete(
    log: &dyn Log,
    replica: &Replica,
    bank: &Bank,
    explained: Explained,
) -> Result<Explanation, PipelineError> {
    let before = log_steps(log, replica, bank, &explained)?;
    Ok(explained.complete(before))
}
