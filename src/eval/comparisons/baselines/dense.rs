//! Dense retrieval: by the cosine of an item's best vector, as in any vector store.

use super::corpus::{BaselineQuery, Corpus, ranked};

/// The items by cosine.
pub(super) fn rank(corpus: &Corpus, query: &BaselineQuery) -> Vec<usize> {
    ranked(&corpus.cosines(&query.vector))
}
