//! Why there are no logits.
//!
//! Out: one error for each remedy; a message names the file, the setting or the model, and no word of a question.

use crate::embed::EmbedError;

/// Why there are no logits.
#[derive(Debug, thiserror::Error)]
pub enum RerankError {
    /// The model's files, or ONNX Runtime, cannot be used.
    #[error("recall.rerank.model: {problem}; `ripplemem setup --reranker` installs ms-marco-MiniLM-L-12-v2")]
    Files {
        /// What is wrong with which file.
        problem: EmbedError,
    },
    /// A thread cannot be started.
    #[error("reranker {model}: a thread cannot be started: {problem}; raise the system's limit on threads")]
    Thread {
        /// The model's name.
        model: String,
        /// The system's message.
        problem: String,
    },
    /// The model could not be run.
    #[error("reranker {model}: {problem}")]
    Model {
        /// The model's name.
        model: String,
        /// The runtime's message.
        problem: String,
    },
    /// The question leaves no room for a passage.
    #[error("the question has {tokens} tokens, and beside a passage the reranker reads at most {most}")]
    LongQuestion {
        /// Its tokens.
        tokens: usize,
        /// The most that it may have.
        most: usize,
    },
    /// The time for the logits is over.
    #[error("the reranker had read {read} of {passages} parts when the time for it was over")]
    Late {
        /// The passages that have a logit.
        read: usize,
        /// All of them.
        passages: usize,
    },
}

impl From<EmbedError> for RerankError {
    fn from(problem: EmbedError) -> Self {
        Self::Files { problem }
    }
}
