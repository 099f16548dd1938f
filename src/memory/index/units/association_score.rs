//! Association scores and the order of choices, in fixed point.
//!
//! In: cues and timeline positions of two units. Out: the structural score of the paper (section 3.3)
//! and the order of decision 11, by integer arithmetic only, so that no processor, batch or summation
//! order changes an edge.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use types::{
    config::MemorySettings,
    model::{Channel, Cues, EventTime, Interval, Score, UnitId},
};

/// A name in fixed size: 64 bits of BLAKE3 of its canonical form. Keys are compared only inside one bank.
pub(in crate::index) type NameKey = u64;

/// Cues as the indexes compare them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct CueSet {
    /// Sorted, without repetition.
    pub participants: Box<[NameKey]>,
    /// Sorted, without repetition.
    pub locations: Box<[NameKey]>,
    /// First and last moment, in milliseconds since 1970; absent in most units.
    pub time: Option<Box<(i64, i64)>>,
}

impl From<&Cues> for CueSet {
    fn from(cues: &Cues) -> Self {
        let keys = |names: &[String]| {
            let mut keys: Vec<NameKey> = names.iter().map(|name| name_key(name)).collect();
            keys.sort_unstable();
            keys.dedup();
            keys.into_boxed_slice()
        };
        Self {
            participants: keys(&cues.participants),
            locations: keys(&cues.locations),
            time: cues.time.map(|t| Box::new((t.start_ms, t.end_ms))),
        }
    }
}

/// A canonical name in fixed size.
#[must_use]
pub fn name_key(name: &str) -> u64 {
    hash64(name.as_bytes())
}

/// 64 bits of BLAKE3.
#[must_use]
pub(in crate::index) fn hash64(bytes: &[u8]) -> u64 {
    let mut low = [0u8; 8];
    low.copy_from_slice(&blake3::hash(bytes).as_bytes()[..8]);
    u64::from_le_bytes(low)
}

/// Where a unit is in time and in its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TimelinePosition {
    /// The session.
    pub session: u64,
    /// Ordinal of its first source.
    pub ordinal: u32,
    /// Start of T, or else when it was said; milliseconds since 1970.
    pub start_ms: i64,
    /// End of T, or else when it was said.
    pub end_ms: i64,
}

impl TimelinePosition {
    /// The position of a unit.
    #[must_use]
    pub fn new(session: &str, ordinal: u32, time: Option<Interval>, said_at: EventTime) -> Self {
        let time = time.unwrap_or(Interval::at(said_at));
        Self { session: hash64(session.as_bytes()), ordinal, start_ms: time.start_ms, end_ms: time.end_ms }
    }
}

/// A unit as another one ranks it; the lesser is preferred (decision 11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EdgeChoice {
    /// The greater score first.
    pub score: Reverse<Score>,
    /// Then the smaller gap in time, in milliseconds.
    pub gap_ms: i64,
    /// Then the smaller distance in ordinal; another session counts as farthest.
    pub distance: u32,
    /// Then the lesser ordinal of the first source.
    pub ordinal: u32,
    /// Then the lesser id.
    pub id: UnitId,
}

impl EdgeChoice {
    /// `to` as `from` ranks it.
    #[must_use]
    pub fn new(score: Score, from: &TimelinePosition, to: &TimelinePosition, id: UnitId) -> Self {
        let gap = to.start_ms.saturating_sub(from.end_ms).max(from.start_ms.saturating_sub(to.end_ms)).max(0);
        let distance = if from.session == to.session { from.ordinal.abs_diff(to.ordinal) } else { u32::MAX };
        Self { score: Reverse(score), gap_ms: gap, distance, ordinal: to.ordinal, id }
    }

    /// The same pair as the other unit ranks it.
    #[must_use]
    pub fn reversed(&self, ordinal: u32, id: UnitId) -> Self {
        Self { ordinal, id, ..*self }
    }
}

/// An edge as it leaves a unit, in the order in which a hop walks: by channel, then as the unit ranks its
/// choices. Each field holds a part of what that order compares, so that an edge takes 24 bytes: there are two
/// for every pair of units that are linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::index) struct Edge {
    /// [`STRUCTURAL`] or not, and the difference between [`MAX_WEIGHT`] and the score.
    rank: u32,
    /// Twice the gap in time, in milliseconds, plus one if the edge leads to another session.
    gap: u64,
    /// Inside a session, twice the distance in ordinal, plus one if the edge leads to a later unit; between sessions,
    /// the ordinal of the other unit.
    near: u32,
    /// Where it leads.
    pub to: UnitId,
}

/// The bit that is set for a structural edge and not for a semantic one.
const STRUCTURAL: u32 = 1 << 31;
/// No score is greater than this, and none is less than its negative.
const MAX_WEIGHT: i32 = (1 << 30) - 1;

