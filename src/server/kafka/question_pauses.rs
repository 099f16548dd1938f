//! Decides which partitions of questions are paused because too many questions wait.
//!
//! In: what the group assigns and revokes, how full the query queue is, which shards are loading. Out: the
//! partitions to pause and to resume now. A shard that is loading answers nothing, so once half of all places are
//! taken, its questions stay in the topic: the other half is for shards that answer. Pure.

use std::collections::BTreeSet;

use logs::AssignmentChange;

/// How full the query queue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueFill {
    /// Less than half of all places are taken.
    Low,
    /// At least half are.
    Half,
    /// All are.
    Full,
}

/// The assigned partitions, and which of them are paused.
#[derive(Debug, Default)]
pub(super) struct QuestionPauses {
    assigned: BTreeSet<u32>,
    paused: BTreeSet<u32>,
}

impl QuestionPauses {
    /// Notes a decision of the group: what it assigns is not paused.
    pub(super) fn note(&mut self, decision: &AssignmentChange) {
        match decision {
            AssignmentChange::Assigned(partitions) => {
                self.resumed(partitions);
                self.assigned.extend(partitions);
            }
            AssignmentChange::Revoked(partitions) => {
                for set in [&mut self.assigned, &mut self.paused] {
                    set.retain(|partition| !partitions.contains(partition));
                }
            }
        }
    }

    /// The partitions to pause and those to resume; `loading` returns those whose shard is loading.
    pub(super) fn due(&self, fill: QueueFill, loading: impl FnOnce() -> Vec<u32>) -> (Vec<u32>, Vec<u32>) {
        let wanted: BTreeSet<u32> = match fill {
            QueueFill::Low => BTreeSet::new(),
            QueueFill::Half => loading().into_iter().filter(|partition| self.assigned.contains(partition)).collect(),
            QueueFill::Full => self.assigned.clone(),
        };
        let pause = wanted.difference(&self.paused).copied().collect();
        let resume = self.paused.difference(&wanted).copied().collect();
        (pause, resume)
    }

    /// Notes that partitions were paused.
    pub(super) fn paused(&mut self, partitions: &[u32]) {
        self.paused.extend(partitions);
    }

    /// Notes that partitions were resumed.
    pub(super) fn resumed(&mut self, partitions: &[u32]) {
        self.paused.retain(|partition| !partitions.contains(partition));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies the pauses and resumptions that are needed.
    fn apply(pauses: &mut QuestionPauses, fill: QueueFill, loading: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let (pause, resume) = pauses.due(fill, || loading.to_vec());
        pauses.paused(&pause);
        pauses.resumed(&resume);
        (pause, resume)
    }

    #[test]
    fn a_full_front_pauses_all_and_a_half_full_one_what_is_loading() {
        let mut pauses = QuestionPauses::default();
        pauses.note(&AssignmentChange::Assigned(vec![0, 1, 2]));
        assert_eq!(apply(&mut pauses, QueueFill::Low, &[1]), (vec![], vec![]));
        assert_eq!(apply(&mut pauses, QueueFill::Half, &[1, 7]), (vec![1], vec![]));
        assert_eq!(apply(&mut pauses, QueueFill::Full, &[1]), (vec![0, 2], vec![]));
        assert_eq!(apply(&mut pauses, QueueFill::Half, &[1]), (vec![], vec![0, 2]));
        assert_eq!(apply(&mut pauses, QueueFill::Half, &[]), (vec![], vec![1]), "it is loaded");
    }

    #[test]
    fn what_was_paused_is_resumed_although_the_group_assigned_more_meanwhile() {
        let mut pauses = QuestionPauses::default();
        pauses.note(&AssignmentChange::Assigned(vec![0, 1]));
        assert_eq!(apply(&mut pauses, QueueFill::Full, &[]), (vec![0, 1], vec![]));
        pauses.note(&AssignmentChange::Assigned(vec![2]));
        pauses.note(&AssignmentChange::Revoked(vec![1]));
        assert_eq!(apply(&mut pauses, QueueFill::Full, &[]), (vec![2], vec![]), "it begins without a pause");
        assert_eq!(apply(&mut pauses, QueueFill::Low, &[]), (vec![], vec![0, 2]));
    }
}
