//! Measures one choice of weights at every cutoff.
//!
//! In: the questions with their terms, weights, and the settings of the stop. Out: for each dialogue and each cutoff of
//! a grid, sums over its questions: evidence recall, full evidence, tokens. The stop is the same as in the memory: a
//! share of the way from the bank's background to its best part, with a minimum and a maximum number of tokens, and a
//! maximum number of units.

use super::{terms::QuestionTerms, weighted_scores::scores};
use memory::{
    index::SCALE_PARTS,
    language::question::QuestionForm,
    recall::{HEADING_TOKENS, QuotablePart, cutoff, cutoff_increase, share_tokens, task_bonus, with_form_tokens},
};
use types::config::{FamiliarityWeights, RecallSettings, TokenShareSettings};

/// The cutoffs that are measured: hundredths of the share, from the highest down.
pub(super) const CUTOFFS: [f64; 61] = {
    let mut cutoffs = [0.0; 61];
    let mut at = 0;
    while at < 61 {
        cutoffs[at] = 0.75 - 0.01 * at as f64;
        at += 1;
    }
    cutoffs
};

/// Weights, what the form of a question adds to the cutoff, and how persons and assistants share the tokens.
#[derive(Debug, Clone)]
pub(super) struct WeightChoice {
    pub(super) weights: FamiliarityWeights,
    pub(super) time_offset: f64,
    pub(super) gathered_offset: f64,
    pub(super) shares: TokenShareSettings,
}

/// Sums over questions.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OutcomeSums {
    pub(super) questions: f64,
    pub(super) recall: f64,
    pub(super) full: f64,
    pub(super) tokens: f64,
}

impl std::ops::AddAssign for OutcomeSums {
    fn add_assign(&mut self, other: Self) {
        self.questions += other.questions;
        self.recall += other.recall;
        self.full += other.full;
        self.tokens += other.tokens;
    }
}

/// The sums of each dialogue at each cutoff.
pub(super) type ChoiceOutcomes = Vec<[OutcomeSums; CUTOFFS.len()]>;

/// Measures a choice on every question.
pub(super) fn outcomes(
    questions: &[QuestionTerms],
    dialogues: usize,
    choice: &WeightChoice,
    settings: &RecallSettings,
) -> ChoiceOutcomes {
    let mut all = vec![[OutcomeSums::default(); CUTOFFS.len()]; dialogues];
    for question in questions {
        let found = of_question(question, choice, settings);
        if let Some(sums) = all.get_mut(question.dialogue) {
            sums.iter_mut().zip(found).for_each(|(sum, one)| *sum += one);
        }
    }
    all
}

fn of_question(
    question: &QuestionTerms,
    choice: &WeightChoice,
    settings: &RecallSettings,
) -> [OutcomeSums; CUTOFFS.len()] {
    let scores = scores(question, &choice.weights);
    let settings = &settings.of_bank(question.parts.iter().map(|part| part.estimated).sum());
    if let Some(form) = question.form {
        return [shared(question, form, scores, choice, settings); CUTOFFS.len()];
    }
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
    let all: f64 = question.parts.iter().map(|part| part.estimated).sum();
    let mut above = 0.0;
    let compared = order.get(..SCALE_PARTS).unwrap_or(&order);
    let reached = |at: &&usize| {
        above += question.parts[**at].estimated;
        above >= settings.familiarity.zero * all.min(settings.familiarity.scale_tokens as f64)
    };
    let zero = compared.iter().find(reached).or(compared.last()).map_or(0.0, |at| scores[*at]);
    let width = order.first().map_or(0.0, |at| scores[*at] - zero);
    // The memory adds the form's offset to the share.
    let stop = types::config::CutoffSettings {
        share: 0.0,
        time_offset: choice.time_offset,
        gathered_offset: choice.gathered_offset,
        ..settings.stop.clone()
    };
    let offset = cutoff(question.question_type, &stop);

    let mut found = [OutcomeSums::default(); CUTOFFS.len()];
    let mut quoted = QuotedContext::new(question, settings.budget);
    let mut next = 0;
    for at in order {
        let share = if width > 0.0 { (scores[at] - zero) / width } else { 1.0 };
        while next < CUTOFFS.len()
            && share < CUTOFFS[next] + offset + cutoff_increase(quoted.estimated, settings)
            && quoted.estimated >= settings.stop.least_tokens as f64
        {
            found[next] = quoted.sums();
            next += 1;
        }
        if next == CUTOFFS.len() || quoted.estimated >= settings.stop.most_tokens as f64 {
            break;
        }
        quoted.add(at);
    }
    found.iter_mut().skip(next).for_each(|sums| *sums = quoted.sums());
    found
}

/// The sums if persons and assistants share the tokens, which no cutoff affects.
fn shared(
    question: &QuestionTerms,
    form: QuestionForm,
    mut scores: Vec<f64>,
    choice: &WeightChoice,
    settings: &RecallSettings,
) -> OutcomeSums {
    if form == QuestionForm::Task {
        for (score, part) in scores.iter_mut().zip(&question.parts) {
            *score += task_bonus(part.age, part.wishes, &choice.shares);
        }
    }
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
    let quotable = |at: usize| {
        let part = &question.parts[at];
        QuotablePart { is_of_person: part.is_of_person, heading: part.heading, unit: part.unit }
    };
    let settings = RecallSettings { shares: choice.shares.clone(), ..settings.clone() };
    let settings = with_form_tokens(form, question.question_type, &settings);
    let tokens = |at: usize| question.parts[at].line;
    let mut quoted = QuotedContext::new(question, settings.budget);
    for at in share_tokens(order.into_iter(), quotable, tokens, form, &settings) {
        quoted.add(at);
    }
    quoted.sums()
}