impl Edge {
    /// The choice of a unit with this ordinal as an edge of a channel.
    pub(in crate::index) fn new(channel: Channel, ordinal: u32, choice: EdgeChoice) -> Self {
        let of_channel = match channel {
            Channel::Semantic => 0,
            Channel::Structural | Channel::Lexical => STRUCTURAL,
        };
        let lacking = MAX_WEIGHT.abs_diff(choice.weight().0.clamp(-MAX_WEIGHT, MAX_WEIGHT));
        let is_elsewhere = choice.distance == u32::MAX;
        let near = if is_elsewhere {
            choice.ordinal
        } else {
            // No session has nearly as many turns as half the range of the number.
            choice.distance.saturating_mul(2).saturating_add(u32::from(choice.ordinal > ordinal))
        };
        let gap = choice.gap_ms.unsigned_abs() * 2 + u64::from(is_elsewhere);
        Self { rank: of_channel | lacking, gap, near, to: choice.id }
    }

    /// The kind of edge.
    pub(in crate::index) fn channel(&self) -> Channel {
        if self.rank & STRUCTURAL == 0 { Channel::Semantic } else { Channel::Structural }
    }

    /// The score.
    pub(in crate::index) fn weight(&self) -> Score {
        Score(MAX_WEIGHT - (self.rank & !STRUCTURAL) as i32)
    }
}

/// A unit's choice of another, as snapshots store it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GraphChoice {
    /// The kind of edge.
    pub channel: Channel,
    /// The unit that chose.
    pub from: UnitId,
    /// The unit that was chosen.
    pub to: UnitId,
    /// The cosine or structural score.
    pub weight: Score,
}

/// The structural score with the weights and decay of a configuration.
#[derive(Debug, Clone)]
pub struct StructuralScorer {
    participant: i64,
    location: i64,
    time: i64,
    decay_ms: i64,
    threshold: Score,
    decay: Vec<i64>,
}

/// The number of steps of the decay table per decay time.
const STEPS: i64 = 256;
/// The number of decay times after which the score is 0: e⁻²⁰ is below the scale's resolution.
const REACH: i64 = 20;
/// Binary digits after the point in the decay table.
const DIGITS: u32 = 62;
/// e^(−1/256) with [`DIGITS`] binary digits after the point.
const STEP_FACTOR: u128 = 4_593_706_758_521_714_574;

impl StructuralScorer {
    /// Prepares the weights (per mille) and the table of e^(−k/256).
    #[must_use]
    pub fn new(settings: &MemorySettings) -> Self {
        let mille = |w: f64| (w * 1_000.0).round() as i64;
        let one = i64::from(Score::ONE.0);
        let mut power: u128 = 1 << DIGITS;
        let decay = (0..=STEPS * REACH)
            .map(|_| {
                let entry = ((power * one as u128) >> DIGITS) as i64;
                power = (power * STEP_FACTOR) >> DIGITS;
                entry
            })
            .collect();
        Self {
            participant: mille(settings.participant_weight),
            location: mille(settings.location_weight),
            time: mille(settings.time_weight),
            decay_ms: ((settings.time_decay_days * 86_400_000.0).round() as i64).max(1),
            threshold: Score::from_f64(settings.structural_threshold),
            decay,
        }
    }

    /// Least score of an edge.
    #[must_use]
    pub fn threshold(&self) -> Score {
        self.threshold
    }

    /// `Σ βx·Ix·ux / Σ βx·Ix`; none if no cue is on both sides, or if the cues on both sides have no weight.
    #[must_use]
    pub fn score(&self, a: &CueSet, b: &CueSet) -> Option<Score> {
        let one = i64::from(Score::ONE.0);
        let (mut sum, mut weight) = (0, 0);
        let mut add = |beta: i64, u: i64| {
            sum += beta * u;
            weight += beta;
        };
        for (beta, x, y) in
            [(self.participant, &a.participants, &b.participants), (self.location, &a.locations, &b.locations)]
        {
            if !x.is_empty() && !y.is_empty() {
                let shared = shared(x, y);
                add(beta, one * shared / (x.len() as i64 + y.len() as i64 - shared));
            }
        }
        if let (Some(x), Some(y)) = (a.time.as_deref(), b.time.as_deref()) {
            let gap = y.0.saturating_sub(x.1).max(x.0.saturating_sub(y.1)).max(0);
            add(self.time, self.proximity(gap));
        }
        (weight > 0).then(|| Score((sum / weight) as i32))
    }

    /// e^(−gap/τ), linear between the table's entries: at most 2·10⁻⁶ too large.
    fn proximity(&self, gap_ms: i64) -> i64 {
        // A decay of at most ten years keeps every product below 2⁶³.
        let fine = gap_ms.saturating_mul(STEPS);
        let Ok(step) = usize::try_from(fine / self.decay_ms) else { return 0 };
        let (Some(low), Some(high)) = (self.decay.get(step + 1), self.decay.get(step)) else { return 0 };
        high - (fine % self.decay_ms) * (high - low) / self.decay_ms
    }
}

