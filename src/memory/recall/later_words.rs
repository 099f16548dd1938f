//! Later words of the person who asks, which stand in place of quoted ones.
//!
//! In: that person's profile, and which turns a context quotes. Out: what superseded quoted words and is not quoted
//! itself, so that what is over is never read without what holds. Of a chain of changes the last one stands.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use crate::index::{LiveStatement, ProfileLine};
use types::model::{StandingInstruction, Statement, SupersedingStatement};

/// What holds in place of the words of turns.
#[derive(Debug, Clone, Default)]
pub(super) struct LaterWords<'l> {
    /// By the turn whose words are over: what holds in place of each.
    by_turn: BTreeMap<&'l str, Vec<&'l Statement>>,
}

impl<'l> LaterWords<'l> {
    /// Of the lines of a profile, but for the instructions that the context quotes anyway.
    pub(super) fn of(lines: &'l [Arc<ProfileLine>], instructions: &[StandingInstruction]) -> Self {
        let changes = lines.iter().filter_map(|line| Some((line.superseded_by.as_ref()?, line)));
        let mut changes: Vec<(&Arc<LiveStatement>, &Arc<ProfileLine>)> = changes.collect();
        // The latest first, so that what holds at the end of a chain is known when its beginning is read.
        changes.sort_by(|(one, _), (other, _)| other.cmp(one));
        let mut last: HashMap<StatementName<'l>, &'l Statement> = HashMap::new();
        let mut by_turn: BTreeMap<&str, Vec<&Statement>> = BTreeMap::new();
        let quoted: BTreeSet<(&str, &str)> =
            instructions.iter().map(|of| (of.turn.as_str(), of.text.as_str())).collect();
        for (by, line) in changes {
            let holds = last.get(&name(&by.statement)).copied().unwrap_or(&by.statement);
            for of in line.statements() {
                last.insert(name(&of.statement), holds);
                if !quoted.contains(&(holds.turn.as_str(), holds.text.as_str())) {
                    by_turn.entry(&of.statement.turn).or_default().push(holds);
                }
            }
        }
        Self { by_turn }
    }

    /// What superseded words of quoted turns and is not quoted, each once, in the order of time; before it a turn whose
    /// words it superseded.
    pub(super) fn missing(&self, quoted: &BTreeSet<&str>) -> Vec<(&'l str, &'l Statement)> {
        let over = self.by_turn.iter().filter(|(turn, _)| quoted.contains(*turn));
        let holds = over.flat_map(|(turn, holds)| holds.iter().map(|of| (*turn, *of)));
        let mut missing: Vec<(&'l str, &'l Statement)> =
            holds.filter(|(_, of)| !quoted.contains(of.turn.as_str())).collect();
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

/// The turn of a statement, the ordinal of the turn in its session, and the words.
type StatementName<'l> = (&'l str, u32, &'l str);

fn name(of: &Statement) -> StatementName<'_> {
    (&of.turn, of.ordinal, &of.text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::tests::{profile_line as line, statement};
    use types::model::StatementKind;

    fn fact(turn: &str, day: u32, text: &str) -> Arc<LiveStatement> {
        Arc::new(LiveStatement::from(statement(StatementKind::Fact, turn, day, text)))
    }

    fn texts(later: &LaterWords<'_>, quoted: &[&str]) -> Vec<String> {
        let quoted = quoted.iter().copied().collect();
        later.missing(&quoted).into_iter().map(|(_, of)| of.text.clone()).collect()
    }

    #[test]
    fn the_end_of_each_chain_stands_once_unless_it_is_quoted() {
        let [oslo, riga, cork] = [("a", 1, "Oslo"), ("b", 2, "Riga"), ("c", 3, "Cork")].map(|(t, d, s)| fact(t, d, s));
        // The same turn says something else that is over.
        let [acme, foo] = [("a", 1, "Acme"), ("d", 4, "Foo")].map(|(t, d, s)| fact(t, d, s));
        let lines = [
            line(&oslo, Some(&riga)),
            line(&riga, Some(&cork)),
            line(&cork, None),
            line(&acme, Some(&foo)),
            line(&foo, None),
        ];
        let later = LaterWords::of(&lines, &[]);
        assert_eq!(texts(&later, &["a"]), ["Cork", "Foo"]);
        assert_eq!(texts(&later, &["a", "b"]), ["Cork", "Foo"]);
        assert_eq!(texts(&later, &["a", "c"]), ["Foo"]);
        assert_eq!(texts(&later, &["c", "d"]), Vec::<String>::new());
        let superseding = later.superseding(&BTreeSet::from(["b"]));
        assert_eq!(
            (superseding.len(), superseding[0].supersedes.as_str(), superseding[0].turn.as_str()),
            (1, "b", "c")
        );
        let wish = StandingInstruction {
            turn: "d".to_owned(),
            speaker: "Ann".to_owned(),
            said_at: foo.statement.said_at,
            text: "Foo".to_owned(),
        };
        assert_eq!(texts(&LaterWords::of(&lines, &[wish]), &["a"]), ["Cork"], "a wish is quoted anyway");
    }
}
