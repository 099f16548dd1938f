//! The same system with one part taken away.
//!
//! In: a built memory and the parts to leave out. Out: a row each, or two where a comparison
//! needs its own other side. An ablation is a change of the pipeline's settings over the
//! same log and the same questions; only `open-windows` builds another memory, in which no
//! window was closed, and `model-edges` gives the same one other edges.

use serde::Deserialize;

use super::{
    bench::{Bench, EvalError},
    llm_edges::{Decided, decided},
    result::{Budget, Row},
    score::{Scored, figures, figures_by},
};
use crate::{
    config::Pipeline,
    log::{Log, Topic, Transaction},
    model::WindowState,
    pipeline::{Progress, Service},
};

/// A part that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ablation {
    /// No structural edges and no cue channel.
    StructuralCues,
    /// A round finds nothing along the edges.
    GraphExpansion,
    /// A round starts at the best units and looks for the question itself.
    PlannedRecollection,
    /// No round after the first hop.
    SecondRound,
    /// No round, and a first hop so much wider that it costs the same tokens.
    LongerFirstHop,
    /// Edges that the language model decides, one request a unit.
    ModelEdges,
    /// A dialogue that still goes on: no window was closed, with the records of open windows
    /// and without them.
    OpenWindows,
}

impl Ablation {
    /// Every one of them.
    pub const ALL: [Self; 7] = [
        Self::StructuralCues,
        Self::GraphExpansion,
        Self::PlannedRecollection,
        Self::SecondRound,
        Self::LongerFirstHop,
        Self::ModelEdges,
        Self::OpenWindows,
    ];

    /// The ablation of a name, as on the command line.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|a| a.name() == name)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::StructuralCues => "structural-cues",
            Self::GraphExpansion => "graph-expansion",
            Self::PlannedRecollection => "planned-recollection",
            Self::SecondRound => "second-round",
            Self::LongerFirstHop => "longer-first-hop",
            Self::ModelEdges => "model-edges",
            Self::OpenWindows => "open-windows",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::StructuralCues => "without structural cues: no cue channel in the first hop, no structural edges",
            Self::GraphExpansion => "without graph expansion: a round finds nothing along the edges",
            Self::PlannedRecollection => {
                "without planned recollection: a round always runs, from the best units, towards the question itself"
            }
            Self::SecondRound => "without the second round: what comes to mind first, and no more",
            Self::LongerFirstHop => "no round, and a first hop so much wider that it costs the same tokens",
            Self::ModelEdges => "edges decided by the language model, in the place of the thresholds",
            Self::OpenWindows => "a dialogue that still goes on: no window was closed",
        }
    }

    /// Whether it needs a language model.
    #[must_use]
    pub fn asks_model(self) -> bool {
        self == Self::ModelEdges
    }

    /// The settings without the part.
    pub(crate) fn without(self, pipeline: &Pipeline) -> Pipeline {
        let mut changed = pipeline.clone();
        let (memory, recall) = (&mut changed.memory, &mut changed.recall);
        match self {
            Self::StructuralCues => {
                memory.structural_edges = 0;
                recall.cue = 0;
                recall.structural_support = 0;
            }
            Self::GraphExpansion => {
                recall.semantic_support = 0;
                recall.structural_support = 0;
            }
            Self::PlannedRecollection => recall.planned = false,
            Self::SecondRound | Self::LongerFirstHop => recall.rounds = 0,
            Self::ModelEdges | Self::OpenWindows => {}
        }
        changed
    }
}

/// The rows of the ablations that were asked for.
pub(crate) fn rows(bench: &Bench, ours: &[Scored], progress: &mut dyn FnMut(Progress)) -> Result<Vec<Row>, EvalError> {
    let mut rows = Vec::new();
    for ablation in &bench.request.ablations {
        let (name, about) = (ablation.name(), ablation.about());
        let without = ablation.without(&bench.pipeline);
        match ablation {
            Ablation::LongerFirstHop => rows.push(longer_first_hop(bench, ours, &without, progress)?),
            Ablation::ModelEdges => rows.push(model_edges(bench, progress)?),
            Ablation::OpenWindows => rows.extend(open_windows(bench, progress)?),
            _ => rows.push(row(bench, name, about, &bench.scores(&Service::open(&without, progress)?, progress)?)),
        }
    }
    Ok(rows)
}

