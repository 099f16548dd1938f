//! Measures the same system without one of its parts.
//!
//! In: a built memory and the ablations to measure. Out: one row for each, and two for `open-windows`. Most ablations
//! are other settings over the same log and the same questions; `open-windows` builds another memory, in which no
//! window is closed, and `model-edges` replaces the edges.

use serde::Deserialize;

use super::llm_edges::{LlmEdges, decide_edges};
use crate::{
    ablation::Ablation,
    benchmark_memory::BenchmarkMemory,
    error::EvalError,
    result::{ComparisonRow, RowBudget},
    score::{QuestionScore, figures, figures_by},
};
use logs::{Log, Topic, Transaction};
use pipeline::Progress;
use ripplemem::PipelineDriver;
use types::{config::Pipeline, model::WindowState};

/// The rows of the requested ablations.
pub(crate) fn rows(
    bench: &BenchmarkMemory,
    ours: &[QuestionScore],
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<ComparisonRow>, EvalError> {
    let mut rows = Vec::new();
    for ablation in &bench.request.ablations {
        let (name, about) = (ablation.name(), ablation.about());
        let without = ablation.without(&bench.pipeline);
        match ablation {
            Ablation::LongerFirstHop => rows.push(longer_first_hop(bench, ours, &without, progress)?),
            Ablation::ModelEdges => rows.push(model_edges(bench, progress)?),
            Ablation::OpenWindows => rows.extend(open_windows(bench, progress)?),
            _ => {
                rows.push(row(bench, name, about, &bench.score(&PipelineDriver::open(&without, progress)?, progress)?))
            }
        }
    }
    Ok(rows)
}

/// A first hop alone, widened until its mean tokens are as near to ours as whole units allow.
fn longer_first_hop(
    bench: &BenchmarkMemory,
    ours: &[QuestionScore],
    without: &Pipeline,
    progress: &mut dyn FnMut(Progress),
) -> Result<ComparisonRow, EvalError> {
    const TRIALS: usize = 6;
    let target = mean_tokens(bench, ours);
    let (mut low, mut high) = (1.0, 4.0);
    let mut nearest: Option<(f64, Pipeline, Vec<QuestionScore>)> = None;
    for _ in 0..TRIALS {
        let factor = f64::midpoint(low, high);
        // The channels are rounded at different points, so that the total grows in small steps.
        let wider = |width: usize, at: f64| (width as f64 * factor + at).floor() as usize;
        let mut pipeline = without.clone();
        let recall = &mut pipeline.recall;
        recall.semantic = wider(recall.semantic, 0.5);
        recall.lexical = wider(recall.lexical, 0.25);
        recall.cue = wider(recall.cue, 0.75);
        // The budget of units belongs to the planned system; this hop is limited by tokens instead.
        recall.budget = recall.budget.max(recall.semantic + recall.lexical + recall.cue);
        let scored = bench.score(&PipelineDriver::open(&pipeline, progress)?, progress)?;
        let tokens = mean_tokens(bench, &scored);
        if tokens > target {
            high = factor;
        } else {
            low = factor;
        }
        let off = (tokens - target).abs();
        if nearest.as_ref().is_none_or(|(best, ..)| off < *best) {
            nearest = Some((off, pipeline, scored));
        }
    }
    let (pipeline, scored) = nearest.map_or_else(|| (without.clone(), Vec::new()), |(_, p, s)| (p, s));
    let r = &pipeline.recall;
    let about = format!("{} ({}/{}/{})", Ablation::LongerFirstHop.about(), r.semantic, r.lexical, r.cue);
    let row = row(bench, Ablation::LongerFirstHop.name(), &about, &scored);
    Ok(ComparisonRow { budget: RowBudget::Tokens(target.round() as usize), ..row })
}

/// The same memory with edges that the language model decides; the row states their cost.
fn model_edges(bench: &BenchmarkMemory, progress: &mut dyn FnMut(Progress)) -> Result<ComparisonRow, EvalError> {
    let LlmEdges { pipeline, asked, undecided, usage } = decide_edges(bench, progress)?;
    let scored = bench.score(&PipelineDriver::open(&pipeline, progress)?, progress)?;
    let cost = format!("{asked} units, {} calls, {} tokens", usage.calls, usage.tokens());
    let undecided =
        if undecided > 0 { format!("; {undecided} units whose decisions could not be used") } else { String::new() };
    let about = format!("{} ({cost}{undecided})", Ablation::ModelEdges.about());
    Ok(row(bench, Ablation::ModelEdges.name(), &about, &scored))
}

fn mean_tokens(bench: &BenchmarkMemory, scored: &[QuestionScore]) -> f64 {
    let counted = bench.dataset.questions.iter().zip(scored).filter(|(q, _)| q.counts());
    figures(counted.map(|(_, s)| s)).context_tokens.unwrap_or_default()
}

/// A memory in which no window is closed, with the records of open windows and without them.
fn open_windows(bench: &BenchmarkMemory, progress: &mut dyn FnMut(Progress)) -> Result<[ComparisonRow; 2], EvalError> {
    let mut pipeline = bench.pipeline.clone();
    let (service, _) = bench.build_variant("unclosed", &mut pipeline, false, progress)?;
    let with = bench.score(&service, progress)?;
    delete_open_records(service.log())?;
    drop(service);
    let without = bench.score(&PipelineDriver::open(&pipeline, progress)?, progress)?;
    let about = Ablation::OpenWindows.about();
    Ok([
        row(bench, "open-windows", &format!("{about}; each turn is its own record"), &with),
        row(bench, "open-windows-unrecorded", &format!("{about}; without records of open windows"), &without),
    ])
}

/// Deletes every record of a turn in an open window, in a transaction that covers no input.
fn delete_open_records(log: &dyn Log) -> Result<(), EvalError> {
    #[derive(Deserialize)]
    struct WindowStateRecord {
        state: WindowState,
    }
    const READ_RECORDS: usize = 64;
    for partition in 0..log.partitions() {
        let mut memory = Vec::new();
        let mut from = 0;
        loop {
            let records = log.read(Topic::Memory, partition, from, READ_RECORDS)?.records;
            let Some(last) = records.last() else { break };
            from = last.offset + 1;
            for record in records {
                let state = record.value.as_deref().map(serde_json::from_slice::<WindowStateRecord>).transpose();
                let state = state.map_err(|e| EvalError::Record {
                    partition,
                    offset: record.offset,
                    problem: e.to_string(),
                })?;
                if state.is_some_and(|s| s.state == WindowState::Open) {
                    memory.push((record.key, None));
                }
            }
        }
        let next_offset = log.read_position(partition)?;
        log.commit(&Transaction { partition, next_offset, memory, ..Transaction::default() })?;
    }
    Ok(())
}

fn row(bench: &BenchmarkMemory, name: &str, about: &str, scored: &[QuestionScore]) -> ComparisonRow {
    let both = || bench.dataset.questions.iter().zip(scored);
    ComparisonRow {
        name: name.to_owned(),
        about: about.to_owned(),
        over: "units".to_owned(),
        budget: RowBudget::Units(bench.pipeline.recall.budget),
        overall: figures(both().filter(|(q, _)| q.counts()).map(|(_, s)| s)),
        by_category: figures_by(both().map(|(q, s)| (q.category.as_str(), s))),
    }
}
