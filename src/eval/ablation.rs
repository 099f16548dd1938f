//! The parts of the system that an evaluation can leave out.
//!
//! In: the name of a part, and settings. Out: the settings without it. Measures nothing.

use types::config::Pipeline;

/// A part of the system that an evaluation can leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ablation {
    /// No structural edges and no cue channel.
    StructuralCues,
    /// No round follows edges.
    GraphExpansion,
    /// A round always runs, starts at the best units and looks for the question itself.
    PlannedRecollection,
    /// No round after the first hop.
    SecondRound,
    /// No round after the first hop, which is widened until it costs the same tokens.
    LongerFirstHop,
    /// A speaker is known only by its own name.
    GreetedNames,
    /// A day that the question names counts only as its month.
    NamedDays,
    /// The language model decides the edges, with one request per unit.
    ModelEdges,
    /// A dialogue that is still going on: no window is closed. Measured with the records of
    /// open windows, and without them.
    OpenWindows,
}

impl Ablation {
    /// Every ablation.
    pub const ALL: [Self; 9] = [
        Self::StructuralCues,
        Self::GraphExpansion,
        Self::PlannedRecollection,
        Self::SecondRound,
        Self::LongerFirstHop,
        Self::GreetedNames,
        Self::NamedDays,
        Self::ModelEdges,
        Self::OpenWindows,
    ];

    /// The ablation with this name, as on the command line.
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
            Self::GreetedNames => "greeted-names",
            Self::NamedDays => "named-days",
            Self::ModelEdges => "model-edges",
            Self::OpenWindows => "open-windows",
        }
    }

    /// What it leaves out, in a sentence.
    pub(crate) fn about(self) -> &'static str {
        match self {
            Self::StructuralCues => "without structural cues: no cue channel in the first hop, no structural edges",
            Self::GraphExpansion => "without graph expansion: a round follows no edges",
            Self::PlannedRecollection => {
                "without planned recollection: a round always runs, from the best units, towards the question itself"
            }
            Self::SecondRound => "without the second round: the first hop alone",
            Self::LongerFirstHop => "no round, and a first hop that is wide enough to cost the same tokens",
            Self::GreetedNames => "without the names by which speakers are greeted",
            Self::NamedDays => "without the days that a question names: their months alone count",
            Self::ModelEdges => "edges decided by the language model instead of thresholds",
            Self::OpenWindows => "a dialogue that is still going on: no window is closed",
        }
    }

    /// Whether it needs a language model.
    #[must_use]
    pub fn asks_model(self) -> bool {
        self == Self::ModelEdges
    }

    /// The settings without the part; unchanged if the part is not a setting.
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
            Self::GreetedNames => recall.familiarity.greeted_names = false,
            Self::NamedDays => recall.familiarity.weights.day = 0.0,
            Self::ModelEdges | Self::OpenWindows => {}
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ablation_changes_the_settings_and_has_a_unique_name() {
        let pipeline = Pipeline::parse("version = 1").unwrap();
        for ablation in Ablation::ALL {
            assert_eq!(Ablation::parse(ablation.name()), Some(ablation));
            let changed = ablation.without(&pipeline) != pipeline;
            let other_memory = [Ablation::OpenWindows, Ablation::ModelEdges].contains(&ablation);
            assert_eq!(changed, !other_memory, "{ablation:?}");
        }
        assert_eq!(Ablation::parse("gravity"), None);
    }
}
