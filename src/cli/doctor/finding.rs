//! What was found when one thing was checked.
//!
//! In: its state, what was seen, and what to do. Out: a line for people, or JSON.

use serde::Serialize;

/// The state of a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum FindingState {
    /// As it should be.
    Ok,
    /// It works, but could be better.
    Note,
    /// It must be fixed.
    Mend,
}

/// A line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct DoctorFinding {
    pub(super) state: FindingState,
    /// What was checked, in one word.
    pub(super) of: &'static str,
    /// What was seen and, if something has to be done, what.
    pub(super) text: String,
}

impl DoctorFinding {
    pub(super) fn ok(of: &'static str, text: impl Into<String>) -> Self {
        Self { state: FindingState::Ok, of, text: text.into() }
    }

    pub(super) fn note(of: &'static str, text: impl Into<String>) -> Self {
        Self { state: FindingState::Note, of, text: text.into() }
    }

    pub(super) fn mend(of: &'static str, text: impl Into<String>) -> Self {
        Self { state: FindingState::Mend, of, text: text.into() }
    }

    /// The line, without a line break.
    pub(super) fn line(&self) -> String {
        let state = match self.state {
            FindingState::Ok => "ok",
            FindingState::Note => "note",
            FindingState::Mend => "MEND",
        };
        format!("{state:<5} {:<14} {}", self.of, self.text)
    }
}
