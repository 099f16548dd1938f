//! The flat mixture: the best ranking that one pass over a bank achieves without a graph.
//!
//! Source: this project's own baseline from before it had a graph. Per item
//! `s0 = 1.25 · dense + 0.5 · window BM25 / its best`, where dense is the mean of the item's
//! cosine and that of the item before it and this one together, and window BM25 counts the
//! item's stems twice and those at ±1 and ±2 once. Then in the session
//! `s1 = s0 + 0.35 · mean(the best of ±1, the best of ±2)`, and
//! `s = s1 + 0.3 · mean(the best three s1 of the session)`.

use std::collections::BTreeMap;

use super::{
    bm25,
    corpus::{BaselineQuery, Corpus, dot, ranked},
};

const DENSE: f64 = 1.25;
const LEXICAL: f64 = 0.5;
const NEIGHBOUR: f64 = 0.35;
const SESSION: f64 = 0.3;
const SESSION_BEST: usize = 3;

/// The items by the mixture.
pub(super) fn rank(corpus: &Corpus, query: &BaselineQuery) -> Vec<usize> {
    ranked(&scores(corpus, query))
}

fn scores(corpus: &Corpus, query: &BaselineQuery) -> Vec<f64> {
    let own = corpus.cosines(&query.vector);
    let windows: Vec<BTreeMap<u64, f64>> = (0..corpus.items.len()).map(|at| window(corpus, at)).collect();
    let lexical = bm25::of_bags(&windows.iter().collect::<Vec<_>>(), query);
    let best = lexical.iter().copied().fold(0.0, f64::max);
    let first: Vec<f64> = corpus
        .items
        .iter()
        .zip(own.iter().zip(&lexical))
        .map(|(item, (own, lexical))| {
            let pair = item.pair.as_ref().map_or(*own, |p| dot(p, &query.vector));
            let lexical = if best > 0.0 { lexical / best } else { 0.0 };
            DENSE * (own + pair) / 2.0 + LEXICAL * lexical
        })
        .collect();
    let at = |scores: &[f64], i: usize| scores.get(i).copied().unwrap_or_default();
    let smoothed: Vec<f64> = (0..first.len())
        .map(|i| {
            let beside = corpus.near(i).map(|items| items.iter().map(|n| at(&first, *n)).fold(0.0, f64::max));
            at(&first, i) + NEIGHBOUR * beside.iter().sum::<f64>() / beside.len() as f64
        })
        .collect();
    let sessions: Vec<f64> = corpus
        .sessions
        .iter()
        .map(|items| {
            let mut best: Vec<f64> = items.iter().map(|i| at(&smoothed, *i)).collect();
            best.sort_by(|a, b| b.total_cmp(a));
            best.truncate(SESSION_BEST);
            best.iter().sum::<f64>() / best.len().max(1) as f64
        })
        .collect();
    corpus.items.iter().zip(&smoothed).map(|(item, s)| s + SESSION * at(&sessions, item.session)).collect()
}

/// An item's stems counted twice, and those of its neighbours once.
fn window(corpus: &Corpus, at: usize) -> BTreeMap<u64, f64> {
    let mut bag = BTreeMap::new();
    let mut add = |item: usize, times: f64| {
        for (stem, n) in corpus.items.get(item).map(|i| &i.stems).into_iter().flatten() {
            *bag.entry(*stem).or_insert(0.0) += times * n;
        }
    };
    add(at, 2.0);
    corpus.near(at).iter().flatten().for_each(|near| add(*near, 1.0));
    bag
}
