//! Runs a fit, from files to rows.
//!
//! In: a request. Out: rows. Builds a memory of each set through the real path in a temporary
//! directory, reads the terms of every question once, and chooses. Leaves no file behind.

use std::path::Path;

use super::{
    FitRequest,
    fit_result::{FitFigures, FitResult, FitRow, FitSpread},
    folds::{FitQuestions, FoldChoice},
    outcomes::{CUTOFFS, OutcomeSums, WeightChoice},
    terms::{QuestionTerms, terms_of},
    weight_search::WeightSearch,
};
use crate::{
    EvalError, EvalRequest,
    agents::{AgentSet, each_question},
    benchmark_memory::BenchmarkMemory,
    dataset::{self, BenchmarkFormat},
};
use models::embed;
use pipeline::Progress;
use types::config::{CutoffSettings, FamiliarityWeights, RecallSettings, TokenShareSettings};

/// Chooses in every way, and measures each choice on dialogues on which it was not made.
///
/// # Errors
/// [`EvalError`] when a file as a whole is damaged, or a memory fails.
pub fn fit(request: &FitRequest, progress: &mut dyn FnMut(Progress)) -> Result<FitResult, EvalError> {
    let mut read = FitSets::default();
    for (format, path) in &request.sets {
        read_set(request, *format, path, &mut read, progress)?;
    }
    for (set, path) in &request.agent_sets {
        read_agents(request, *set, path, &mut read, progress)?;
    }
    let FitSets { questions, sets } = read;
    let of_dialogue: Vec<usize> =
        sets.iter().enumerate().flat_map(|(set, (_, dialogues))| dialogues.iter().map(move |_| set)).collect();
    let settings = &request.pipeline.recall;
    let field = FitQuestions { questions: &questions, sets: &of_dialogue, settings, tokens: request.tokens };
    let mut rows = Vec::new();
    let with_shares = questions.iter().any(|question| question.form.is_some());
    for (search, done) in WeightSearch::ALL.into_iter().zip(1..) {
        if search == WeightSearch::Shares && !with_shares {
            continue;
        }
        rows.extend(row(&field, search, request));
        progress(Progress { doing: "choosing", done, total: Some(WeightSearch::ALL.len() as u64), unit: "ways" });
    }
    Ok(FitResult { sets, rows })
}

/// The questions of all sets, and the dialogues of each set with its name.
#[derive(Default)]
struct FitSets {
    questions: Vec<QuestionTerms>,
    sets: Vec<(String, Vec<String>)>,
}

impl FitSets {
    /// The number of a dialogue of the last set, over all sets.
    fn dialogue(&mut self, name: &str) -> usize {
        let before: usize = self.sets.iter().rev().skip(1).map(|(_, dialogues)| dialogues.len()).sum();
        let Some((_, dialogues)) = self.sets.last_mut() else { return before };
        let at = dialogues.iter().position(|known| known == name).unwrap_or_else(|| {
            dialogues.push(name.to_owned());
            dialogues.len() - 1
        });
        before + at
    }
}

/// Builds the memory of a set and reads the terms of its questions.
fn read_set(
    request: &FitRequest,
    format: BenchmarkFormat,
    path: &Path,
    read: &mut FitSets,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), EvalError> {
    let mut bench = BenchmarkMemory::open(&EvalRequest::of_file(format, path, &request.pipeline))?;
    bench.dataset = dataset::read(format, path, &[], 0)?;
    let (service, _) = bench.build(progress)?;
    bench.dataset.resolve(&bench.recorded);
    read.sets.push((format.name().to_owned(), Vec::new()));
    let mut embedder = embed::open(&request.pipeline.embed, &request.pipeline.model())?;
    let asked: Vec<_> = bench.dataset.questions.iter().filter(|q| q.counts() && !q.evidence.is_empty()).collect();
    let total = Some(asked.len() as u64);
    for (asked, done) in asked.into_iter().zip(1..) {
        let (dialogue, question) = (read.dialogue(&asked.conversation), asked.question());
        let settings = &request.pipeline.recall;
        let terms = terms_of(service.replica(), &mut *embedder, &question, &asked.evidence, dialogue, settings);
        read.questions.push(terms.map_err(|e| EvalError::Question { id: asked.id.clone(), source: Box::new(e) })?);
        progress(Progress { doing: "reading terms", done, total, unit: "questions" });
    }
    Ok(())
}

