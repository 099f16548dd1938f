//! Fits weights that give the marked links the highest likelihood.
//!
//! In: annotated logs. Out: a weight for each feature of a choice. Each line chooses one of the earlier lines or none
//! of them, with a probability that grows with the score. The fit is gradient ascent from zero, with momentum and a
//! small penalty on large weights, so that the same logs always give the same weights. During the fit, a line's
//! conversation is the marked one.

use std::path::Path;

use super::{
    annotated_log::{AnnotatedLogError, read},
    reply_candidates::run,
};
use memory::window::{AntecedentFeatures, FEATURES, choices};

const ROUNDS: usize = 400;
const RATE: f64 = 0.1;
const MOMENTUM: f64 = 0.9;
const PENALTY: f64 = 1e-4;

/// The choices of a line, and which of them are marked.
struct ReplyExample {
    choices: Vec<AntecedentFeatures>,
    marked: Vec<usize>,
}

/// Fits weights to the annotated logs of a directory.
///
/// # Errors
/// [`AnnotatedLogError`] when a file cannot be read.
pub fn fit_conversations(directory: &Path, gap_minutes: u32) -> Result<AntecedentFeatures, AnnotatedLogError> {
    let mut examples = Vec::new();
    for log in read(directory)? {
        run(&log, i64::from(gap_minutes) * 60_000, |choice| {
            // The lines before the marked ones count as one conversation.
            let Some(links) = log.links.get(&choice.line) else { return (!choice.lines.is_empty()).then_some(0) };
            let at = |old: &usize| choice.lines.iter().position(|line| line == old);
            let none = links.contains(&choice.line).then_some(choice.lines.len());
            let marked: Vec<usize> = links.iter().filter_map(at).chain(none).collect();
            let taken = links.first().and_then(at);
            if !marked.is_empty() {
                examples.push(ReplyExample { choices: choices(&choice.new, choice.before), marked });
            }
            taken
        });
    }
    let mut weights = [0.0; FEATURES];
    let mut momentum = [0.0; FEATURES];
    for _ in 0..ROUNDS {
        let gradient = gradient(&examples, &weights);
        for ((weight, momentum), slope) in weights.iter_mut().zip(&mut momentum).zip(gradient) {
            *momentum = MOMENTUM * *momentum + RATE * (slope - PENALTY * *weight);
            *weight += *momentum;
        }
    }
    Ok(weights)
}

/// The mean gradient of the log likelihood of the marked choices.
fn gradient(examples: &[ReplyExample], weights: &AntecedentFeatures) -> AntecedentFeatures {
    let mut sum = [0.0; FEATURES];
    for ReplyExample { choices, marked } in examples {
        let score =
            |choice: &AntecedentFeatures| choice.iter().zip(weights).map(|(value, weight)| value * weight).sum::<f64>();
        let scores: Vec<f64> = choices.iter().map(score).collect();
        let most = scores.iter().copied().fold(f64::MIN, f64::max);
        let grown: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
        let all: f64 = grown.iter().sum();
        let right: f64 = marked.iter().filter_map(|at| grown.get(*at)).sum();
        for (at, (choice, grown)) in choices.iter().zip(&grown).enumerate() {
            let wanted = if marked.contains(&at) { grown / right } else { 0.0 };
            let surplus = wanted - grown / all;
            sum.iter_mut().zip(choice).for_each(|(sum, value)| *sum += surplus * value);
        }
    }
    sum.map(|sum| sum / examples.len().max(1) as f64)
}
