//! Whose words a question asks for, as the trace of an answer says it.
//!
//! Only types.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose words a question asks for, in a bank where an assistant speaks too.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AskedForm {
    /// The form that was read.
    pub form: AskedFormName,
    /// Whether the wording shows it; `false` if no form was recognised, and the question is taken for a task.
    pub certain: bool,
    /// The part of the tokens that persons and assistants share as the form says, 0 to 1. The rest goes to the best
    /// parts of all speakers.
    pub shared: f64,
}

/// The forms of questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AskedFormName {
    /// What the asker said, did, has or is.
    AboutMe,
    /// In which order something was said.
    Order,
    /// A summary of what was said.
    Summary,
    /// What the assistant said.
    Told,
    /// Something to do: advice, a text, a plan.
    Task,
    /// Something about anyone or anything, in the third person.
    General,
}

impl AskedFormName {
    /// Its name in words.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::AboutMe => "about the asker",
            Self::Order => "an order",
            Self::Summary => "a summary",
            Self::Told => "what the assistant said",
            Self::Task => "a task",
            Self::General => "about anyone",
        }
    }
}
