//! Whole sessions, in the manner of MemPalace's hybrid retrieval.
//!
//! A session's distance is that of its nearest item, times `1 − 0.30 · share`, where `share` is the share of the
//! question's words that occur in the session. Each session is returned whole, in the order of time. The budget may cut
//! the last session short, because leaving it out would score lower.

use std::collections::BTreeSet;

use super::corpus::{BaselineQuery, Corpus, ranked};

/// The share by which a session that contains all of the question's words is nearer.
const WORDS: f64 = 0.30;

/// The items, session by session, nearest session first.
pub(super) fn rank(corpus: &Corpus, query: &BaselineQuery) -> Vec<usize> {
    let cosines = corpus.cosines(&query.vector);
    let scores: Vec<f64> = corpus
        .sessions
        .iter()
        .map(|items| {
            let nearest = items.iter().filter_map(|i| cosines.get(*i).copied()).fold(-1.0, f64::max);
            let shared: BTreeSet<u64> = items
                .iter()
                .filter_map(|i| corpus.items.get(*i))
                .flat_map(|i| query.stems.iter().filter(|s| i.stems.contains_key(s)).copied())
                .collect();
            let share = shared.len() as f64 / query.stems.len().max(1) as f64;
            -((1.0 - nearest) * (1.0 - WORDS * share))
        })
        .collect();
    ranked(&scores).into_iter().filter_map(|s| corpus.sessions.get(s)).flatten().copied().collect()
}
