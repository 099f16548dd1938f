//! Recall and latency by the size of a bank: all conversations merged into one bank that grows.
//!
//! In: a bench, sizes in units, and a file of filler turns that no question is about. Out: a row for each size, with
//! the same questions each time. The bank is filled first with the conversations that the questions are about, then
//! with the other conversations, then with the filler.

use std::collections::{BTreeMap, BTreeSet};

use super::merged_source::{MergedSource, merged_name};
use crate::{
    ablation::Ablation,
    benchmark_memory::{BenchmarkMemory, MeasuredEvidence, finish},
    dataset::Dataset,
    error::EvalError,
    recording_source::BenchmarkTurns,
    result::{BuildCost, Latency, SizeRow},
    score::{QuestionScore, RecollectionScore, figures, figures_by, percentile, share},
};
use pipeline::Progress;
use ripplemem::PipelineDriver;
use types::model::Bank;

/// A size counts as reached within this share of it.
const NEAR: f64 = 0.01;
const MERGED: &str = "merged";

/// A row for each size; when the turns run out, the last row covers all turns.
pub(crate) fn rows(
    bench: &BenchmarkMemory,
    build: &BuildCost,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<SizeRow>, EvalError> {
    let mut sizes = bench.request.sizes.clone();
    sizes.sort_unstable();
    let (Some(least), Ok(bank)) = (sizes.first(), Bank::parse(MERGED)) else { return Ok(Vec::new()) };
    let units_a_turn = build.units as f64 / build.turns.max(1) as f64;
    let asked = asked_banks(bench, (*least as f64 / units_a_turn) as usize);
    let merged = bench.with_questions(questions(bench, &asked, &bank), recorded(bench, &asked, &bank))?;
    let mut turns = MergedSource::open(&bench.request, asked, bank.clone())?;
    let (mut rows, mut held) = (Vec::new(), 0u64);
    for size in sizes {
        let mut service = PipelineDriver::open(&merged.pipeline, progress)?;
        while (held as f64) < size as f64 * (1.0 - NEAR) && !turns.is_empty() {
            turns.give(((size - held) as f64 / units_a_turn) as u64);
            service.ingest(&mut turns, progress)?;
            finish(&mut service, progress)?;
            held = service.replica().digest(Some(&bank))?.value.units;
        }
        rows.push(row(&merged, service, size, held, turns.given(), progress)?);
        if turns.is_empty() {
            break;
        }
    }
    Ok(rows)
}

/// The banks of the first conversations that together have at most `most_turns` turns; at least one.
fn asked_banks(bench: &BenchmarkMemory, most_turns: usize) -> BTreeSet<Bank> {
    let mut chosen = BTreeSet::new();
    let mut turns = 0;
    for question in &bench.dataset.questions {
        if chosen.contains(&question.bank) {
            continue;
        }
        turns += bench.recorded.turns.get(&question.bank).map_or(0, BTreeMap::len);
        if turns > most_turns && !chosen.is_empty() {
            break;
        }
        chosen.insert(question.bank.clone());
    }
    chosen
}

fn questions(bench: &BenchmarkMemory, asked: &BTreeSet<Bank>, bank: &Bank) -> Dataset {
    let counted = bench.dataset.questions.iter().filter(|q| q.counts() && asked.contains(&q.bank));
    let questions = counted.map(|q| {
        let mut question = q.clone();
        question.evidence = q.evidence.iter().map(|turn| merged_name(&q.bank, turn)).collect();
        question.bank = bank.clone();
        question
    });
    Dataset { questions: questions.collect(), scorable: bench.dataset.scorable, ..Dataset::default() }
}

fn recorded(bench: &BenchmarkMemory, asked: &BTreeSet<Bank>, bank: &Bank) -> BenchmarkTurns {
    let of = asked.iter().filter_map(|of| Some((of, bench.recorded.turns.get(of)?)));
    let turns = of.flat_map(|(of, turns)| turns.iter().map(move |(id, turn)| (merged_name(of, id), turn.clone())));
    let mut recorded = BenchmarkTurns::default();
    recorded.turns.insert(bank.clone(), turns.collect());
    recorded
}

/// The figures of a size: with and without the graph's edges, and from candidates and from every part.
fn row(
    bench: &BenchmarkMemory,
    service: PipelineDriver,
    asked_units: u64,
    units: u64,
    turns: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<SizeRow, EvalError> {
    let answers = bench.ask(&service, progress)?;
    drop(service);
    let first = bench.ask_with(&Ablation::SecondRound.without(&bench.pipeline), progress)?;
    let mut changed = bench.pipeline.clone();
    changed.recall.familiarity.linked_units = 0;
    let without_links = bench.ask_with(&changed, progress)?;
    changed.recall.familiarity.candidates = 0;
    let every_part = bench.ask_with(&changed, progress)?;
    let without = PipelineDriver::open(&Ablation::GraphExpansion.without(&bench.pipeline), progress)?;
    let without = bench.score(&without, progress)?;
    let scored = scored(bench, &answers, &first);
    let by = |scored| figures_by(bench.dataset.questions.iter().map(|q| q.category.as_str()).zip(scored));
    Ok(SizeRow {
        asked_units,
        units_held: units,
        turns,
        by_category: by(&scored),
        without_graph_by_category: by(&without),
        overall: figures(&scored),
        without_graph: figures(&without),
        latency_ms: latency(&answers),
        without_links: figures(&self::scored(bench, &without_links, &without_links)),
        every_part: figures(&self::scored(bench, &every_part, &every_part)),
        every_part_latency_ms: latency(&every_part),
    })
}

fn latency(answers: &[MeasuredEvidence]) -> Latency {
    let milliseconds: Vec<f64> = answers.iter().map(|answer| answer.milliseconds).collect();
    Latency { p50: percentile(&milliseconds, 0.50), p99: percentile(&milliseconds, 0.99) }
}

fn scored(bench: &BenchmarkMemory, answers: &[MeasuredEvidence], first: &[MeasuredEvidence]) -> Vec<QuestionScore> {
    let each = bench.dataset.questions.iter().zip(answers).zip(first).map(|((asked, answer), first)| QuestionScore {
        recall: share(&bench.delivered(asked, &answer.evidence)),
        tokens: answer.tokens,
        units: answer.evidence.units.len(),
        recollection: Some(RecollectionScore {
            first_hop_recall: share(&bench.delivered(asked, &first.evidence)),
            first_hop_tokens: first.tokens,
            second_round: answer.evidence.trace.rounds.iter().any(|r| r.plan.proceed),
            sufficiency: answer.evidence.sufficiency,
        }),
        ..QuestionScore::default()
    });
    each.collect()
}
