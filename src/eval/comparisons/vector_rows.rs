//! Ways of embedding a turn: what each finds, and what it costs.
//!
//! In: a bench. Out: a row for each way and precision. Each one is measured through the whole path: a new memory of the
//! same file, and the same questions. Its seconds are divided by the seconds for one vector per turn at full precision,
//! measured just before under the same load.

use std::time::Instant;

use crate::{
    benchmark_memory::BenchmarkMemory, error::EvalError, memory_contents::MemoryContents, result::VectorRow,
    score::figures,
};
use models::embed::{self, render_parts};
use pipeline::Progress;
use types::{config::Pipeline, model::SpannedText};

/// Suffix of a model's name if its weights have 8 bits.
const INT8: &str = "-int8";

/// What is embedded: name, `block_turns`, `sentence_words` and `pairs` of the settings.
const WAYS: [(&str, usize, usize, bool); 4] = [
    ("each turn", 1, 0, false),
    ("turns in blocks of two", 2, 0, false),
    ("and each with the one before", 2, 0, true),
    ("and each sentence of 8 words", 2, 8, true),
];

/// A row for every way, at each precision of the pipeline's model that the settings know.
pub(crate) fn rows(bench: &BenchmarkMemory, progress: &mut dyn FnMut(Progress)) -> Result<Vec<VectorRow>, EvalError> {
    let own = &bench.pipeline.embed.model;
    let named = own.strip_suffix(INT8).unwrap_or(own);
    let known = |name: &String| bench.pipeline.embed.models.contains_key(name);
    let mut models: Vec<String> = [named.to_owned(), format!("{named}{INT8}")].into_iter().filter(known).collect();
    if models.is_empty() {
        models.push(own.clone());
    }
    let with = |model: &str| {
        let mut pipeline = bench.pipeline.clone();
        model.clone_into(&mut pipeline.embed.model);
        pipeline
    };
    let full = with(&models[0]);
    let turns = raw_turns(&full, bench);
    let mut raw = embed::open(&full.embed, &full.model())?;
    let mut rows = Vec::new();
    for model in &models {
        for (way, block_turns, sentence_words, pairs) in WAYS {
            let from = Instant::now();
            raw.embed(&turns)?;
            let raw_seconds = from.elapsed().as_secs_f64();
            let mut pipeline = with(model);
            let embed = &mut pipeline.embed;
            (embed.block_turns, embed.sentence_words, embed.pairs) = (block_turns, sentence_words, pairs);
            let name = format!("vectors-{}", rows.len());
            let (service, ingest_seconds) = bench.build_variant(&name, &mut pipeline, true, progress)?;
            let vectors = count_vectors(&MemoryContents::read(service.log(), true)?);
            let scored = bench.score(&service, progress)?;
            let counted = bench.dataset.questions.iter().zip(&scored).filter(|(q, _)| q.counts());
            rows.push(VectorRow {
                model: model.clone(),
                way: way.to_owned(),
                vectors_per_turn: vectors as f64 / turns.len().max(1) as f64,
                overall: figures(counted.map(|(_, s)| s)),
                ingest_seconds,
                ingest_over_raw: if raw_seconds > 0.0 { ingest_seconds / raw_seconds } else { 0.0 },
            });
        }
    }
    Ok(rows)
}

/// Each turn as the model's template renders it.
fn raw_turns(pipeline: &Pipeline, bench: &BenchmarkMemory) -> Vec<SpannedText> {
    let template = pipeline.model().turn_template;
    let turns = bench.recorded.turns.values().flat_map(|turns| turns.values());
    turns.map(|turn| render_parts(&template, &[(turn.speaker.as_str(), turn.text.as_str())])).collect()
}

/// The number of vectors of units and their parts.
fn count_vectors(contents: &MemoryContents) -> usize {
    let units = contents.records.values().flatten().flat_map(|record| &record.units);
    let parts = |part: &types::model::UnitPart| part.vectors.len() + usize::from(part.pair.is_some());
    units.map(|unit| 1 + unit.parts.iter().map(parts).sum::<usize>()).sum()
}
