//! The baseline retrievers: names, sources, rankings and budgets.
//!
//! In: a corpus and a question. Out: the corpus's items, best first.

use super::{
    bm25,
    corpus::{BaselineQuery, Corpus},
    dense, familiarity, fusion, mixture, sessions,
};
use crate::result::RowBudget;

/// A baseline retriever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Baseline {
    Dense,
    Bm25,
    Fusion,
    Mixture,
    Familiarity,
    Sessions,
    Everything,
}

impl Baseline {
    pub(super) const ALL: [Self; 7] =
        [Self::Dense, Self::Bm25, Self::Fusion, Self::Mixture, Self::Familiarity, Self::Sessions, Self::Everything];

    /// Its name in the results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Bm25 => "bm25",
            Self::Fusion => "rank-fusion",
            Self::Mixture => "flat-mixture",
            Self::Familiarity => "familiarity",
            Self::Sessions => "whole-sessions",
            Self::Everything => "full-context",
        }
    }

    /// What it does, in a sentence, with its source.
    pub(super) fn about(self) -> &'static str {
        match self {
            Self::Dense => "best cosine",
            Self::Bm25 => "BM25, k1 1.2, b 0.75, English stems (Robertson and Zaragoza 2009)",
            Self::Fusion => "reciprocal rank fusion of dense and BM25, k = 60 (Cormack and others 2009)",
            Self::Mixture => {
                "1.25 dense with the pair before + 0.5 window BM25, + 0.35 neighbours, + 0.3 best three of the session \
                 (our flat baseline)"
            }
            Self::Familiarity => {
                "mean and entropy of the best cosines choose the top K, or clusters mixed with the question \
                 (in the manner of RF-Mem, Zhang and others 2026)"
            }
            Self::Sessions => "whole sessions by nearest item and shared words (in the manner of MemPalace)",
            Self::Everything => "the whole dialogue: the ceiling, and what it costs",
        }
    }

    /// The items, best first; `most` is the number of items that will be used.
    pub(super) fn rank(self, corpus: &Corpus, query: &BaselineQuery, most: usize) -> Vec<usize> {
        match self {
            Self::Dense => dense::rank(corpus, query),
            Self::Bm25 => bm25::rank(corpus, query),
            Self::Fusion => fusion::rank(corpus, query),
            Self::Mixture => mixture::rank(corpus, query),
            Self::Familiarity => familiarity::rank(corpus, query, most),
            Self::Sessions => sessions::rank(corpus, query),
            Self::Everything => (0..corpus.items.len()).collect(),
        }
    }

    /// The budgets at which it is measured: `units` and `tokens` are recollection's.
    pub(super) fn budgets(self, units: usize, tokens: usize) -> Vec<RowBudget> {
        match self {
            Self::Everything => vec![RowBudget::Everything],
            Self::Familiarity => vec![RowBudget::Matched, RowBudget::Tokens(tokens)],
            _ => vec![RowBudget::Units(units), RowBudget::Tokens(tokens)],
        }
    }
}
