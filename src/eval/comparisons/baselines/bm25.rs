//! BM25 with k1 1.2 and b 0.75 over English stems without stop words (Robertson and
//! Zaragoza, The Probabilistic Relevance Framework, 2009).
//!
//! In: stem counts, which may be fractional. Out: a score for each item. The formula is written out here on purpose: a
//! baseline must not change with `src/memory/index/lexical/bm25.rs`.

use std::collections::BTreeMap;

use super::corpus::{BaselineQuery, Corpus, ranked};

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// The items by BM25.
pub(super) fn rank(corpus: &Corpus, query: &BaselineQuery) -> Vec<usize> {
    ranked(&scores(corpus, query))
}

/// BM25 of each item's own words.
pub(super) fn scores(corpus: &Corpus, query: &BaselineQuery) -> Vec<f64> {
    let bags: Vec<&BTreeMap<u64, f64>> = corpus.items.iter().map(|i| &i.stems).collect();
    of_bags(&bags, query)
}

/// BM25 of bags of stems.
pub(crate) fn of_bags(bags: &[&BTreeMap<u64, f64>], query: &BaselineQuery) -> Vec<f64> {
    let all = bags.len() as f64;
    let lengths: Vec<f64> = bags.iter().map(|b| b.values().sum()).collect();
    let mean = lengths.iter().sum::<f64>() / all.max(1.0);
    let terms: Vec<(u64, f64)> = query
        .stems
        .iter()
        .map(|stem| {
            let with = bags.iter().filter(|b| b.contains_key(stem)).count() as f64;
            (*stem, (1.0 + (all - with + 0.5) / (with + 0.5)).ln())
        })
        .collect();
    let score = |(bag, length): (&&BTreeMap<u64, f64>, &f64)| {
        let norm = K1 * (1.0 - B + B * length / mean.max(1e-9));
        let part = |(stem, rarity): &(u64, f64)| bag.get(stem).map_or(0.0, |n| rarity * n * (K1 + 1.0) / (n + norm));
        terms.iter().map(part).sum()
    };
    bags.iter().zip(&lengths).map(score).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bm25_by_hand() {
        let bag = |counts: &[(u64, f64)]| -> BTreeMap<u64, f64> { counts.iter().copied().collect() };
        let (a, b) = (bag(&[(1, 2.0), (2, 1.0)]), bag(&[(2, 1.0)]));
        let query = BaselineQuery { vector: Vec::new(), stems: vec![1, 9] };
        let found = of_bags(&[&a, &b], &query);
        // One of two bags holds stem 1: ln(1 + 1.5 / 1.5); lengths 3 and 1, mean 2.
        let norm = 1.2 * (0.25 + 0.75 * 3.0 / 2.0);
        let expected = 2.0f64.ln() * 2.0 * 2.2 / (2.0 + norm);
        assert!((found[0] - expected).abs() < 1e-12 && found[1] == 0.0, "{found:?}");
    }
}
