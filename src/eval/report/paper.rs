//! What the paper reports, from one data file (`paper.toml`).
//!
//! In: the file that is compiled in. Out: its rows, typed. Nothing here was measured by
//! this program.

use std::collections::BTreeMap;

use serde::Deserialize;

/// All of it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Paper {
    /// Cost by dataset.
    pub(super) cost: BTreeMap<String, Cost>,
    /// Answer quality.
    pub(super) rows: Vec<PaperRow>,
}

/// What a dialogue and a question cost.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cost {
    /// Seconds a dialogue.
    pub(super) build_seconds: f64,
    /// Language-model tokens a dialogue.
    pub(super) build_llm_tokens: f64,
    /// Language-model calls a dialogue.
    pub(super) build_llm_calls: f64,
    /// Tokens of the controller a question.
    pub(super) controller_llm_tokens: f64,
    /// Questions for which a second round ran, in percent.
    pub(super) second_round_rate: f64,
    /// Judge accuracy where it ran, in percent.
    pub(super) judge_where_it_ran: f64,
    /// Judge accuracy where it did not, in percent.
    pub(super) judge_where_it_stopped: f64,
}

/// One row of a table.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PaperRow {
    /// The dataset.
    pub(super) dataset: String,
    /// What it is.
    pub(super) name: String,
    /// The ablation of ours that it stands beside.
    pub(super) ablation: Option<String>,
    /// F1 in percent.
    pub(super) f1: Option<f64>,
    /// BLEU-1 in percent.
    pub(super) bleu1: Option<f64>,
    /// Judge accuracy in percent.
    pub(super) judge: Option<f64>,
    /// Mean tokens of the context.
    pub(super) context_tokens: Option<f64>,
    /// Judge accuracy by category, in percent.
    #[serde(default)]
    pub(super) by_category: BTreeMap<String, f64>,
}

impl Paper {
    /// Reads the file that is compiled in; a test keeps it readable.
    pub(super) fn read() -> Self {
        toml::from_str(include_str!("paper.toml")).unwrap_or(Self { cost: BTreeMap::new(), rows: Vec::new() })
    }

    /// The rows of a dataset.
    pub(super) fn rows(&self, dataset: &str) -> impl Iterator<Item = &PaperRow> {
        self.rows.iter().filter(move |r| r.dataset == dataset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_read() {
        let paper: Paper = toml::from_str(include_str!("paper.toml")).unwrap();
        assert_eq!(paper, Paper::read());
        assert_eq!((paper.rows("locomo").count(), paper.rows("longmemeval").count()), (10, 2));
        let ours = paper.rows("locomo").next().unwrap();
        assert_eq!((ours.judge, ours.by_category["adversarial"]), (Some(87.14), 86.32));
    }
}
