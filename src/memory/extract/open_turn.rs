//! Makes the units of a turn in an open window (decision 2).
//!
//! In: one turn, the languages of its window, and the speakers so far. Out: the units that the rules would make of the
//! turn alone: one, or several for a very long turn; none for a turn that is deleted or not to be recalled, a context turn, or a turn without
//! content. The same turn and speakers always give the same units.

use super::{
    DraftUnit, TurnLanguages,
    compose::{Utterance, compose, is_informative},
};
use types::model::WindowTurn;

/// Name and version, recorded with every plain unit.
pub const PLAIN: &str = "plain/3";

/// The units of a single turn. `languages` are those of its window's turns so far; `speakers` are the speakers of its
/// window so far; `least_content_words` is the extractor's setting.
#[must_use]
pub fn plain_units(
    turn: &WindowTurn,
    languages: &TurnLanguages,
    speakers: &[String],
    least_content_words: u32,
) -> Vec<DraftUnit> {
    if !turn.is_recalled() || turn.context {
        return Vec::new();
    }
    let mut people: Vec<String> = speakers.to_vec();
    if !people.contains(&turn.turn.speaker) {
        people.push(turn.turn.speaker.clone());
    }
    let said = Utterance::all(turn, languages);
    let informs = |utterance: &Utterance<'_>| is_informative(&utterance.words, &people, least_content_words);
    if !said.iter().any(|utterance| !utterance.shared.is_empty() || informs(utterance)) {
        return Vec::new();
    }
    said.into_iter().filter_map(|utterance| compose(&[utterance], &people)).collect()
}
