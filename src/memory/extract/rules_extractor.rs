//! Makes a window's units by rules, without a language model or a network (decision 21).
//!
//! In: a window. Out: with `unit_turns` above 1, units of that many consecutive turns, whose parts are the turns. With
//! `unit_turns` = 1, a unit for each turn with content. An answer forms one unit with its question, and the question
//! then has no unit of its own unless its turn also makes a statement. A context turn only serves as the question of an
//! answer, and as the turn before the first unit. A long turn makes units of its own, from its passages, and the turns
//! before and after it are in different units. The same window always has the same units, and a deletion changes only
//! the units of the deleted turn, or those that it divided.

use super::{
    DraftPart, DraftUnit, Extractor, TurnLanguages, TurnOrderError,
    compose::{Utterance, compose, is_informative, makes_own_units, split_questions},
};
use crate::language::sentences::is_question;
use types::{
    config::ExtractSettings,
    model::{Language, MemoryRecord, Unit, UnitPart, Window, WindowState, WindowTurn},
};

/// The extractor that needs no model.
#[derive(Debug, Clone)]
pub struct RulesExtractor {
    unit_turns: u32,
    least_content_words: u32,
    language: Language,
}

impl RulesExtractor {
    /// An extractor with these settings.
    #[must_use]
    pub fn new(settings: &ExtractSettings) -> Self {
        let ExtractSettings { unit_turns, least_content_words, language, .. } = *settings;
        Self { unit_turns, least_content_words, language }
    }

    /// The language of turns at the beginning of a window that show no language.
    #[must_use]
    pub fn language(&self) -> Language {
        self.language
    }
}

impl Extractor for RulesExtractor {
    fn name(&self) -> &str {
        "rules/6"
    }

    type Error = TurnOrderError;

    fn extract(&self, window: &Window) -> Result<Vec<DraftUnit>, TurnOrderError> {
        check_order(window)?;
        let turns: Vec<&WindowTurn> = window.turns.iter().filter(|t| t.is_recalled()).collect();
        let people = speakers(&turns);
        let languages = TurnLanguages::of(&window.turns, self.language);
        let informs = |text: &str| is_informative(text, &people, self.least_content_words);
        if self.unit_turns > 1 {
            return Ok(grouped_units(window, self.unit_turns, &people, &languages, &informs));
        }

        let candidates: Vec<CandidateTurn<'_>> =
            (0..turns.len()).filter_map(|i| candidate_turn(&turns, i, &languages, &informs)).collect();
        let mut units: Vec<DraftUnit> = Vec::with_capacity(candidates.len());
        for candidate in &candidates {
            let answered =
                || candidates.iter().any(|r| r.question.is_some_and(|q| std::ptr::eq(q, candidate.window_turn)));
            if candidate.question.is_none() && candidate.asks && !candidate.states && answered() {
                continue;
            }
            for mut answer in Utterance::all(candidate.window_turn, &languages) {
                answer.replies_to = candidate.replies_to;
                answer.answers = candidate.question.is_some();
                let unit = match candidate.question {
                    Some(question) => compose(&[question_of(question, &languages, &informs), answer], &people),
                    None => compose(&[answer], &people),
                };
                units.extend(unit.filter(|u| !units.contains(u)));
            }
        }
        Ok(units)
    }
}

/// Units of `unit_turns` consecutive turns, counted from the window's first turn outside the
/// context, recalled or not.
fn grouped_units(
    window: &Window,
    unit_turns: u32,
    people: &[String],
    languages: &TurnLanguages,
    informs: &impl Fn(&str) -> bool,
) -> Vec<DraftUnit> {
    let Some(start) = window.turns.iter().find(|t| !t.context).map(|t| t.ordinal) else { return Vec::new() };
    let live: Vec<&WindowTurn> = window.turns.iter().filter(|t| t.is_recalled()).collect();
    let own = live.partition_point(|t| t.context);
    let group = |t: &WindowTurn| t.ordinal.saturating_sub(start) / unit_turns;
    let mut units: Vec<DraftUnit> = Vec::new();
    let together = |a: &WindowTurn, b: &WindowTurn| group(a) == group(b) && !makes_own_units(a) && !makes_own_units(b);
    for turns in live.get(own..).unwrap_or_default().chunk_by(|a, b| together(a, b)) {
        let utterances: Vec<Utterance<'_>> =
            turns.iter().flat_map(|turn| Utterance::all(turn, languages)).map(|said| with_reply(said, &live)).collect();
        if !utterances.iter().any(|p| !p.shared.is_empty() || informs(&p.words)) {
            continue;
        }
        if turns.iter().any(|turn| makes_own_units(turn)) {
            units.extend(utterances.chunks(1).filter_map(|some| compose(some, people)));
            continue;
        }
        let first = turns.first().map_or(start, |t| t.ordinal);
        let before = part_before(&live, first, languages);
        units.extend(compose(&utterances, people).map(|unit| DraftUnit { before, ..unit }));
    }
    units
}

/// The turn before the ordinal `first`, if the window holds one and it is short.
fn part_before(live: &[&WindowTurn], first: u32, languages: &TurnLanguages) -> Option<DraftPart> {
    let before = live.iter().rev().find(|turn| turn.ordinal < first)?;
    (!makes_own_units(before)).then(|| Utterance::whole(before, languages).part())
}

