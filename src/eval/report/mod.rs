//! Turns an evaluation into pages for people to read.
//!
//! In: a run, and a calibration if there is one. Out: `report.md` with plots as SVG in one directory, and under
//! `questions/` a page for each question that shows how each piece of evidence was found or missed; and for the console
//! the same as JSON, `report.json` and a file for each question. Every figure comes from the run; the paper's figures
//! come from one data file and are marked as such. Never writes outside the directory; the same run always gives the
//! same bytes.

mod error;
mod eval_report;
mod json;
mod markdown;
mod plots;
mod question;
#[cfg(test)]
mod tests;
mod write;

pub use error::EvalReportError;
pub use eval_report::{
    CategoryFigures, EvalReport, ExpectedTurn, FoundCriterion, QuestionLine, QuestionReport, REPORT_SCHEMA_VERSION,
    ReportMean, Retriever, RetrieverKind, StageFigures,
};
pub(crate) use json::{ReportHead, turn_text, write as write_json};
pub(crate) use markdown::{number, percent, table};
pub(crate) use question::line;
pub use write::write;
