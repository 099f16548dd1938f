//! A window to units by rules of English; no language model, no network.
//!
//! In: a window. Out: units of consecutive turns, whose parts are the turns; or, where a unit
//! holds one turn, a unit for each turn of its own that has content, an answer together with
//! the question it answers. Then a question that was answered makes no second unit unless
//! its turn tells something besides. A context turn serves only as the question of an
//! answer, and as what was said before the first unit. The same window always gives the
//! same units, and a deleted turn changes no unit but its own.

use super::{
    DraftPart, DraftUnit, ExtractError, Extractor,
    draft::{Piece, draft, informative, split_questions},
};
use crate::{
    config::ExtractSettings,
    language::sentences::is_question,
    model::{MemoryRecord, Part, Unit, Window, WindowState, WindowTurn},
};

/// The extractor that needs no model.
#[derive(Debug, Clone)]
pub struct RulesExtractor {
    unit_turns: u32,
    least_content_words: u32,
}

impl RulesExtractor {
    /// An extractor by its settings.
    #[must_use]
    pub fn new(settings: &ExtractSettings) -> Self {
        Self { unit_turns: settings.unit_turns, least_content_words: settings.least_content_words }
    }
}

impl Extractor for RulesExtractor {
    fn name(&self) -> &str {
        "rules/3"
    }

    fn extract(&self, window: &Window) -> Result<Vec<DraftUnit>, ExtractError> {
        check_order(window)?;
        let turns: Vec<&WindowTurn> = window.turns.iter().filter(|t| !t.deleted).collect();
        let people = speakers(&turns);
        let informs = |text: &str| informative(text, &people, self.least_content_words);
        if self.unit_turns > 1 {
            return Ok(groups(window, self.unit_turns, &people, &informs));
        }

        let read: Vec<Reading<'_>> = (0..turns.len()).filter_map(|i| read(&turns, i, &informs)).collect();
        let mut units: Vec<DraftUnit> = Vec::with_capacity(read.len());
        for reading in &read {
            let answered = || read.iter().any(|r| r.question.is_some_and(|q| std::ptr::eq(q, reading.held)));
            if reading.question.is_none() && reading.asks && !reading.tells && answered() {
                continue;
            }
            let mut answer = Piece::whole(reading.held);
            answer.replies_to = reading.replies_to;
            answer.answers = reading.question.is_some();
            let unit = match reading.question {
                Some(question) => draft(&[question_piece(question, &informs), answer], &people),
                None => draft(&[answer], &people),
            };
            units.extend(unit.filter(|u| !units.contains(u)));
        }
        Ok(units)
    }
}

/// Units of `unit_turns` turns that follow each other, counted from the window's first turn
/// of its own, deleted or not.
fn groups(window: &Window, unit_turns: u32, people: &[String], informs: &impl Fn(&str) -> bool) -> Vec<DraftUnit> {
    let Some(start) = window.turns.iter().find(|t| !t.context).map(|t| t.ordinal) else { return Vec::new() };
    let live: Vec<&WindowTurn> = window.turns.iter().filter(|t| !t.deleted).collect();
    let own = live.partition_point(|t| t.context);
    let group = |t: &WindowTurn| t.ordinal.saturating_sub(start) / unit_turns;
    let mut units: Vec<DraftUnit> = Vec::new();
    for turns in live.get(own..).unwrap_or_default().chunk_by(|a, b| group(a) == group(b)) {
        let pieces: Vec<Piece<'_>> = turns.iter().map(|t| reply(Piece::whole(t), &live)).collect();
        if !pieces.iter().any(|p| !p.shared.is_empty() || informs(&p.words)) {
            continue;
        }
        let first = turns.first().map_or(start, |t| t.ordinal);
        let before = said_before(&live, first);
        units.extend(draft(&pieces, people).map(|unit| DraftUnit { before, ..unit }));
    }
    units
}

/// The turn before a unit that begins at an ordinal, where the window holds it.
fn said_before(live: &[&WindowTurn], first: u32) -> Option<DraftPart> {
    live.iter().rev().find(|t| t.ordinal < first).map(|t| Piece::whole(t).part())
}

