//! A reranker: a model that reads the question together with a part, and says how well the part answers it.
//!
//! In: the most familiar parts of a first hop, best first, and a model. Out: the same parts with what the model adds to
//! their scores, in their new order, and the result for the trace. Either all of the first `recall.rerank.pairs` parts
//! get a logit, or none does: then the parts stay as they were, and the reason is reported. Additions count from the
//! least of the logits, so that no part gains by not being read.

use super::BoxError;
use crate::{
    index::{FamiliarPart, FamiliarityResult},
    language::question::ParsedQuestion,
};
use types::{
    config::RerankSettings,
    model::{ModelRef, PartLogit, RerankResult},
};

/// A logit this much higher adds `recall.rerank.weight` to a score. Logits span about 20, a bank's scores about 3.
const LOGITS_A_WEIGHT: f64 = 10.0;

/// A model that reads a question together with a passage.
pub trait Reranker {
    /// Its name, and the hash of its files.
    fn model(&self) -> &ModelRef;

    /// The logit of each passage, in order: how well it answers the question. All of them, or an error.
    ///
    /// # Errors
    /// The reason why the model gave none.
    fn logits(&self, question: &str, passages: &[String]) -> Result<Vec<f32>, BoxError>;
}

/// Adds what a reranker says to the scores of the most familiar parts, and orders the parts again.
pub(super) fn rerank(
    familiar: &mut FamiliarityResult,
    question: &ParsedQuestion<'_>,
    reranker: &dyn Reranker,
    settings: &RerankSettings,
) -> RerankResult {
    let ModelRef { name, hash } = reranker.model().clone();
    let weight = settings.weight;
    let mut reranked = RerankResult { model: name, model_hash: hash, weight, logits: Vec::new(), problem: None };
    let passages: Vec<String> = familiar.best.iter().take(settings.pairs).map(passage).collect();
    if passages.is_empty() {
        return reranked;
    }
    match logits(question, &passages, reranker, settings) {
        Ok(logits) => reranked.logits = add(familiar, &logits, weight),
        Err(problem) => reranked.problem = Some(problem.to_string()),
    }
    reranked
}

/// The logits of the passages, or why there are none.
fn logits(
    question: &ParsedQuestion<'_>,
    passages: &[String],
    reranker: &dyn Reranker,
    settings: &RerankSettings,
) -> Result<Vec<f64>, BoxError> {
    let languages = &settings.languages;
    if let Some(language) = question.language().filter(|of| !languages.is_empty() && !languages.contains(of)) {
        return Err(format!("the question is in {language}, which recall.rerank.languages does not name").into());
    }
    let logits = reranker.logits(question.text(), passages)?;
    if logits.len() != passages.len() {
        return Err(format!("the model gave {} logits for {} parts", logits.len(), passages.len()).into());
    }
    if !logits.iter().all(|logit| logit.is_finite()) {
        return Err("the model gave a logit that is not a number".into());
    }
    Ok(logits.into_iter().map(f64::from).collect())
}

/// A part as the model reads it: with its speaker, since a question may name one.
fn passage(part: &FamiliarPart) -> String {
    match part.unit.part(part.part) {
        Some(body) if !part.restated => format!("{}: {}", body.speaker, body.text),
        _ => part.unit.restatement().to_owned(),
    }
}

/// Adds the logits of the first parts to their scores; returns the logits, in the parts' earlier order.
fn add(familiar: &mut FamiliarityResult, logits: &[f64], weight: f64) -> Vec<PartLogit> {
    let least = logits.iter().copied().fold(f64::INFINITY, f64::min);
    let mut of_parts = Vec::with_capacity(logits.len());
    for (part, logit) in familiar.best.iter_mut().zip(logits) {
        part.terms.rerank = weight * (logit - least) / LOGITS_A_WEIGHT;
        part.score += part.terms.rerank;
        of_parts.push(PartLogit { id: part.unit.id, part: part.part as u32, logit: *logit });
    }
    // The sort is stable: of equal scores, the more familiar part stays first.
    familiar.best.sort_by(|a, b| b.score.total_cmp(&a.score));
    of_parts
}
