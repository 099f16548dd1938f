//! Statements: sentences of persons that say something that lasts.
//!
//! In: what the rules or a language model found in a turn. Out: values with one JSON form, kept in the records of the
//! memory topic beside the units. A statement names its turn, so that an edit or a deletion takes it out. Nothing is
//! concluded from it here; what holds now is a view (`memory::index`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{EventTime, Interval, Language};

/// What a statement states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatementKind {
    /// What an assistant shall always or never do.
    Instruction,
    /// What a person prefers, likes or avoids.
    Preference,
    /// What is so: a name, a home, a relation, a limit.
    Fact,
    /// What a person will do, or has to do.
    Plan,
}

impl StatementKind {
    /// Every kind, in the order of a profile.
    pub const ALL: [Self; 4] = [Self::Instruction, Self::Preference, Self::Fact, Self::Plan];

    /// Its name in a record.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Instruction => "instruction",
            Self::Preference => "preference",
            Self::Fact => "fact",
            Self::Plan => "plan",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A sentence of a person that says something that lasts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The turn that says it.
    pub turn: String,
    /// Ordinal, in its session, of that turn.
    pub ordinal: u32,
    /// Who said it.
    pub speaker: String,
    /// When it was said.
    pub said_at: EventTime,
    /// What it states.
    pub kind: StatementKind,
    /// What of the speaker it is about, as the speaker names it (`sister`, `project`); absent where it is about the
    /// speaker, or about what is spoken to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What it says of the subject: `always`, `prefers`, `lives in`, `will`.
    pub relation: String,
    /// The rest: what is liked, the place, the name, the value.
    pub object: String,
    /// The words of the turn that say it.
    pub text: String,
    /// When a plan is due, if the words name a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Interval>,
    /// Whether only one value can hold at a time: a name, a home, an employer, an age, a setting or a limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub single: bool,
    /// Whether it says that something is not so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub negated: bool,
    /// What it says to be over, in its own words ("instead of tabs", "no longer in Oslo").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// The language that it is read in; absent where that is English.
    #[serde(default, skip_serializing_if = "Language::is_english")]
    pub language: Language,
}

/// The statements of a memory record.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordStatements {
    /// What found them, with a version: `statements/2`.
    pub by: String,
    /// The statements, in the order of their turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<Statement>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_reads_back_equal_and_leaves_out_what_is_absent() {
        let statement = Statement {
            turn: "t1".to_owned(),
            ordinal: 3,
            speaker: "Ann".to_owned(),
            said_at: EventTime::parse("2024-01-15T10:00:00Z").expect("a time"),
            kind: StatementKind::Instruction,
            subject: None,
            relation: "always".to_owned(),
            object: "use tabs".to_owned(),
            text: "Always use tabs.".to_owned(),
            time: None,
            single: false,
            negated: false,
            replaces: None,
            language: Language::En,
        };
        let json = serde_json::to_string(&statement).expect("JSON");
        let expected = concat!(
            r#"{"turn":"t1","ordinal":3,"speaker":"Ann","said_at":"2024-01-15T10:00:00Z","kind":"instruction","#,
            r#""relation":"always","object":"use tabs","text":"Always use tabs."}"#
        );
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<Statement>(&json).expect("a statement"), statement);
        assert!(StatementKind::ALL.into_iter().all(|kind| StatementKind::of_name(kind.name()) == Some(kind)));
    }
}
