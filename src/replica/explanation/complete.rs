//! Completes an explanation with the steps that are read from the log.

use super::{PipelineError, Replica, log_steps::log_steps};
use logs::Log;
use memory::recall::RecallExplanation;
use types::model::{Bank, Explanation};

/// Adds the steps of the turn that the log shows. Reads the log.
///
/// # Errors
/// [`PipelineError`] if the log failed.
pub fn complete_explanation(
    log: &dyn Log,
    replica: &Replica,
    bank: &Bank,
    explained: RecallExplanation,
) -> Result<Explanation, PipelineError> {
    let before = log_steps(log, replica, bank, &explained)?;
    Ok(explained.complete(before))
}
