//! Why a report could not be written. Each error names the file.

use std::path::PathBuf;

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum EvalReportError {
    /// The directory or a file in it could not be written.
    #[error("{path}: cannot be written; name another directory, or free some space")]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A plot could not be drawn.
    #[error("plot {name}: cannot be drawn; this is a defect, please report it")]
    Plot {
        /// The plot's file.
        name: &'static str,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
