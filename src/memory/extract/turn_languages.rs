//! The language of each turn of a window.
//!
//! In: the turns of one window, in order, and the language for turns at its beginning that show none. Out: the language
//! in which each is read. Nothing outside the window counts, so that an edit changes only the record of its own window.

use crate::language::multilingual::languages_of;
use types::model::{Language, WindowTurn};

/// The languages of the turns of a window, by ordinal.
#[derive(Debug, Clone, Default)]
pub struct TurnLanguages(Vec<(u32, Language)>);

impl TurnLanguages {
    /// The languages of a window's turns, in ordinal order; turns that are deleted or not to be recalled do
    /// not count.
    #[must_use]
    pub fn of<'w>(turns: impl IntoIterator<Item = &'w WindowTurn>, otherwise: Language) -> Self {
        let live: Vec<&WindowTurn> = turns.into_iter().filter(|turn| turn.is_recalled()).collect();
        let found = languages_of(live.iter().map(|turn| turn.turn.text.as_str()), otherwise);
        Self(live.iter().map(|turn| turn.ordinal).zip(found).collect())
    }

    /// The language of a turn; English if the turn is not in the window.
    #[must_use]
    pub fn of_turn(&self, turn: &WindowTurn) -> Language {
        let found = self.0.binary_search_by_key(&turn.ordinal, |(ordinal, _)| *ordinal);
        found.ok().and_then(|at| self.0.get(at)).map_or_else(Language::default, |(_, language)| *language)
    }
}
