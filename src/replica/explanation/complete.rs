//! An explanation with the steps that the log knows.

use super::{PipelineError, Replica, log_steps::log_steps};
use logs::Log;
use memory::recall::RecallExplanation;
use types::model::{Bank, Explanation};

/// Adds what the log knows of the turn. Reads the log.
///
/// # Errors
/// [`PipelineError`] where the log failed.
pub fn complete_explanation(
    log: &dyn Log,
    replica: &Replica,
    bank: &Bank,
    explained: RecallExplanation,
) -> Result<Explanation, PipelineError> {
    let before = log_steps(log, replica, bank, &explained)?;
    Ok(explained.complete(before))
}