/// The same for conversations with an assistant, whose questions are asked while the conversation goes on.
fn read_agents(
    request: &FitRequest,
    set: AgentSet,
    path: &Path,
    read: &mut FitSets,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), EvalError> {
    let mut embedder = embed::open(&request.pipeline.embed, &request.pipeline.model())?;
    read.sets.push((set.name().to_owned(), Vec::new()));
    each_question(set, path, &request.pipeline, progress, &mut |service, chat, evidence, question| {
        if !evidence.is_empty() {
            let dialogue = read.dialogue(chat);
            let settings = &request.pipeline.recall;
            read.questions.push(terms_of(service.replica(), &mut *embedder, question, evidence, dialogue, settings)?);
        }
        Ok(())
    })
}

/// The row of a search.
fn row(field: &FitQuestions<'_>, search: WeightSearch, request: &FitRequest) -> Option<FitRow> {
    let stop = &field.settings.stop;
    let as_it_is = WeightChoice {
        weights: field.settings.familiarity.weights.clone(),
        time_offset: stop.time_offset,
        gathered_offset: stop.gathered_offset,
        shares: field.settings.shares.clone(),
    };
    let choices: Vec<_> = search
        .choices(&as_it_is, request.draws, request.seed)
        .into_iter()
        .map(|choice| {
            let outcomes = field.outcomes(&choice);
            (choice, outcomes)
        })
        .collect();
    let choose = |without: Option<usize>| -> Option<FoldChoice> {
        if search == WeightSearch::AsItIs {
            return Some(FoldChoice { choice: as_it_is.clone(), cutoff: nearest(stop.share) });
        }
        field.choose(&choices, without)
    };
    let on_all = choose(None)?;
    let mut left_out = Vec::with_capacity(field.sets.len());
    for dialogue in 0..field.sets.len() {
        left_out.push(*field.measured(&choose(Some(dialogue))?).get(dialogue)?);
    }
    Some(FitRow {
        name: search.name().to_owned(),
        left_out: by_set(field, &left_out),
        in_sample: by_set(field, &field.measured(&on_all)),
        chosen: chosen(on_all, field.settings),
    })
}

fn nearest(share: f64) -> usize {
    let off = |at: &usize| (CUTOFFS[*at] - share).abs();
    (0..CUTOFFS.len()).min_by(|a, b| off(a).total_cmp(&off(b))).unwrap_or_default()
}

fn chosen(on_all: FoldChoice, settings: &RecallSettings) -> (FamiliarityWeights, CutoffSettings, TokenShareSettings) {
    let FoldChoice { choice, cutoff } = on_all;
    let stop = CutoffSettings {
        share: CUTOFFS[cutoff],
        time_offset: choice.time_offset,
        gathered_offset: choice.gathered_offset,
        ..settings.stop.clone()
    };
    (choice.weights, stop, choice.shares)
}

/// Figures of each set from the sums of its dialogues.
fn by_set(field: &FitQuestions<'_>, dialogues: &[OutcomeSums]) -> Vec<FitFigures> {
    (0..=field.sets.iter().copied().max().unwrap_or_default())
        .map(|set| {
            let own: Vec<&OutcomeSums> =
                dialogues.iter().zip(field.sets).filter(|(_, of)| **of == set).map(|(sums, _)| sums).collect();
            let mut sum = OutcomeSums::default();
            own.iter().for_each(|sums| sum += **sums);
            let by_dialogue: Vec<f64> = own.iter().map(|s| s.recall / s.questions).collect();
            let number = by_dialogue.len() as f64;
            let mean = by_dialogue.iter().sum::<f64>() / number;
            let deviation = (by_dialogue.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / number).sqrt();
            FitFigures {
                recall: sum.recall / sum.questions,
                full: sum.full / sum.questions,
                tokens: sum.tokens / sum.questions,
                spread: FitSpread { by_dialogue, deviation },
            }
        })
        .collect()
}
