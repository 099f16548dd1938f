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
    /// The way.
    pub name: String,
    /// Each dialogue under what was chosen on the others; one entry per set.
    pub left_out: Vec<FitFigures>,
    /// The same dialogues under what was chosen on all of them.
    pub in_sample: Vec<FitFigures>,
    /// What was chosen on all dialogues.
    pub chosen: (FamiliarityWeights, CutoffSettings, TokenShareSettings),
}

/// Figures over the questions of a set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitFigures {
    /// Mean share of the evidence turns quoted.
    pub recall: f64,
    /// Share of the questions for which all of them are quoted.
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
