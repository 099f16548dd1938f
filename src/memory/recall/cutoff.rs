//! Where the list of familiar parts is cut off (decision 20).
//!
//! In: the most familiar parts in order, the zero of their scale, the question's type. Out: the parts that an answer
//! quotes, best first, and the cutoff after the last of them. A part's share is 0 at the zero of the scale and 1 at the
//! bank's best part. Parts are quoted until a share lies below the cutoff, within the limits of tokens and units. The
//! cutoff depends on the question's type, and rises with the tokens that are already quoted. Tokens are estimated from
//! lengths here; [`super::token_budget`] counts them.

use std::collections::BTreeSet;

use crate::{
    index::{FamiliarPart, FamiliarityResult},
    language::question::QuestionType,
};
use types::config::{CutoffSettings, RecallSettings};

/// Tokens of a heading. Each day of a session has one.
pub const HEADING_TOKENS: f64 = 14.0;
/// The share of `recall.budget_tokens` at which the cutoff is `recall.stop.share`.
const USUAL_SHARE: f64 = 1_000.0 / 1_472.0;
/// Below this many tokens the cutoff stays the same.
const FEW_TOKENS: f64 = 50.0;

/// What the first hop quotes.
pub(super) struct CutoffResult {
    /// Indexes in `familiar.best`, each with its share.
    pub(super) parts: Vec<(usize, f64)>,
    /// The cutoff after the last of them.
    pub(super) cutoff: f64,
}

/// The parts above the cutoff.
pub(super) fn above_cutoff(
    familiar: &FamiliarityResult,
    question_type: QuestionType,
    settings: &RecallSettings,
) -> CutoffResult {
    let CutoffSettings { least_tokens, most_tokens, .. } = settings.stop;
    let usual = cutoff(question_type, &settings.stop);
    let mut parts = Vec::new();
    let mut units = BTreeSet::new();
    let mut headings = BTreeSet::new();
    let mut tokens = 0.0;
    for (at, part) in familiar.best.iter().enumerate() {
        let share = familiar.share(part.score);
        let cutoff = usual + cutoff_increase(tokens, settings);
        if tokens >= most_tokens as f64 || (share < cutoff && tokens >= least_tokens as f64) {
            break;
        }
        if !units.contains(&part.unit.id) && units.len() >= settings.budget {
            continue;
        }
        units.insert(part.unit.id);
        if headings.insert((part.unit.session(), part.unit.said_at.local().date())) {
            tokens += HEADING_TOKENS;
        }
        tokens += cost(part);
        parts.push((at, share));
    }
    CutoffResult { parts, cutoff: usual + cutoff_increase(tokens, settings) }
}

/// The share that a part must reach for a question of this type, once `USUAL_SHARE` of the budget is quoted.
#[must_use]
pub fn cutoff(question_type: QuestionType, stop: &CutoffSettings) -> f64 {
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

/// What the tokens quoted so far add to the cutoff.
#[must_use]
pub fn cutoff_increase(tokens: f64, settings: &RecallSettings) -> f64 {
    settings.stop.doubling * (tokens.max(FEW_TOKENS) / (USUAL_SHARE * settings.budget_tokens as f64)).log2()
}

fn cost(part: &FamiliarPart) -> f64 {
    part.unit.part(part.part).map_or(0.0, |body| body.estimated_tokens())
}
