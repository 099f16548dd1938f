//! The plain reference for profiles: the lines of a bank, computed from its visible statements at once.
//!
//! In: statements in any order. Out: lines as the memory must give them. Words are compared as they are: the random
//! histories use words that are their own stems.

use std::collections::{BTreeMap, BTreeSet};

use memory::index::ProfileLine;
use types::model::{EventTime, Language, MemoryKey, RecordStatements, Statement, StatementKind, canonical_name};

use super::history::Dice;

/// A line: its last statement, since when, its turns, and what superseded it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ExpectedLine {
    newest: Statement,
    since: EventTime,
    turns: Vec<String>,
    superseded_by: Option<Statement>,
}

impl From<&ProfileLine> for ExpectedLine {
    fn from(line: &ProfileLine) -> Self {
        Self {
            newest: line.newest.statement.clone(),
            since: line.since(),
            turns: line.turns().into_iter().map(str::to_owned).collect(),
            superseded_by: line.superseded_by.as_ref().map(|statement| statement.statement.clone()),
        }
    }
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split(' ').filter(|word| !word.is_empty()).collect()
}

/// The lines of a bank, sorted.
pub(super) fn profile(mut statements: Vec<Statement>) -> Vec<ExpectedLine> {
    statements.sort_by_key(|of| (of.said_at, of.ordinal, of.clone()));
    statements.dedup();
    let mut places: BTreeMap<_, Vec<&Statement>> = BTreeMap::new();
    for of in &statements {
        let value = (!of.single || of.negated).then(|| (words(&of.object), of.negated));
        let place = (canonical_name(&of.speaker), of.kind, &of.relation, &of.subject, value);
        places.entry(place).or_default().push(of);
    }
    let mut lines = Vec::new();
    for said in places.values() {
        for (at, of) in said.iter().enumerate() {
            let next = said.get(at + 1);
            if next.is_some_and(|next| words(&next.object) == words(&of.object)) {
                continue;
            }
            let run: Vec<&&Statement> =
                said[..=at].iter().rev().take_while(|before| words(&before.object) == words(&of.object)).collect();
            let mut turns: Vec<String> = run.iter().rev().map(|of| of.turn.clone()).collect();
            turns.dedup();
            let over = statements.iter().find(|later| is_over(of, later));
            lines.push(ExpectedLine {
                newest: (*of).clone(),
                since: run.last().map_or(of.said_at, |first| first.said_at),
                turns,
                superseded_by: next.copied().or(over).cloned(),
            });
        }
    }
    lines.sort();
    lines
}

/// Whether a later statement says that one is over.
fn is_over(old: &Statement, new: &Statement) -> bool {
    let replaced = new.replaces.as_deref().map(words).unwrap_or_default();
    let (object, key) = (words(&old.object), |of: &Statement| (of.said_at, of.ordinal, of.turn.clone()));
    let shared = replaced.intersection(&object).count();
    canonical_name(&old.speaker) == canonical_name(&new.speaker)
        && old.kind == new.kind
        && (old.kind != StatementKind::Fact || old.relation == new.relation)
        && old.turn != new.turn
        && key(new) > key(old)
        && !replaced.is_empty()
        && (shared == replaced.len() || shared >= 2 && 2 * shared > object.len())
}

/// Random statements of a record; a deleted turn has none.
pub(super) fn random_statements(key: &MemoryKey, seed: u64) -> RecordStatements {
    const WORDS: [&str; 6] = ["rain", "garden", "boat", "kayak", "oslo", "rome"];
    let mut dice = Dice(seed);
    let count = dice.below(4);
    let mut statement = |at: u64| {
        let dice = &mut dice;
        let mut some = |most: u64| {
            let words: Vec<&str> = (0..1 + dice.below(most)).map(|_| WORDS[dice.below(6) as usize]).collect();
            words.join(" ")
        };
        let (object, replaces) = (some(3), some(2));
        let kind = StatementKind::ALL[dice.below(4) as usize];
        let turn = key.turn.clone().unwrap_or_else(|| format!("t{}", at / 2));
        Statement {
            turn: format!("{}-{}-{turn}", key.window.session.0, key.window.start),
            ordinal: key.window.start + at as u32 / 2,
            speaker: ["Ann", "ann", "Bo Lee"][dice.below(3) as usize].to_owned(),
            said_at: EventTime::new(1_700_000_000_000 + dice.below(9) as i64 * 60_000, 0).unwrap(),
            kind,
            subject: (dice.below(4) == 0).then(|| "kayak".to_owned()),
            relation: ["is", "has"][dice.below(2) as usize].to_owned(),
            text: format!("it is {object}"),
            object,
            time: None,
            single: dice.below(2) == 0,
            negated: dice.below(4) == 0,
            replaces: (dice.below(3) == 0).then_some(replaces),
            language: Language::En,
        }
    };
    let found = (0..count).map(&mut statement).collect();
    RecordStatements { by: "random/1".to_owned(), found }
}

/// The rules themselves: what a person says later supersedes what they said, and what they delete comes back.
#[test]
fn the_reference_is_what_a_reader_expects() {
    let said = |turn: &str, minute: i64, object: &str| Statement {
        turn: turn.to_owned(),
        ordinal: minute as u32,
        speaker: "Ann".to_owned(),
        said_at: EventTime::new(1_700_000_000_000 + minute * 60_000, 0).unwrap(),
        kind: StatementKind::Fact,
        subject: None,
        relation: "lives in".to_owned(),
        object: object.to_owned(),
        text: object.to_owned(),
        time: None,
        single: true,
        negated: false,
        replaces: None,
        language: Language::En,
    };
    let over = |lines: &[ExpectedLine]| -> Vec<(String, Option<String>)> {
        let by = |line: &ExpectedLine| line.superseded_by.as_ref().map(|of| of.object.clone());
        lines.iter().map(|line| (line.newest.object.clone(), by(line))).collect()
    };
    let all = vec![said("1", 1, "oslo"), said("2", 2, "rome"), said("3", 3, "rome")];
    let lines = profile(all.clone());
    assert_eq!(over(&lines), [("oslo".to_owned(), Some("rome".to_owned())), ("rome".to_owned(), None)]);
    assert_eq!(lines[1].turns, ["2", "3"]);
    assert_eq!(over(&profile(all[..1].to_vec())), [("oslo".to_owned(), None)]);
}
