//! The figures that the paper reports, for comparison.
//!
//! In: the data file `paper.toml`, which is compiled in. Out: its rows, in percent. The paper judges answers, whereas
//! an evaluation without a language model counts evidence, so only differences between rows can be compared.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The paper's tables.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperTables {
    /// One row for each system and dataset.
    pub rows: Vec<PaperRow>,
    /// The cost of building and planning.
    pub cost: PaperCost,
}

/// One row of the paper's tables; shares in percent.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperRow {
    /// `locomo`, `realtalk`, `longmemeval` or `evermembench`.
    pub dataset: String,
    /// `recollection`, or the name of the same baseline or ablation here.
    pub name: String,
    /// What was measured, and with which models.
    pub about: String,
    /// Share of the answers that the judge accepted.
    pub judge: f64,
    /// Token F1.
    pub f1: Option<f64>,
    /// BLEU-1.
    pub bleu1: Option<f64>,
    /// Mean tokens of the context.
    pub context_tokens: Option<f64>,
    /// Share of the questions with a second round.
    pub second_round: Option<f64>,
    /// Judge accuracy of the questions with a second round.
    pub judge_after_second_round: Option<f64>,
    /// Judge accuracy of the questions that stopped at the first hop.
    pub judge_after_first_hop: Option<f64>,
    /// Judge accuracy by category.
    #[serde(default)]
    pub by_category: BTreeMap<String, f64>,
}

/// The costs of the paper's system on LoCoMo.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperCost {
    /// Seconds to build a dialogue's memory.
    pub build_seconds: f64,
    /// Tokens to build a dialogue's memory.
    pub build_tokens: f64,
    /// Language-model calls to build a dialogue's memory.
    pub build_calls: f64,
    /// Tokens that the controller uses for a question.
    pub controller_tokens: f64,
}

/// The paper's tables, which are compiled in; empty if they cannot be parsed, which a test rules
/// out.
#[must_use]
pub fn paper() -> PaperTables {
    toml::from_str(include_str!("paper.toml")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_rows_parse_and_its_ablations_score_below_the_whole() {
        let paper: PaperTables = toml::from_str(include_str!("paper.toml")).unwrap();
        let judge = |name: &str| paper.rows.iter().find(|r| r.name == name).map(|r| r.judge);
        let whole = judge("recollection").unwrap();
        for name in ["structural-cues", "graph-expansion", "planned-recollection", "familiarity", "full-context"] {
            assert!(judge(name).unwrap() < whole, "{name}");
        }
        assert_eq!(paper.rows[0].by_category.len(), 4);
    }
}
