//! The figures as a page of Markdown, and as the files that the console reads.
//!
//! In: a run. Out: Markdown, for a terminal or a file; JSON. Shares are in percent; a figure that was not measured is
//! a dash; the same result always gives the same page.

use std::{collections::BTreeMap, fmt::Write, path::Path};

use super::result::{AgentFigures, AgentRow, AgentsResult, AgentsRun};
use crate::{
    report::{
        EvalReportError, FoundCriterion, ReportHead, ReportMean, Retriever, RetrieverKind, line, number, percent,
        table, write_json,
    },
    result::DamageCount,
};

/// The page of a result.
#[must_use]
pub fn agents_page(result: &AgentsResult) -> String {
    let mut page = String::new();
    head(&mut page, result);
    retrievers(&mut page, result);
    if let Some(memory) = result.rows.first() {
        groups(&mut page, "By kind", &memory.by_kind);
        groups(&mut page, "By conversation", &memory.by_chat);
    }
    problems(&mut page, result);
    page
}

/// Writes a report into a directory, which is created when it does not exist: `report.md`, and for the console
/// `report.json` with a file for each question.
///
/// # Errors
/// [`EvalReportError`] when a file cannot be written.
pub fn write_agents_report(directory: &Path, run: &AgentsRun) -> Result<(), EvalReportError> {
    let result = &run.result;
    let head = ReportHead {
        dataset: result.dataset.clone(),
        file: Path::new(&result.path).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        profile: result.profile.clone(),
        found_means: FoundCriterion::Touched,
        others: result.rows.iter().skip(1).filter_map(rival).collect(),
    };
    let ids: Vec<&str> = run.questions.iter().map(|question| question.id.as_str()).collect();
    write_json(directory, &head, &ids, run.questions.iter().cloned())?;
    let path = directory.join("report.md");
    std::fs::write(&path, agents_page(result)).map_err(|source| EvalReportError::Write { path, source })
}

fn rival(row: &AgentRow) -> Option<Retriever> {
    Some(Retriever {
        name: format!("{} ({})", row.name, row.over),
        kind: RetrieverKind::Baseline,
        tokens: row.overall.mean_tokens?,
        recall: ReportMean { mean: row.overall.touched?, low: None, high: None },
    })
}

fn head(page: &mut String, r: &AgentsResult) {
    say(page, &format!("# {}: {}", line(&r.dataset), line(&r.path)));
    say(
        page,
        &format!(
            "Profile `{}`; {} conversations, {} turns ({} cut, as the memory takes no longer ones), {:.0} s until the \
             memory held them; {} questions with evidence. **Touched** is the share of the evidence turns of which at \
             least 6 tokens are quoted, or all of a shorter one; **facts** the share of the reference facts that what \
             is quoted of the evidence turns covers. Shares are in percent, tokens are o200k.",
            r.profile, r.chats, r.turns, r.cut_turns, r.seconds, r.questions
        ),
    );
    if let Some(auc) = r.sufficiency_auc {
        say(
            page,
            &format!(
                "The sufficiency figure separates these questions from the {} that have no answer with an AUC of \
                 {auc:.3}.",
                r.unanswerable
            ),
        );
    }
}

fn retrievers(page: &mut String, r: &AgentsResult) {
    say(page, "## Retrievers");
    if let Some(tokens) = r.rival_tokens {
        say(
            page,
            &format!(
                "Rivals quote whole passages, best first. The cap is the same for all questions of a row, chosen so \
                 that a context has {tokens:.0} tokens on average."
            ),
        );
    }
    let row = |row: &AgentRow| {
        let mut cells = vec![row.name.clone(), row.over.clone()];
        cells.extend(figures(&row.overall));
        cells.push(number(row.cap, 0));
        cells
    };
    let rows: Vec<Vec<String>> = r.rows.iter().map(row).collect();
    table(page, &["retriever", "over", "questions", "touched", "facts", "tokens", "most tokens", "cap"], &rows);
    let Some(memory) = r.rows.first().filter(|_| r.rows.len() > 1) else { return };
    say(page, "Touched / facts by kind:");
    let kinds: Vec<&String> = memory.by_kind.keys().collect();
    let mut head = vec!["retriever".to_owned(), "over".to_owned()];
    head.extend(kinds.iter().map(|kind| line(kind)));
    let both = |f: Option<&AgentFigures>| {
        let of = |share: fn(&AgentFigures) -> Option<f64>| percent(f.and_then(share));
        format!("{} / {}", of(|f| f.touched), of(|f| f.facts))
    };
    let row = |row: &AgentRow| {
        let mut cells = vec![row.name.clone(), row.over.clone()];
        cells.extend(kinds.iter().map(|kind| both(row.by_kind.get(*kind))));
        cells
    };
    let rows: Vec<Vec<String>> = r.rows.iter().map(row).collect();
    table(page, &head.iter().map(String::as_str).collect::<Vec<_>>(), &rows);
}

fn groups(page: &mut String, title: &str, groups: &BTreeMap<String, AgentFigures>) {
    say(page, &format!("## {title}"));
    let rows: Vec<Vec<String>> =
        groups.iter().map(|(name, f)| std::iter::once(line(name)).chain(figures(f)).collect()).collect();
    table(page, &["memory", "questions", "touched", "facts", "tokens", "most tokens"], &rows);
}

fn problems(page: &mut String, r: &AgentsResult) {
    if r.problems.is_empty() {
        return;
    }
    say(page, "## What was wrong with the files");
    let row = |(kind, problem): (&String, &DamageCount)| {
        let examples = problem.examples.iter().map(|e| line(e)).collect::<Vec<_>>().join("; ");
        vec![line(kind), problem.count.to_string(), line(&problem.treatment), examples]
    };
    table(page, &["what", "count", "treatment", "where"], &r.problems.iter().map(row).collect::<Vec<_>>());
}

fn figures(f: &AgentFigures) -> [String; 5] {
    [f.questions.to_string(), percent(f.touched), percent(f.facts), number(f.mean_tokens, 0), f.most_tokens.to_string()]
}

fn say(page: &mut String, text: &str) {
    // Writing into a string cannot fail.
    let _ = writeln!(page, "{text}\n");
}
