//! Whole sessions, in the manner of MemPalace's hybrid retrieval: a session is as near as
//! its nearest item, lifted by the share of the question's words that the session holds
//! (`distance · (1 − 0.30 · share)`), and sessions are returned as they are, in order of
//! speaking. The budget may cut the last one short, which is kinder than leaving it out.

use std::collections::BTreeSet;

use super::corpus::{Corpus, Query, ranked};

/// How much full coverage of the question's words shortens the distance.
const WORDS: f64 = 0.30;

/// The items, session by session.
pub(super) fn rank(corpus: &Corpus, query: &Query) -> Vec<usize> {
    let cosines = corpus.cosines(&query.vector);
    let scores: Vec<f64> = corpus
        .sessions
        .iter()
        .map(|items| {
            let nearest = items.iter().filter_map(|i| cosines.get(*i).copied()).fold(-1.0, f64::max);
            let held: BTreeSet<u64> = items
                .iter()
                .filter_map(|i| corpus.items.get(*i))
                .flat_map(|i| query.stems.iter().filter(|s| i.stems.contains_key(s)).copied())
                .collect();
            let share = held.len() as f64 / query.stems.len().max(1) as f64;
            -((1.0 - nearest) * (1.0 - WORDS * share))
        })
        .collect();
    ranked(&scores).into_iter().filter_map(|s| corpus.sessions.get(s)).flatten().copied().collect()
}
