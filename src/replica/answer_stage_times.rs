//! How long the stages of an answer take.
//!
//! In: the stages of one question, as they end. Out: milliseconds by stage, for callers who ask how an answer spent its
//! time. Times are not part of the evidence: the same log gives the same answer, however long it takes.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// A stage of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerStage {
    /// Until a thread takes the question up: waiting for its turn, and for the turns that `after` names.
    Wait,
    /// Loading the memory as of a point of the past.
    Restore,
    /// Reading the question.
    Cues,
    /// Vectors of the question and of targets.
    Embed,
    /// The first hop.
    FirstHop,
    /// The reranker.
    Rerank,
    /// Whether the evidence is enough, and what is missing.
    Plan,
    /// Walking the edges.
    Walk,
    /// Merging and ordering the evidence, and writing the context.
    Assembly,
    /// The answer in words.
    Words,
}

impl AnswerStage {
    const ALL: [Self; 10] = [
        Self::Wait,
        Self::Restore,
        Self::Cues,
        Self::Embed,
        Self::FirstHop,
        Self::Rerank,
        Self::Plan,
        Self::Walk,
        Self::Assembly,
        Self::Words,
    ];
    /// The stages within recollection. The rest of its time is assembly.
    const RECOLLECTED: [Self; 6] = [Self::Cues, Self::Embed, Self::FirstHop, Self::Rerank, Self::Plan, Self::Walk];

    /// Its name, such as `first_hop`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Restore => "restore",
            Self::Cues => "cues",
            Self::Embed => "embed",
            Self::FirstHop => "first_hop",
            Self::Rerank => "rerank",
            Self::Plan => "plan",
            Self::Walk => "walk",
            Self::Assembly => "assembly",
            Self::Words => "words",
        }
    }
}

/// How long the stages of one question took so far.
#[derive(Debug)]
pub struct AnswerStageTimes {
    started: Instant,
    nanoseconds: [AtomicU64; AnswerStage::ALL.len()],
}

impl AnswerStageTimes {
    /// The times of a question that is submitted now.
    #[must_use]
    pub fn start() -> Self {
        Self { started: Instant::now(), nanoseconds: Default::default() }
    }

    /// Milliseconds of each stage that took time, in the order of [`AnswerStage`], by its name.
    pub fn milliseconds(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let all = AnswerStage::ALL.iter().map(|stage| (stage.name(), self.of(*stage).as_secs_f64() * 1_000.0));
        all.filter(|(_, milliseconds)| *milliseconds > 0.0)
    }

    /// The time since the question was submitted.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.started.elapsed()
    }

    /// Adds to the time of a stage.
    pub fn add(&self, stage: AnswerStage, took: Duration) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        if let Some(of_stage) = self.nanoseconds.get(stage as usize) {
            of_stage.fetch_add(nanoseconds, Ordering::Relaxed);
        }
    }

    /// Notes that a thread has taken the question up.
    pub(super) fn note_taken_up(&self) {
        self.add(AnswerStage::Wait, self.started.elapsed());
    }

    /// Notes how long recollection took: what its other stages did not take was assembly.
    pub(super) fn note_recollected(&self, took: Duration) {
        let others = AnswerStage::RECOLLECTED.iter().map(|stage| self.of(*stage)).sum();
        self.add(AnswerStage::Assembly, took.saturating_sub(others));
    }

    fn of(&self, stage: AnswerStage) -> Duration {
        let found = self.nanoseconds.get(stage as usize);
        Duration::from_nanos(found.map_or(0, |of_stage| of_stage.load(Ordering::Relaxed)))
    }
}

/// Does the work of a stage, and adds its time if the caller asked for times.
pub(super) fn timed<T>(times: Option<&AnswerStageTimes>, stage: AnswerStage, work: impl FnOnce() -> T) -> T {
    let Some(times) = times else { return work() };
    let started = Instant::now();
    let done = work();
    times.add(stage, started.elapsed());
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assembly_is_what_recollection_did_in_no_other_stage() {
        let times = AnswerStageTimes::start();
        times.add(AnswerStage::Embed, Duration::from_millis(2));
        times.add(AnswerStage::Embed, Duration::from_millis(1));
        times.add(AnswerStage::Walk, Duration::from_millis(4));
        times.note_recollected(Duration::from_millis(10));
        times.add(AnswerStage::Words, Duration::from_millis(5));
        let found: Vec<_> = times.milliseconds().collect();
        assert_eq!(found, [("embed", 3.0), ("walk", 4.0), ("assembly", 3.0), ("words", 5.0)]);
        assert!(AnswerStage::ALL.iter().enumerate().all(|(at, stage)| *stage as usize == at));
    }
}
