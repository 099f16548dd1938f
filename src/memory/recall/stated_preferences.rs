//! Where the person who asks has stated what they prefer.
//!
//! In: that person's profile. Out: for a part of the bank, whether it states a preference that holds. What holds no
//! longer counts no more than any other words.

use std::{collections::BTreeMap, sync::Arc};

use crate::index::{PartBody, ProfileLine};
use types::model::StatementKind;

/// The sentences in which the person who asks states a preference that holds, by turn.
#[derive(Debug, Default)]
pub struct StatedPreferences(BTreeMap<String, Vec<String>>);

impl StatedPreferences {
    /// Those of a profile.
    pub(super) fn of(profile: &[Arc<ProfileLine>]) -> Self {
        let mut by_turn: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let holds = |line: &&Arc<ProfileLine>| {
            line.superseded_by.is_none() && line.statement().kind == StatementKind::Preference
        };
        for of in profile.iter().filter(holds).flat_map(|line| line.statements()) {
            by_turn.entry(of.statement.turn.clone()).or_default().push(of.statement.text.clone());
        }
        Self(by_turn)
    }

    /// Whether a part states one of them. A turn of several passages states it in one of these.
    #[must_use]
    pub fn are_in(&self, part: &PartBody<'_>) -> bool {
        let said = |sentence: &String| part.range.is_none() || part.text.contains(sentence);
        self.0.get(part.turn).is_some_and(|sentences| sentences.iter().any(said))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        index::LiveStatement,
        recall::tests::{profile_line, statement},
    };
    use types::model::{EventTime, TextFeatures, TextRange};

    fn line(turn: &str, kind: StatementKind, text: &str, superseded: bool) -> Arc<ProfileLine> {
        let of = Arc::new(LiveStatement::from(statement(kind, turn, 1, text)));
        profile_line(&of, superseded.then_some(&of))
    }

    fn states(preferences: &StatedPreferences, turn: &str, text: &str, range: Option<TextRange>) -> bool {
        let said_at = EventTime::parse("2024-05-01T09:00:00Z").unwrap();
        let (speaker, kind, marks) = ("Ann", None, TextFeatures::default());
        preferences.are_in(&PartBody { turn, ordinal: 1, speaker, kind, said_at, text, range, marks })
    }

    #[test]
    fn a_preference_counts_in_its_passage_while_it_holds() {
        let preferences = StatedPreferences::of(&[
            line("a", StatementKind::Preference, "I prefer trains.", false),
            line("b", StatementKind::Preference, "I prefer planes.", true),
            line("c", StatementKind::Fact, "I live in Bonn.", false),
        ]);
        assert!(states(&preferences, "a", "I prefer trains.", None));
        assert!(!states(&preferences, "b", "I prefer planes.", None), "it is superseded");
        assert!(!states(&preferences, "c", "I live in Bonn.", None), "a fact");
        assert!(!states(&preferences, "d", "I prefer trains.", None), "another turn");
        let passage = Some(TextRange { start: 0, end: 40, total: 90 });
        assert!(states(&preferences, "a", "For the trip: I prefer trains. Thank you.", passage));
        assert!(!states(&preferences, "a", "The next paragraph is about the hotel.", passage));
    }
}
