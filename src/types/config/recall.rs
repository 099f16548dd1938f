//! `[recall]`: how a question becomes evidence (paper, sections 3.4 and 3.5; decisions 14 to 17).
//!
//! When the memory abstains: an answer whose sufficiency is below `supported` is marked as not
//! supported.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::{familiarity::FamiliaritySettings, profile};
use crate::model::Language;

/// What the first hop looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "FirstHop")]
pub enum FirstHopMethod {
    /// As in the paper: a fixed number of units from each of three indexes.
    Channels,
    /// The most familiar parts of the whole bank, as many as the question needs.
    Familiarity,
}

/// Where the list of familiar parts ends (the cutoff).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "StopSettings")]
pub struct CutoffSettings {
    /// Least familiarity of a part that is quoted after two thirds of `recall.budget_tokens`, estimated, on
    /// the scale from `recall.familiarity.zero` (0) to the bank's best part (1). A larger value quotes less.
    #[schemars(range(min = -1, max = 1))]
    pub share: f64,
    /// Added to `share` whenever the tokens quoted so far have doubled, from there on, and subtracted
    /// whenever they were half of that. A larger value brings long and short answers nearer together.
    #[schemars(range(min = 0, max = 1))]
    pub doubling: f64,
    /// Added to `share` for a question about a time.
    #[schemars(range(min = -1, max = 1))]
    pub time_offset: f64,
    /// Added to `share` for a question whose answer must be gathered from several parts, or is a habit.
    #[schemars(range(min = -1, max = 1))]
    pub gathered_offset: f64,
    /// Estimated tokens that are quoted in any case, whatever the familiarity.
    pub least_tokens: usize,
    /// Most tokens (o200k) of a context, headings included, where the question does not say another number.
    /// At least `least_tokens`.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub most_tokens: usize,
    /// Most tokens that a question may ask for as its `most_tokens`. At least `most_tokens`.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub bound_tokens: usize,
}

/// Where a bank's talk is of persons and assistants: the persons' share of `recall.budget_tokens`, by the form of
/// the question, and what counts more for a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ShareSettings")]
pub struct TokenShareSettings {
    /// Of a question about what the asker said, did or has.
    #[schemars(range(min = 0, max = 1))]
    pub about_me: f64,
    /// Of a question for the order in which something was said.
    #[schemars(range(min = 0, max = 1))]
    pub order: f64,
    /// Of a question for a summary.
    #[schemars(range(min = 0, max = 1))]
    pub summary: f64,
    /// Of a question for what the assistant said.
    #[schemars(range(min = 0, max = 1))]
    pub told: f64,
    /// Of a task. Any other question is asked of all parts together.
    #[schemars(range(min = 0, max = 1))]
    pub task: f64,
    /// The part of `recall.budget_tokens` that a question for one fact has.
    #[schemars(range(min = 0.01, max = 100))]
    pub fact_tokens: f64,
    /// The part of `recall.budget_tokens` that a question for a time has.
    #[schemars(range(min = 0.01, max = 100))]
    pub time_tokens: f64,
    /// The part of `recall.budget_tokens` that a question for a summary or an order has.
    #[schemars(range(min = 0.01, max = 100))]
    pub overview_tokens: f64,
    /// For a task, added to the score of a part of the last session; less to one of an earlier session.
    #[schemars(range(min = 0, max = 1_000))]
    pub recent: f64,
    /// After this many further sessions, half of it is left.
    #[schemars(range(min = 0.1, max = 1_000_000))]
    pub half_sessions: f64,
    /// For a task, added to the score of a part in which a person says what is wanted in general ("always",
    /// "I prefer").
    #[schemars(range(min = 0, max = 1_000))]
    pub standing: f64,
    /// For a task, added to the score of a part in which the asker states a preference that holds, as their
    /// profile has it.
    #[schemars(range(min = 0, max = 1_000))]
    pub preferred: f64,
}

/// A model that reads a question together with a part, and says how well the part answers it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RerankSettings {
    /// The model: a cross-encoder with one output, whose `model.onnx` and `tokenizer.json` lie in a directory of this
    /// name below `embed.models_directory`, or in the usual places. `ripplemem setup --reranker` brings
    /// `ms-marco-MiniLM-L-12-v2`.
    pub model: String,
    /// How many of the most familiar parts it reads.
    #[serde(default = "default_pairs")]
    #[schemars(range(min = 1, max = 1_024))]
    pub pairs: usize,
    /// What a logit that is higher by ten adds to a part's score. Logits count from the least one of the question, so
    /// that no part gains by not being read.
    #[serde(default = "default_weight")]
    #[schemars(range(min = 0, max = 100))]
    pub weight: f64,
    /// Languages that the model reads, by their codes of ISO 639-1; empty: every language. A question in another one
    /// is answered without it.
    #[serde(default = "default_languages")]
    pub languages: Vec<Language>,
}

