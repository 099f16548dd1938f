//! How much is enough: where the list of familiar parts is cut.
//!
//! In: the most familiar parts in order, the zero of their scale, the form of the question. Out:
//! the parts that an answer quotes, best first. A part belongs to it while it lies far
//! enough on the way from that zero to the bank's best part; a form of question that one
//! part rarely answers goes further down. Costs are estimated from lengths: no vocabulary
//! is loaded to answer a question.

use std::collections::BTreeSet;

use crate::{
    config::{RecallSettings, StopSettings},
    language::question::QuestionType,
    memory::{FamiliarPart, FamiliarParts},
};

/// Bytes of English dialogue in a token of the o200k vocabulary, about.
const BYTES_A_TOKEN: f64 = 4.2;
/// Tokens of the heading that a day of a session costs.
const HEADING_TOKENS: f64 = 14.0;
/// Tokens of a line besides its words and its speaker.
const LINE_TOKENS: f64 = 2.0;

/// Places in `familiar.best`, each with its share of the way from the zero to the best.
pub(super) fn enough(
    familiar: &FamiliarParts,
    question_type: QuestionType,
    settings: &RecallSettings,
) -> Vec<(usize, f64)> {
    let StopSettings { least_tokens, most_tokens, .. } = settings.stop;
    let least = least_share(question_type, &settings.stop);
    let mut out = Vec::new();
    let mut units = BTreeSet::new();
    let mut headings = BTreeSet::new();
    let mut tokens = 0.0;
    for (at, part) in familiar.best.iter().enumerate() {
        let share = familiar.share(part.score);
        if tokens >= most_tokens as f64 || (share < least && tokens >= least_tokens as f64) {
            break;
        }
        if !units.contains(&part.unit.id) && units.len() >= settings.budget {
            continue;
        }
        units.insert(part.unit.id);
        if headings.insert((part.unit.session.clone(), part.unit.said_at.local().date())) {
            tokens += HEADING_TOKENS;
        }
        tokens += cost(part);
        out.push((at, share));
    }
    out
}

/// The least share of a question of this type.
pub(super) fn least_share(question_type: QuestionType, stop: &StopSettings) -> f64 {
    let offset = match question_type {
        QuestionType::Time => stop.time_offset,
        QuestionType::Single => 0.0,
        QuestionType::Count
        | QuestionType::Both
        | QuestionType::Inference
        | QuestionType::List
        | QuestionType::Habit => stop.gathered_offset,
    };
    stop.share + offset
}

fn cost(part: &FamiliarPart) -> f64 {
    let body = part.unit.parts.get(part.part);
    let bytes = body.map_or(0, |b| b.speaker.len() + b.text.len());
    LINE_TOKENS + bytes as f64 / BYTES_A_TOKEN
}
