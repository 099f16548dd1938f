//! The familiarity of every part of a bank, with its terms, for measurements. No answer uses it.
//!
//! In: a question, a memory that answers probes, and several settings with different weights. Out: for each
//! of the settings, all parts of the question's bank as the first hop would score them.

use super::{
    BoxError, RecallError, RecallMemory, first_hop, question_cues,
    recollect::{EmbedFunction, QuestionVectors},
    standing_instructions::asker_profile,
    stated_preferences::StatedPreferences,
};
use crate::index::FamiliarityResult;
use types::{config::RecallSettings, model::Question};

/// Where the person who asks states preferences. `familiar` is of the question's bank.
///
/// # Errors
/// [`BoxError`] if `memory` fails.
pub fn stated_preferences(
    memory: &dyn RecallMemory,
    question: &Question,
    familiar: &FamiliarityResult,
    settings: &RecallSettings,
) -> Result<StatedPreferences, BoxError> {
    let profile = asker_profile(memory, question, familiar.only_person.as_deref(), settings)?;
    Ok(StatedPreferences::of(&profile))
}

/// Scores every part of the question's bank, once for each of the settings.
///
/// # Errors
/// [`RecallError`] if the question is empty or too long, or if `memory` or `embed` fails.
pub fn every_part(
    memory: &dyn RecallMemory,
    embed: &mut EmbedFunction<'_>,
    question: &Question,
    settings: &[RecallSettings],
) -> Result<Vec<FamiliarityResult>, RecallError> {
    let read = question_cues::parse_question(question)?;
    let cues = question_cues::with_asker(question_cues::question_cues(&read), &read);
    let vector = QuestionVectors::of(&cues, &question.said_before, embed)?.asking;
    let asked = first_hop::FirstHopQuery { read: &read, cues: &cues, vector: &vector, matching: None };
    let score = |settings| first_hop::every_part(memory, &asked, settings);
    let failed =
        |source| RecallError::Memory { bank: question.bank.to_string(), what: "look at every part".to_owned(), source };
    settings.iter().map(score).collect::<Result<_, BoxError>>().map_err(failed)
}
