//! Scores of questions, and means over them.
//!
//! In: one score per question, whichever retriever found its evidence. Out: means, overall and by group. A mean over
//! nothing is absent, never 0.

use std::collections::BTreeMap;

use super::result::{EvalFigures, GeneratedAnswer, QuestionResult, SecondRoundFigures};

/// One question's score, whichever retriever found its evidence.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct QuestionScore {
    /// Share of the evidence turns delivered; absent when none are known.
    pub(crate) recall: Option<f64>,
    /// The number of tokens in the context.
    pub(crate) tokens: usize,
    /// The number of units in the context.
    pub(crate) units: usize,
    /// Figures that only recollection has.
    pub(crate) recollection: Option<RecollectionScore>,
    /// Scores of the answer in words.
    pub(crate) answer: AnswerScores,
}

/// Scores of an answer in words; absent without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct AnswerScores {
    f1: Option<f64>,
    bleu1: Option<f64>,
    correct: Option<bool>,
}

impl From<&GeneratedAnswer> for AnswerScores {
    fn from(generated: &GeneratedAnswer) -> Self {
        Self { f1: generated.f1, bleu1: generated.bleu1, correct: generated.correct }
    }
}

/// Figures that only recollection has.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct RecollectionScore {
    pub(crate) first_hop_recall: Option<f64>,
    pub(crate) first_hop_tokens: usize,
    pub(crate) second_round: bool,
    pub(crate) sufficiency: f64,
}

impl From<&QuestionResult> for QuestionScore {
    fn from(q: &QuestionResult) -> Self {
        Self {
            recall: q.recall(),
            tokens: q.context_tokens,
            units: q.answer.units.len(),
            recollection: Some(RecollectionScore {
                first_hop_recall: q.first_hop_recall(),
                first_hop_tokens: q.first_hop_tokens,
                second_round: q.second_round,
                sufficiency: q.answer.sufficiency,
            }),
            answer: q.generated.as_ref().map(AnswerScores::from).unwrap_or_default(),
        }
    }
}

/// The share of true values; absent when there are none.
pub(crate) fn share(met: &[bool]) -> Option<f64> {
    (!met.is_empty()).then(|| met.iter().filter(|m| **m).count() as f64 / met.len() as f64)
}

/// Means over questions.
pub(crate) fn figures<'s>(scored: impl IntoIterator<Item = &'s QuestionScore>) -> EvalFigures {
    let all: Vec<&QuestionScore> = scored.into_iter().collect();
    let recollection: Vec<RecollectionScore> = all.iter().filter_map(|s| s.recollection).collect();
    let recalls: Vec<f64> = all.iter().filter_map(|s| s.recall).collect();
    let first: Vec<f64> = recollection.iter().filter_map(|r| r.first_hop_recall).collect();
    EvalFigures {
        questions: all.len() as u64,
        scored: recalls.len() as u64,
        evidence_recall: mean(recalls.iter().copied()),
        full_evidence: mean(recalls.iter().map(|r| full(*r))),
        context_tokens: mean(all.iter().map(|s| s.tokens as f64)),
        units: mean(all.iter().map(|s| s.units as f64)),
        first_hop_recall: mean(first.iter().copied()),
        first_hop_full_evidence: mean(first.iter().map(|r| full(*r))),
        first_hop_tokens: mean(recollection.iter().map(|r| r.first_hop_tokens as f64)),
        second_round_rate: mean(recollection.iter().map(|r| f64::from(u8::from(r.second_round)))),
        sufficiency: mean(recollection.iter().map(|r| r.sufficiency)),
        f1: mean(all.iter().filter_map(|s| s.answer.f1)),
        bleu1: mean(all.iter().filter_map(|s| s.answer.bleu1)),
        judge_accuracy: mean(all.iter().filter_map(|s| s.answer.correct).map(|c| f64::from(u8::from(c)))),
    }
}

/// 1 when every turn was delivered, otherwise 0.
fn full(recall: f64) -> f64 {
    f64::from(u8::from(recall >= 1.0))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0u64), |(sum, n), v| (sum + v, n + 1));
    (n > 0).then(|| sum / n as f64)
}

