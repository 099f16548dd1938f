//! Writes a report for the console: `report.json`, and `questions/NAME.json` for each question.
//!
//! In: the figures of the run as a whole, and its questions one by one, so that only one answer at a time is copied.
//! Out: the files. The figures are means over the lines of the questions, with intervals.

use std::{collections::BTreeMap, fs, path::Path};

use serde::Serialize;

use super::{
    error::EvalReportError,
    eval_report::{
        CategoryFigures, EvalReport, ExpectedTurn, FoundCriterion, QuestionLine, QuestionReport, REPORT_SCHEMA_VERSION,
        ReportMean, Retriever, RetrieverKind, StageFigures,
    },
    question::file_stems,
};
use crate::{
    intervals::interval,
    result::{ComparisonRow, EvalResult, EvidenceTurn, QuestionResult},
    result_table::budget,
};

/// Most characters of a question in the table.
const LINE_CHARACTERS: usize = 200;
/// Most characters of an evidence turn in its question's file.
const TURN_CHARACTERS: usize = 2_000;
/// The name of the figures over all questions with an answer.
const OVERALL: &str = "overall";

/// What a report says of the run as a whole.
pub(crate) struct ReportHead {
    pub(crate) dataset: String,
    pub(crate) file: String,
    pub(crate) profile: String,
    pub(crate) found_means: FoundCriterion,
    /// What recollection is compared with.
    pub(crate) others: Vec<Retriever>,
}

/// Writes the files into a directory, which is created when it does not exist. `ids` are those of the questions.
///
/// # Errors
/// [`EvalReportError::Write`] with the file.
pub(crate) fn write(
    directory: &Path,
    head: &ReportHead,
    ids: &[&str],
    questions: impl Iterator<Item = QuestionReport>,
) -> Result<(), EvalReportError> {
    let folder = directory.join("questions");
    fs::create_dir_all(&folder).map_err(|source| EvalReportError::Write { path: folder.clone(), source })?;
    let mut lines = Vec::with_capacity(ids.len());
    for (question, stem) in questions.zip(file_stems(ids)) {
        let file = format!("{stem}.json");
        put(&folder.join(&file), &question)?;
        lines.push(line(&question, file));
    }
    put(&directory.join("report.json"), &report(head, lines))
}

fn put(path: &Path, value: &impl Serialize) -> Result<(), EvalReportError> {
    let written = serde_json::to_vec(value).map_err(std::io::Error::from).and_then(|text| fs::write(path, text));
    written.map_err(|source| EvalReportError::Write { path: path.to_owned(), source })
}

/// The part of a report about the run as a whole.
pub(super) fn head(result: &EvalResult) -> ReportHead {
    let compared = |kind| {
        move |row: &ComparisonRow| {
            let name = match kind {
                RetrieverKind::Baseline => format!("{} ({}, {})", row.name, row.over, budget(row.budget)),
                _ => row.name.clone(),
            };
            let recall = ReportMean { mean: row.overall.evidence_recall?, low: None, high: None };
            Some(Retriever { name, kind, tokens: row.overall.context_tokens?, recall })
        }
    };
    let baselines = result.baselines.iter().filter_map(compared(RetrieverKind::Baseline));
    let ablations = result.ablations.iter().filter_map(compared(RetrieverKind::Ablation));
    ReportHead {
        dataset: result.dataset.clone(),
        file: result.file.clone(),
        profile: result.profile.clone(),
        found_means: FoundCriterion::Whole,
        others: baselines.chain(ablations).collect(),
    }
}

/// A question that was asked, in the form of its file.
pub(super) fn question(question: &QuestionResult) -> QuestionReport {
    QuestionReport {
        schema: REPORT_SCHEMA_VERSION,
        id: question.id.clone(),
        conversation: question.conversation.clone(),
        category: question.category.clone(),
        supported: question.supported,
        reference: question.reference.clone(),
        evidence: question.pieces.iter().map(expected).collect(),
        facts: None,
        tokens: question.context_tokens as u64,
        first_hop_tokens: Some(question.first_hop_tokens as u64),
        answer: question.answer.clone(),
    }
}

fn expected(piece: &EvidenceTurn) -> ExpectedTurn {
    ExpectedTurn {
        turn: piece.turn.clone(),
        speaker: piece.speaker.clone(),
        text: turn_text(&piece.text),
        units: piece.held_by.clone(),
        found: piece.delivered,
        found_by_first_hop: Some(piece.delivered_by_first_hop),
        lost: piece.lost.clone(),
    }
}

