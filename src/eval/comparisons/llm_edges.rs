//! Edges that a language model decides instead of thresholds (paper, appendix on the replacement of edge construction).
//! Used only for evaluation.
//!
//! In: a built memory and a language model. Out: the same memory with other edges. In one request per unit, the model
//! sees all candidates from the semantic index and the cue index, and says for each whether the two units are linked,
//! and how. Each unit keeps the best linked candidates of a channel, at most as many as the settings allow; the
//! channel's score remains the weight of the edge. The decisions are written as a snapshot, from which the memory
//! starts as usual. The model's responses are cached, so that no request is paid for twice.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use crossbeam_channel::unbounded;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{benchmark_memory::BenchmarkMemory, error::EvalError};
use logs::partition_of;
use memory::index::{
    ChangeListeners, ChoiceChanges, EdgeChoice, GraphChoice, LiveUnit, RecordKey, RecordLoad, ShardError, ShardHandle,
    StructuralScorer, UnitKey, dot_reference,
};
use models::llm::{Contract, LlmClient, LlmError, LlmRequest, RequestDependency, UsageMeter};
use pipeline::{PipelineError, Progress};
use replica::snapshots;
use ripplemem::PipelineDriver;
use snapshots::{ClaimRule, RestoredRecord, SnapshotError};
use types::{
    config::{MemorySettings, Pipeline},
    model::{Bank, BankKey, Channel, Cues, ModelUsage, Score, UnitId},
};

/// Candidates of a unit from each index, as in the paper.
const POOL: usize = 20;

/// A memory whose edges the language model decided.
pub(crate) struct LlmEdges {
    /// The settings with which it is opened.
    pub(crate) pipeline: Pipeline,
    /// Units that had candidates.
    pub(crate) asked: usize,
    /// Units whose decisions could not be used; they choose nothing.
    pub(crate) undecided: usize,
    /// The model's use, cached responses included.
    pub(crate) usage: ModelUsage,
}

/// Has the language model decide the edges of the bench's memory.
pub(crate) fn decide_edges(bench: &BenchmarkMemory, progress: &mut dyn FnMut(Progress)) -> Result<LlmEdges, EvalError> {
    let llm = bench.llm.as_ref().ok_or(LlmError::NotConfigured)?;
    let mut pipeline = bench.pipeline.clone();
    pipeline.snapshot.directory = bench.directory.path().join("decided").display().to_string();
    let service = PipelineDriver::open(&pipeline, progress)?;
    let (partitions, generation) = (service.log().partitions(), service.log().generation());
    drop(service);
    let place = snapshots(&pipeline, partitions, generation).map_err(PipelineError::from)?;
    let mut shards = Vec::new();
    for partition in 0..partitions {
        let seen = place.newest_id(partition).map_err(PipelineError::from)?;
        let restored = place.newest(partition, false, &mut |_| {}, &mut |_, _| {}).map_err(PipelineError::from)?;
        shards.push((partition, seen, restored.ok_or(SnapshotError::None).map_err(PipelineError::from)?));
    }
    let records = || shards.iter().flat_map(|(.., restored)| &restored.records);
    let banks: HashMap<BankKey, &Bank> = records().map(|record| (record.key.bank.key(), &record.key.bank)).collect();
    let units: HashMap<UnitKey, &LiveUnit> = records().flat_map(units_of).collect();
    let pairs = candidates(&pipeline.memory, records()).map_err(PipelineError::from)?;
    let meter = UsageMeter::default();
    let (decisions, undecided) = decisions(llm, &meter, &banks, &units, &pairs, progress)?;
    let mut chosen: ChoiceChanges = Vec::new();
    for (from, links) in decisions {
        let Some(unit) = units.get(&from) else { continue };
        let linked =
            links.into_iter().filter_map(|(to, kind)| Some((*units.get(&UnitKey { bank: from.bank, id: to })?, kind)));
        let of_unit = choices(&pipeline.memory, unit, linked);
        chosen.extend(of_unit.into_iter().map(|choice| ((from.bank, choice), 1)));
    }
    let mut of_shards: BTreeMap<u32, ChoiceChanges> = BTreeMap::new();
    for change in chosen {
        if let Some(bank) = banks.get(&change.0.0) {
            of_shards.entry(partition_of(bank, partitions)).or_default().push(change);
        }
    }
    for (partition, seen, restored) in &shards {
        let chosen = of_shards.remove(partition).unwrap_or_default();
        let (run, rule) = ("decided".to_owned(), ClaimRule::AtOnce);
        let mut writer = place.writer(*partition, *seen, Some(restored), run, 0, rule).map_err(PipelineError::from)?;
        writer.replace_choices(restored, chosen);
        writer.snapshot(jiff::Timestamp::now().as_millisecond(), rule).map_err(PipelineError::from)?;
    }
    Ok(LlmEdges { pipeline, asked: pairs.len(), undecided, usage: meter.total() })
}