fn default_pairs() -> usize {
    60
}

fn default_weight() -> f64 {
    1.0
}

fn default_languages() -> Vec<Language> {
    vec![Language::En]
}

impl RerankSettings {
    fn check(&self, first_hop: FirstHopMethod) -> Result<(), String> {
        if self.model.trim().is_empty() {
            return Err(
                "recall.rerank.model: empty; write the name of a model, such as ms-marco-MiniLM-L-12-v2".to_owned()
            );
        }
        if first_hop == FirstHopMethod::Channels {
            return Err("recall.rerank: a first hop by channels has no score to add to; set recall.first_hop = \
                        \"familiarity\", or leave this table out"
                .to_owned());
        }
        Ok(())
    }
}

/// How a question becomes evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecallSettings {
    /// What the first hop looks for.
    pub first_hop: FirstHopMethod,
    /// Units that the first hop takes by vector (`first_hop = "channels"`).
    #[schemars(range(min = 0, max = 1_000))]
    pub semantic: usize,
    /// Units that the first hop takes by words (`first_hop = "channels"`).
    #[schemars(range(min = 0, max = 1_000))]
    pub lexical: usize,
    /// Units that the first hop takes by participants, locations and time (`first_hop = "channels"`).
    #[schemars(range(min = 0, max = 1_000))]
    pub cue: usize,
    /// Most rounds of expansion along the graph after the first hop.
    #[schemars(range(min = 0, max = 10))]
    pub rounds: u32,
    /// `false`, for comparison, skips the planner: each round starts at the best units and looks for
    /// the question itself.
    pub planned: bool,
    /// What plans a round: `rules`, or `llm`, with the rules as fallback.
    pub planner: String,
    /// What reads the cues of a question: `rules`, or `llm`, with the rules as fallback.
    pub cues_by: String,
    /// Most units from which a round expands.
    #[schemars(range(min = 0, max = 30))]
    pub anchors: usize,
    /// Most edges from an anchor.
    #[schemars(range(min = 1, max = 2))]
    pub hops: u32,
    /// Most units that a round adds along semantic edges.
    pub semantic_support: usize,
    /// Most units that a round adds along structural edges.
    pub structural_support: usize,
    /// Least familiarity of a unit that a round adds, with `first_hop = "channels"`, on the scale of
    /// `recall.stop.share`. A larger value adds less.
    #[schemars(range(min = -1, max = 1))]
    pub support_floor: f64,
    /// With `first_hop = "familiarity"`, how far below the cutoff of `[recall.stop]` a unit may lie when
    /// an edge leads to it. A larger value adds more along the graph.
    #[schemars(range(min = -1, max = 1))]
    pub link_worth: f64,
    /// Whether a path may change its channel.
    pub mixed_paths: bool,
    /// Familiarities in the same bucket of this width count as equal when support is ranked, so that
    /// shorter and stronger paths come first.
    #[schemars(range(min = 0.000_001, max = 1))]
    pub match_bucket: f64,
    /// Most units of an answer.
    #[schemars(range(min = 1, max = 1_000))]
    pub budget: usize,
    /// About how many tokens a context has, on average over questions; fewer in a bank that has fewer tokens than
    /// `recall.familiarity.scale_tokens`.
    #[schemars(range(min = 50, max = 1_000_000))]
    pub budget_tokens: usize,
    /// Weight of the cosine of question and unit in the evidence order (λq in the paper).
    #[schemars(range(min = 0, max = 1_000))]
    pub alignment_weight: f64,
    /// Weight of how a unit was reached in the evidence order (λp).
    #[schemars(range(min = 0, max = 1_000))]
    pub provenance_weight: f64,
    /// Added in the evidence order to a unit that was an anchor (λa).
    #[schemars(range(min = 0, max = 1_000))]
    pub anchor_weight: f64,
    /// Weight of a unit that the first hop found by vector.
    #[schemars(range(min = 0, max = 1_000))]
    pub semantic_source: f64,
    /// Weight of a unit that the first hop found by words.
    #[schemars(range(min = 0, max = 1_000))]
    pub lexical_source: f64,
    /// Weight of a unit that the first hop found by cues.
    #[schemars(range(min = 0, max = 1_000))]
    pub cue_source: f64,
    /// Weight of a unit that the expansion found.
    #[schemars(range(min = 0, max = 1_000))]
    pub expansion_source: f64,
    /// The offset in 1 / (offset + rank). A larger value makes ranks matter less.
    #[schemars(range(min = 0, max = 1_000))]
    pub rank_offset: f64,
    /// Whether a context ends with what the asker asked of the assistant ("always …", "never …").
    pub profile: bool,
    /// Most tokens (o200k) of that section; with more instructions, those that share most words with the question
    /// stand. It takes its tokens from the evidence, and no more than a third of `recall.stop.most_tokens`.
    #[schemars(range(min = 0, max = 100_000))]
    pub instruction_tokens: usize,
    /// How familiar each part of a bank is to a question.
    pub familiarity: FamiliaritySettings,
    /// Where the list of familiar parts ends (the cutoff).
    pub stop: CutoffSettings,
    /// How persons and assistants share the tokens of a context.
    pub shares: TokenShareSettings,
    /// Sufficiency of a plan at which recollection stops after the first hop. Above 1 it never does.
    #[schemars(range(min = 0, max = 2))]
    pub sufficient: f64,
    /// Sufficiency of an answer below which it is marked as not supported: the memory abstains. A
    /// larger value abstains more often.
    #[schemars(range(min = 0, max = 1))]
    pub supported: f64,
    /// A reranker of the first hop; without this table there is none. It takes some milliseconds for each part that it
    /// reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerank: Option<RerankSettings>,
}

