//! `[memory]`: how units become the event graph (paper, table of graph settings; decisions 11 to 13).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How units become the event graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemorySettings {
    /// Threads that step the shards of the memory; a shard, one partition, lives on one of them.
    #[schemars(range(min = 1, max = 64))]
    pub workers: usize,
    /// Candidates that each unit keeps for its semantic edges, so that a deletion rarely needs a new
    /// search. At least `semantic_edges`.
    #[schemars(range(max = 1_000))]
    pub semantic_pool: usize,
    /// Most semantic edges that a unit chooses.
    #[schemars(range(min = 0, max = 100))]
    pub semantic_edges: usize,
    /// Mean number of semantic edges a unit for which `ripplemem-eval calibrate` sets a model's threshold;
    /// nothing else reads it.
    pub target_semantic_choices: f64,
    /// Most structural edges that a unit chooses.
    #[schemars(range(min = 0, max = 100))]
    pub structural_edges: usize,
    /// Units compared for structural edges: for each cue, the nearest before and after in time. More
    /// find better edges and cost time.
    #[schemars(range(min = 1, max = 100))]
    pub cue_neighbours: usize,
    /// Least score of a structural edge. A larger value makes fewer, stronger edges.
    #[schemars(range(min = 0, max = 1))]
    pub structural_threshold: f64,
    /// Weight of shared participants in the structural score (β in the paper).
    #[schemars(range(min = 0, max = 1_000))]
    pub participant_weight: f64,
    /// Weight of shared locations in the structural score.
    #[schemars(range(min = 0, max = 1_000))]
    pub location_weight: f64,
    /// Weight of nearness in time in the structural score.
    #[schemars(range(min = 0, max = 1_000))]
    pub time_weight: f64,
    /// Gap after which nearness in time has fallen to 1/e (τ in the paper). A larger value links units
    /// further apart.
    #[schemars(range(min = 0.001, max = 3_650))]
    pub time_decay_days: f64,
    /// Most edges of one unit and channel that a hop walks.
    #[schemars(range(min = 1, max = 1_000))]
    pub fan_out: usize,
    /// Units of a bank outside tantivy's index before they are committed to it. More delay commits and
    /// make a lexical search slower.
    #[schemars(range(min = 1, max = 100_000))]
    pub lexical_tail: usize,
    /// From how many parts on a bank has an index of candidates, so that a question need not read all of
    /// it. A part is a turn's share of a unit. A smaller value takes more memory for the sake of speed.
    #[schemars(range(min = 1))]
    pub candidates_from_parts: usize,
    /// The words around a part count with it: those of two turns on either side, and of more turns
    /// while fewer words than this lie between. A larger value looks further in chats of short messages.
    #[schemars(range(min = 0, max = 250))]
    pub window_words: u32,
    /// A bank that nobody asks and nothing changes for this long leaves memory, and comes back with its
    /// next question or turn. 0: never.
    #[schemars(range(min = 0, max = 100_000_000))]
    pub sleep_after_seconds: u64,
    /// Bytes of banks in memory, about: beyond it, banks leave memory, the longest unused first. 0: no
    /// limit.
    pub most_bytes: u64,
}

impl MemorySettings {
    /// Whether banks may leave memory.
    #[must_use]
    pub fn has_sleep(&self) -> bool {
        self.sleep_after_seconds > 0 || self.most_bytes > 0
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.semantic_pool < self.semantic_edges.max(1) {
            return Err(format!(
                "memory.semantic_pool: {} is less than memory.semantic_edges, {}, or 0; write a larger number",
                self.semantic_pool, self.semantic_edges
            ));
        }
        let (least, most) = (0.01, self.semantic_edges.max(1) as f64);
        if !(least..=most).contains(&self.target_semantic_choices) {
            let value = self.target_semantic_choices;
            return Err(format!("memory.target_semantic_choices: {value} is not within {least} to {most}"));
        }
        Ok(())
    }
}
