//! One question's page: the question, what happened to each evidence turn, and the recollection that found or missed
//! it.
//!
//! In: a question's result with its trace. Out: Markdown. The whole trace is shown; for a missed turn, the page says
//! where its unit was last seen.

use std::{collections::BTreeSet, fmt::Write};

use crate::result::{EvidenceTurn, QuestionResult};
use memory::recall::{self, provenance_text};
use types::model::{ConsideredUnit, Evidence, UnitId};

/// A unique file name without an ending for each question, from the ids.
pub(super) fn file_stems(ids: &[&str]) -> Vec<String> {
    let mut taken = BTreeSet::from(["readme".to_owned()]);
    ids.iter()
        .map(|id| {
            // A name with a dot in front is hidden.
            let plain: String = id
                .chars()
                .enumerate()
                .map(|(at, c)| match c {
                    '.' if at > 0 => c,
                    '_' | '-' => c,
                    c if c.is_ascii_alphanumeric() => c,
                    _ => '-',
                })
                .take(100)
                .collect();
            let mut name = plain.clone();
            let mut again = 2;
            // On some systems, names that differ only in case denote the same file.
            while !taken.insert(name.to_lowercase()) {
                name = format!("{plain}-{again}");
                again += 1;
            }
            name
        })
        .collect()
}

/// A question's page.
pub(super) fn page(question: &QuestionResult) -> String {
    let answer = &question.answer;
    let mut out = format!("# {}\n\n", line(&question.id));
    // Writing into a string cannot fail.
    let _ = writeln!(out, "> {}\n", line(&answer.question.text));
    let supported = match question.supported {
        Some(true) => "the dialogue supports an answer",
        Some(false) => "the dialogue holds no support",
        None => "unknown category",
    };
    let _ = writeln!(out, "- category: {} ({supported})", line(&question.category));
    let _ = writeln!(out, "- bank: `{}`", question.bank);
    if let Some(at) = answer.question.asked_at {
        let _ = writeln!(out, "- asked at: {at}");
    }
    let _ = writeln!(out, "- reference answer: {}", question.reference.as_deref().map_or("none".to_owned(), line));
    let round = if question.second_round { "a second round ran" } else { "it stopped at the first hop" };
    let _ = writeln!(out, "- context: {} units, {} tokens; {round}", answer.units.len(), question.context_tokens);
    let _ = writeln!(out, "- answered in {:.1} ms", question.latency_ms);
    if question.llm.llm_calls > 0 {
        let _ = writeln!(out, "- language model: {} calls, {} tokens", question.llm.llm_calls, question.llm.llm_tokens);
    }
    out.push('\n');
    out.push_str("## Evidence\n\n");
    if question.pieces.is_empty() {
        out.push_str("The file names no evidence turns for this question.\n\n");
    }
    for piece in &question.pieces {
        let verdict = match (piece.delivered, piece.delivered_by_first_hop) {
            (true, true) => "delivered",
            (true, false) => "delivered, by the expansion only",
            (false, true) => "**missed**, though the first hop alone delivers it",
            (false, false) => "**missed**",
        };
        let _ = writeln!(out, "- `{}` {verdict}\n", piece.turn);
        let _ = writeln!(out, "  > {}: {}\n", line(&piece.speaker), line(&piece.text));
        for fate in fates(piece, answer) {
            let _ = writeln!(out, "  - {fate}");
        }
        out.push('\n');
    }
    let _ = writeln!(out, "## Ripple\n\n{}", fenced(&recall::render_trace(answer)));
    let _ = writeln!(out, "## Context\n\n{}", fenced(&answer.context));
    out
}

/// Links to every page.
pub(super) fn index(questions: &[QuestionResult], names: &[String]) -> String {
    let mut out = "# Questions\n\n| question | category | evidence turns | delivered |\n|---|---|---|---|\n".to_owned();
    for (question, name) in questions.iter().zip(names) {
        let delivered = question.pieces.iter().filter(|p| p.delivered).count();
        let _ = writeln!(
            out,
            "| [{}]({name}.md) | {} | {} | {delivered} |",
            line(&question.id),
            line(&question.category),
            question.pieces.len()
        );
    }
    out
}

/// What happened to each unit that names the evidence turn as a source.
fn fates(piece: &EvidenceTurn, answer: &Evidence) -> Vec<String> {
    if piece.held_by.is_empty() {
        return vec!["no unit of the memory names this turn as a source".to_owned()];
    }
    piece.held_by.iter().map(|id| format!("unit `{id}` {}", fate(*id, piece, answer))).collect()
}

fn fate(id: UnitId, piece: &EvidenceTurn, answer: &Evidence) -> String {
    if let Some(place) = answer.units.iter().position(|u| u.id == id) {
        let unit = &answer.units[place];
        let ways: Vec<String> = unit.provenance.iter().map(provenance_text).collect();
        let quoted = unit.excerpts.iter().any(|e| e.turn == piece.turn);
        let rest = match (piece.delivered, quoted) {
            (true, _) => "",
            (false, true) => ", which quotes the turn in part only",
            (false, false) => ", which does not quote the turn",
        };
        return format!("is number {} of the context ({}){rest}", place + 1, ways.join(", "));
    }
    let rounds = answer.trace.rounds.iter().flat_map(|r| &r.support);
    let seen: Vec<String> = answer
        .trace
        .first_hop
        .iter()
        .chain(rounds)
        .filter(|s| s.id == id)
        .map(|s: &ConsideredUnit| provenance_text(&s.provenance))
        .collect();
    if seen.is_empty() {
        let walked = answer.trace.rounds.iter().any(|r| r.plan.proceed);
        let by =
            if walked { "neither in the first hop nor among the expansion's best" } else { "not in the first hop" };
        return format!("never came up: {by}");
    }
    format!("came up ({}) and was left out of the context", seen.join(", "))
}

/// The text on one line, with Markdown and HTML markup escaped.
pub(crate) fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        for c in word.chars() {
            if matches!(c, '\\' | '`' | '*' | '_' | '<' | '[' | ']' | '#' | '|') {
                out.push('\\');
            }
            out.push(c);
        }
    }
    out
}

/// The text unchanged, between fences that are longer than any in it.
pub(super) fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '~').map(str::len).max().unwrap_or_default();
    let fence = "~".repeat(longest.max(2) + 1);
    format!("{fence}text\n{}\n{fence}\n", text.trim_end())
}