fn units_of(record: &RestoredRecord) -> impl Iterator<Item = (UnitKey, &LiveUnit)> {
    let bank = record.key.bank.key();
    record.extraction.units.iter().map(move |unit| (UnitKey { bank, id: unit.id }, &**unit))
}

/// For each unit, the candidates from both indexes, whatever their scores.
fn candidates<'r>(
    settings: &MemorySettings,
    records: impl Iterator<Item = &'r RestoredRecord>,
) -> Result<BTreeMap<UnitKey, BTreeSet<UnitId>>, ShardError> {
    let pools = MemorySettings {
        semantic_pool: POOL,
        semantic_edges: POOL,
        structural_edges: POOL,
        structural_threshold: 0.0,
        ..settings.clone()
    };
    let (sender, changes) = unbounded();
    let listeners = ChangeListeners { choices: Some(sender), ..ChangeListeners::default() };
    let memory = ShardHandle::start(&pools, Score(-Score::ONE.0), listeners)?;
    let changed = records.map(|record| (RecordKey::from(&record.key), Some(Arc::clone(&record.extraction))));
    memory.load(RecordLoad { changes: changed.collect(), ..RecordLoad::default() })?;
    memory.wait_for_loads()?;
    let mut pairs: BTreeMap<UnitKey, BTreeSet<UnitId>> = BTreeMap::new();
    for ((bank, choice), _) in changes.try_iter().flatten() {
        pairs.entry(UnitKey { bank, id: choice.from }).or_default().insert(choice.to);
    }
    Ok(pairs)
}

/// The model's decisions about one unit's candidates.
type UnitLinks = Vec<(UnitId, EdgeLinkKind)>;

