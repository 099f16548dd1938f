//! A statement as the memory holds it: with the stems by which it is compared.
//!
//! In: statements of memory records. Out: the same, ordered by when they were said. What a statement is compared with
//! is its place: all statements of a place say the same, or, where only one value can hold, speak of the same thing.

use serde::{Deserialize, Serialize};

use crate::statements::topic_stems;
use types::model::{EventTime, Statement, StatementKind, canonical_name};

/// A statement of a bank. Shared, never copied.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LiveStatement {
    /// When it was said. Statements are ordered by it, then by their ordinal and their turn.
    said_at: EventTime,
    ordinal: u32,
    /// What it states.
    pub statement: Statement,
    /// The stems of its object.
    stems: Box<[String]>,
    /// The stems of what it says to be over.
    replaced: Box<[String]>,
    /// Who said it, as persons are compared: every question about a bank compares it.
    person: u128,
}

/// 128 bits of BLAKE3 of a person, and of what a statement is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StatementPlace {
    /// The person.
    pub person: u128,
    /// The place among the person's statements.
    pub place: u128,
}

impl From<Statement> for LiveStatement {
    fn from(statement: Statement) -> Self {
        let stems = |words: &str| topic_stems(words, statement.language).into_boxed_slice();
        let words = if statement.object.is_empty() { &statement.text } else { &statement.object };
        let replaced = statement.replaces.as_deref().map(stems).unwrap_or_default();
        let person = person_key(&statement.speaker);
        Self {
            said_at: statement.said_at,
            ordinal: statement.ordinal,
            stems: stems(words),
            replaced,
            person,
            statement,
        }
    }
}

impl LiveStatement {
    /// Who said it, as persons are compared.
    #[must_use]
    pub fn person(&self) -> u128 {
        self.person
    }

    /// What it is compared with.
    #[must_use]
    pub fn place(&self) -> StatementPlace {
        let Statement { kind, relation, subject, negated, single, language, .. } = &self.statement;
        let subject = subject.as_deref().map(|words| topic_stems(words, *language));
        let is_value = *single && !negated;
        let value = if is_value { None } else { Some((&self.stems, negated)) };
        let json = serde_json::to_vec(&(kind, relation, subject, value)).unwrap_or_default();
        StatementPlace { person: self.person(), place: hash(&json) }
    }

    /// Whether two statements of one place say the same.
    #[must_use]
    pub fn says_the_same(&self, other: &Self) -> bool {
        self.stems == other.stems
    }

    /// Whether it says that something is over.
    #[must_use]
    pub fn replaces(&self) -> bool {
        !self.replaced.is_empty()
    }

    /// Whether it says that an earlier statement of the same person is over: of the same kind, of a fact with the same
    /// relation; its words hold all that is replaced, or most of its own words are replaced.
    #[must_use]
    pub fn supersedes(&self, earlier: &Self) -> bool {
        let (new, old) = (&self.statement, &earlier.statement);
        let is_fact = new.kind == StatementKind::Fact;
        if new.kind != old.kind
            || is_fact && new.relation != old.relation
            || !self.replaces()
            || !self.is_after(earlier)
        {
            return false;
        }
        let shared = self.replaced.iter().filter(|stem| earlier.stems.binary_search(stem).is_ok()).count();
        shared == self.replaced.len() || shared >= 2 && 2 * shared > earlier.stems.len()
    }

    /// Whether it was said in a later turn than another one.
    #[must_use]
    pub fn is_after(&self, other: &Self) -> bool {
        let (turn, before) = (&self.statement.turn, &other.statement.turn);
        turn != before && (self.said_at, self.ordinal, turn) > (other.said_at, other.ordinal, before)
    }
}

/// 128 bits of BLAKE3 of a person's canonical name.
#[must_use]
pub fn person_key(name: &str) -> u128 {
    hash(canonical_name(name).as_bytes())
}

fn hash(bytes: &[u8]) -> u128 {
    let mut low = [0u8; 16];
    low.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
    u128::from_le_bytes(low)
}
