//! A turn of an open window, to its unit (decision 2).
//!
//! In: one turn, and the speakers so far. Out: the unit that the rules would make of the turn
//! alone; nothing for a deleted turn, a context turn, or a turn without content. The same turn
//! and speakers always give the same unit.

use super::{
    DraftUnit,
    compose::{Utterance, compose, informative},
};
use nouns::model::WindowTurn;

/// Name and version, recorded with every plain unit.
pub const PLAIN: &str = "plain/2";

/// The unit of a single turn. `speakers` are the speakers of its window so far;
/// `least_content_words` is the extractor's setting.
#[must_use]
pub fn plain_unit(turn: &WindowTurn, speakers: &[String], least_content_words: u32) -> Option<DraftUnit> {
    if turn.deleted || turn.context {
        return None;
    }
    let mut people: Vec<String> = speakers.to_vec();
    if !people.contains(&turn.turn.speaker) {
        people.push(turn.turn.speaker.clone());
    }
    let utterance = Utterance::whole(turn);
    let informative = informative(&utterance.words, &people, least_content_words);
    if !informative && utterance.shared.is_empty() {
        return None;
    }
    compose(&[utterance], &people)
}