/// The unit of a window's record as it was drafted, without its vectors.
#[must_use]
pub fn draft_from_record(unit: &Unit, record: &MemoryRecord, settings: &ExtractSettings) -> DraftUnit {
    let live: Vec<&WindowTurn> = record.turns.iter().filter(|t| !t.deleted).collect();
    let grouped = settings.unit_turns > 1 && record.state == WindowState::Final;
    // In a model's words: those of nobody's turn.
    let restated = matches!(unit.parts.as_slice(), [only] if only.text == unit.restatement);
    let part = |part: &Part| DraftPart {
        turn: part.turn.clone(),
        ordinal: part.ordinal,
        speaker: part.speaker.clone(),
        said_at: part.said_at,
        text: part.text.clone(),
        marks: part.marks,
    };
    DraftUnit {
        restatement: unit.restatement.clone(),
        cues: unit.cues.clone(),
        said_at: unit.said_at,
        sources: unit.sources.clone(),
        ordinal: unit.ordinal,
        before: if grouped && !restated { said_before(&live, unit.ordinal) } else { None },
        parts: unit.parts.iter().map(part).collect(),
        restated,
    }
}

/// The piece with the speaker that the platform says it answers.
fn reply<'w>(mut piece: Piece<'w>, live: &[&'w WindowTurn]) -> Piece<'w> {
    let held = piece.held;
    piece.replies_to = held.turn.reply_to.as_deref().and_then(|id| {
        let target = live.iter().find(|t| t.ordinal < held.ordinal && t.turn.turn == id)?;
        (target.turn.speaker != held.turn.speaker).then_some(target.turn.speaker.as_str())
    });
    piece
}

/// What is known of a turn that makes a unit.
struct Reading<'w> {
    held: &'w WindowTurn,
    /// The turn whose question it answers.
    question: Option<&'w WindowTurn>,
    replies_to: Option<&'w str>,
    /// Whether its last sentence asks.
    asks: bool,
    /// Whether it tells something besides what it asks.
    tells: bool,
}

/// A turn of the window's own that has content, by itself or as the answer to a question.
fn read<'w>(turns: &[&'w WindowTurn], i: usize, informs: &impl Fn(&str) -> bool) -> Option<Reading<'w>> {
    let held = *turns.get(i)?;
    if held.context {
        return None;
    }
    let reply = held.turn.reply_to.as_deref();
    let target = match reply {
        Some(id) => turns.iter().take(i).find(|t| t.turn.turn == id).copied(),
        None => i.checked_sub(1).and_then(|j| turns.get(j)).copied(),
    }
    .filter(|t| t.turn.speaker != held.turn.speaker);
    let piece = Piece::whole(held);
    let (_, told) = split_questions(&piece.words);
    // A turn that only asks back answers nothing.
    let answers = !told.is_empty() || !piece.shared.is_empty();
    let question = target.filter(|t| answers && is_question(&t.turn.text)).filter(|q| {
        let whole = Piece::whole(q);
        informs(&whole.words) || !whole.shared.is_empty() || informs(&piece.words)
    });
    let informative = !piece.shared.is_empty() || informs(&piece.words);
    (informative || question.is_some()).then(|| Reading {
        held,
        question,
        replies_to: target.filter(|_| reply.is_some()).map(|t| t.turn.speaker.as_str()),
        asks: is_question(&piece.words),
        tells: !piece.shared.is_empty() || informs(&told),
    })
}

/// The whole turn of a question, or only what it asks where it tells something besides.
fn question_piece<'w>(question: &'w WindowTurn, informs: &impl Fn(&str) -> bool) -> Piece<'w> {
    let whole = Piece::whole(question);
    let (asked, told) = split_questions(&whole.words);
    if informs(&told) && !asked.is_empty() { Piece::questions(question) } else { whole }
}

/// The speakers of a window, in the order in which they first speak.
fn speakers(turns: &[&WindowTurn]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for turn in turns {
        if !out.contains(&turn.turn.speaker) {
            out.push(turn.turn.speaker.clone());
        }
    }
    out
}

fn check_order(window: &Window) -> Result<(), ExtractError> {
    let follows = |pair: &[WindowTurn]| matches!(pair, [a, b] if a.ordinal < b.ordinal);
    match window.turns.windows(2).find(|pair| !follows(pair)).and_then(<[WindowTurn]>::last) {
        None => Ok(()),
        Some(turn) => Err(ExtractError::OutOfOrder {
            session: window.id.session.0.clone(),
            start: window.id.start,
            turn: turn.turn.turn.clone(),
            ordinal: turn.ordinal,
        }),
    }
}

#[cfg(test)]
mod tests;
