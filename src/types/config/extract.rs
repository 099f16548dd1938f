//! `[extract]`: how a window becomes memory units.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::Language;

/// How windows become memory units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtractSettings {
    /// `rules` needs no language model. `llm` stores the units of the rules at once and replaces
    /// them when the model's units arrive.
    pub extractor: String,
    /// Consecutive turns of a session in one unit; 1 makes a unit of each turn, an answer together
    /// with its question. Larger units cost less memory and are recalled less precisely.
    #[schemars(range(min = 1, max = 32))]
    pub unit_turns: u32,
    /// A turn with fewer content words than this makes no unit of its own; function words do not
    /// count. A larger value drops more small talk.
    pub least_content_words: u32,
    /// The language, by its code of ISO 639-1, of turns that do not tell theirs, before the first turn of their window
    /// that does: `en`, `de`, `zh`.
    #[serde(default)]
    pub language: Language,
}
