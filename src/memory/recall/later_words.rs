//! Later words of the person who asks, which stand in place of quoted ones.
//!
//! In: that person's profile, and which turns a context quotes. Out: what superseded quoted words and is not quoted
//! itself, so that what is over is never read without what holds. Of a chain of changes the last one stands.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use crate::index::ProfileLine;
use types::model::{Statement, SupersedingStatement};

/// What holds in place of the words of a turn.
#[derive(Debug, Clone, Default)]
pub(super) struct LaterWords<'l> {
    /// By the turn whose words are over.
    by_turn: BTreeMap<&'l str, &'l Statement>,
}

impl<'l> LaterWords<'l> {
    /// Of the lines of a profile.
    pub(super) fn of(lines: &'l [Arc<ProfileLine>]) -> Self {
        let mut next: HashMap<StatementName<'l>, &'l Statement> = HashMap::new();
        for line in lines {
            let Some(by) = &line.superseded_by else { continue };
            next.extend(line.statements().map(|of| (name(&of.statement), &by.statement)));
        }
        let mut by_turn = BTreeMap::new();
        for (turn, mut holds) in next.iter().map(|((turn, ..), by)| (*turn, *by)) {
            // What supersedes is later than what it supersedes, so this ends.
            while let Some(later) = next.get(&name(holds)) {
                holds = later;
            }
            let order = |of: &Statement| (of.said_at, of.ordinal);
            let newest = by_turn.entry(turn).or_insert(holds);
            if order(holds) > order(newest) {
                *newest = holds;
            }
        }
        Self { by_turn }
    }

    /// What superseded words of quoted turns and is not quoted, each once, in the order of time; before it a turn whose
    /// words it superseded.
    pub(super) fn missing(&self, quoted: &BTreeSet<&str>) -> Vec<(&'l str, &'l Statement)> {
        let over = self.by_turn.iter().filter(|(turn, holds)| quoted.contains(*turn) && !quoted.contains(&*holds.turn));
        let mut missing: Vec<(&'l str, &'l Statement)> = over.map(|(turn, holds)| (*turn, *holds)).collect();
        missing.sort_by_key(|(_, of)| (of.said_at, name(of)));
        missing.dedup_by_key(|(_, of)| name(of));
        missing
    }

    /// The same for an answer.
    pub(super) fn superseding(&self, quoted: &BTreeSet<&str>) -> Vec<SupersedingStatement> {
        let of = |(over, holds): (&str, &Statement)| SupersedingStatement {
            supersedes: over.to_owned(),
            turn: holds.turn.clone(),
            speaker: holds.speaker.clone(),
            said_at: holds.said_at,
            text: holds.text.clone(),
        };
        self.missing(quoted).into_iter().map(of).collect()
    }
}

/// The turn of a statement, its place there and its words.
type StatementName<'l> = (&'l str, u32, &'l str);

fn name(of: &Statement) -> StatementName<'_> {
    (&of.turn, of.ordinal, &of.text)
}