/// Number of common elements of two sorted lists.
fn shared(a: &[NameKey], b: &[NameKey]) -> i64 {
    a.iter().filter(|x| b.binary_search(x).is_ok()).count() as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::config::Pipeline;

    const DAY: i64 = 86_400_000;

    fn cues(participants: &[&str], locations: &[&str], time: Option<(i64, i64)>) -> CueSet {
        let names = |n: &[&str]| n.iter().map(|s| (*s).to_owned()).collect();
        let mut set =
            CueSet::from(&Cues { participants: names(participants), locations: names(locations), time: None });
        set.time = time.map(Box::new);
        set
    }

    #[test]
    fn edges_are_in_the_order_of_choices() {
        let sessions = [7, 8];
        let positions: Vec<TimelinePosition> = (0..40u32)
            .map(|n| {
                let start_ms = i64::from(n % 5) * 1_000;
                TimelinePosition { session: sessions[n as usize % 2], ordinal: n / 3, start_ms, end_ms: start_ms }
            })
            .collect();
        let weights = [Score(-Score::ONE.0), Score::ZERO, Score(1), Score::ONE];
        for from in &positions {
            let mut expected = Vec::new();
            for (id, to) in (0..).zip(&positions) {
                for channel in [Channel::Structural, Channel::Semantic] {
                    let weight = weights[(id as usize + from.ordinal as usize) % weights.len()];
                    expected.push((channel, EdgeChoice::new(weight, from, to, UnitId(id))));
                }
            }
            let edge = |(channel, choice): &(Channel, EdgeChoice)| Edge::new(*channel, from.ordinal, *choice);
            let mut edges: Vec<Edge> = expected.iter().map(edge).collect();
            edges.sort_unstable();
            expected.sort_unstable();
            assert!(expected.iter().map(edge).eq(edges.iter().copied()));
            for (edge, (channel, choice)) in edges.iter().zip(&expected) {
                assert_eq!((edge.channel(), edge.weight(), edge.to), (*channel, choice.weight(), choice.id));
            }
        }
    }

    fn structural() -> StructuralScorer {
        StructuralScorer::new(&Pipeline::parse("version = 1").unwrap().memory)
    }

    fn check(a: &CueSet, b: &CueSet, expected: Option<f64>) {
        let s = structural();
        let got = s.score(a, b);
        assert_eq!(got, s.score(b, a), "the score is symmetric");
        match (got, expected) {
            (Some(got), Some(expected)) => assert!((got.as_f64() - expected).abs() < 3e-6, "{got:?} {expected}"),
            (got, expected) => assert_eq!(got.map(Score::as_f64), expected),
        }
    }

    #[test]
    fn formula_by_hand() {
        let nothing = cues(&[], &[], None);
        let ann = cues(&["ann"], &[], None);
        check(&nothing, &ann, None);
        check(&ann, &ann, Some(1.0));
        check(&ann, &cues(&["ann", "bo"], &[], None), Some(0.5));
        check(&cues(&["ann"], &["rome"], None), &cues(&["ann"], &["oslo"], None), Some(0.5 / 0.7));
        // One week apart: the time cue is worth e^-1.
        let at = |d: i64| Some((d * DAY, d * DAY));
        check(&cues(&[], &[], at(0)), &cues(&[], &[], at(7)), Some((-1.0f64).exp()));
        check(
            &cues(&["ann"], &[], at(0)),
            &cues(&["ann"], &[], at(3)),
            Some((0.5 + 0.3 * (-3.0f64 / 7.0).exp()) / 0.8),
        );
        check(&cues(&["ann"], &["rome"], at(0)), &cues(&["bo"], &["rome"], at(0)), Some(0.5));
        // Intervals that touch; a place on one side only is not comparable.
        check(&cues(&[], &["rome"], Some((0, 5))), &cues(&[], &[], Some((5, 9))), Some(1.0));
        check(&cues(&[], &[], at(0)), &cues(&[], &[], at(400)), Some(0.0));
    }

    #[test]
    fn decay_follows_the_exponential() {
        let s = structural();
        for hours in [0, 1, 5, 24, 100, 168, 500, 1000, 3000, 3400] {
            let exact = (-(hours as f64) / 168.0).exp();
            let got = s.proximity(hours * 3_600_000) as f64 / f64::from(Score::ONE.0);
            assert!((got - exact).abs() < 3e-6, "{hours} h: {got} {exact}");
        }
        assert_eq!(s.proximity(i64::MAX), 0);
    }

    #[test]
    fn choices_are_ordered_by_decision_11() {
        let place = |session, ordinal, start_ms| TimelinePosition { session, ordinal, start_ms, end_ms: start_ms };
        let from = place(1, 10, 1_000);
        let choice = |score, to: TimelinePosition, id| EdgeChoice::new(Score(score), &from, &to, UnitId(id));
        let order = [
            choice(9, place(2, 0, 9_000), 9),
            choice(8, place(2, 50, 1_000), 8),
            choice(8, place(1, 12, 1_500), 7),
            choice(8, place(1, 7, 500), 6),
            choice(8, place(2, 1, 500), 5),
            choice(8, place(2, 1, 500), 6),
        ];
        for pair in order.windows(2) {
            assert!(pair[0] < pair[1], "{pair:?}");
        }
    }
}
