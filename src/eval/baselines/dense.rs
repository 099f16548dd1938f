//! Dense retrieval: by cosine of the best vector, as every vector store does it.

use super::corpus::{Corpus, Query, ranked};

/// The items by cosine.
pub(super) fn rank(corpus: &Corpus, query: &Query) -> Vec<usize> {
    ranked(&corpus.cosines(&query.vector))
}
