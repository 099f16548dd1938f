//! What this crate writes to the log: one function per event, with its level, its fields and its words.
//!
//! In: what happened. Out: a log line. No line holds a word of what was said.

use tracing::{debug, warn};

/// The embeddings endpoint does not answer while extraction waits for it.
pub(crate) fn embeddings_endpoint_retried(url: &str, seconds: f64) {
    warn!(url, seconds, "the embeddings endpoint does not answer; the request is sent again");
}

/// A text was embedded in a shorter form for the first time. `ripplemem_texts_shortened_total` counts all.
pub(crate) fn first_text_truncated(model: &str, bytes: usize, halvings: u32) {
    warn!(
        model,
        bytes, halvings, "a text has the vector of a part of it; ripplemem_texts_shortened_total counts the next ones"
    );
}

/// A further text was embedded in a shorter form.
pub(crate) fn text_truncated(model: &str, bytes: usize, halvings: u32) {
    debug!(model, bytes, halvings, "a text has the vector of a part of it");
}

/// The cache of responses was opened, and something is wrong with it.
pub(crate) fn response_cache_warned(problem: &str) {
    warn!("{problem}");
}

/// Spending approaches or passes its limit, or a price is missing.
pub(crate) fn spending_warned(warning: &str) {
    warn!("{warning}");
}

/// The reranker cannot read some parts of an answer.
pub(crate) fn parts_unread(model: &str, parts: usize) {
    warn!(model, parts, "the reranker cannot read some parts of an answer");
}
