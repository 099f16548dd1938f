//! When a window closes (decision 5).
//!
//! In: the settings `[window]`, and what the window and the event say. Out: whether the window
//! closes. A window closes
//!
//! 1. when it is full: it has `turns` turns, its context included;
//! 2. at a later turn: its bank gets a text from more than `gap_minutes` after the window's last
//!    event time, in any session;
//! 3. at the end mark of its session;
//! 4. at an idle mark of its bank that is at least `gap_minutes` after the window's last event time;
//!
//! and at nothing else. Times are event times; no rule reads a clock. Without `sessions` only the
//! first and the last rule apply.

use types::{
    config::WindowSettings,
    model::{Bank, SessionId},
};

/// The settings in the units that the rules compute with.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowRules {
    turns: u32,
    /// The number of turns of the previous window that a window holds as context.
    pub(super) overlap: u32,
    pub(super) gap_ms: i64,
    /// Whether a bank is divided into sessions.
    pub(super) sessions: bool,
    /// Whether the bank's conversations cross.
    pub(super) crossing: bool,
}

impl WindowRules {
    pub(super) fn new(settings: &WindowSettings) -> Self {
        Self {
            turns: settings.turns,
            overlap: settings.overlap,
            gap_ms: i64::from(settings.gap_minutes) * 60_000,
            sessions: settings.sessions,
            crossing: false,
        }
    }

    /// The rules of a bank.
    pub(super) fn for_bank(self, bank: &Bank, crossing: &[String]) -> Self {
        Self { crossing: crossing.iter().any(|prefix| bank.is_within(prefix)), ..self }
    }

    /// Rule 1. `turns` counts the window's context and its own turns.
    pub(super) fn is_full(&self, turns: u32) -> bool {
        turns >= self.turns
    }

    /// Rule 2: a text of `text_ms` was applied. A text from long before the window's last event time, as in the import
    /// of an old export, closes nothing: otherwise each turn of the import would become a window.
    pub(super) fn closes_at_text(&self, last_ms: i64, text_ms: i64) -> bool {
        self.sessions && last_ms.saturating_add(self.gap_ms) < text_ms
    }

    /// Rule 3: the sessions whose windows the end mark for `name` closes.
    pub(super) fn sessions_ended_by(&self, name: &str) -> Vec<SessionId> {
        let kinds = if self.sessions { &["caller", "thread"][..] } else { &[] };
        kinds.iter().map(|kind| SessionId(format!("{kind}:{name}"))).collect()
    }

    /// Rule 4: an idle mark of `idle_ms` was applied.
    pub(super) fn closes_at_idle(&self, last_ms: i64, idle_ms: i64) -> bool {
        last_ms.saturating_add(self.gap_ms) <= idle_ms
    }
}
