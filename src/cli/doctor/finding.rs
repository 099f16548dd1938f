//! What was found of one thing.
//!
//! In: how it is, what was seen, what to do. Out: a line for people, or JSON.

use serde::Serialize;

/// How a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// As it should be.
    Ok,
    /// It works, and could be better.
    Note,
    /// It must be mended.
    Mend,
}

/// A line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) state: State,
    /// Of what, in one word.
    pub(super) of: &'static str,
    /// What was seen and, where something is to be done, what.
    pub(super) text: String,
}

impl Finding {
    pub(super) fn ok(of: &'static str, text: impl Into<String>) -> Self {
        Self { state: State::Ok, of, text: text.into() }
    }

    pub(super) fn note(of: &'static str, text: impl Into<String>) -> Self {
        Self { state: State::Note, of, text: text.into() }
    }

    pub(super) fn mend(of: &'static str, text: impl Into<String>) -> Self {
        Self { state: State::Mend, of, text: text.into() }
    }

    /// The line, without its end.
    pub(super) fn line(&self) -> String {
        let state = match self.state {
            State::Ok => "ok",
            State::Note => "note",
            State::Mend => "MEND",
        };
        format!("{state:<5} {:<14} {}", self.of, self.text)
    }
}
