//! Reads the questions of a benchmark file of any format.

use std::path::Path;

use super::{
    error::DatasetError,
    evermembench,
    format::BenchmarkFormat,
    json::{each, list},
    locomo, longmemeval,
    question::Dataset,
    realtalk,
};

/// Reads the questions of a file: all of them, or those of the conversations in `only`. `zone_seconds` is the offset
/// for times without one.
///
/// # Errors
/// [`DatasetError`] when the file cannot be read or as a whole is not of its format.
pub(crate) fn read(
    format: BenchmarkFormat,
    path: &Path,
    only: &[String],
    zone_seconds: i32,
) -> Result<Dataset, DatasetError> {
    let mut dataset = match format {
        BenchmarkFormat::Locomo => locomo::read(&list(format.name(), path)?, only),
        BenchmarkFormat::RealTalk => realtalk::read(path, only)?,
        BenchmarkFormat::LongMemEval => {
            let mut dataset = Dataset { scorable: true, ..Dataset::default() };
            each(format.name(), path, |index, item| longmemeval::read(&mut dataset, index, &item, only, zone_seconds))?;
            dataset
        }
        BenchmarkFormat::EverMemBench => evermembench::read(path)?,
    };
    dataset.mark_duplicates();
    Ok(dataset)
}
