//! What a memory answered, as far as a hook needs it.
//!
//! In: the JSON of `POST /v1/ask` and of `GET /v1/profile`. Out: quotes with their turns. Fields that are not needed are
//! passed over, so that a service of another version is understood.

use serde::Deserialize;
use serde_json::Value;

/// The evidence for a prompt.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RecalledTurns {
    /// Whether something was found that supports the question.
    pub supported: bool,
    /// The units, best first.
    pub units: Vec<RecalledUnit>,
}

/// A unit of the evidence.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RecalledUnit {
    /// How near to the question it is: 1 for the best unit, 0 for the bank's background.
    pub rho: f64,
    /// What of it is quoted.
    pub excerpts: Vec<RecalledPassage>,
}

/// A quote.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RecalledPassage {
    /// The turn.
    pub turn: String,
    /// Who said it.
    pub speaker: String,
    /// When, in RFC 3339.
    pub said_at: String,
    /// What was said.
    pub text: String,
    /// Where a passage of a long turn lies in it.
    pub range: Option<PassageRange>,
    /// What is known of its turn besides the words.
    pub metadata: Option<Value>,
}

/// Where a passage lies in its turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PassageRange {
    /// Its first byte.
    pub start: u64,
}

impl RecalledPassage {
    /// A text of its metadata.
    #[must_use]
    pub fn known(&self, name: &str) -> Option<&str> {
        self.metadata.as_ref()?.get(name)?.as_str()
    }
}

/// What persons said that lasts.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RecalledProfile {
    /// The lines: instructions, preferences, facts, plans.
    pub lines: Vec<RecalledLine>,
}

/// A line of a profile.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RecalledLine {
    /// `instruction`, `preference`, `fact` or `plan`.
    pub kind: String,
    /// The words.
    pub text: String,
    /// When it was last said, in RFC 3339.
    pub said_at: String,
    /// The turns that say it, in the order of time.
    pub turns: Vec<String>,
    /// Of a plan: whether its time has not passed.
    pub open: Option<bool>,
}