/// The model's decisions about each unit, and the number of units whose decisions could not be used.
fn decisions(
    llm: &LlmClient,
    meter: &UsageMeter,
    banks: &HashMap<BankKey, &Bank>,
    units: &HashMap<UnitKey, &LiveUnit>,
    pairs: &BTreeMap<UnitKey, BTreeSet<UnitId>>,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Vec<(UnitKey, UnitLinks)>, usize), EvalError> {
    let todo: Vec<(&UnitKey, &BTreeSet<UnitId>)> = pairs.iter().collect();
    let next = AtomicUsize::new(0);
    let (done, finished) = unbounded();
    let (mut decisions, mut undecided) = (Vec::with_capacity(todo.len()), 0);
    std::thread::scope(|scope| {
        for _ in 0..llm.settings().in_flight {
            let (done, todo, next) = (done.clone(), &todo, &next);
            scope.spawn(move || {
                while let Some((from, others)) = todo.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Some((bank, unit)) = banks.get(&from.bank).zip(units.get(from)) else { continue };
                    let others: Vec<&LiveUnit> = others
                        .iter()
                        .filter_map(|id| units.get(&UnitKey { bank: from.bank, id: *id }).copied())
                        .collect();
                    // The receiver is dropped when another request failed.
                    if done.send((**from, decide(llm, meter, bank, unit, &others))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(done);
        for (from, decision) in &finished {
            match decision {
                Ok(links) => decisions.push((from, links)),
                Err(LlmError::InvalidReply { .. } | LlmError::Rejected { .. } | LlmError::TooLong { .. }) => {
                    undecided += 1
                }
                Err(error) => {
                    // Stops the other threads.
                    next.store(todo.len(), Ordering::Relaxed);
                    return Err(error);
                }
            }
            let (done, total) = ((decisions.len() + undecided) as u64, Some(todo.len() as u64));
            progress(Progress { doing: "deciding", done, total, unit: "units" });
        }
        Ok(())
    })?;
    Ok((decisions, undecided))
}

fn decide(
    llm: &LlmClient,
    meter: &UsageMeter,
    bank: &Bank,
    unit: &LiveUnit,
    others: &[&LiveUnit],
) -> Result<UnitLinks, LlmError> {
    let labels: Vec<String> = (1..=others.len()).map(|n| n.to_string()).collect();
    let candidates: Vec<Value> =
        labels.iter().zip(others).map(|(label, other)| described(other, Some(label))).collect();
    let input = json!({"memory": described(unit, None), "candidates": candidates}).to_string();
    let turns: BTreeSet<&str> = others.iter().copied().chain([unit]).flat_map(|u| u.body.sources()).collect();
    let turns: Vec<String> = turns.into_iter().map(str::to_owned).collect();
    let request = LlmRequest {
        contract: Contract::Edges,
        bank,
        depends_on: RequestDependency::Turns(&turns),
        input: &input,
        reply_tokens: None,
        deadline: None,
        bypass_cache: false,
        cacheable: true,
        meter,
    };
    llm.ask(&request, &mut |reply: EdgesReply| {
        let mut links: BTreeMap<UnitId, EdgeLinkKind> = BTreeMap::new();
        for EdgeLink { label, kind } in reply.links {
            let at = labels.iter().position(|l| *l == label);
            let Some(other) = at.and_then(|at| others.get(at)) else {
                return Err(format!("{label:?} is no label of a candidate"));
            };
            if links.insert(other.id, kind).is_some() {
                return Err(format!("candidate {label} is named twice"));
            }
        }
        Ok(links.into_iter().collect())
    })
}

fn described(unit: &LiveUnit, label: Option<&str>) -> Value {
    let Cues { participants, locations, time } = unit.body.cues();
    let mut described = json!({
        "text": unit.body.restatement(), "participants": participants, "locations": locations, "time": time,
        "said_at": unit.body.said_at,
    });
    if let Some(label) = label {
        described["label"] = json!(label);
    }
    described
}

#[derive(Debug, Deserialize)]
struct EdgesReply {
    links: Vec<EdgeLink>,
}

#[derive(Debug, Deserialize)]
struct EdgeLink {
    label: String,
    kind: EdgeLinkKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EdgeLinkKind {
    Semantic,
    Structural,
    Both,
    None,
}

/// The best of a unit's linked candidates, at most as many as it may choose (decision 11).
fn choices<'u>(
    settings: &MemorySettings,
    unit: &LiveUnit,
    linked: impl Iterator<Item = (&'u LiveUnit, EdgeLinkKind)>,
) -> Vec<GraphChoice> {
    let structural = StructuralScorer::new(settings);
    let mut semantic_choices = Vec::new();
    let mut structural_choices = Vec::new();
    for (other, kind) in linked {
        let choice = |score| EdgeChoice::new(score, &unit.position, &other.position, other.id);
        if matches!(kind, EdgeLinkKind::Semantic | EdgeLinkKind::Both) {
            semantic_choices.push(choice(Score(dot_reference(&unit.vector(), &other.vector()))));
        }
        if matches!(kind, EdgeLinkKind::Structural | EdgeLinkKind::Both) {
            structural_choices.push(choice(structural.score(&unit.cues, &other.cues).unwrap_or(Score::ZERO)));
        }
    }
    let best = |mut choices: Vec<EdgeChoice>, most: usize, channel: Channel| {
        choices.sort_unstable();
        choices.truncate(most);
        choices.into_iter().map(move |c| GraphChoice { channel, from: unit.id, to: c.id, weight: c.score.0 })
    };
    best(semantic_choices, settings.semantic_edges, Channel::Semantic)
        .chain(best(structural_choices, settings.structural_edges, Channel::Structural))
        .collect()
}
