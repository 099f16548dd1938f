//! Evidence to an answer in words, by a language model (paper, the answer contract).
//!
//! In: evidence. Out: a concise answer, the reasoning before it, and the units whose lines it
//! rests on. The model reads the question and the context, line by line as an answerer gets
//! it, with numbers; it sees nothing else, and a line that it names must be there. Where the
//! memory holds nothing, nothing is asked.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    llm::{Contract, Llm, LlmError, Request, RestsOn, Streamed},
    model::{Evidence, EvidenceUnit, UnitId},
};

/// What is said where the memory is empty.
const NOTHING: &str = "Nothing in memory supports an answer.";

/// An answer in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The answer, as short as it can be.
    pub text: String,
    /// Why.
    pub reasoning: String,
    /// What it rests on, in the order of the context; empty when there is no answer.
    pub standing: Vec<Standing>,
}

/// A line of the context that an answer rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// The line, as the model read it.
    pub line: String,
    /// The units that it was taken from.
    pub units: Vec<UnitId>,
    /// Their turns.
    pub sources: Vec<String>,
}

/// Answers from evidence; `show` sees the answer's words while they are written.
///
/// # Errors
/// [`LlmError`]; what was shown then is void.
pub fn answer(llm: &Llm, evidence: &Evidence, show: &mut dyn FnMut(Streamed<'_>)) -> Result<Answer, LlmError> {
    if evidence.units.is_empty() {
        show(Streamed::Text(NOTHING));
        return Ok(Answer { text: NOTHING.to_owned(), reasoning: String::new(), standing: Vec::new() });
    }
    let (input, lines) = numbered(evidence);
    let turns: Vec<String> = evidence.units.iter().flat_map(|u| u.sources.iter().cloned()).collect();
    let request = Request {
        contract: Contract::Answer,
        bank: &evidence.question.bank,
        rests_on: RestsOn::Turns(&turns),
        input: &input,
        patience: Some(Duration::from_secs(llm.settings().timeout_seconds)),
        anew: false,
    };
    llm.stream(&request, "answer", show, &mut |found: Found| {
        if found.answer.trim().is_empty() {
            return Err("answer: empty; say that the memories do not hold it, if they do not".to_owned());
        }
        let mut standing = Vec::with_capacity(found.lines.len());
        for number in &found.lines {
            let line = number.checked_sub(1).and_then(|at| lines.get(at));
            standing.push(line.ok_or_else(|| format!("lines: there is no line {number}"))?.clone());
        }
        Ok(Answer { text: found.answer.trim().to_owned(), reasoning: found.reasoning.trim().to_owned(), standing })
    })
}

/// What the model reads, and its lines with their units.
fn numbered(evidence: &Evidence) -> (String, Vec<Standing>) {
    let question = serde_json::Value::from(evidence.question.text.trim());
    let mut input = format!("question: {question}\n");
    if let Some(at) = evidence.question.asked_at {
        input.push_str(&format!("asked at: {at}\n"));
    }
    input.push_str("memories\n");
    let mut lines = Vec::new();
    for line in evidence.context.lines() {
        // A heading, an empty line, or the note that nothing supports the question.
        let of = units_of(line, &evidence.units);
        if of.is_empty() {
            input.push_str(&format!("{line}\n"));
            continue;
        }
        lines.push(Standing {
            line: line.to_owned(),
            units: of.iter().map(|u| u.id).collect(),
            sources: of.iter().flat_map(|u| sources(line, u)).collect(),
        });
        input.push_str(&format!("{} {line}\n", lines.len()));
    }
    (input, lines)
}

/// The units that a line of the context was made from.
fn units_of<'u>(line: &str, units: &'u [EvidenceUnit]) -> Vec<&'u EvidenceUnit> {
    let restated = |u: &&EvidenceUnit| line.contains(&one_line(&u.restatement));
    let quoted = |u: &&EvidenceUnit| {
        u.excerpts.iter().any(|e| line == format!("{}: {}", one_line(&e.speaker), one_line(&e.text)))
    };
    if line.starts_with("## ") {
        return Vec::new();
    }
    units.iter().filter(|u| restated(u) || quoted(u)).collect()
}

/// The turns of a unit that a line shows: the one that it quotes, or all of a restatement.
fn sources(line: &str, unit: &EvidenceUnit) -> Vec<String> {
    let quoted: Vec<String> = unit
        .excerpts
        .iter()
        .filter(|e| line == format!("{}: {}", one_line(&e.speaker), one_line(&e.text)))
        .map(|e| e.turn.clone())
        .collect();
    if quoted.is_empty() { unit.sources.clone() } else { quoted }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[derive(Debug, Deserialize)]
struct Found {
    reasoning: String,
    lines: Vec<usize>,
    answer: String,
}
