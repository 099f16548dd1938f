//! Live sources in a build without the feature `live`: they are refused by name.

use super::ServeError;
use crate::config::Pipeline;

/// Refuses a pipeline that names live sources.
///
/// # Errors
/// [`ServeError::NoLiveSources`].
pub(super) fn check(pipeline: &Pipeline) -> Result<(), ServeError> {
    if pipeline.live.is_empty() { Ok(()) } else { Err(ServeError::NoLiveSources) }
}
