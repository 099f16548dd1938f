//! A line of a profile: statements that say the same, and what superseded them.
//!
//! In: the statements of one place, in order. Out: its lines. Where only one value can hold, each run of the same value
//! is a line, and the next run supersedes it; elsewhere all statements of a place are one line.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::live_statement::LiveStatement;
use types::model::{EventTime, Statement};

/// A line of a profile.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProfileLine {
    /// The last statement that says it.
    pub newest: Arc<LiveStatement>,
    /// When it was first said.
    pub since: EventTime,
    /// The turns that say it, in order; each once.
    pub turns: Vec<String>,
    /// What superseded it; none if it holds.
    pub superseded_by: Option<Arc<LiveStatement>>,
}

impl ProfileLine {
    /// The last statement that says it.
    #[must_use]
    pub fn statement(&self) -> &Statement {
        &self.newest.statement
    }

    fn of(statement: &Arc<LiveStatement>) -> Self {
        Self {
            newest: Arc::clone(statement),
            since: statement.statement.said_at,
            turns: vec![statement.statement.turn.clone()],
            superseded_by: None,
        }
    }

    fn add(&mut self, statement: &Arc<LiveStatement>) {
        self.newest = Arc::clone(statement);
        if self.turns.last() != Some(&statement.statement.turn) {
            self.turns.push(statement.statement.turn.clone());
        }
    }
}

/// The lines of one place, from its statements in order.
pub(in crate::index) fn lines_of_place<'s>(
    statements: impl Iterator<Item = &'s Arc<LiveStatement>>,
) -> Vec<ProfileLine> {
    let mut lines: Vec<ProfileLine> = Vec::new();
    for statement in statements {
        match lines.last_mut() {
            Some(line) if line.newest.says_the_same(statement) => line.add(statement),
            Some(line) => {
                line.superseded_by = Some(Arc::clone(statement));
                lines.push(ProfileLine::of(statement));
            }
            None => lines.push(ProfileLine::of(statement)),
        }
    }
    lines
}