impl RecallSettings {
    pub(super) fn check(&self) -> Result<(), String> {
        let CutoffSettings { least_tokens, most_tokens, bound_tokens, .. } = self.stop;
        if most_tokens < least_tokens {
            return Err(format!(
                "recall.stop.most_tokens: {most_tokens} is less than recall.stop.least_tokens, {least_tokens}; write \
                 at least that"
            ));
        }
        if bound_tokens < most_tokens {
            return Err(format!(
                "recall.stop.bound_tokens: {bound_tokens} is less than recall.stop.most_tokens, {most_tokens}; write \
                 at least that"
            ));
        }
        self.rerank.as_ref().map_or(Ok(()), |rerank| rerank.check(self.first_hop))
    }
}

impl RecallSettings {
    /// The settings of a profile in place of these. What belongs to the service stays: who plans and reads cues, how
    /// many tokens a context has, and the scale of its model's cosines.
    ///
    /// # Errors
    /// A profile that is not known.
    pub fn of_profile(&self, name: &str) -> Result<Self, String> {
        let recall = profile::settings(name)?.remove("recall").unwrap_or_else(|| Value::Table(Table::new()));
        let mut settings: Self =
            recall.try_into().map_err(|e: toml::de::Error| format!("built-in profile: {}", e.message()))?;
        settings.planned = self.planned;
        settings.planner.clone_from(&self.planner);
        settings.cues_by.clone_from(&self.cues_by);
        settings.budget_tokens = self.budget_tokens;
        settings.stop.least_tokens = self.stop.least_tokens;
        settings.stop.most_tokens = self.stop.most_tokens;
        settings.stop.bound_tokens = self.stop.bound_tokens;
        settings.familiarity.cosines = self.familiarity.cosines;
        Ok(settings)
    }

    /// The settings for a question that names the most tokens of its context.
    #[must_use]
    pub fn with_most_tokens(&self, most_tokens: usize) -> Self {
        let mut settings = self.clone();
        settings.stop.most_tokens = most_tokens;
        settings
    }

    /// The settings for a bank of about this many tokens: a small bank has fewer parts that resemble a question, so the
    /// tokens shrink with the square root of its size.
    #[must_use]
    pub fn of_bank(&self, tokens: f64) -> Self {
        let full = self.familiarity.scale_tokens.max(1) as f64;
        let scaled = |most: usize| ((most as f64 * (tokens / full).clamp(0.0, 1.0).sqrt()).ceil() as usize).max(1);
        let mut settings = self.clone();
        settings.budget_tokens = scaled(self.budget_tokens);
        settings.stop.most_tokens = scaled(self.stop.most_tokens).max(self.stop.least_tokens);
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Pipeline;

    fn recall(text: &str) -> RecallSettings {
        Pipeline::parse(&format!("version = 1\n{text}")).unwrap().recall
    }

    #[test]
    fn a_profile_brings_its_recall_and_leaves_what_is_the_services() {
        for name in profile::names() {
            for own in [recall(""), recall("profile = \"paper\"")] {
                let mut expected = recall(&format!("profile = {name:?}"));
                expected.familiarity.cosines = own.familiarity.cosines;
                assert_eq!(own.of_profile(name), Ok(expected), "{name}");
            }
        }
        let file = "embed.model = \"multilingual-e5-small\"\n[recall]\nbudget = 7\n[recall.stop]\nbound_tokens = 4000";
        let own = recall(file);
        let paper = own.of_profile("paper").unwrap();
        assert_eq!((paper.first_hop, paper.budget, paper.stop.bound_tokens), (FirstHopMethod::Channels, 30, 4_000));
        assert_eq!(paper.familiarity.cosines, own.familiarity.cosines);
        let error = own.of_profile("papers").unwrap_err();
        assert!(error.contains("\"paper-longmemeval\""), "{error}");
    }
}