/// The drafts from which the units of a record were made, in their order.
#[must_use]
pub fn drafts_from_record(record: &MemoryRecord, settings: &ExtractSettings) -> Vec<DraftUnit> {
    let live: Vec<&WindowTurn> = record.turns.iter().filter(|t| t.is_recalled()).collect();
    let languages = TurnLanguages::of(&record.turns, settings.language);
    let grouped = settings.unit_turns > 1 && record.state == WindowState::Final;
    record.units.iter().map(|unit| draft_of_unit(unit, &live, &languages, grouped)).collect()
}

/// The draft of a stored unit. If `grouped`, it also has the turn before it.
fn draft_of_unit(unit: &Unit, live: &[&WindowTurn], languages: &TurnLanguages, grouped: bool) -> DraftUnit {
    // Only a unit from a language model has its restatement as its part.
    let restated = matches!(unit.parts.as_slice(), [only] if only.text == unit.restatement);
    let by_passages = unit.parts.iter().any(|part| part.range.is_some());
    let part = |part: &UnitPart| DraftPart {
        turn: part.turn.clone(),
        ordinal: part.ordinal,
        speaker: part.speaker.clone(),
        kind: part.kind,
        said_at: part.said_at,
        text: part.text.clone(),
        range: part.range,
        marks: part.marks,
    };
    DraftUnit {
        restatement: unit.restatement.clone(),
        cues: unit.cues.clone(),
        said_at: unit.said_at,
        sources: unit.sources.clone(),
        ordinal: unit.ordinal,
        before: if grouped && !restated && !by_passages { part_before(live, unit.ordinal, languages) } else { None },
        parts: unit.parts.iter().map(part).collect(),
        restated,
    }
}

/// Adds the speaker that the turn replies to.
fn with_reply<'w>(mut utterance: Utterance<'w>, live: &[&'w WindowTurn]) -> Utterance<'w> {
    let window_turn = utterance.window_turn;
    utterance.replies_to = window_turn.turn.reply_to.as_deref().and_then(|id| {
        let target = live.iter().find(|t| t.ordinal < window_turn.ordinal && t.turn.turn == id)?;
        (target.turn.speaker != window_turn.turn.speaker).then_some(target.turn.speaker.as_str())
    });
    utterance
}

/// A turn that may make a unit.
struct CandidateTurn<'w> {
    window_turn: &'w WindowTurn,
    /// The turn whose question it answers.
    question: Option<&'w WindowTurn>,
    replies_to: Option<&'w str>,
    /// Whether its last sentence is a question.
    asks: bool,
    /// Whether it makes a statement besides its questions.
    states: bool,
}

/// A turn outside the context that has content, alone or as the answer to a question.
fn candidate_turn<'w>(
    turns: &[&'w WindowTurn],
    i: usize,
    languages: &TurnLanguages,
    informs: &impl Fn(&str) -> bool,
) -> Option<CandidateTurn<'w>> {
    let window_turn = *turns.get(i)?;
    if window_turn.context {
        return None;
    }
    let reply = window_turn.turn.reply_to.as_deref();
    let target = match reply {
        Some(id) => turns.iter().take(i).find(|t| t.turn.turn == id).copied(),
        None => i.checked_sub(1).and_then(|j| turns.get(j)).copied(),
    }
    .filter(|t| t.turn.speaker != window_turn.turn.speaker);
    let utterance = Utterance::whole(window_turn, languages);
    let (_, statements) = split_questions(&utterance.words);
    // A turn that only asks something in return is not an answer.
    let answers = !statements.is_empty() || !utterance.shared.is_empty();
    // A long turn stands alone, whether it asks or answers.
    let target_asks =
        |t: &&WindowTurn| answers && !makes_own_units(window_turn) && !makes_own_units(t) && is_question(&t.turn.text);
    let question = target.filter(target_asks).filter(|q| {
        let whole = Utterance::whole(q, languages);
        informs(&whole.words) || !whole.shared.is_empty() || informs(&utterance.words)
    });
    let informative = !utterance.shared.is_empty() || informs(&utterance.words);
    (informative || question.is_some()).then(|| CandidateTurn {
        window_turn,
        question,
        replies_to: target.filter(|_| reply.is_some()).map(|t| t.turn.speaker.as_str()),
        asks: is_question(&utterance.words),
        states: !utterance.shared.is_empty() || informs(&statements),
    })
}

/// The whole turn of a question, or only its questions if it also makes a statement.
fn question_of<'w>(
    question: &'w WindowTurn,
    languages: &TurnLanguages,
    informs: &impl Fn(&str) -> bool,
) -> Utterance<'w> {
    let whole = Utterance::whole(question, languages);
    let (asked, statements) = split_questions(&whole.words);
    if informs(&statements) && !asked.is_empty() { Utterance::questions(question, languages) } else { whole }
}

/// The speakers of a window, in the order of their first turns.
fn speakers(turns: &[&WindowTurn]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for turn in turns {
        if !out.contains(&turn.turn.speaker) {
            out.push(turn.turn.speaker.clone());
        }
    }
    out
}

fn check_order(window: &Window) -> Result<(), TurnOrderError> {
    let follows = |pair: &[WindowTurn]| matches!(pair, [a, b] if a.ordinal < b.ordinal);
    match window.turns.windows(2).find(|pair| !follows(pair)).and_then(<[WindowTurn]>::last) {
        None => Ok(()),
        Some(turn) => Err(TurnOrderError {
            session: window.id.session.0.clone(),
            start: window.id.start,
            turn: turn.turn.turn.clone(),
            ordinal: turn.ordinal,
        }),
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
