//! What calls of a language model used.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What calls of a language model took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Usage")]
pub struct ModelUsage {
    /// Requests that were sent and answered.
    pub calls: u64,
    /// Tokens that were sent, as the endpoint counts them.
    pub prompt_tokens: u64,
    /// Tokens of the completions.
    pub completion_tokens: u64,
    /// Milliseconds from sending to the last byte.
    pub milliseconds: u64,
}

impl ModelUsage {
    /// Tokens of prompts and completions together.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.prompt_tokens + self.completion_tokens
    }
}

impl std::ops::AddAssign for ModelUsage {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.prompt_tokens += other.prompt_tokens;
        self.completion_tokens += other.completion_tokens;
        self.milliseconds += other.milliseconds;
    }
}
