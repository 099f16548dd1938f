//! A model's thresholds from unlabelled dialogue: how dense is the graph, what is chance?
//!
//! In: the vectors of units, bank by bank, and a target. Out: the semantic threshold at
//! which a unit has the target's mean number of semantic choices, and the scale on which a
//! unit answers a question, with a sweep that shows what other thresholds would give. A unit's
//! choices are its best units of the same bank, at most `choices`, at or above the
//! threshold (decision 11); cosines are the fixed-point ones that the memory compares.
//! The questions are the dialogue's own, embedded as a question to the memory is. The floor
//! is the [`CHANCE`] percentile of matches of one with a random unit of its bank: a unit that
//! matches no better says nothing of it. The ceiling is the same percentile of what the best
//! unit of other turns matches: one that matches better says what is asked, not what merely
//! comes nearest. No question and no answer of a benchmark is looked at, no file, no clock;
//! the same vectors in any order give the same figures.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use serde::{Deserialize, Serialize};

use super::score::percentile;
use crate::{
    memory::{FixedVector, dot_reference, quantise},
    model::{Bank, Score, Unit},
};

/// The share of random pairs of a question and a unit that lie at or below the floor.
pub const CHANCE: f64 = 0.95;
/// Pairs of a question and a unit that are drawn, about; all where there are no more.
const PAIRS: usize = 200_000;
/// Steps of the thresholds that are tried.
const STEP: f64 = 0.001;
/// Steps of the sweep that is shown, in steps of the thresholds.
const SHOWN: i32 = 20;

/// The vectors of one unit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sample {
    /// What edges compare.
    pub vector: FixedVector,
    /// Those of its parts: a match takes the best of all.
    pub parts: Vec<FixedVector>,
    /// The turns that it was made from.
    pub turns: BTreeSet<String>,
    /// Questions of its turns, as text with a vector of a question.
    pub questions: Vec<FixedVector>,
}

impl Sample {
    /// A unit, with the vectors of what its turns ask.
    #[must_use]
    pub fn of(unit: &Unit, questions: Vec<FixedVector>) -> Self {
        let parts = unit.parts.iter().flat_map(|p| p.vectors.iter().chain(&p.pair));
        Self {
            vector: quantise(&unit.vector.0),
            parts: parts.map(|v| quantise(&v.0)).collect(),
            turns: unit.sources.iter().cloned().collect(),
            questions,
        }
    }

    fn matches(&self, question: &FixedVector) -> i32 {
        let all = std::iter::once(&self.vector).chain(&self.parts);
        all.map(|v| dot_reference(question, v)).max().unwrap_or_default()
    }
}

/// What one threshold gives.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SweepRow {
    /// The threshold.
    pub threshold: f64,
    /// Mean semantic choices a unit.
    pub choices: f64,
    /// Share of the units without a semantic choice.
    pub without: f64,
}

/// A model's calibrated figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The model's name in the configuration.
    pub model: String,
    /// Banks that were looked at.
    pub banks: usize,
    /// Units in them.
    pub units: usize,
    /// Semantic choices a unit, at most.
    pub most_choices: usize,
    /// The mean that was asked for.
    pub target_choices: f64,
    /// The threshold that comes nearest to it, in thousandths; of equals the highest.
    pub semantic_threshold: f64,
    /// The mean that it gives.
    pub choices: f64,
    /// Where a unit says nothing of a question, in thousandths.
    pub question_floor: f64,
    /// Where it says what is asked, in thousandths.
    pub question_ceiling: f64,
    /// The share of random pairs at or below the floor.
    pub chance: f64,
    /// Questions that were looked at.
    pub questions: usize,
    /// Thresholds from where nearly every unit is full to where nearly none has a choice.
    pub sweep: Vec<SweepRow>,
}

/// Why thresholds cannot be set.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// No bank has two units.
    #[error("calibrate: {units} units and no two of them in one bank; give it a longer dialogue")]
    NoPairs {
        /// Units that there are.
        units: usize,
    },
    /// Nobody asks anything.
    #[error("calibrate: no question in {units} units; give it a dialogue in which people ask each other")]
    NoQuestions {
        /// Units that there are.
        units: usize,
    },
    /// The target cannot be met.
    #[error(
        "calibrate: a unit has at most {most:.2} choices in this dialogue, fewer than the target of {target}; give it \
         more dialogue, or lower memory.target_semantic_choices"
    )]
    OutOfReach {
        /// Mean choices without a threshold.
        most: f64,
        /// The target.
        target: f64,
    },
}

