//! Reads a pipeline file, names its formats, and checks what the configuration alone cannot know.
//!
//! In: a path. Out: a pipeline, or an error that names the file and the key, for which the
//! process exits with 78.

use std::path::Path;

use sources::AUTO;
use types::config::{ConfigError, Pipeline};

/// Reads and checks a pipeline file, with the format of its source. A source that is to be recognised is not opened.
pub fn read_pipeline(path: &Path) -> Result<Pipeline, ConfigError> {
    let pipeline = Pipeline::read(path)?;
    if let Some(settings) = pipeline.source.as_ref().filter(|settings| settings.format != AUTO) {
        let invalid = |e: sources::SourceError| ConfigError::Invalid { path: path.to_owned(), problem: e.to_string() };
        sources::format(&settings.format).map_err(invalid)?;
    }
    Ok(pipeline)
}

/// The pipeline of a file, or the defaults.
///
/// # Errors
/// As [`read_pipeline`].
pub fn pipeline_or_defaults(path: Option<&Path>) -> anyhow::Result<Pipeline> {
    match path {
        Some(path) => Ok(read_pipeline(path)?),
        None => Pipeline::parse("version = 1").map_err(anyhow::Error::msg),
    }
}

/// Names every format of a source after `what`.
#[must_use]
pub fn format_help(what: &str) -> String {
    format!("{what}: {}, or {AUTO} to recognise it", sources::format_names(", "))
}
