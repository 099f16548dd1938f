//! The language of each turn of a window.
//!
//! In: the turns of one window, in order, and the language of those that tell none at its beginning. Out: the language
//! that each is read in. Looks at nothing outside the window, so that an edit changes the record of its window alone.

use crate::language::languages::languages;
use nouns::model::{Language, WindowTurn};

/// The languages of the turns of a window, by ordinal.
#[derive(Debug, Clone, Default)]
pub struct TurnLanguages(Vec<(u32, Language)>);

impl TurnLanguages {
    /// Of the turns of a window, in ordinal order; a deleted one tells nothing.
    #[must_use]
    pub fn of<'w>(turns: impl IntoIterator<Item = &'w WindowTurn>, otherwise: Language) -> Self {
        let live: Vec<&WindowTurn> = turns.into_iter().filter(|turn| !turn.deleted).collect();
        let found = languages(live.iter().map(|turn| turn.turn.text.as_str()), otherwise);
        Self(live.iter().map(|turn| turn.ordinal).zip(found).collect())
    }

    /// The language of a turn; English of one that is not in the window.
    #[must_use]
    pub fn of_turn(&self, turn: &WindowTurn) -> Language {
        let found = self.0.binary_search_by_key(&turn.ordinal, |(ordinal, _)| *ordinal);
        found.ok().and_then(|at| self.0.get(at)).map_or_else(Language::default, |(_, language)| *language)
    }
}
