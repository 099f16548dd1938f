//! Coding agents' hooks, and the service behind them.
//!
//! In: what is installed for this user. Out: a line, if anything is.

use super::finding::DoctorFinding;
use crate::cli::agents::{AgentsHealth, health};

const OF: &str = "agents";

/// The hooks of coding agents; nothing where none is installed.
pub(super) fn coding_agents() -> Option<DoctorFinding> {
    match health() {
        AgentsHealth::NotInstalled => None,
        AgentsHealth::Works(text) => Some(DoctorFinding::ok(OF, text)),
        AgentsHealth::Waits(text) => Some(DoctorFinding::note(OF, text)),
        AgentsHealth::Sick(text) => Some(DoctorFinding::mend(OF, text)),
    }
}
