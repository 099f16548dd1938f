//! Reads a pipeline file, and checks what the configuration alone cannot know.
//!
//! In: a path. Out: a pipeline, or an error that names the file and the key, for which the
//! process exits with 78.

use std::path::Path;

use nouns::config::{ConfigError, Pipeline};

/// Reads and checks a pipeline file, with the format of its source.
pub(crate) fn read_pipeline(path: &Path) -> Result<Pipeline, ConfigError> {
    let pipeline = Pipeline::read(path)?;
    if let Some(settings) = &pipeline.source {
        let invalid = |e: sources::SourceError| ConfigError::Invalid { path: path.to_owned(), problem: e.to_string() };
        sources::format(&settings.format).map_err(invalid)?;
    }
    Ok(pipeline)
}
