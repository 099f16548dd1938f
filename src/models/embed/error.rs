//! Why there are no vectors.
//!
//! Out: one error for each remedy; a message names the file, the setting or the model.

use std::path::PathBuf;

/// Why there are no vectors.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// A file that embedding needs was not found.
    #[error("{what} is not in any of these places: {}. Run `ripplemem setup`, which installs ONNX Runtime and the default model; for another model, put its files there (docs/models.md) or give their place in the pipeline file ([embed])", list(.searched))]
    Missing {
        /// What the file is.
        what: String,
        /// Every path that was tried, in order.
        searched: Vec<PathBuf>,
    },
    /// A file exists and cannot be read.
    #[error("{path}: cannot be read; check its permissions")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A file exists and its content is wrong.
    #[error("{path}: {problem}; remove the file and run `ripplemem setup`, or put the right one there")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// No runner knows the model.
    #[error("embed.model: {name:?} is neither under [embed.models] nor in the catalogue; nearest: {}", .nearest.join(", "))]
    Unknown {
        /// The name as given.
        name: String,
        /// Known names, nearest first.
        nearest: Vec<String>,
    },
    /// The model's runner is not part of this build.
    #[error(
        "embed.model: {name:?} needs a build with `--features qwen3`; build one, or name an endpoint that serves the model (set runner = \"endpoint\", and served, in its entry under [embed.models])"
    )]
    NotInBuild {
        /// The name as given.
        name: String,
    },
    /// A span is not a range of its text.
    #[error(
        "text {text}: bytes {start} to {end} of its {length} split a character or lie outside it; cut at character boundaries"
    )]
    Span {
        /// Which text of the call, from 0.
        text: usize,
        /// The span's start, in bytes.
        start: usize,
        /// The span's end, in bytes.
        end: usize,
        /// The text's length in bytes.
        length: usize,
    },
    /// The model could not be run.
    #[error("model {model}: {problem}")]
    Model {
        /// The model's name.
        model: String,
        /// The runtime's or the endpoint's message.
        problem: String,
    },
    /// The endpoint cannot be reached, refuses every request or serves another model; a later call may succeed.
    #[error("model {model}: {problem}; texts wait until the endpoint answers again")]
    Unavailable {
        /// The model's name.
        model: String,
        /// The endpoint's message.
        problem: String,
    },
    /// The model does not take these texts, even alone and shortened, but takes others. Retrying does not help.
    #[error("model {model}: {} text(s) declined; the reason for the first: {}", texts.len(), texts.first().map_or("", |(_, problem)| problem))]
    Declined {
        /// The model's name.
        model: String,
        /// Which texts of the call, from 0, each with the endpoint's message.
        texts: Vec<(usize, String)>,
    },
    /// The cache of vectors cannot be used.
    #[error("{path}: the cache of vectors: {problem}")]
    Cache {
        /// The cache's directory.
        path: PathBuf,
        /// Why, and what to do.
        problem: String,
    },
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ")
}
