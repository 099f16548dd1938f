//! The channels: what joins two units, or a question and a unit.
//!
//! Out: the list of channels, their order and their names, which no other file repeats.
//! Arrangements sort by the order of the variants, answers by [`Channel::order`]; never reorder
//! either, because stored digests and answers depend on it.
//!
//! To add a channel of edges, touch these places; the compiler names the matches on `Channel`:
//! 1. here: the variant (last), [`Channel::ALL`], [`Channel::EDGES`] and [`Channel::name`];
//! 2. `memory/index/dataflow/shard_banks.rs`: an index that finds each unit's choices (see `semantic_index.rs` and
//!    `cue_index.rs` in `memory/index/edges`), and the restoration of these choices from a snapshot;
//! 3. `memory/index/dataflow/census.rs` and `types/model/export.rs`: its number of edges in digests;
//! 4. `memory/recall/expand.rs`: how many units it supports and what it compares with the target;
//!    `memory/recall/assemble.rs`: its weight in the evidence;
//! 5. `types/config/default.toml` and the settings of `memory` and `recall`: its limits;
//! 6. `tests/oracle/reference.rs`: its edges, computed from scratch.
//!
//! Snapshots, the edges topic and traces write the name, so they need no change; `REWRITE=1`
//! updates the schemas.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What joins two units, or a question and a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// Nearness of meaning: cosine of vectors.
    Semantic,
    /// Shared participants, places and times (called `cue` in the first hop).
    Structural,
    /// Shared words: BM25. Makes no edges.
    Lexical,
}

impl Channel {
    /// Every channel, in the order in which answers show them.
    pub const ALL: [Self; 3] = [Self::Semantic, Self::Lexical, Self::Structural];
    /// The channels that have edges.
    pub const EDGES: [Self; 2] = [Self::Semantic, Self::Structural];

    /// Position in [`Self::ALL`].
    #[must_use]
    pub fn order(self) -> usize {
        Self::ALL.iter().position(|c| *c == self).unwrap_or(Self::ALL.len())
    }

    /// The name in JSON, in snapshots and in keys of the edges topic.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Semantic => "semantic",
            Self::Structural => "structural",
            Self::Lexical => "lexical",
        }
    }

    /// The name in the first hop, where no edge is walked: the structural channel is `cue`.
    #[must_use]
    pub fn first_hop_name(self) -> &'static str {
        if self == Self::Structural { "cue" } else { self.name() }
    }

    /// The channel of edges with this name.
    #[must_use]
    pub fn of_edges(name: &str) -> Option<Self> {
        Self::EDGES.into_iter().find(|c| c.name() == name)
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_json_form() {
        for channel in Channel::ALL {
            assert_eq!(serde_json::to_value(channel).ok(), Some(channel.name().into()));
        }
        assert_eq!(Channel::of_edges("structural"), Some(Channel::Structural));
        assert_eq!(Channel::of_edges("lexical"), None, "shared words make no edges");
    }

    #[test]
    fn answers_show_semantic_lexical_and_cue_in_this_order() {
        assert_eq!(Channel::ALL.map(Channel::order), [0, 1, 2]);
        assert_eq!(Channel::ALL.map(Channel::first_hop_name), ["semantic", "lexical", "cue"]);
    }
}
