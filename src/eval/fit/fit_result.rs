//! What a fit found.
//!
//! Only types: a row for each way to choose, with figures for each set of dialogues. Figures are shares, not percent.

use serde::Serialize;

use types::config::{CutoffSettings, FamiliarityWeights, TokenShareSettings};

/// What a fit found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitResult {
    /// The dialogues of each set, with its name.
    pub sets: Vec<(String, Vec<String>)>,
    /// One row for each way to choose.
    pub rows: Vec<FitRow>,
}

/// A way to choose, and its figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitRow {
    /// Its name.
    pub name: String,
    /// Figures of each dialogue under the choice made on the others; one entry per set.
    pub left_out: Vec<FitFigures>,
    /// Figures of the same dialogues under the choice made on all of them.
    pub in_sample: Vec<FitFigures>,
    /// The choice made on all dialogues.
    pub chosen: (FamiliarityWeights, CutoffSettings, TokenShareSettings),
}

/// Figures over the questions of a set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitFigures {
    /// Mean share of a question's evidence turns that are quoted.
    pub recall: f64,
    /// Share of the questions all of whose evidence turns are quoted.
    pub full: f64,
    /// Mean o200k tokens of the quoted parts.
    pub tokens: f64,
    /// How the recall differs between dialogues.
    pub spread: FitSpread,
}

/// How much dialogues differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitSpread {
    /// Recall of each dialogue, in order.
    pub by_dialogue: Vec<f64>,
    /// Their standard deviation.
    pub deviation: f64,
}
