//! The same system with one part taken away.
//!
//! In: a built memory and the parts to leave out. Out: a row each. Every ablation is a
//! change of the pipeline's settings over the same log and the same questions; only
//! `open-windows` needs another memory, in which no window was closed.

use super::{
    result::{Budget, Row},
    run::{Answer, Bench, EvalError},
    score::{Scored, figures, figures_by},
};
use crate::{config::Pipeline, pipeline::Progress};

/// A part that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ablation {
    /// No structural edges and no cue channel.
    StructuralCues,
    /// No edges at all.
    GraphExpansion,
    /// No round after the first hop.
    SecondRound,
}

impl Ablation {
    /// Every one of them.
    pub const ALL: [Self; 3] = [Self::StructuralCues, Self::GraphExpansion, Self::SecondRound];

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
            Self::SecondRound => "second-round",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::StructuralCues => "without structural cues: no cue channel in the first hop, no structural edges",
            Self::GraphExpansion => "without graph expansion: no edges, so that a round finds nothing",
            Self::SecondRound => "without the second round: what comes to mind first, and no more",
        }
    }

    fn without(self, pipeline: &Pipeline) -> Pipeline {
        let mut changed = pipeline.clone();
        let (memory, recall) = (&mut changed.memory, &mut changed.recall);
        match self {
            Self::StructuralCues => {
                memory.structural_edges = 0;
                recall.cue = 0;
                recall.structural_support = 0;
            }
            Self::GraphExpansion => {
                memory.semantic_edges = 0;
                memory.structural_edges = 0;
            }
            Self::SecondRound => recall.rounds = 0,
        }
        changed
    }
}

/// One row an ablation; none when none were asked for.
pub(crate) fn rows(bench: &Bench, _ours: &[Scored], progress: &mut dyn FnMut(Progress)) -> Result<Vec<Row>, EvalError> {
    let mut rows = Vec::new();
    for ablation in &bench.request.ablations {
        let answers = bench.reopened(&ablation.without(&bench.pipeline), progress)?;
        rows.push(row(bench, ablation.name(), ablation.about(), &answers));
    }
    Ok(rows)
}

fn row(bench: &Bench, name: &str, about: &str, answers: &[Answer]) -> Row {
    let scored: Vec<Scored> =
        bench.dataset.questions.iter().zip(answers).map(|(asked, answer)| bench.scored(asked, answer)).collect();
    let both = || bench.dataset.questions.iter().zip(&scored);
    Row {
        name: name.to_owned(),
        about: about.to_owned(),
        over: "units".to_owned(),
        budget: Budget::Units(bench.pipeline.recall.budget),
        overall: figures(both().filter(|(q, _)| q.counts()).map(|(_, s)| s)),
        by_category: figures_by(both().map(|(q, s)| (q.category.as_str(), s))),
    }
}
