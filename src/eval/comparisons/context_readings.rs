//! One language model's answers from different contexts, side by side.
//!
//! In: a bench, recollection's evidence with the answers from it, and the contents of its memory. Out: a row for
//! recollection, for the paper's profile over the same dialogue with the same embedding model, and for the flat mixture
//! over turns, with as many tokens per question as recollection's context. Every row counts the same questions: those
//! that the dialogue supports and that the model answered from every context. Answers come from the cache of responses
//! if it has them, so that an interrupted evaluation continues where it stopped.

use super::baselines::mixture_evidence;
use crate::{
    benchmark_memory::{BenchmarkMemory, MeasuredEvidence},
    error::EvalError,
    intervals::interval,
    memory_contents::MemoryContents,
    result::{GeneratedAnswer, ReadingRow},
};
use memory::language::token_count;
use pipeline::Progress;
use types::{config::Pipeline, model::Evidence};

/// The paper's profile, by its name.
const PAPER: &str = "paper";

/// A context's tokens and the answer from it.
type ContextReading = (usize, GeneratedAnswer);

/// The rows; empty if the request does not ask for a comparison of answers.
pub(crate) fn rows(
    bench: &BenchmarkMemory,
    contents: &MemoryContents,
    ours: &[MeasuredEvidence],
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<ReadingRow>, EvalError> {
    if !bench.request.compare_answers {
        return Ok(Vec::new());
    }
    let recollection = ours.iter().map(|m| Some((m.tokens, m.generated.clone()?))).collect();
    let mut readings: Vec<(String, Vec<Option<ContextReading>>)> = vec![(bench.pipeline.profile.clone(), recollection)];
    if bench.pipeline.profile != PAPER {
        let evidence = paper_evidence(bench, progress)?;
        readings.push((PAPER.to_owned(), read(bench, &evidence, progress)?));
    }
    let evidence = mixture_evidence(bench, contents, ours, progress)?;
    readings.push(("flat-mixture".to_owned(), read(bench, &evidence, progress)?));

    let in_all: Vec<usize> = (0..bench.dataset.questions.len())
        .filter(|at| bench.dataset.questions.get(*at).is_some_and(|q| q.counts()))
        .filter(|at| readings.iter().all(|(_, row)| scores(row, *at).is_some()))
        .collect();
    Ok(readings
        .into_iter()
        .map(|(name, row)| {
            let all: Vec<(usize, f64, f64)> = in_all.iter().filter_map(|at| scores(&row, *at)).collect();
            let verdicts: Vec<bool> = in_all.iter().filter_map(|at| row.get(*at)?.as_ref()?.1.correct).collect();
            let accepted = verdicts.iter().filter(|correct| **correct).count() as f64;
            ReadingRow {
                name,
                questions: all.len() as u64,
                context_tokens: (!all.is_empty())
                    .then(|| all.iter().map(|(tokens, ..)| *tokens as f64).sum::<f64>() / all.len() as f64),
                f1: interval(&all.iter().map(|(_, f1, _)| *f1).collect::<Vec<_>>()),
                bleu1: interval(&all.iter().map(|(.., bleu1)| *bleu1).collect::<Vec<_>>()),
                judge_accuracy: (!verdicts.is_empty()).then(|| accepted / verdicts.len() as f64),
            }
        })
        .collect())
}

/// Tokens, F1 and BLEU-1 of an answer, if there is one with a reference.
fn scores(row: &[Option<ContextReading>], at: usize) -> Option<(usize, f64, f64)> {
    let (tokens, answer) = row.get(at)?.as_ref()?;
    Some((*tokens, answer.f1?, answer.bleu1?))
}

/// The evidence of the paper's profile, from a memory of its own.
fn paper_evidence(bench: &BenchmarkMemory, progress: &mut dyn FnMut(Progress)) -> Result<Vec<Evidence>, EvalError> {
    let mut pipeline = bench.pipeline.clone();
    // The profile's file is a part of this program, and its values are valid.
    let text = format!("version = 1\nprofile = {PAPER:?}\nembed.model = {:?}", bench.pipeline.embed.model);
    if let Ok(paper) = Pipeline::parse(&text) {
        pipeline = Pipeline { log: pipeline.log, llm: pipeline.llm, snapshot: pipeline.snapshot, ..paper };
    }
    // Its windows are different, so their responses would replace the paid responses about this pipeline's windows.
    pipeline.llm.cache_directory = Some(bench.pipeline.llm_directory().join(PAPER));
    let (service, _) = bench.build_variant(PAPER, &mut pipeline, true, progress)?;
    Ok(bench.ask(&service, progress)?.into_iter().map(|measured| measured.evidence).collect())
}

/// The model's answers from these contexts, to the questions that count.
fn read(
    bench: &BenchmarkMemory,
    evidence: &[Evidence],
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Option<ContextReading>>, EvalError> {
    let mut readings = vec![None; evidence.len()];
    let Some(answerers) = bench.answerers() else { return Ok(readings) };
    let counts = |at: &usize| bench.dataset.questions.get(*at).is_some_and(|question| question.counts());
    let places: Vec<usize> = (0..evidence.len()).filter(counts).collect();
    let asked: Vec<_> = places.iter().map(|at| (&bench.dataset.questions[*at], &evidence[*at])).collect();
    for (at, (generated, _)) in places.iter().zip(answerers.all(&asked, progress)?) {
        readings[*at] = generated.ok().map(|answer| (token_count::count_tokens(&evidence[*at].context), answer));
    }
    Ok(readings)
}
