//! A turn of a window that is still open, to its unit (decision 2).
//!
//! In: one turn, and the speakers seen so far. Out: the unit that the rules make of it when
//! it needs no other turn, or nothing for a deleted turn, context, and a turn without
//! content. The same turn and speakers always give the same unit.

use super::{
    DraftUnit,
    draft::{Piece, draft, informative},
};
use crate::model::WindowTurn;

/// Name and version, recorded with every plain unit.
pub const PLAIN: &str = "plain/1";

/// The unit of a single turn. `speakers` are the speakers of its window so far, by the
/// names they speak under; `least_content_words` is the extractor's setting.
#[must_use]
pub fn plain_unit(turn: &WindowTurn, speakers: &[String], least_content_words: u32) -> Option<DraftUnit> {
    if turn.deleted || turn.context {
        return None;
    }
    let mut people: Vec<String> = speakers.to_vec();
    if !people.contains(&turn.turn.speaker) {
        people.push(turn.turn.speaker.clone());
    }
    let piece = Piece::whole(turn);
    let said = informative(&piece.words, &people, least_content_words);
    if !said && piece.shared.is_empty() {
        return None;
    }
    draft(&[piece], &people)
}
