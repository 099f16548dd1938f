//! Where the list of familiar parts is cut off.
//!
//! In: the most familiar parts in order, the zero of their scale, the type of the question. Out:
//! the parts that an answer quotes, best first. A part is quoted while its share, 0 at the zero of
//! the scale and 1 at the bank's best part, reaches the cutoff of the question's type. Types that
//! one part rarely answers have a lower cutoff. Tokens are estimated from lengths: no vocabulary is
//! loaded to answer a question.

use std::collections::BTreeSet;

use crate::{
    config::{RecallSettings, StopSettings},
    language::question::QuestionType,
    memory::{FamiliarPart, FamiliarParts, PartBody},
};

/// Bytes of English dialogue in a token of the o200k vocabulary, about.
const BYTES_A_TOKEN: f64 = 4.2;
/// Tokens of the heading that a day of a session costs.
pub const HEADING_TOKENS: f64 = 14.0;
/// Tokens of a line besides its words and its speaker.
const LINE_TOKENS: f64 = 2.0;

/// The quoted parts: indexes in `familiar.best`, each with its share.
pub(super) fn above_cutoff(
    familiar: &FamiliarParts,
    question_type: QuestionType,
    settings: &RecallSettings,
) -> Vec<(usize, f64)> {
    let StopSettings { least_tokens, most_tokens, .. } = settings.stop;
    let cutoff = cutoff(question_type, &settings.stop);
    let mut out = Vec::new();
    let mut units = BTreeSet::new();
    let mut headings = BTreeSet::new();
    let mut tokens = 0.0;
    for (at, part) in familiar.best.iter().enumerate() {
        let share = familiar.share(part.score);
        if tokens >= most_tokens as f64 || (share < cutoff && tokens >= least_tokens as f64) {
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

/// The share that a part must reach for a question of this type.
#[must_use]
pub fn cutoff(question_type: QuestionType, stop: &StopSettings) -> f64 {
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
    part.unit.parts.get(part.part).map_or(LINE_TOKENS, estimated_tokens)
}

/// The tokens of a quoted part, estimated from its length.
#[must_use]
pub fn estimated_tokens(part: &PartBody) -> f64 {
    LINE_TOKENS + (part.speaker.len() + part.text.len()) as f64 / BYTES_A_TOKEN
}
