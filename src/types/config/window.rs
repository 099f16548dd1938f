//! `[window]`: when consecutive turns become a window (paper, table of implementation settings;
//! decisions 5 and 6).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How turns are grouped into windows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowSettings {
    /// Turns of a full window, the overlap included. A larger window gives the extractor more
    /// context and closes later.
    #[schemars(range(min = 1, max = 1000))]
    pub turns: u32,
    /// Turns at the start of a window that are repeated from the window before, as context only.
    /// Smaller than `turns`.
    pub overlap: u32,
    /// Silence, in event time, after which a window closes and an unnamed session ends. A larger
    /// gap makes fewer, longer sessions.
    #[schemars(range(min = 1, max = 525_600))]
    pub gap_minutes: u32,
    /// `true` keeps windows within a session. `false` counts turns across the whole bank, as the
    /// paper does.
    pub sessions: bool,
    /// Banks in which several conversations cross in one room, as on IRC, by name or by their leading
    /// segments. Turns without a thread are distinguished by reply, mention, pause and wording, and each
    /// conversation is a session of its own; a turn never moves to another one.
    pub crossing: Vec<String>,
}

impl WindowSettings {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.overlap >= self.turns {
            return Err(format!(
                "window.overlap: {} leaves no new turn in a window of {}; write less than window.turns",
                self.overlap, self.turns
            ));
        }
        match self.crossing.iter().find(|bank| bank.split('/').any(str::is_empty)) {
            Some(bank) => Err(format!(
                "window.crossing: {bank:?} is not a bank; write its name or its first segments, such as irc"
            )),
            None => Ok(()),
        }
    }
}
