//! A mean over questions, and how much it may owe to chance.
//!
//! In: one value per question. Out: the mean, and the middle 95 % of the means of resamples drawn with replacement (the
//! percentile bootstrap, Efron 1979), always the same for the same values.

use super::{result::MeanInterval, score::percentile};

/// The number of resamples.
const RESAMPLES: usize = 2_000;
/// The seed of the resamples.
const SEED: u64 = 20_260;

/// The mean with its interval; `None` without values.
pub(crate) fn interval(values: &[f64]) -> Option<MeanInterval> {
    let mean = |sum: f64| sum / values.len() as f64;
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut draw = || values.get(random.usize(..values.len())).copied().unwrap_or_default();
    if values.is_empty() {
        return None;
    }
    let means: Vec<f64> = (0..RESAMPLES).map(|_| mean((0..values.len()).map(|_| draw()).sum())).collect();
    Some(MeanInterval {
        mean: mean(values.iter().sum()),
        low: percentile(&means, 0.025),
        high: percentile(&means, 0.975),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_the_mean_and_narrows_with_more_questions() {
        assert_eq!(interval(&[]), None);
        assert_eq!(interval(&[0.5; 9]), Some(MeanInterval { mean: 0.5, low: 0.5, high: 0.5 }));
        let half = |n: usize| interval(&(0..n).map(|i| (i % 2) as f64).collect::<Vec<_>>()).expect("values");
        let (few, many) = (half(10), half(1_000));
        assert_eq!((few.mean, many.mean), (0.5, 0.5));
        assert!(few.low < few.mean && few.mean < few.high);
        // Half of a thousand: 1.96 · √(0.25 / 1000) = 0.031 to each side.
        assert!((many.high - 0.531).abs() < 0.004 && (many.low - 0.469).abs() < 0.004, "{many:?}");
        assert!(few.high - few.low > 5.0 * (many.high - many.low));
        assert_eq!(half(10), few, "the same values give the same interval");
    }
}
