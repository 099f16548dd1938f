//! Sets a model's thresholds from unlabelled dialogue (decision 24).
//!
//! In: the vectors of units, bank by bank, and a target. Out: the semantic threshold at which a unit has the target's
//! mean number of semantic choices, the scale on which a unit matches a question, and a sweep of other thresholds; of
//! vectors as the model returns them, the factor with which bytes store them best.
//! Never looks at a benchmark's questions or answers, a file or a clock; the same vectors in any order give the same
//! figures.
//!
//! A unit's choices are the best units of its bank, at most `choices`, at or above the threshold (decision 11). Cosines
//! are fixed-point, as in the memory. The questions are those that the dialogue itself asks, embedded like questions to
//! the memory. The floor of the scale is the [`CHANCE`] percentile of the cosines of a question with a random unit of
//! its bank: a unit at or below it says nothing about the question. The ceiling is the same percentile of each
//! question's best cosine with a unit of other turns: a unit above it says what is asked, and is not just the nearest
//! one.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use serde::{Deserialize, Serialize};

use super::error::CalibrationError;
use crate::score::percentile;
use memory::index::{FixedVector, dot_reference, quantise};
use types::{
    config::CosineScale,
    model::{Bank, Score, Unit, Vector},
};

/// The share of random pairs of a question and a unit that are at or below the floor.
pub const CHANCE: f64 = 0.95;
/// About this many pairs of a question and a unit are drawn; all pairs if there are fewer.
const PAIRS: usize = 200_000;
/// Step between the thresholds that are tried.
const STEP: f64 = 0.001;
/// Step between the thresholds of the sweep, in [`STEP`]s.
const SHOWN: i32 = 20;

/// The vectors of one unit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CalibrationSample {
    /// The unit's vector, which semantic edges compare.
    pub vector: FixedVector,
    /// The vectors of its parts: a question is matched with the best of all.
    pub parts: Vec<FixedVector>,
    /// The turns that it was extracted from.
    pub turns: BTreeSet<String>,
    /// The vectors of the questions in its turns.
    pub questions: Vec<FixedVector>,
}

impl CalibrationSample {
    /// A unit, with the vectors of the questions in its turns.
    #[must_use]
    pub fn of(unit: &Unit, questions: Vec<FixedVector>) -> Self {
        let parts = unit.parts.iter().flat_map(|p| p.vectors.iter().chain(&p.pair));
        Self {
            vector: quantise(&unit.vector.floats()),
            parts: parts.map(|v| quantise(&v.floats())).collect(),
            turns: unit.sources.iter().cloned().collect(),
            questions,
        }
    }

    fn matches(&self, question: &FixedVector) -> i32 {
        let all = std::iter::once(&self.vector).chain(&self.parts);
        all.map(|v| dot_reference(question, v)).max().unwrap_or_default()
    }
}

/// The results for one threshold of the sweep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SweepRow {
    /// The threshold.
    pub threshold: f64,
    /// Mean number of semantic choices of a unit.
    pub choices: f64,
    /// Share of the units without a semantic choice.
    pub without: f64,
}

/// A model's calibrated thresholds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The model's name in the configuration.
    pub model: String,
    /// The number of banks.
    pub banks: usize,
    /// The number of units in them.
    pub units: usize,
    /// The maximum number of semantic choices of a unit.
    pub most_choices: usize,
    /// The target for the mean number of choices.
    pub target_choices: f64,
    /// The threshold whose mean comes nearest to the target, rounded to thousandths; of equal ones, the highest.
    pub semantic_threshold: f64,
    /// The mean number of choices at the threshold.
    pub choices: f64,
    /// The cosine at or below which a unit says nothing about a question, rounded to thousandths.
    pub question_floor: f64,
    /// The cosine above which a unit says what is asked, rounded to thousandths.
    pub question_ceiling: f64,
    /// The factor, in hundredths and at most 1, with which bytes store the model's vectors best.
    #[serde(default = "unchanged")]
    pub byte_factor: f64,
    /// The share of random pairs at or below the floor.
    pub chance: f64,
    /// The number of questions.
    pub questions: usize,
    /// Thresholds, from one at which nearly every unit has all its choices to one at which almost no unit has any.
    pub sweep: Vec<SweepRow>,
}

fn unchanged() -> f64 {
    1.0
}

/// Sets a model's thresholds: at most `most_choices` choices per unit, and `target` on average. `whole` are vectors as
/// the model returns them.
///
/// # Errors
/// [`CalibrationError`] when there are too few units or questions, or no threshold reaches the target.
pub fn calibrate(
    model: &str,
    banks: &BTreeMap<Bank, Vec<CalibrationSample>>,
    most_choices: usize,
    target: f64,
    whole: &[Vector],
) -> Result<Calibration, CalibrationError> {
    let units = banks.values().map(Vec::len).sum();
    let mut best: Vec<Vec<i32>> = Vec::with_capacity(units);
    for samples in banks.values() {
        best.extend(nearest(samples, most_choices));
    }
    let density = ChoiceDensity::of(&best);
    if banks.values().all(|samples| samples.len() < 2) {
        return Err(CalibrationError::NoPairs { units });
    }
    let (floor, ceiling, questions) = question_scale(banks).ok_or(CalibrationError::NoQuestions { units })?;
    let most = density.mean(-1.0);
    if most + 0.5 / units as f64 <= target {
        return Err(CalibrationError::OutOfReach { most, target });
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
        byte_factor: byte_factor(whole),
        chance: CHANCE,
        questions,
        sweep: density.sweep(most_choices),
    })
}

