//! Times and their percentiles.

use std::time::Instant;

/// Seconds that `work` takes.
pub(crate) fn seconds(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_secs_f64()
}

/// The percentile at `hundredths`; NaN without values.
pub(crate) fn percentile(values: &[f64], hundredths: usize) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() * hundredths / 100).copied().unwrap_or(f64::NAN)
}

/// The median.
pub(crate) fn median(values: &[f64]) -> f64 {
    percentile(values, 50)
}