/// Means over the questions of each key.
pub(crate) fn figures_by<'s, 'k>(
    scored: impl IntoIterator<Item = (&'k str, &'s QuestionScore)>,
) -> BTreeMap<String, EvalFigures> {
    let mut groups: BTreeMap<&str, Vec<&QuestionScore>> = BTreeMap::new();
    for (key, one) in scored {
        groups.entry(key).or_default().push(one);
    }
    groups.into_iter().map(|(key, group)| (key.to_owned(), figures(group))).collect()
}

/// Means by whether a second round ran.
pub(crate) fn by_second_round(scored: &[&QuestionScore]) -> SecondRoundFigures {
    let of =
        |ran: bool| figures(scored.iter().copied().filter(|s| s.recollection.is_some_and(|r| r.second_round == ran)));
    SecondRoundFigures { ran: of(true), stopped: of(false) }
}

/// Area under the ROC curve: the probability that a value of `high` exceeds one of `low`; a tie counts half (Mann and
/// Whitney). `None` if either is empty.
#[must_use]
pub fn auc(high: &[f64], low: &[f64]) -> Option<f64> {
    if high.is_empty() || low.is_empty() {
        return None;
    }
    let mut sorted = low.to_vec();
    sorted.sort_by(f64::total_cmp);
    let wins: f64 = high
        .iter()
        .map(|h| {
            let below = sorted.partition_point(|l| l < h);
            let equal = sorted.partition_point(|l| l <= h) - below;
            below as f64 + equal as f64 / 2.0
        })
        .sum();
    Some(wins / (high.len() as f64 * low.len() as f64))
}

/// The smallest value that at least this share (0 to 1) of the values do not exceed; 0 when empty.
#[must_use]
pub fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auc_by_hand() {
        // Pairs: 0.9 beats both, 0.5 beats 0.2 and ties with 0.5: 3.5 of 4.
        assert_eq!(auc(&[0.9, 0.5], &[0.5, 0.2]), Some(0.875));
        assert_eq!(auc(&[0.1], &[0.2]), Some(0.0));
        assert_eq!(auc(&[0.3, 0.3], &[0.3]), Some(0.5));
        assert_eq!(auc(&[], &[0.3]), None);
    }

    #[test]
    fn percentiles_by_hand() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!((percentile(&values, 0.5), percentile(&values, 0.99)), (50.0, 99.0));
        assert_eq!((percentile(&[7.0], 0.5), percentile(&[7.0], 0.99), percentile(&[], 0.5)), (7.0, 7.0, 0.0));
    }

    fn scored(recall: Option<f64>, tokens: usize, second: bool) -> QuestionScore {
        let recollection = RecollectionScore {
            first_hop_recall: recall.map(|r| r / 2.0),
            first_hop_tokens: tokens / 2,
            second_round: second,
            sufficiency: 0.5,
        };
        let answer = AnswerScores { f1: recall, bleu1: None, correct: recall.map(|r| r >= 1.0) };
        QuestionScore { recall, tokens, units: 3, recollection: Some(recollection), answer }
    }

    #[test]
    fn means_by_hand() {
        let all = [scored(Some(1.0), 100, true), scored(Some(0.5), 200, false), scored(None, 300, false)];
        let f = figures(&all);
        assert_eq!((f.questions, f.scored), (3, 2));
        assert_eq!((f.evidence_recall, f.full_evidence, f.context_tokens), (Some(0.75), Some(0.5), Some(200.0)));
        assert_eq!((f.first_hop_recall, f.first_hop_full_evidence), (Some(0.375), Some(0.0)));
        assert!((f.second_round_rate.unwrap() - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!((f.f1, f.bleu1, f.judge_accuracy), (Some(0.75), None, Some(0.5)), "over the scored answers");
        let split = by_second_round(&all.iter().collect::<Vec<_>>());
        assert_eq!((split.ran.questions, split.stopped.questions), (1, 2));
        assert_eq!(split.ran.evidence_recall, Some(1.0));
        assert_eq!(figures(&[]), EvalFigures::default(), "nothing was measured: null, not zero");
        let by = figures_by([("a", &all[0]), ("b", &all[1]), ("a", &all[2])]);
        assert_eq!((by["a"].questions, by["b"].evidence_recall), (2, Some(0.5)));
    }
}
