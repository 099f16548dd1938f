//! The paper's own figures, to stand beside ours.
//!
//! In: the data file `paper.toml`, which is part of the program. Out: its rows, in percent.
//! They judge answers and ours count evidence, so that only the differences between rows
//! can be set side by side.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The paper's tables.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// One row a system and dataset.
    pub rows: Vec<PaperRow>,
    /// What building and planning cost.
    pub cost: PaperCost,
}

/// One row of the paper's tables; shares in percent.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperRow {
    /// `locomo`, `longmemeval` or `evermembench`.
    pub dataset: String,
    /// Our name for the same thing: `recollection`, or that of a baseline or ablation.
    pub name: String,
    /// What it was, and by which models.
    pub about: String,
    /// Share of the answers that the judge accepted.
    pub judge: f64,
    /// Token F1.
    pub f1: Option<f64>,
    /// BLEU-1.
    pub bleu1: Option<f64>,
    /// Mean tokens of the context.
    pub context_tokens: Option<f64>,
    /// Share of the questions for which a second round ran.
    pub second_round: Option<f64>,
    /// Judge accuracy where it ran.
    pub judge_after_second_round: Option<f64>,
    /// Judge accuracy where recollection stopped before it.
    pub judge_after_first_hop: Option<f64>,
    /// Judge accuracy by category.
    #[serde(default)]
    pub by_category: BTreeMap<String, f64>,
}

/// What the paper's system costs on LoCoMo.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperCost {
    /// Seconds of building a dialogue.
    pub build_seconds: f64,
    /// Tokens of building a dialogue.
    pub build_tokens: f64,
    /// Model calls of building a dialogue.
    pub build_calls: f64,
    /// Tokens that the controller takes for a question.
    pub controller_tokens: f64,
}

/// The paper's tables. They are part of the program, and a test reads them; should they not
/// be readable all the same, they are empty.
#[must_use]
pub fn paper() -> Paper {
    toml::from_str(include_str!("paper.toml")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_rows_are_readable_and_ablations_lie_below_the_whole() {
        let paper: Paper = toml::from_str(include_str!("paper.toml")).unwrap();
        let judge = |name: &str| paper.rows.iter().find(|r| r.name == name).map(|r| r.judge);
        let whole = judge("recollection").unwrap();
        for name in ["structural-cues", "graph-expansion", "planned-recollection", "familiarity", "full-context"] {
            assert!(judge(name).unwrap() < whole, "{name}");
        }
        assert_eq!(paper.rows[0].by_category.len(), 4);
    }
}
