//! How long the questions of the last minutes took.
//!
//! In: how long each question took, from its arrival to its answer or refusal. Out: how many there were since the
//! start, and the median and the 99th percentile of the last minutes. The histogram of the metrics has all since the
//! start, in buckets. Nothing here says who asked, or what.

use std::{
    collections::VecDeque,
    sync::Mutex,
    time::{Duration, Instant},
};

use types::sync;

/// What counts as recent.
const RECENT: Duration = Duration::from_secs(300);
/// Most questions that are kept.
const MAX: usize = 4_096;

/// How long the questions of the last minutes took.
#[derive(Debug, Default)]
pub(super) struct RecentQuestions(Mutex<QuestionDurations>);

#[derive(Debug, Default)]
struct QuestionDurations {
    total: u64,
    /// When each ended, and how long it took; the oldest first.
    recent: VecDeque<(Instant, Duration)>,
}

/// What half and 99 of 100 questions took at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DurationPercentiles {
    pub(super) p50: Duration,
    pub(super) p99: Duration,
}

impl RecentQuestions {
    /// Takes a question that ended now.
    pub(super) fn note(&self, now: Instant, took: Duration) {
        let mut taken = sync::lock(&self.0);
        taken.total += 1;
        if taken.recent.len() == MAX {
            taken.recent.pop_front();
        }
        taken.recent.push_back((now, took));
    }

    /// Questions since the start.
    pub(super) fn total(&self) -> u64 {
        sync::lock(&self.0).total
    }

    /// The percentiles of the last five minutes, over at most the last 4,096 questions; `None` without questions.
    pub(super) fn percentiles(&self, now: Instant) -> Option<DurationPercentiles> {
        let mut taken = sync::lock(&self.0);
        while taken.recent.front().is_some_and(|(ended, _)| now.duration_since(*ended) > RECENT) {
            taken.recent.pop_front();
        }
        let mut times: Vec<Duration> = taken.recent.iter().map(|(_, took)| *took).collect();
        drop(taken);
        times.sort_unstable();
        // The least time within which this share of the questions ended.
        let of_share = |percent: usize| times.get((times.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        Some(DurationPercentiles { p50: of_share(50)?, p99: of_share(99)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_last_minutes_alone() {
        let (recent, start) = (RecentQuestions::default(), Instant::now());
        assert_eq!(recent.percentiles(start), None);
        let milliseconds = Duration::from_millis;
        recent.note(start, milliseconds(9_000));
        let later = start + RECENT;
        for took in (1..=100).rev() {
            recent.note(later, milliseconds(took));
        }
        let of = |p50, p99| Some(DurationPercentiles { p50: milliseconds(p50), p99: milliseconds(p99) });
        assert_eq!(recent.percentiles(later), of(51, 100));
        assert_eq!(recent.percentiles(later + milliseconds(1)), of(50, 99));
        assert_eq!(recent.percentiles(later + RECENT + milliseconds(1)), None);
        for _ in 0..=MAX {
            recent.note(later, milliseconds(3));
        }
        assert_eq!((recent.percentiles(later), recent.total()), (of(3, 3), 102 + MAX as u64));
    }
}