/// The parts quoted so far.
struct QuotedContext<'q> {
    question: &'q QuestionTerms,
    most_units: usize,
    units: Vec<usize>,
    headings: Vec<usize>,
    /// For each piece of evidence, whether it is quoted.
    pieces: Vec<bool>,
    estimated: f64,
    tokens: f64,
}

/// o200k tokens of a heading with the empty line before it.
const HEADING: f64 = 12.0;

impl<'q> QuotedContext<'q> {
    fn new(question: &'q QuestionTerms, most_units: usize) -> Self {
        let pieces = vec![false; question.evidence];
        Self { question, most_units, units: Vec::new(), headings: Vec::new(), pieces, estimated: 0.0, tokens: 0.0 }
    }

    fn add(&mut self, at: usize) {
        let part = &self.question.parts[at];
        if !self.units.contains(&part.unit) {
            if self.units.len() >= self.most_units {
                return;
            }
            self.units.push(part.unit);
        }
        if !self.headings.contains(&part.heading) {
            self.headings.push(part.heading);
            self.estimated += HEADING_TOKENS;
            self.tokens += HEADING;
        }
        self.estimated += part.estimated;
        self.tokens += part.tokens;
        if let Some(piece) = part.piece.and_then(|piece| self.pieces.get_mut(piece)) {
            *piece = true;
        }
    }

    fn sums(&self) -> OutcomeSums {
        let delivered = self.pieces.iter().filter(|quoted| **quoted).count();
        let full = f64::from(u8::from(delivered == self.pieces.len()));
        let recall = delivered as f64 / self.pieces.len().max(1) as f64;
        OutcomeSums { questions: 1.0, recall, full, tokens: self.tokens }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::terms::{PartTerms, TERMS};
    use memory::{language::question::QuestionType, recall::PartWishes};

    /// Parts of 200 estimated tokens, each in a unit of its own, with a value only for the first term.
    fn question(meanings: &[f32], evidence: &[usize]) -> QuestionTerms {
        let part = |(at, meaning): (usize, &f32)| {
            let mut terms = [0.0; TERMS];
            terms[0] = *meaning;
            let piece = evidence.iter().position(|e| *e == at);
            PartTerms {
                terms,
                is_passage: false,
                session: at,
                age: 0,
                is_of_person: true,
                wishes: PartWishes::default(),
                unit: at,
                heading: 0,
                estimated: 200.0,
                tokens: 190.0,
                line: 190,
                piece,
            }
        };
        QuestionTerms {
            dialogue: 0,
            question_type: QuestionType::Single,
            form: None,
            evidence: evidence.len(),
            parts: meanings.iter().enumerate().map(part).collect(),
        }
    }

    #[test]
    fn a_lower_cutoff_quotes_more_and_never_less_than_the_least_tokens() {
        let weights = FamiliarityWeights { meaning: 1.0, ..FamiliarityWeights::default() };
        let mut settings = types::config::Pipeline::parse("version = 1").unwrap().recall;
        let choice = WeightChoice { weights, time_offset: 0.0, gathered_offset: 0.0, shares: settings.shares.clone() };
        (settings.familiarity.zero, settings.familiarity.scale_tokens) = (1.0, 900);
        (settings.stop.doubling, settings.stop.least_tokens, settings.stop.most_tokens) = (0.0, 300, 900);
        // The shares are 1, 0.7, 0.5, 0.3 and 0.
        let asked = question(&[0.3, 1.0, 0.7, 0.0, 0.5], &[2, 0]);
        let found = &outcomes(&[asked], 1, &choice, &settings)[0];
        let at = |cutoff: f64| found[CUTOFFS.iter().position(|c| (c - cutoff).abs() < 1e-9).unwrap()];
        assert_eq!((at(0.75).recall, at(0.75).tokens), (0.5, 392.0), "two parts are the least");
        assert_eq!((at(0.60).recall, at(0.60).tokens), (0.5, 392.0));
        assert_eq!((at(0.40).recall, at(0.40).full, at(0.40).tokens), (0.5, 0.0, 582.0));
        assert_eq!((at(0.20).recall, at(0.20).full, at(0.20).tokens), (1.0, 1.0, 772.0));
    }

    #[test]
    fn persons_and_assistants_share_the_tokens_whatever_the_cutoff() {
        let weights = FamiliarityWeights { meaning: 1.0, ..FamiliarityWeights::default() };
        let mut settings = types::config::Pipeline::parse("version = 1").unwrap().recall;
        (settings.budget_tokens, settings.familiarity.scale_tokens) = (620, 900);
        let recall = |about_me: f64| {
            let mut asked = question(&[0.9, 0.8, 0.2, 0.1, 0.0], &[3, 4]);
            asked.form = Some(QuestionForm::AboutMe);
            asked.parts.iter_mut().take(3).for_each(|part| part.is_of_person = false);
            let shares = TokenShareSettings { about_me, ..settings.shares.clone() };
            let choice = WeightChoice { weights: weights.clone(), time_offset: 0.0, gathered_offset: 0.0, shares };
            let found = &outcomes(&[asked], 1, &choice, &settings)[0];
            assert_eq!(found[0].recall, found[CUTOFFS.len() - 1].recall);
            found[0].recall
        };
        assert_eq!([recall(0.0), recall(0.4), recall(1.0)], [0.0, 0.5, 1.0]);
    }
}
