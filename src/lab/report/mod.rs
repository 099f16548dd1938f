//! An evaluation to pages that a person reads.
//!
//! In: a run, and a calibration where there is one. Out: `report.md` with plots as SVG in
//! one directory, and under `questions/` a page for each question with the way that found
//! or missed each piece of evidence. Every figure is one of the run's; the paper's figures
//! come from one data file and are marked as such. Writes nothing outside the directory, and
//! the same run always gives the same bytes.

mod error;
mod markdown;
mod plots;
mod question;
#[cfg(test)]
mod tests;
mod write;

pub use error::ReportError;
pub(crate) use markdown::{number, percent, table};
pub(crate) use question::line;
pub use write::write;
