//! Reads a pipeline file, and checks what the configuration alone cannot know.
//!
//! In: a path. Out: a pipeline, or an error that names the file and the key, for which the
//! process exits with 78.

use std::path::Path;

use nouns::config::{ConfigError, Pipeline};
use sources::AUTO;

/// Reads and checks a pipeline file, with the format of its source. A source that is to be recognised is not opened.
pub(crate) fn read_pipeline(path: &Path) -> Result<Pipeline, ConfigError> {
    let pipeline = Pipeline::read(path)?;
    if let Some(settings) = pipeline.source.as_ref().filter(|settings| settings.format != AUTO) {
        let invalid = |e: sources::SourceError| ConfigError::Invalid { path: path.to_owned(), problem: e.to_string() };
        sources::format(&settings.format).map_err(invalid)?;
    }
    Ok(pipeline)
}