/// Sets a model's thresholds: at most `most_choices` a unit, `target` of them on average.
///
/// # Errors
/// [`CalibrateError`] when there are too few units.
pub fn calibrate(
    model: &str,
    banks: &BTreeMap<Bank, Vec<Sample>>,
    most_choices: usize,
    target: f64,
) -> Result<Calibration, CalibrateError> {
    let units = banks.values().map(Vec::len).sum();
    let mut best: Vec<Vec<i32>> = Vec::with_capacity(units);
    for samples in banks.values() {
        best.extend(nearest(samples, most_choices));
    }
    let density = Density::of(&best);
    if banks.values().all(|samples| samples.len() < 2) {
        return Err(CalibrateError::NoPairs { units });
    }
    let (floor, ceiling, questions) = question_scale(banks).ok_or(CalibrateError::NoQuestions { units })?;
    let most = density.mean(-1.0);
    if most + 0.5 / units as f64 <= target {
        return Err(CalibrateError::OutOfReach { most, target });
    }
    let mut threshold = 1.0;
    for step in (-1_000..=1_000).rev() {
        let tried = f64::from(step) * STEP;
        if (density.mean(tried) - target).abs() < (density.mean(threshold) - target).abs() {
            threshold = tried;
        }
    }
    Ok(Calibration {
        model: model.to_owned(),
        banks: banks.len(),
        units,
        most_choices,
        target_choices: target,
        semantic_threshold: thousandths(threshold),
        choices: density.mean(threshold),
        question_floor: thousandths(floor),
        question_ceiling: thousandths(ceiling),
        chance: CHANCE,
        questions,
        sweep: density.sweep(most_choices),
    })
}

