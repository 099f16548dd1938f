//! What stands beside an answer for comparison: rankings without the graph.
//!
//! In: results of recollection. Out: values with one JSON form. Answers never use them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{EventTime, UnitId};

/// Three rankings without the graph. Each quotes its best within the tokens of the answer's context.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Flat")]
pub struct FlatComparison {
    /// By the cosine of the question and the part's best sentence alone.
    pub meaning: FlatRanking,
    /// By BM25 of the question's words in the part and the turns around it alone.
    pub words: FlatRanking,
    /// By the score of the answer's first hop, without the walk.
    pub same_score: FlatRanking,
}

/// What a ranking would quote.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FlatRanking {
    /// The tokens of its context, headings included; at most those of the answer's.
    pub tokens: u32,
    /// The units, best first.
    pub units: Vec<FlatUnit>,
}

/// A unit that a ranking would quote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlatUnit {
    /// The unit.
    pub id: UnitId,
    /// What is quoted of it first, cut to 160 characters.
    pub label: String,
    /// When it was said.
    pub said_at: EventTime,
    /// The turns that are quoted.
    pub turns: Vec<String>,
    /// What it is ranked by: the cosine, BM25 divided by the bank's best, or the score of the first hop.
    pub score: f64,
    /// The tokens of a context that quotes it alone, its heading included.
    pub tokens: u32,
}