/// The text of an evidence turn, cut as in its question's file.
pub(crate) fn turn_text(text: &str) -> String {
    text.chars().take(TURN_CHARACTERS).collect()
}

fn line(question: &QuestionReport, file: String) -> QuestionLine {
    let count = |met: &dyn Fn(&ExpectedTurn) -> bool| question.evidence.iter().filter(|turn| met(turn)).count() as u64;
    let knows_first_hop = question.first_hop_tokens.is_some();
    let mut lost_at: Vec<_> = question.evidence.iter().filter_map(|turn| turn.lost.as_ref()).map(|l| l.at).collect();
    lost_at.sort_unstable();
    lost_at.dedup();
    QuestionLine {
        id: question.id.clone(),
        file,
        conversation: question.conversation.clone(),
        category: question.category.clone(),
        supported: question.supported,
        text: question.answer.question.text.chars().take(LINE_CHARACTERS).collect(),
        evidence: question.evidence.len() as u64,
        found: count(&|turn| turn.found),
        found_by_first_hop: knows_first_hop.then(|| count(&|turn| turn.found_by_first_hop == Some(true))),
        facts: question.facts,
        tokens: question.tokens,
        first_hop_tokens: question.first_hop_tokens,
        lost_at,
    }
}

fn report(head: &ReportHead, questions: Vec<QuestionLine>) -> EvalReport {
    let overall = category(OVERALL, questions.iter().filter(|line| line.supported == Some(true)));
    let mut by_category: BTreeMap<&str, Vec<&QuestionLine>> = BTreeMap::new();
    for line in &questions {
        by_category.entry(&line.category).or_default().push(line);
    }
    let categories = by_category.into_iter().map(|(name, lines)| category(name, lines.into_iter())).collect();
    let ours = [
        ("recollection", RetrieverKind::Recollection, overall.recollection),
        ("first hop alone", RetrieverKind::FirstHop, overall.first_hop),
    ];
    let ours = ours.into_iter().filter_map(|(name, kind, figures)| {
        Some(Retriever { name: name.to_owned(), kind, tokens: figures.tokens?, recall: figures.recall? })
    });
    EvalReport {
        schema: REPORT_SCHEMA_VERSION,
        dataset: head.dataset.clone(),
        file: head.file.clone(),
        profile: head.profile.clone(),
        found_means: head.found_means,
        retrievers: ours.chain(head.others.iter().cloned()).collect(),
        overall,
        categories,
        questions,
    }
}

fn category<'l>(name: &str, lines: impl Iterator<Item = &'l QuestionLine>) -> CategoryFigures {
    let lines: Vec<&QuestionLine> = lines.collect();
    let stage = |found: fn(&QuestionLine) -> Option<u64>, tokens: fn(&QuestionLine) -> Option<u64>| {
        let recalls: Vec<f64> = lines
            .iter()
            .filter(|line| line.evidence > 0)
            .filter_map(|line| Some(found(line)? as f64 / line.evidence as f64))
            .collect();
        let full: Vec<f64> = recalls.iter().map(|recall| f64::from(u8::from(*recall >= 1.0))).collect();
        let spent: Vec<f64> = lines.iter().filter_map(|line| tokens(line)).map(|tokens| tokens as f64).collect();
        StageFigures {
            recall: mean(&recalls),
            full: mean(&full),
            facts: None,
            tokens: (!spent.is_empty()).then(|| spent.iter().sum::<f64>() / spent.len() as f64),
        }
    };
    let facts: Vec<f64> = lines.iter().filter_map(|line| line.facts).collect();
    CategoryFigures {
        name: name.to_owned(),
        questions: lines.len() as u64,
        scored: lines.iter().filter(|line| line.evidence > 0).count() as u64,
        recollection: StageFigures { facts: mean(&facts), ..stage(|line| Some(line.found), |line| Some(line.tokens)) },
        first_hop: stage(|line| line.found_by_first_hop, |line| line.first_hop_tokens),
    }
}

fn mean(values: &[f64]) -> Option<ReportMean> {
    interval(values).map(|interval| ReportMean {
        mean: interval.mean,
        low: Some(interval.low),
        high: Some(interval.high),
    })
}