/// A first hop alone whose mean tokens are as near to ours as whole units allow.
fn longer_first_hop(
    bench: &Bench,
    ours: &[Scored],
    without: &Pipeline,
    progress: &mut dyn FnMut(Progress),
) -> Result<Row, EvalError> {
    const TRIALS: usize = 6;
    let wanted = mean_tokens(bench, ours);
    let (mut low, mut high) = (1.0, 4.0);
    let mut nearest: Option<(f64, Pipeline, Vec<Scored>)> = None;
    for _ in 0..TRIALS {
        let factor = f64::midpoint(low, high);
        // Each channel rounds at another point, so that the whole grows in small steps.
        let wider = |width: usize, at: f64| (width as f64 * factor + at).floor() as usize;
        let mut pipeline = without.clone();
        let recall = &mut pipeline.recall;
        recall.semantic = wider(recall.semantic, 0.5);
        recall.lexical = wider(recall.lexical, 0.25);
        recall.cue = wider(recall.cue, 0.75);
        // The cap of units is the planned system's; a longer hop is held to the tokens instead.
        recall.budget = recall.budget.max(recall.semantic + recall.lexical + recall.cue);
        let scored = bench.scores(&Service::open(&pipeline, progress)?, progress)?;
        let tokens = mean_tokens(bench, &scored);
        if tokens > wanted {
            high = factor;
        } else {
            low = factor;
        }
        let off = (tokens - wanted).abs();
        if nearest.as_ref().is_none_or(|(best, ..)| off < *best) {
            nearest = Some((off, pipeline, scored));
        }
    }
    let (pipeline, scored) = nearest.map_or_else(|| (without.clone(), Vec::new()), |(_, p, s)| (p, s));
    let r = &pipeline.recall;
    let about = format!("{} ({}/{}/{})", Ablation::LongerFirstHop.about(), r.semantic, r.lexical, r.cue);
    let row = row(bench, Ablation::LongerFirstHop.name(), &about, &scored);
    Ok(Row { budget: Budget::Tokens(wanted.round() as usize), ..row })
}

/// The same memory with decided edges, and what the decisions took.
fn model_edges(bench: &Bench, progress: &mut dyn FnMut(Progress)) -> Result<Row, EvalError> {
    let Decided { pipeline, asked, undecided, usage } = decided(bench, progress)?;
    let scored = bench.scores(&Service::open(&pipeline, progress)?, progress)?;
    let took = format!("{asked} units, {} calls, {} tokens", usage.calls, usage.tokens());
    let undecided =
        if undecided > 0 { format!("; {undecided} units whose decisions could not be used") } else { String::new() };
    let about = format!("{} ({took}{undecided})", Ablation::ModelEdges.about());
    Ok(row(bench, Ablation::ModelEdges.name(), &about, &scored))
}

fn mean_tokens(bench: &Bench, scored: &[Scored]) -> f64 {
    let counted = bench.dataset.questions.iter().zip(scored).filter(|(q, _)| q.counts());
    figures(counted.map(|(_, s)| s)).context_tokens.unwrap_or_default()
}

/// A memory in which no window was closed, as it is and with the records of open windows taken back.
fn open_windows(bench: &Bench, progress: &mut dyn FnMut(Progress)) -> Result<[Row; 2], EvalError> {
    let mut pipeline = bench.pipeline.clone();
    let (service, _) = bench.another("unclosed", &mut pipeline, false, progress)?;
    let with = bench.scores(&service, progress)?;
    take_back_open_records(service.log())?;
    drop(service);
    let without = bench.scores(&Service::open(&pipeline, progress)?, progress)?;
    let about = Ablation::OpenWindows.about();
    Ok([
        row(bench, "open-windows", &format!("{about}; each of its turns is a record of its own"), &with),
        row(bench, "open-windows-unrecorded", &format!("{about}; without records of open windows"), &without),
    ])
}

/// Removes every record of a turn in an open window, in a transaction that covers no input.
fn take_back_open_records(log: &dyn Log) -> Result<(), EvalError> {
    #[derive(Deserialize)]
    struct State {
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
                let state = record.value.as_deref().map(serde_json::from_slice::<State>).transpose();
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

fn row(bench: &Bench, name: &str, about: &str, scored: &[Scored]) -> Row {
    let both = || bench.dataset.questions.iter().zip(scored);
    Row {
        name: name.to_owned(),
        about: about.to_owned(),
        over: "units".to_owned(),
        budget: Budget::Units(bench.pipeline.recall.budget),
        overall: figures(both().filter(|(q, _)| q.counts()).map(|(_, s)| s)),
        by_category: figures_by(both().map(|(q, s)| (q.category.as_str(), s))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ablation_changes_what_it_names_and_has_a_name_of_its_own() {
        let pipeline = Pipeline::parse("version = 1").unwrap();
        for ablation in Ablation::ALL {
            assert_eq!(Ablation::parse(ablation.name()), Some(ablation));
            let changed = ablation.without(&pipeline) != pipeline;
            let own = [Ablation::OpenWindows, Ablation::ModelEdges].contains(&ablation);
            assert_eq!(changed, !own, "{ablation:?}");
        }
        assert_eq!(Ablation::parse("gravity"), None);
    }
}
