//! The status of the partitions that this process extracts.
//!
//! In: the events of extraction. Out: the position of each partition, how many windows wait for the language model, and
//! what is wrong. Values only.

use std::collections::BTreeMap;

use super::ExtractionEvent;

/// The status of the partitions that this process extracts.
#[derive(Debug, Clone, Default)]
pub struct ExtractionStatus(BTreeMap<u32, PartitionStatus>);

/// The status of a partition.
#[derive(Debug, Clone, Default)]
struct PartitionStatus {
    /// Its read position; `None` until it is known.
    position: Option<u64>,
    /// Windows that wait for the language model.
    waiting: usize,
    /// Why they wait.
    model_problem: Option<String>,
    /// Why it is not extracted.
    problem: Option<String>,
    /// Whether that is because the log refuses writes.
    refuses_writes: bool,
}

impl ExtractionStatus {
    /// Notes an event.
    pub fn note(&mut self, event: &ExtractionEvent) {
        match event {
            ExtractionEvent::Joined => {}
            ExtractionEvent::Left { partition } => drop(self.0.remove(partition)),
            ExtractionEvent::TakenOver { partition, position, .. } => self.of(*partition).position = Some(*position),
            ExtractionEvent::Committed(committed) => {
                self.of(committed.partition).position = Some(committed.position);
            }
            ExtractionEvent::Waiting { partition, windows, problem } => {
                let of = self.of(*partition);
                (of.waiting, of.model_problem) = (*windows, problem.clone());
            }
            ExtractionEvent::Failed { partition, problem, refuses_writes } => {
                let of = self.of(*partition);
                (of.problem, of.refuses_writes) = (Some(problem.clone()), *refuses_writes);
            }
            ExtractionEvent::Recovered { partition } => {
                let of = self.of(*partition);
                (of.problem, of.refuses_writes) = (None, false);
            }
        }
    }

    fn of(&mut self, partition: u32) -> &mut PartitionStatus {
        self.0.entry(partition).or_default()
    }

    /// Each partition with its read position, where that is known.
    pub fn positions(&self) -> impl Iterator<Item = (u32, Option<u64>)> {
        self.0.iter().map(|(partition, of)| (*partition, of.position))
    }

    /// Windows that wait for the language model.
    #[must_use]
    pub fn waiting_for_model(&self) -> u64 {
        self.0.values().map(|of| of.waiting as u64).sum()
    }

    /// Why a partition is not extracted.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        self.0.values().find_map(|of| of.problem.as_deref())
    }

    /// Why windows wait for the language model.
    #[must_use]
    pub fn model_problem(&self) -> Option<&str> {
        self.0.values().find_map(|of| of.model_problem.as_deref())
    }

    /// The partitions that are not extracted because the log refuses writes.
    #[must_use]
    pub fn refusing(&self) -> Vec<u32> {
        self.0.iter().filter(|(_, of)| of.refuses_writes).map(|(partition, _)| *partition).collect()
    }
}