fn thousandths(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

/// For each unit the cosines of its nearest, at most `most`, in any order.
fn nearest(samples: &[Sample], most: usize) -> Vec<Vec<i32>> {
    let mut best: Vec<Vec<i32>> = vec![Vec::with_capacity(most + 1); samples.len()];
    for (i, a) in samples.iter().enumerate() {
        for (j, b) in samples.iter().enumerate().skip(i + 1) {
            let score = dot_reference(&a.vector, &b.vector);
            keep(&mut best[i], score, most);
            keep(&mut best[j], score, most);
        }
    }
    best
}

/// Keeps the highest scores, highest first.
fn keep(best: &mut Vec<i32>, score: i32, most: usize) {
    if best.len() < most || best.last().is_some_and(|least| score > *least) {
        best.insert(best.partition_point(|s| *s >= score), score);
        best.truncate(most);
    }
}

/// How many choices there are at a threshold.
struct Density {
    units: f64,
    /// Every unit's nearest, ascending.
    all: Vec<i32>,
    /// Every unit's very nearest, ascending.
    first: Vec<i32>,
}

impl Density {
    fn of(best: &[Vec<i32>]) -> Self {
        let mut all: Vec<i32> = best.iter().flatten().copied().collect();
        let mut first: Vec<i32> = best.iter().filter_map(|b| b.first().copied()).collect();
        all.sort_unstable();
        first.sort_unstable();
        Self { units: best.len() as f64, all, first }
    }

    fn mean(&self, threshold: f64) -> f64 {
        at_or_above(&self.all, threshold) / self.units
    }

    fn without(&self, threshold: f64) -> f64 {
        1.0 - at_or_above(&self.first, threshold) / self.units
    }

    fn sweep(&self, most: usize) -> Vec<SweepRow> {
        let shown = |step: i32| f64::from(step * SHOWN) * STEP;
        let steps =
            (-1.0 / (f64::from(SHOWN) * STEP)).round() as i32..=(1.0 / (f64::from(SHOWN) * STEP)).round() as i32;
        let full = 0.98 * self.mean(-1.0).min(most as f64);
        let low = steps.clone().rev().find(|s| self.mean(shown(*s)) >= full).unwrap_or(*steps.start());
        let high = steps.clone().find(|s| self.mean(shown(*s)) <= 0.05).unwrap_or(*steps.end());
        (low..=high.max(low))
            .map(|step| {
                let threshold = shown(step);
                SweepRow {
                    threshold: thousandths(threshold),
                    choices: self.mean(threshold),
                    without: self.without(threshold),
                }
            })
            .collect()
    }
}

fn at_or_above(ascending: &[i32], threshold: f64) -> f64 {
    let least = Score::from_f64(threshold).0;
    (ascending.len() - ascending.partition_point(|s| *s < least)) as f64
}

/// Where the scale of a question begins and ends, and how many questions there were.
fn question_scale(banks: &BTreeMap<Bank, Vec<Sample>>) -> Option<(f64, f64, usize)> {
    let (mut chance, mut best) = (Vec::new(), Vec::new());
    let asked: usize = banks.values().flatten().map(|sample| sample.questions.len()).sum();
    let draws = PAIRS.div_ceil(asked.max(1));
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for samples in banks.values() {
        // Sorted, so that the draw does not depend on the order in which units were read.
        let mut sorted: Vec<&Sample> = samples.iter().collect();
        sorted.sort_unstable();
        for asking in &sorted {
            let others: Vec<&&Sample> = sorted.iter().filter(|s| s.turns.is_disjoint(&asking.turns)).collect();
            for question in asking.questions.iter().filter(|_| !others.is_empty()) {
                let matches: Vec<i32> = others.iter().map(|other| other.matches(question)).collect();
                best.extend(matches.iter().max());
                if matches.len() <= draws {
                    chance.extend(matches);
                } else {
                    chance.extend((0..draws).map(|_| matches[draw(&mut random) as usize % matches.len()]));
                }
            }
        }
    }
    let at = |scores: &[i32]| percentile(&scores.iter().map(|s| Score(*s).as_f64()).collect::<Vec<_>>(), CHANCE);
    (!best.is_empty()).then(|| (at(&chance), at(&best), best.len()))
}

/// The next number of a fixed sequence (splitmix64).
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Calibration {
    /// The lines to paste into a pipeline file; with `new`, those of an entry that is not there yet.
    #[must_use]
    pub fn toml(&self, new: bool) -> String {
        let plain = self.model.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        let name = if plain && !self.model.is_empty() {
            self.model.clone()
        } else {
            toml::Value::String(self.model.clone()).to_string()
        };
        let runner = if new { "runner = \"catalogue\"\n" } else { "" };
        format!(
            "[embed.models.{name}]\n{runner}semantic_threshold = {:.3}\nquestion_floor = {:.3}\n\
             question_ceiling = {:.3}\n",
            self.semantic_threshold, self.question_floor, self.question_ceiling
        )
    }

    /// The sweep as a table, the chosen threshold in its place.
    #[must_use]
    pub fn table(&self) -> String {
        let mut out = "threshold  choices a unit  units without\n".to_owned();
        let mut chosen = Some(self.semantic_threshold);
        let mut line = |threshold: f64, choices: f64, rest: &str| {
            // Writing into a string cannot fail.
            let _ = writeln!(out, "{threshold:>9.3}  {choices:>14.2}  {rest}");
        };
        for row in &self.sweep {
            if let Some(threshold) = chosen.filter(|t| *t < row.threshold) {
                line(threshold, self.choices, "            ◄ chosen");
                chosen = None;
            }
            let same = chosen == Some(row.threshold);
            let mark = if same { " ◄ chosen" } else { "" };
            line(row.threshold, row.choices, &format!("{:>11.1} %{mark}", row.without * 100.0));
            if same {
                chosen = None;
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A unit in the plane at an angle in degrees, which asks for just that: cosines are those
    /// of differences.
    fn at(turn: usize, degrees: f32) -> Sample {
        let (sin, cos) = degrees.to_radians().sin_cos();
        let vector = quantise(&[cos, sin]);
        let turns = BTreeSet::from([turn.to_string()]);
        Sample { vector: vector.clone(), parts: Vec::new(), turns, questions: vec![vector] }
    }

    fn banks(all: &[&[f32]]) -> BTreeMap<Bank, Vec<Sample>> {
        (b'a'..)
            .zip(all)
            .map(|(name, angles)| {
                (
                    Bank::parse(&char::from(name).to_string()).unwrap(),
                    angles.iter().enumerate().map(|(turn, d)| at(turn, *d)).collect(),
                )
            })
            .collect()
    }

    /// By hand: five units at 0, 10, 30, 60 and 100 degrees, two choices each. Differences:
    /// 10 20 30 40 30 50 70 60 90 100; the two nearest of each: 0: 10 30, 10: 10 20,
    /// 30: 20 30, 60: 30 40, 100: 40 70. In order: 10 10 20 20 30 30 30 40 40 70.
    #[test]
    fn the_threshold_gives_the_target_on_a_set_counted_by_hand() {
        let banks = banks(&[&[0.0, 10.0, 30.0, 60.0, 100.0]]);
        // 4 of 10 choices, 0.8 a unit: between cos 20 = 0.9397 and cos 30 = 0.8660.
        let c = calibrate("m", &banks, 2, 0.8).unwrap();
        assert!((c.choices - 0.8).abs() < 1e-9, "{c:?}");
        assert_eq!(c.semantic_threshold, 0.939, "the highest of those that meet it");
        // 7 of 10: between cos 30 and cos 40 = 0.7660.
        let c = calibrate("m", &banks, 2, 1.4).unwrap();
        assert_eq!((c.choices, c.semantic_threshold), (1.4, 0.865));
        assert_eq!((c.banks, c.units, c.questions), (1, 5, 5));
        // 20 ordered pairs: the 19th lowest is the one of two pairs at 10 degrees, as is the
        // highest of the five best.
        assert_eq!((c.question_floor, c.question_ceiling), (0.985, 0.985));
        let row = |threshold: f64| *c.sweep.iter().find(|r| (r.threshold - threshold).abs() < 1e-9).unwrap();
        assert_eq!((row(0.94).choices, row(0.92).choices, row(0.80).choices), (0.4, 0.8, 1.4));
        // At 0.94 only the units at 0 and 10 degrees have a choice.
        assert!((row(0.94).without - 0.6).abs() < 1e-9);
        assert!(c.sweep.first().is_some_and(|r| r.choices >= 1.96) && c.sweep.last().is_some_and(|r| r.choices == 0.0));
    }

    #[test]
    fn banks_never_choose_from_each_other() {
        // The pair of the second bank would be nearest to the first bank's units.
        let c = calibrate("m", &banks(&[&[0.0, 40.0], &[1.0, 41.0], &[5.0]]), 6, 0.8).unwrap();
        assert_eq!((c.banks, c.units, c.questions), (3, 5, 4));
        assert!((c.semantic_threshold - 0.766).abs() < 0.0011, "cos 40 and nothing nearer: {c:?}");
        assert_eq!(c.question_floor, 0.766);
    }

    #[test]
    fn a_match_takes_the_best_part() {
        let mut banks = banks(&[&[0.0, 90.0]]);
        let samples = banks.values_mut().next().unwrap();
        samples[1].parts.push(quantise(&[1.0, 0.0]));
        let c = calibrate("m", &banks, 6, 0.5).unwrap();
        assert_eq!(c.question_floor, 1.0);
    }

    /// A question's own turn answers nothing, also where another unit quotes it.
    #[test]
    fn a_question_is_matched_with_units_of_other_turns() {
        let mut banks = banks(&[&[0.0, 0.0, 60.0]]);
        let samples = banks.values_mut().next().unwrap();
        samples[1].turns.insert("0".to_owned());
        samples[1].questions.clear();
        samples[2].questions.clear();
        let c = calibrate("m", &banks, 6, 0.5).unwrap();
        assert_eq!((c.question_floor, c.question_ceiling, c.questions), (0.5, 0.5, 1));
    }

    #[test]
    fn the_order_of_units_changes_nothing_and_many_pairs_are_drawn() {
        let angles: Vec<f32> = (0..700).map(|i| (i * i % 1_009) as f32 / 7.0).collect();
        let backwards: Vec<f32> = angles.iter().rev().copied().collect();
        let c = calibrate("m", &banks(&[&angles]), 6, 3.0).unwrap();
        assert_eq!(c, calibrate("m", &banks(&[&backwards]), 6, 3.0).unwrap());
        assert_eq!(c.questions, 700);
    }

    #[test]
    fn too_little_dialogue_is_said() {
        let message = |angles: &[&[f32]], target| calibrate("m", &banks(angles), 6, target).unwrap_err().to_string();
        assert!(message(&[&[0.0], &[1.0]], 3.0).contains("2 units and no two of them in one bank"));
        assert!(message(&[&[0.0, 1.0, 2.0]], 3.0).contains("at most 2.00 choices"));
        assert!(message(&[], 3.0).contains("0 units"));
        let mut silent = banks(&[&[0.0, 1.0]]);
        silent.values_mut().flatten().for_each(|sample| sample.questions.clear());
        let error = calibrate("m", &silent, 6, 0.5).unwrap_err().to_string();
        assert!(error.contains("no question in 2 units"), "{error}");
    }

    #[test]
    fn the_lines_can_be_pasted() {
        let mut c = calibrate("all-MiniLM-L6-v2", &banks(&[&[0.0, 10.0, 30.0, 60.0]]), 2, 1.0).unwrap();
        let text = format!("version = 1\nembed.model = \"all-MiniLM-L6-v2\"\n{}", c.toml(false));
        let model = crate::config::Pipeline::parse(&text).unwrap().model();
        assert_eq!((model.semantic_threshold, model.question_floor), (c.semantic_threshold, c.question_floor));
        assert_eq!(model.question_ceiling, c.question_ceiling);
        c.model = "BAAI/bge-small".to_owned();
        let text = format!("version = 1\nembed.model = \"BAAI/bge-small\"\n{}", c.toml(true));
        let model = crate::config::Pipeline::parse(&text).unwrap().model();
        assert_eq!(model.semantic_threshold, c.semantic_threshold);
        assert_eq!(c.table().matches("chosen").count(), 1, "{}", c.table());
    }
}
