//! The steps of the first hop: candidate, score, cutoff.

use serde_json::{Value, json};

use super::{cutoff_change::CutoffChange, part_explainer::PartExplainer};
use crate::{
    index::{FamiliarPart, FamiliarityResult},
    recall::{cutoff, familiarity_scale::is_quoted, first_hop::PartChoice},
};
use types::{
    config::FirstHopMethod,
    model::{Channel, ExplanationStep, ExplanationStepName, ExplanationStepState, FamiliarityTerms, RerankResult},
};

/// The terms of a score, by name.
pub(super) fn terms(terms: &FamiliarityTerms) -> [(&'static str, f64); 9] {
    let FamiliarityTerms { meaning, pair, words, speaker, month, marks, around, session, rerank } = *terms;
    [
        ("meaning", meaning),
        ("pair", pair),
        ("words", words),
        ("speaker", speaker),
        ("month", month),
        ("marks", marks),
        ("around", around),
        ("session", session),
        ("rerank", rerank),
    ]
}

impl PartExplainer<'_> {
    /// Whether the first hop scored the part.
    pub(super) fn candidate(&self) -> ExplanationStep {
        let FamiliarityResult { parts_total, scored, .. } = self.found.first.familiar;
        let step = |state, sentence: String| {
            let wanted = self.found.settings.familiarity.candidates;
            let step = ExplanationStep::new(ExplanationStepName::Candidate, state, sentence)
                .with("parts_total", parts_total)
                .with("scored", scored)
                .with("candidates", wanted);
            match self.rank_of_every_part {
                Some((rank, share)) => step.with("rank_of_every_part", rank).with("share_of_every_part", share),
                None => step,
            }
        };
        let (unit, part) = (self.part.unit.id, self.part.at as u32);
        if self.found.matching.as_ref().is_some_and(|matching| !matching.takes(unit, part)) {
            let sentence = "The question's `where` does not take this turn, so it was no candidate.".to_owned();
            return step(ExplanationStepState::Failed, sentence)
                .change("A question without `where`, or with one that takes the turn, looks at it.");
        }
        if self.found.settings.first_hop == FirstHopMethod::Channels {
            return step(
                ExplanationStepState::Passed,
                "The indexes of the first hop look at every unit of the bank.".to_owned(),
            );
        }
        if self.part.scored.is_some() {
            let sentence = match scored == parts_total {
                true => format!("Every part of the bank was scored, {parts_total} in all."),
                false => format!("It was among the {scored} of {parts_total} parts that were scored."),
            };
            return step(ExplanationStepState::Passed, sentence);
        }
        let state = if self.part.is_quoted { ExplanationStepState::NotReached } else { ExplanationStepState::Failed };
        let rank = match self.rank_of_every_part {
            Some((rank, _)) => format!(" Among every part of the bank it is number {rank}."),
            None => String::new(),
        };
        let sentence = format!(
            "Of {parts_total} parts {scored} were scored, and it was not among them: their first estimates were \
             better.{rank}"
        );
        step(state, sentence).change(
            "A larger recall.familiarity.candidates scores more parts, and 0 every part; a question in words nearer \
             to its own estimates it higher.",
        )
    }

    /// How familiar the part is to the question, compared with the last quoted part and with the best one.
    pub(super) fn score(&self) -> ExplanationStep {
        let Some((rank, part)) = &self.part.scored else {
            return ExplanationStep::new(
                ExplanationStepName::Score,
                ExplanationStepState::NotReached,
                "It got no score.",
            );
        };
        let familiar = &self.found.first.familiar;
        let share = familiar.share(part.score);
        let last = self.last_quoted().filter(|_| !self.part.is_quoted);
        let lacks = last.and_then(|last| greatest_shortfall(part, last));
        let sentence = format!(
            "It scored {:.2}, a share of {share:.2} on the scale from the bank's background to its best part: number \
             {rank} of {} parts.{}{}",
            part.score,
            familiar.scored,
            self.rerank_sentence(part),
            lacks
                .map(|(name, by)| format!(" Beside the last quoted part it lacks most in {name}, by {by:.2}."))
                .unwrap_or_default(),
        );
        let step = ExplanationStep::new(ExplanationStepName::Score, ExplanationStepState::Passed, sentence);
        let step = match self.logit(part) {
            Some(logit) => step.with("logit", logit),
            None => step,
        };
        let compared = |part: Option<&FamiliarPart>| part.map_or(Value::Null, |part| term_comparison(familiar, part));
        step.with("score", part.score)
            .with("share", share)
            .with("rank", *rank)
            .with("scored", familiar.scored)
            .with("terms", json!(part.terms))
            .with("last_quoted", compared(self.last_quoted()))
            .with("best", compared(familiar.best.first()))
            .with("lacks", lacks.map(|(name, _)| name))
    }

    /// The reranker's logit of a part, if it read the part.
    fn logit(&self, part: &FamiliarPart) -> Option<f64> {
        let logits = &self.found.first.reranked.as_ref()?.logits;
        logits.iter().find(|of| (of.id, of.part as usize) == (part.unit.id, part.part)).map(|of| of.logit)
    }

    /// What the reranker did to a part, as a sentence.
    fn rerank_sentence(&self, part: &FamiliarPart) -> String {
        let Some(RerankResult { model, problem, logits, .. }) = &self.found.first.reranked else {
            return String::new();
        };
        match (problem, self.logit(part)) {
            (Some(problem), _) => format!(" It is the score without the reranker {model}: {problem}."),
            (None, Some(logit)) => {
                format!(
                    " The reranker {model} read it, with a logit of {logit:.2}, which added {:.2}.",
                    part.terms.rerank
                )
            }
            (None, None) => format!(" The reranker {model} read the {} parts that were most familiar.", logits.len()),
        }
    }

    /// The least familiar part of the first hop that the answer quotes.
    fn last_quoted(&self) -> Option<&FamiliarPart> {
        let familiar = &self.found.first.familiar;
        let quoted = self.found.first.chosen.quoted().iter().rev().filter_map(|(at, _)| familiar.best.get(*at));
        quoted.chain(familiar.best.iter().rev()).find(|part| is_quoted(&self.found.quoted, part))
    }

    /// Whether the first hop quotes the part, or takes its unit.
    pub(super) fn is_quoted_or_taken(&self) -> bool {
        let (first, unit) = (&self.found.first, self.part.unit.id);
        match &first.chosen {
            PartChoice::ByChannels => first.candidates.iter().any(|candidate| candidate.unit.id == unit),
            chosen => self.index().is_some_and(|at| chosen.quoted().iter().any(|(quoted, _)| *quoted == at)),
        }
    }

    /// The part's index in `familiar.best`; `None` if it is not in that list.
    fn index(&self) -> Option<usize> {
        let (rank, _) = self.part.scored.as_ref()?;
        Some(rank - 1).filter(|at| *at < self.found.first.familiar.best.len())
    }

    /// Whether the first hop quotes the part.
    pub(super) fn cutoff(&self) -> ExplanationStep {
        if let PartChoice::ByChannels = self.found.first.chosen {
            return self.channels();
        }
        let Some((rank, part)) = &self.part.scored else {
            return ExplanationStep::not_reached(ExplanationStepName::Cutoff);
        };
        let first = &self.found.first;
        let share = first.familiar.share(part.score);
        let stop = &self.found.settings.stop;
        let question_type = self.found.read.question_type();
        let quoted = first.chosen.quoted().len();
        let step = |state, sentence: String| {
            let step = ExplanationStep::new(ExplanationStepName::Cutoff, state, sentence)
                .with("share", share)
                .with("rank", *rank)
                .with("quoted_parts", quoted);
            match &first.chosen {
                PartChoice::AboveCutoff(_, cutoff) => step
                    .with("cutoff", *cutoff)
                    .with("recall.stop.share", stop.share)
                    .with("for_this_type", cutoff::cutoff(question_type, stop) - stop.share),
                _ => step.with("budget_tokens", self.found.settings.budget_tokens),
            }
        };
        if self.is_quoted_or_taken() {
            let sentence = match &first.chosen {
                PartChoice::AboveCutoff(_, cutoff) => format!(
                    "The first hop quotes it: its share is {}, and after its last part the cutoff was {}.",
                    share_text(share, *cutoff),
                    share_text(*cutoff, share)
                ),
                _ => "It is within the tokens that persons and assistants share.".to_owned(),
            };
            return step(ExplanationStepState::Passed, sentence);
        }
        let sentence = match &first.chosen {
            PartChoice::AboveCutoff(_, cutoff) if share < *cutoff => format!(
                "Its share was {}, number {rank} of {} parts, and the cutoff was {} after {quoted} quoted parts.",
                share_text(share, *cutoff),
                first.familiar.scored,
                share_text(*cutoff, share)
            ),
            PartChoice::AboveCutoff(..) => format!(
                "Its share of {share:.2} is above the cutoff, but {quoted} parts before it had used up the {} tokens \
                 or the {} units of an answer.",
                stop.most_tokens, self.found.settings.budget
            ),
            _ => format!(
                "Persons and assistants share {} tokens, and {quoted} parts before it had used them up.",
                self.found.settings.budget_tokens
            ),
        };
        if self.part.is_quoted {
            let sentence = format!("{sentence} A walk added it.");
            return step(ExplanationStepState::NotReached, sentence);
        }
        let change = self.index().map_or(CutoffChange::default(), |at| CutoffChange::of(self.found, at));
        let change_in_words = change.in_words().unwrap_or_else(|| {
            "Neither recall.budget_tokens nor recall.stop.share alone is enough; a question in words nearer to its own scores it \
             higher.".to_owned()
        });
        let step = step(ExplanationStepState::Failed, sentence).change(change_in_words);
        let step = match change.share {
            Some(share) => step.with("quoted_with_share", share),
            None => step,
        };
        match change.budget_tokens {
            Some(tokens) => step.with("quoted_with_budget_tokens", tokens),
            None => step,
        }
    }

    /// Whether one of the indexes takes the unit.
    fn channels(&self) -> ExplanationStep {
        let unit = self.part.unit.id;
        let settings = &self.found.settings;
        let channels = [
            (Channel::Semantic, settings.semantic, "recall.semantic"),
            (Channel::Lexical, settings.lexical, "recall.lexical"),
            (Channel::Structural, settings.cue, "recall.cue"),
        ];
        let ranks = channels.map(|(channel, taken, setting)| {
            let hit = self.hits.iter().find(|hit| hit.unit.id == unit && hit.channel == channel);
            (channel.first_hop_name(), taken, setting, hit.map(|hit| (hit.rank, hit.score.as_f64())))
        });
        let place = |(name, taken, _, hit): &(&str, usize, &str, Option<(u32, f64)>)| match hit {
            Some((rank, _)) => format!("number {rank} of the {name} index, which gives {taken}"),
            None => format!("not in the {name} index, which gives {taken}"),
        };
        let places: Vec<String> = ranks.iter().map(place).collect();
        let is_taken = self.is_quoted_or_taken();
        let state = match (is_taken, self.part.is_quoted) {
            (true, _) => ExplanationStepState::Passed,
            (false, true) => ExplanationStepState::NotReached,
            (false, false) => ExplanationStepState::Failed,
        };
        let sentence = format!(
            "{}: {}.",
            if is_taken { "The first hop takes its unit" } else { "No index of the first hop takes its unit" },
            places.join("; ")
        );
        let mut step = ExplanationStep::new(ExplanationStepName::Cutoff, state, sentence);
        for (name, taken, _, hit) in &ranks {
            let (rank, score) = hit.map_or((None, None), |(rank, score)| (Some(rank), Some(score)));
            step = step.with(name, json!({ "rank": rank, "score": score, "taken": taken }));
        }
        let nearest = ranks.iter().filter_map(|(_, taken, setting, hit)| Some((hit.as_ref()?.0, taken, setting)));
        let nearest = nearest.min_by_key(|(rank, taken, _)| *rank as usize - (**taken).min(*rank as usize));
        if state != ExplanationStepState::Failed {
            return step;
        }
        match nearest {
            Some((rank, _, setting)) => step.change(format!("The first hop would take it with {setting} of {rank}.")),
            None => step.change("A question in words nearer to its own finds it."),
        }
    }
}

fn term_comparison(familiar: &FamiliarityResult, part: &FamiliarPart) -> Value {
    let turn = part.unit.part(part.part).map(|body| body.turn);
    json!({
        "unit": part.unit.id,
        "part": part.part,
        "turn": turn,
        "score": part.score,
        "share": familiar.share(part.score),
        "terms": part.terms,
    })
}

/// The term in which a part lags furthest behind another, and by how much.
fn greatest_shortfall(part: &FamiliarPart, other: &FamiliarPart) -> Option<(&'static str, f64)> {
    let below =
        terms(&part.terms).into_iter().zip(terms(&other.terms)).map(|((name, own), (_, than))| (name, than - own));
    below.filter(|(_, by)| *by > 0.0).max_by(|(_, a), (_, b)| a.total_cmp(b))
}

/// A share as text, with enough digits to distinguish it from the share `beside`.
pub(super) fn share_text(share: f64, beside: f64) -> String {
    let digits = (2..6).find(|digits| format!("{share:.digits$}") != format!("{beside:.digits$}")).unwrap_or(6);
    format!("{share:.digits$}")
}
