//! A line of a profile: statements that say the same, and what superseded them.
//!
//! In: the statements of one place, in order. Out: its lines. Where only one value can hold, each run of the same value
//! is a line, and the next run supersedes it; elsewhere all statements of a place are one line. A line keeps its
//! statements, so that lines can be made of some of them alone ([`lines_of_some`]).

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::live_statement::LiveStatement;
use types::model::{EventTime, Statement};

/// A line of a profile.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProfileLine {
    /// The last statement that says it.
    pub newest: Arc<LiveStatement>,
    /// Those that said it before, in order.
    earlier: Vec<Arc<LiveStatement>>,
    /// What superseded it; none if it holds.
    pub superseded_by: Option<Arc<LiveStatement>>,
}

impl ProfileLine {
    /// The last statement that says it.
    #[must_use]
    pub fn statement(&self) -> &Statement {
        &self.newest.statement
    }

    /// When it was first said.
    #[must_use]
    pub fn since(&self) -> EventTime {
        self.earlier.first().unwrap_or(&self.newest).statement.said_at
    }

    /// The turns that say it, in order; each once.
    #[must_use]
    pub fn turns(&self) -> Vec<&str> {
        let mut turns: Vec<&str> = self.statements().map(|of| of.statement.turn.as_str()).collect();
        turns.dedup();
        turns
    }

    /// The statements that say it, in order.
    pub(crate) fn statements(&self) -> impl Iterator<Item = &Arc<LiveStatement>> {
        self.earlier.iter().chain([&self.newest])
    }

    pub(crate) fn of(statement: &Arc<LiveStatement>) -> Self {
        Self { newest: Arc::clone(statement), earlier: Vec::new(), superseded_by: None }
    }

    fn add(&mut self, statement: &Arc<LiveStatement>) {
        self.earlier.push(std::mem::replace(&mut self.newest, Arc::clone(statement)));
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

/// The lines that the statements of some turns make, as if nothing else had been said: `lines` are those of all turns.
#[must_use]
pub fn lines_of_some(lines: &[Arc<ProfileLine>], takes: impl Fn(&str) -> bool) -> Vec<Arc<ProfileLine>> {
    let all = lines.iter().flat_map(|line| line.statements());
    let mut some: Vec<&Arc<LiveStatement>> = all.filter(|of| takes(&of.statement.turn)).collect();
    some.sort();
    let (mut places, mut changes) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, Vec<_>>::new());
    for statement in some {
        places.entry(statement.place()).or_default().push(statement);
        if statement.replaces() {
            changes.entry(statement.person()).or_default().push(statement);
        }
    }
    let mut found = Vec::new();
    for (place, statements) in places {
        for mut line in lines_of_place(statements.into_iter()) {
            if line.superseded_by.is_none() {
                let later = changes.get(&place.person).into_iter().flatten();
                line.superseded_by = later.copied().find(|change| change.supersedes(&line.newest)).cloned();
            }
            found.push(Arc::new(line));
        }
    }
    found
}
