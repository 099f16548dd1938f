//! The best of many slots by their scores.
//!
//! In: scores of slots, in any order. Out: the best slots. Slots with equal scores are in the order of the bank,
//! because slot numbers depend on the history.

use super::indexed_part::PartSlot;

/// The score of a slot without a part.
pub(in crate::index) const NO_SCORE: f32 = f32::NEG_INFINITY;
/// The number of slots in a chunk; a chunk is skipped if its best slot is not among the best.
const SLOTS_OF_A_CHUNK: usize = 16;

/// The best of many scores. All slots that tie with the last one are kept until the end.
pub(in crate::index) struct BestSlots {
    wanted: usize,
    least: f32,
    found: Vec<(f32, PartSlot)>,
    trim_at: usize,
}

impl BestSlots {
    /// At most `wanted` slots.
    pub(in crate::index) fn new(wanted: usize) -> Self {
        Self { wanted, least: f32::MIN, found: Vec::new(), trim_at: 4 * wanted }
    }

    /// As [`Self::new`], but only slots whose score is greater than zero.
    pub(in crate::index) fn positive(wanted: usize) -> Self {
        Self { least: f32::MIN_POSITIVE, ..Self::new(wanted) }
    }

    /// Adds the slots of these scores, starting at slot `first`, except those with [`NO_SCORE`].
    pub(in crate::index) fn add_all(&mut self, scores: &[f32], first: usize) {
        for (scores, first) in scores.chunks(SLOTS_OF_A_CHUNK).zip((first..).step_by(SLOTS_OF_A_CHUNK)) {
            if greatest(scores) < self.least {
                continue;
            }
            for (score, slot) in scores.iter().zip(first..) {
                self.add(*score, slot as PartSlot);
            }
        }
    }

    fn add(&mut self, score: f32, slot: PartSlot) {
        if score >= self.least {
            self.found.push((score, slot));
            if self.found.len() > self.trim_at {
                self.trim();
            }
        }
    }

    fn trim(&mut self) {
        if self.wanted == 0 || self.found.len() <= self.wanted {
            return;
        }
        let (_, last, _) = self.found.select_nth_unstable_by(self.wanted - 1, |a, b| b.0.total_cmp(&a.0));
        let least = last.0;
        self.least = least;
        self.found.retain(|(score, _)| *score >= least);
        self.trim_at = (4 * self.wanted).max(2 * self.found.len());
    }

    /// The best slots, in order; those with equal scores in the order of their keys.
    pub(in crate::index) fn finish<K: Ord>(mut self, key: impl Fn(PartSlot) -> K) -> Vec<PartSlot> {
        self.trim();
        self.found.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let mut best = Vec::with_capacity(self.found.len());
        for tied in self.found.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
            let first = best.len();
            if first >= self.wanted {
                break;
            }
            best.extend(tied.iter().map(|(_, slot)| *slot));
            // Keys are scattered over the memory, so each is looked up once, and only for slots that tie.
            if tied.len() > 1 {
                best[first..].sort_by_cached_key(|slot| key(*slot));
            }
        }
        best.truncate(self.wanted);
        best
    }
}

/// The greatest score.
pub(in crate::index) fn greatest(scores: &[f32]) -> f32 {
    const LANES: usize = 8;
    let (rows, rest) = scores.as_chunks::<LANES>();
    let mut most = [NO_SCORE; LANES];
    for row in rows {
        most.iter_mut().zip(row).for_each(|(most, score)| *most = if score > most { *score } else { *most });
    }
    most.iter().chain(rest).copied().fold(NO_SCORE, f32::max)
}
