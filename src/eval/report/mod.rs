//! An evaluation to pages that a person reads.
//!
//! In: a run, and a calibration where there is one. Out: `report.md` with plots as SVG in
//! one directory, and under `questions/` a page for each question with the way that found
//! or missed each piece of evidence. Every figure is one of the run's; the paper's come
//! from one data file and are marked as such. Writes nothing outside the directory, and
//! the same run always gives the same bytes.

use std::path::{Path, PathBuf};

use super::{
    calibrate::Calibration,
    result::{EvalResult, Figures, Run},
};

mod markdown;
mod plots;
mod question;

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The directory or a file in it.
    #[error("{path}: cannot be written; name another directory, or make room")]
    Write {
        /// What was to be written.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A plot.
    #[error("plot {name}: cannot be drawn; this is a defect, please report it")]
    Plot {
        /// Its file.
        name: &'static str,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Writes the report of a run into a directory, which is made where it is missing.
///
/// # Errors
/// [`ReportError`] that names the file.
pub fn write(directory: &Path, run: &Run, calibration: Option<&Calibration>) -> Result<(), ReportError> {
    let pages = directory.join("questions");
    std::fs::create_dir_all(&pages).map_err(|source| ReportError::Write { path: pages.clone(), source })?;
    let put =
        |path: PathBuf, text: &str| std::fs::write(&path, text).map_err(|source| ReportError::Write { path, source });
    let drawn = plots(&run.result, calibration)?;
    for (name, svg) in &drawn {
        put(directory.join(name), svg)?;
    }
    let names = question::file_names(&run.questions);
    for (question, name) in run.questions.iter().zip(&names) {
        put(pages.join(name), &question::page(question))?;
    }
    put(pages.join("README.md"), &question::index(&run.questions, &names))?;
    let shown: Vec<&str> = drawn.iter().map(|(name, _)| *name).collect();
    put(directory.join("report.md"), &markdown::page(run, &names, &shown, calibration))
}

/// File names and SVG of what there is to draw.
fn plots(result: &EvalResult, calibration: Option<&Calibration>) -> Result<Vec<(&'static str, String)>, ReportError> {
    let recall = |f: &Figures| f.evidence_recall;
    let full = |f: &Figures| f.full_evidence;
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
            Err(source) => return Err(ReportError::Plot { name, source }),
        }
    }
    Ok(drawn)
}

#[cfg(test)]
mod tests;
