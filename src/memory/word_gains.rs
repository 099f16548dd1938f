//! What the words of a question add to the rough scores of the parts of a large bank.
//!
//! In: the postings of one word after the other, with what the word is worth. Out: for each slot the sum
//! of what the words add to its window (BM25, in single precision). Where the window of a part is a run
//! of slots, as it is of parts that came one after the other, its counts grow sixteen at a time; else they
//! grow part by part. Both give the same.

use super::{
    bm25,
    candidate_index::{CandidateIndex, OWN_WORDS},
    indexed_part::Slot,
    part_columns::Reach,
};

/// Slots whose gains are computed together.
const GROUP: usize = 16;

/// How much a window of so many words is damped: a line.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Damping {
    /// Of a window without words.
    pub least: f32,
    /// More for each word.
    pub step: f32,
}

/// The sums of the gains by slot.
#[derive(Debug, Default)]
pub(super) struct WordGains {
    /// How often a window holds the word that is counted; all zero between two words. Counts end at 255,
    /// which gains what more would gain.
    counts: Vec<u8>,
    /// The groups of slots that may have counts.
    touched: Vec<u32>,
    gains: Vec<f32>,
}

impl WordGains {
    /// Nothing gained in so many slots.
    pub(super) fn new(slots: usize) -> Self {
        // The counts of a group may begin at the last slot.
        let padded = slots.next_multiple_of(GROUP);
        Self { counts: vec![0; padded + GROUP], touched: Vec::new(), gains: vec![0.0; padded] }
    }

    /// Adds what a word gains in each window that holds it.
    pub(super) fn add(&mut self, index: &CandidateIndex, parts: &[(Slot, u16)], worth: f64, damping: Damping) {
        let columns = index.columns();
        let reach = columns.reach();
        self.touched.clear();
        let mut last = u32::MAX;
        for (slot, count) in parts {
            let count = u8::try_from(*count).unwrap_or(u8::MAX);
            let mut touch = |slot: usize| {
                let group = (slot / GROUP) as u32;
                if group != last {
                    self.touched.push(group);
                    last = group;
                }
            };
            match reach.get(*slot as usize).copied().and_then(Reach::run) {
                Some((before, after)) => {
                    let (first, length) = (*slot as usize - before, before + 1 + after);
                    if let Some(run) = self.counts.get_mut(first..).and_then(|from| from.first_chunk_mut::<GROUP>())
                        && length <= GROUP
                    {
                        count_run(run, length as u8, before as u8, count);
                    } else if let Some(run) = self.counts.get_mut(first..first + length) {
                        run.iter_mut().for_each(|of_slot| *of_slot = of_slot.saturating_add(count));
                        run[before] = run[before].saturating_add(count.saturating_mul(OWN_WORDS as u8 - 1));
                    }
                    (first..first + length).step_by(GROUP).for_each(&mut touch);
                    touch(first + length - 1);
                }
                None => {
                    let near = [true, false].into_iter().flat_map(|back| index.side(*slot, back));
                    for (slot, count) in
                        near.map(|near| (near, count)).chain([(*slot, count.saturating_mul(OWN_WORDS as u8))])
                    {
                        if let Some(of_slot) = self.counts.get_mut(slot as usize) {
                            *of_slot = of_slot.saturating_add(count);
                            touch(slot as usize);
                        }
                    }
                }
            }
        }
        let most = bm25::gain(worth, 1.0, 0.0) as f32;
        for group in &self.touched {
            let first = *group as usize * GROUP;
            let Some(counts) = self.counts.get_mut(first..).and_then(|from| from.first_chunk_mut::<GROUP>()) else {
                continue;
            };
            let Some(gains) = self.gains.get_mut(first..).and_then(|from| from.first_chunk_mut::<GROUP>()) else {
                continue;
            };
            // A group that was touched twice is done.
            if *counts == [0; GROUP] {
                continue;
            }
            let window = &columns.window()[first..];
            let mut rest = [0; GROUP];
            let window = window.first_chunk::<GROUP>().unwrap_or_else(|| {
                rest[..window.len()].copy_from_slice(window);
                &rest
            });
            gain(gains, counts, window, most, damping);
            *counts = [0; GROUP];
        }
    }

    /// The greatest gain.
    pub(super) fn most(&self) -> f32 {
        self.gains.iter().copied().fold(0.0, f32::max)
    }

    /// Multiplies every gain.
    pub(super) fn scale(&mut self, by: f32) {
        self.gains.iter_mut().for_each(|gain| *gain *= by);
    }

    /// The gains by slot.
    pub(super) fn gains(&self) -> &[f32] {
        &self.gains
    }
}

/// Counts a word in a window: in its first `length` slots, and in the slot of the part itself once more.
fn count_run(counts: &mut [u8; GROUP], length: u8, own: u8, count: u8) {
    let again = count.saturating_mul(OWN_WORDS as u8 - 1);
    for (lane, of_slot) in (0u8..).zip(counts) {
        let near = if lane < length { count } else { 0 };
        let own = if lane == own { again } else { 0 };
        *of_slot = of_slot.saturating_add(near).saturating_add(own);
    }
}

/// Adds the gains of some counts: `most` by the share count / (count + damping).
fn gain(gains: &mut [f32; GROUP], counts: &[u8; GROUP], window: &[u32; GROUP], most: f32, damping: Damping) {
    for ((gain, count), words) in gains.iter_mut().zip(counts).zip(window) {
        let count = f32::from(*count);
        *gain += most * count / (count + (damping.least + damping.step * *words as i32 as f32));
    }
}
