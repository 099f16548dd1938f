//! Reciprocal rank fusion of dense retrieval and BM25 with k = 60 (Cormack, Clarke and
//! Büttcher, SIGIR 2009).

use super::{
    bm25,
    corpus::{BaselineQuery, Corpus, ranked},
    dense,
};

const K: f64 = 60.0;

/// The items by the sum of `1 / (60 + rank)` over both rankings.
pub(super) fn rank(corpus: &Corpus, query: &BaselineQuery) -> Vec<usize> {
    fused(corpus.items.len(), &[dense::rank(corpus, query), bm25::rank(corpus, query)])
}

/// Items by the sum of `1 / (60 + rank)` over rankings of them.
pub(crate) fn fused(items: usize, rankings: &[Vec<usize>]) -> Vec<usize> {
    let mut scores = vec![0.0; items];
    for ranking in rankings {
        for (rank, item) in (1u32..).zip(ranking) {
            if let Some(score) = scores.get_mut(*item) {
                *score += 1.0 / (K + f64::from(rank));
            }
        }
    }
    ranked(&scores)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_item_that_both_rankings_prefer_comes_first() {
        // 1/61 + 1/63 < 1/62 + 1/61: item 1 is second and first.
        assert_eq!(super::fused(3, &[vec![0, 1, 2], vec![1, 2, 0]]), [1, 0, 2]);
    }
}
