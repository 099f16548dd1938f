//! Writes a report: the first page, the plots, the questions' pages, and all of it as JSON.

use std::path::{Path, PathBuf};

use super::{error::EvalReportError, json, markdown, plots, question};
use crate::{
    calibration::Calibration,
    result::{EvalFigures, EvalResult, EvalRun},
};

/// Writes the report of a run into a directory, which is created when it does not exist.
///
/// # Errors
/// [`EvalReportError`] when a file cannot be written or a plot cannot be drawn.
pub fn write(directory: &Path, run: &EvalRun, calibration: Option<&Calibration>) -> Result<(), EvalReportError> {
    let pages = directory.join("questions");
    std::fs::create_dir_all(&pages).map_err(|source| EvalReportError::Write { path: pages.clone(), source })?;
    let put = |path: PathBuf, text: &str| {
        std::fs::write(&path, text).map_err(|source| EvalReportError::Write { path, source })
    };
    let drawn = plots(&run.result, calibration)?;
    for (name, svg) in &drawn {
        put(directory.join(name), svg)?;
    }
    let ids: Vec<&str> = run.questions.iter().map(|question| question.id.as_str()).collect();
    let names = question::file_stems(&ids);
    for (question, name) in run.questions.iter().zip(&names) {
        put(pages.join(format!("{name}.md")), &question::page(question))?;
    }
    put(pages.join("README.md"), &question::index(&run.questions, &names))?;
    json::write(directory, &json::head(&run.result), &ids, run.questions.iter().map(json::question))?;
    let shown: Vec<&str> = drawn.iter().map(|(name, _)| *name).collect();
    put(directory.join("report.md"), &markdown::page(run, &names, &shown, calibration))
}

/// File names and SVG of the plots that have something to draw.
fn plots(
    result: &EvalResult,
    calibration: Option<&Calibration>,
) -> Result<Vec<(&'static str, String)>, EvalReportError> {
    let recall = |f: &EvalFigures| f.evidence_recall;
    let full = |f: &EvalFigures| f.full_evidence;
    let wanted = [
        (markdown::TOKENS, plots::recall_against_tokens(result)),
        (
            markdown::RECALL,
            plots::before_and_after("Evidence recall by category", result, |f| f.first_hop_recall, recall),
        ),
        (
            markdown::FULL,
            plots::before_and_after("Full evidence by category", result, |f| f.first_hop_full_evidence, full),
        ),
        (markdown::SWEEP, calibration.map_or(Ok(None), plots::sweep)),
    ];
    let mut drawn = Vec::new();
    for (name, plot) in wanted {
        match plot {
            Ok(Some(svg)) => drawn.push((name, svg)),
            Ok(None) => {}
            Err(source) => return Err(EvalReportError::Plot { name, source }),
        }
    }
    Ok(drawn)
}