/// The factor, in hundredths and at most 1, at which bytes turn vectors by the least angle: a larger one cuts off great
/// components, a smaller one rounds small components more. The measure is the mean of one minus the cosine of a vector
/// and its bytes. 1 without vectors.
#[must_use]
pub(super) fn byte_factor(vectors: &[Vector]) -> f64 {
    let turned = |factor: f64| {
        let of = |vector: &Vector| 1.0 - cosine(&vector.floats(), &vector.in_steps_times(factor).floats());
        let mut all: Vec<f64> = vectors.iter().map(of).collect();
        // So that the sum does not depend on the order of the vectors.
        all.sort_unstable_by(f64::total_cmp);
        all.iter().sum::<f64>()
    };
    let mut best = (1.0, turned(1.0));
    for factor in (1..100).rev().map(|hundredths| f64::from(hundredths) / 100.0) {
        let turn = turned(factor);
        if turn < best.1 {
            best = (factor, turn);
        }
    }
    best.0
}

/// The cosine of two vectors; 0 if one of them is zero, as bytes are whose components were all rounded down.
fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
    let lengths = (product(a, a) * product(b, b)).sqrt();
    if lengths > 0.0 { product(a, b) / lengths } else { 0.0 }
}

fn thousandths(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

/// For each unit, the cosines of its nearest units, at most `most`, highest first.
fn nearest(samples: &[CalibrationSample], most: usize) -> Vec<Vec<i32>> {
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

/// Inserts a score; keeps the highest `most`, highest first.
fn keep(best: &mut Vec<i32>, score: i32, most: usize) {
    if best.len() < most || best.last().is_some_and(|least| score > *least) {
        best.insert(best.partition_point(|s| *s >= score), score);
        best.truncate(most);
    }
}

/// The number of choices at any threshold.
struct ChoiceDensity {
    units: f64,
    /// The cosines of every unit's choices, ascending.
    all: Vec<i32>,
    /// The cosine of every unit's best choice, ascending.
    first: Vec<i32>,
}

impl ChoiceDensity {
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

/// The floor and ceiling of the scale, and the number of questions.
fn question_scale(banks: &BTreeMap<Bank, Vec<CalibrationSample>>) -> Option<(f64, f64, usize)> {
    let (mut chance, mut best) = (Vec::new(), Vec::new());
    let asked: usize = banks.values().flatten().map(|sample| sample.questions.len()).sum();
    let draws = PAIRS.div_ceil(asked.max(1));
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for samples in banks.values() {
        // Sorted, so that the draw does not depend on the order of reading.
        let mut sorted: Vec<&CalibrationSample> = samples.iter().collect();
        sorted.sort_unstable();
        for asking in &sorted {
            let others: Vec<&&CalibrationSample> =
                sorted.iter().filter(|s| s.turns.is_disjoint(&asking.turns)).collect();
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
pub(crate) fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Calibration {
    /// The lines to paste into a pipeline file; with `new`, a whole entry that the file does not have yet.
    #[must_use]
    pub fn toml(&self, new: bool) -> String {
        let plain = self.model.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        let name = if plain && !self.model.is_empty() {
            self.model.clone()
        } else {
            toml::Value::String(self.model.clone()).to_string()
        };
        let scale = CosineScale::between(self.question_floor, self.question_ceiling);
        let runner = if new { "runner = \"catalogue\"\n" } else { "" };
        format!(
            "[embed.models.{name}]\n{runner}semantic_threshold = {:.3}\nquestion_floor = {:.3}\n\
             question_ceiling = {:.3}\ncosine_factor = {:.3}\ncosine_offset = {:.3}\nbyte_factor = {:.2}\n",
            self.semantic_threshold,
            self.question_floor,
            self.question_ceiling,
            scale.factor,
            scale.offset,
            self.byte_factor
        )
    }

    /// The sweep as a table, with the chosen threshold.
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

    /// A unit in the plane at an angle in degrees, whose question has the same vector. The cosine of two units is that
    /// of the difference of their angles.
    fn at(turn: usize, degrees: f32) -> CalibrationSample {
        let (sin, cos) = degrees.to_radians().sin_cos();
        let vector = quantise(&[cos, sin]);
        let turns = BTreeSet::from([turn.to_string()]);
        CalibrationSample { vector: vector.clone(), parts: Vec::new(), turns, questions: vec![vector] }
    }

    fn banks(all: &[&[f32]]) -> BTreeMap<Bank, Vec<CalibrationSample>> {
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
        // 4 of 10 choices, 0.8 per unit: between cos 20 = 0.9397 and cos 30 = 0.8660.
        let c = calibrate("m", &banks, 2, 0.8, &[]).unwrap();
        assert!((c.choices - 0.8).abs() < 1e-9, "{c:?}");
        assert_eq!(c.semantic_threshold, 0.939, "the highest of those that meet it");
        // 7 of 10: between cos 30 and cos 40 = 0.7660.
        let c = calibrate("m", &banks, 2, 1.4, &[]).unwrap();
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
        let c = calibrate("m", &banks(&[&[0.0, 40.0], &[1.0, 41.0], &[5.0]]), 6, 0.8, &[]).unwrap();
        assert_eq!((c.banks, c.units, c.questions), (3, 5, 4));
        assert!((c.semantic_threshold - 0.766).abs() < 0.0011, "cos 40 and nothing nearer: {c:?}");
        assert_eq!(c.question_floor, 0.766);
    }

    #[test]
    fn a_match_takes_the_best_part() {
        let mut banks = banks(&[&[0.0, 90.0]]);
        let samples = banks.values_mut().next().unwrap();
        samples[1].parts.push(quantise(&[1.0, 0.0]));
        let c = calibrate("m", &banks, 6, 0.5, &[]).unwrap();
        assert_eq!(c.question_floor, 1.0);
    }

    /// A question is not matched with its own turn, nor with another unit made from that turn.
    #[test]
    fn a_question_is_matched_with_units_of_other_turns() {
        let mut banks = banks(&[&[0.0, 0.0, 60.0]]);
        let samples = banks.values_mut().next().unwrap();
        samples[1].turns.insert("0".to_owned());
        samples[1].questions.clear();
        samples[2].questions.clear();
        let c = calibrate("m", &banks, 6, 0.5, &[]).unwrap();
        assert_eq!((c.question_floor, c.question_ceiling, c.questions), (0.5, 0.5, 1));
    }

    /// 127 steps of 1/400 hold no component of 0.8; times 0.4 it is 128 steps.
    #[test]
    fn bytes_hold_the_greatest_component() {
        let mut random = 7;
        let mut vectors = |greatest: f32| -> Vec<Vector> {
            (0..200)
                .map(|_| {
                    let rest: Vec<f32> = (1..384).map(|_| (draw(&mut random) % 2_001) as f32 - 1_000.0).collect();
                    let length = rest.iter().map(|x| x * x).sum::<f32>().sqrt() / (1.0 - greatest * greatest).sqrt();
                    std::iter::once(greatest).chain(rest.iter().map(|x| x / length)).collect()
                })
                .collect()
        };
        let found = [byte_factor(&vectors(0.05)), byte_factor(&vectors(0.8)), byte_factor(&[])];
        assert!(found[0] == 1.0 && (0.36..=0.42).contains(&found[1]) && found[2] == 1.0, "{found:?}");
    }

    #[test]
    fn the_order_of_units_does_not_matter() {
        let angles: Vec<f32> = (0..700).map(|i| (i * i % 1_009) as f32 / 7.0).collect();
        let backwards: Vec<f32> = angles.iter().rev().copied().collect();
        let c = calibrate("m", &banks(&[&angles]), 6, 3.0, &[]).unwrap();
        assert_eq!(c, calibrate("m", &banks(&[&backwards]), 6, 3.0, &[]).unwrap());
        assert_eq!(c.questions, 700);
    }

    #[test]
    fn too_little_dialogue_is_an_error() {
        let message =
            |angles: &[&[f32]], target| calibrate("m", &banks(angles), 6, target, &[]).unwrap_err().to_string();
        assert!(message(&[&[0.0], &[1.0]], 3.0).contains("2 units and no two of them in one bank"));
        assert!(message(&[&[0.0, 1.0, 2.0]], 3.0).contains("at most 2.00 choices"));
        assert!(message(&[], 3.0).contains("0 units"));
        let mut silent = banks(&[&[0.0, 1.0]]);
        silent.values_mut().flatten().for_each(|sample| sample.questions.clear());
        let error = calibrate("m", &silent, 6, 0.5, &[]).unwrap_err().to_string();
        assert!(error.contains("no question in 2 units"), "{error}");
    }

    #[test]
    fn the_printed_lines_can_be_pasted_into_a_pipeline() {
        let mut c = calibrate("all-MiniLM-L6-v2", &banks(&[&[0.0, 10.0, 30.0, 60.0]]), 2, 1.0, &[]).unwrap();
        let text = format!("version = 1\nembed.model = \"all-MiniLM-L6-v2\"\n{}", c.toml(false));
        let model = types::config::Pipeline::parse(&text).unwrap().model();
        assert_eq!((model.semantic_threshold, model.question_floor), (c.semantic_threshold, c.question_floor));
        assert_eq!((model.question_ceiling, model.byte_factor), (c.question_ceiling, c.byte_factor));
        c.model = "BAAI/bge-small".to_owned();
        let text = format!("version = 1\nembed.model = \"BAAI/bge-small\"\n{}", c.toml(true));
        let model = types::config::Pipeline::parse(&text).unwrap().model();
        assert_eq!(model.semantic_threshold, c.semantic_threshold);
        assert_eq!(c.table().matches("chosen").count(), 1, "{}", c.table());
    }
}
