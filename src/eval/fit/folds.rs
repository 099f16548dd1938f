//! Repeats the whole choice without a dialogue, and measures it on that dialogue.
//!
//! In: the choices of a search with their outcomes. Out: the sums of each dialogue under the choice made on the others,
//! and the choice made on all of them. The cutoff of every choice is chosen first, then the best choices, their mean,
//! and the cutoff of the mean. Never uses the dialogue that is left out.

use super::{
    outcomes::{CUTOFFS, ChoiceOutcomes, OutcomeSums, WeightChoice, outcomes},
    terms::QuestionTerms,
    weight_search::mean,
};
use types::config::RecallSettings;

/// The mean of this many of the best choices is taken, because the best one alone is mostly luck.
const BEST: usize = 16;
/// A choice must stay within this share of the tokens, because a dialogue on which it was not made costs up to 3 %
/// more.
const OF_TOKENS: f64 = 0.97;

/// The questions, and the limits of a choice.
pub(super) struct FitQuestions<'f> {
    pub(super) questions: &'f [QuestionTerms],
    /// The set of each dialogue.
    pub(super) sets: &'f [usize],
    pub(super) settings: &'f RecallSettings,
    /// The maximum mean number of tokens on each set.
    pub(super) tokens: f64,
}

/// A choice with its cutoff.
#[derive(Debug, Clone)]
pub(super) struct FoldChoice {
    pub(super) choice: WeightChoice,
    /// Index in [`CUTOFFS`].
    pub(super) cutoff: usize,
}

impl FitQuestions<'_> {
    /// Measures a choice on every question.
    pub(super) fn outcomes(&self, choice: &WeightChoice) -> ChoiceOutcomes {
        outcomes(self.questions, self.sets.len(), choice, self.settings)
    }

    /// The best of the choices on every dialogue except `without`.
    pub(super) fn choose(
        &self,
        choices: &[(WeightChoice, ChoiceOutcomes)],
        without: Option<usize>,
    ) -> Option<FoldChoice> {
        let mut ranked: Vec<(f64, usize, usize)> = choices
            .iter()
            .enumerate()
            .map(|(at, (_, outcomes))| {
                let (worth, cutoff) = self.best_cutoff(outcomes, without);
                (worth, at, cutoff)
            })
            .collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        if let [(_, at, cutoff)] = ranked.as_slice() {
            return Some(FoldChoice { choice: choices.get(*at)?.0.clone(), cutoff: *cutoff });
        }
        let best: Vec<&WeightChoice> =
            ranked.iter().take(BEST).filter_map(|(_, at, _)| Some(&choices.get(*at)?.0)).collect();
        let choice = mean(&best)?;
        let (_, cutoff) = self.best_cutoff(&self.outcomes(&choice), without);
        Some(FoldChoice { choice, cutoff })
    }

    /// The cutoff with the highest mean of recall and full evidence over the sets, among those that stay within the
    /// tokens; the highest cutoff if none does.
    fn best_cutoff(&self, outcomes: &ChoiceOutcomes, without: Option<usize>) -> (f64, usize) {
        let mut best = (f64::MIN, 0);
        for cutoff in 0..CUTOFFS.len() {
            let sets = self.by_set(outcomes, cutoff, without);
            if sets.iter().any(|s| s.tokens > OF_TOKENS * self.tokens * s.questions) {
                break;
            }
            let worth = sets.iter().map(|s| (s.recall + s.full) / (2.0 * s.questions)).sum::<f64>() / sets.len() as f64;
            if worth > best.0 {
                best = (worth, cutoff);
            }
        }
        best
    }

    /// The sums of each set that has a dialogue left.
    fn by_set(&self, outcomes: &ChoiceOutcomes, cutoff: usize, without: Option<usize>) -> Vec<OutcomeSums> {
        let mut sums = vec![OutcomeSums::default(); self.sets.iter().max().map_or(0, |most| most + 1)];
        for (dialogue, (set, of_dialogue)) in self.sets.iter().zip(outcomes).enumerate() {
            if Some(dialogue) != without
                && let Some(sum) = sums.get_mut(*set)
            {
                *sum += of_dialogue[cutoff];
            }
        }
        sums.retain(|s| s.questions > 0.0);
        sums
    }

    /// The sums of each dialogue under a choice.
    pub(super) fn measured(&self, chosen: &FoldChoice) -> Vec<OutcomeSums> {
        self.outcomes(&chosen.choice).iter().map(|of_dialogue| of_dialogue[chosen.cutoff]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::config::Pipeline;

    #[test]
    fn a_cutoff_leaves_tokens_for_the_dialogue_that_is_left_out() {
        let settings = Pipeline::parse("version = 1").unwrap().recall;
        // Each cutoff costs one more token and has more recall.
        let of_dialogue: [OutcomeSums; CUTOFFS.len()] = std::array::from_fn(|at| OutcomeSums {
            questions: 1.0,
            recall: at as f64 / 100.0,
            full: 0.0,
            tokens: 950.0 + at as f64,
        });
        let field = FitQuestions { questions: &[], sets: &[0, 0], settings: &settings, tokens: 1_000.0 };
        let (_, cutoff) = field.best_cutoff(&vec![of_dialogue; 2], Some(1));
        assert_eq!(of_dialogue[cutoff].tokens, 970.0);
    }
}
