//! Turns evidence into an answer in words, with a language model (paper, the answer contract).
//!
//! In: evidence. Out: a concise answer, its reasoning, and the lines of the context that it
//! cites, with their units and turns. The model reads the question and the context with its lines
//! numbered, and nothing else. A cited line must exist. Without evidence the model is not asked.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    time::Instant,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::llm::{Contract, LlmClient, LlmError, LlmRequest, ReplyPiece, RequestDependency, UsageMeter};
use types::model::{EventTime, Evidence, EvidenceUnit, ModelUsage, Question, UnitId};

use memory::recall::{CONTINUES, day_name, one_line, quote};

/// The answer if there is no evidence.
const NOTHING: &str = "Nothing in memory supports an answer.";

/// An answer in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Answer")]
pub struct LlmAnswer {
    /// The answer, concise.
    pub text: String,
    /// The reasoning that led to it.
    pub reasoning: String,
    /// The lines that it cites, in the order of the context; empty when there is no answer.
    #[serde(rename = "standing")]
    pub citations: Vec<Citation>,
    /// The language model's usage for it; a cached reply counts with what it cost.
    #[serde(rename = "took")]
    pub usage: ModelUsage,
}

/// A line of the context that an answer cites.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Citation {
    /// The line, as the model read it.
    pub line: String,
    /// The units that the line quotes.
    pub units: Vec<UnitId>,
    /// The ids of their turns.
    pub sources: Vec<String>,
}

/// Answers from evidence, before `deadline` if there is one. `show` receives the answer's words as they are generated.
/// `meter` counts the usage, also of an answer that fails.
///
/// # Errors
/// [`LlmError`]; words that were shown before it are void.
pub fn answer(
    llm: &LlmClient,
    evidence: &Evidence,
    deadline: Option<Instant>,
    meter: &UsageMeter,
    show: &mut dyn FnMut(ReplyPiece<'_>),
) -> Result<LlmAnswer, LlmError> {
    if evidence.units.is_empty() {
        show(ReplyPiece::Text(NOTHING));
        let (citations, usage) = (Vec::new(), ModelUsage::default());
        return Ok(LlmAnswer { text: NOTHING.to_owned(), reasoning: String::new(), citations, usage });
    }
    let (input, lines) = numbered(&evidence.question, &evidence.context, &evidence.units);
    let turns: Vec<String> = evidence.units.iter().flat_map(|u| u.sources.iter().cloned()).collect();
    let request = LlmRequest {
        contract: Contract::Answer,
        bank: &evidence.question.bank,
        depends_on: RequestDependency::Turns(&turns),
        input: &input,
        reply_tokens: None,
        deadline,
        bypass_cache: false,
        cacheable: true,
        meter,
    };
    llm.stream(&request, "answer", show, &mut |reply: AnswerReply| {
        if reply.answer.trim().is_empty() {
            return Err("answer: empty; say that the memories do not hold it, if they do not".to_owned());
        }
        let numbers: BTreeSet<usize> = reply.lines.iter().copied().collect();
        let mut citations = Vec::with_capacity(numbers.len());
        for number in &numbers {
            let line = number.checked_sub(1).and_then(|at| lines.get(at));
            citations.push(line.ok_or_else(|| format!("lines: there is no line {number}"))?.clone());
        }
        let (text, reasoning) = (reply.answer.trim().to_owned(), reply.reasoning.trim().to_owned());
        Ok(LlmAnswer { text, reasoning, citations, usage: meter.total() })
    })
}

/// The text that the model reads, and its numbered lines with their units.
fn numbered(question: &Question, context: &str, units: &[EvidenceUnit]) -> (String, Vec<Citation>) {
    let mut input = format!("question: {}\n", serde_json::Value::from(question.text.trim()));
    if let Some(at) = question.asked_at {
        input.push_str(&format!("asked at: {at}\n"));
    }
    input.push_str("memories\n");
    let (mut lines, mut heading, mut times_seen) = (Vec::new(), "", BTreeMap::new());
    for line in blocks(context) {
        heading = line.strip_prefix("## ").unwrap_or(heading);
        let before = times_seen.entry((heading, line)).or_insert(0);
        // Headings, empty lines, and the note that nothing supports the question quote no unit.
        match citation(heading, line, *before, units) {
            None => input.push_str(&format!("{line}\n")),
            Some(citation) => {
                *before += 1;
                lines.push(citation);
                input.push_str(&format!("{} {line}\n", lines.len()));
            }
        }
    }
    (input, lines)
}

/// The lines of a context; all lines of one quoted turn count as one.
fn blocks(context: &str) -> Vec<&str> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    let (mut at, mut empty) = (0, 0);
    for line in context.split_terminator('\n') {
        let end = at + line.len();
        match blocks.last() {
            // The empty lines before it belong to the turn.
            Some(_) if line.starts_with(CONTINUES) => {
                blocks.truncate(blocks.len() - empty);
                empty = 0;
                if let Some(turn) = blocks.last_mut() {
                    turn.end = end;
                }
            }
            _ => {
                empty = if line.is_empty() { empty + 1 } else { 0 };
                blocks.push(at..end);
            }
        }
        at = end + 1;
    }
    blocks.into_iter().filter_map(|block| context.get(block)).collect()
}

/// The units that a line of the context quotes; `before` identical lines come before it below the same heading.
fn citation(heading: &str, line: &str, before: usize, units: &[EvidenceUnit]) -> Option<Citation> {
    let mut turns: BTreeMap<(EventTime, &str), Vec<UnitId>> = BTreeMap::new();
    for unit in units {
        for part in &unit.excerpts {
            let day = heading.strip_prefix(day_name(part.said_at.local().date()).as_str());
            if day.is_some_and(|rest| rest.starts_with(", ")) && quote(&part.speaker, &part.text) == line {
                turns.entry((part.said_at, &part.turn)).or_default().push(unit.id);
            }
        }
    }
    if let Some(((_, turn), units)) = turns.into_iter().nth(before) {
        return Some(Citation { line: line.to_owned(), units, sources: vec![turn.to_owned()] });
    }
    let restated: Vec<&EvidenceUnit> = units.iter().filter(|unit| restates(heading, line, unit)).collect();
    (!restated.is_empty()).then(|| Citation {
        line: line.to_owned(),
        units: restated.iter().map(|unit| unit.id).collect(),
        sources: restated.iter().flat_map(|unit| unit.sources.iter().cloned()).collect(),
    })
}

/// Whether a line is a unit's restatement, with or without its time.
fn restates(heading: &str, line: &str, unit: &EvidenceUnit) -> bool {
    let said = unit.said_at.local();
    let words = format!("[{}] {}", said.strftime("%H:%M"), one_line(&unit.restatement));
    let rest = line.strip_prefix(words.as_str());
    heading == day_name(said.date())
        && rest.is_some_and(|rest| rest.is_empty() || (rest.starts_with(" (") && rest.ends_with(')')))
}

#[derive(Debug, Deserialize)]
struct AnswerReply {
    reasoning: String,
    lines: Vec<usize>,
    answer: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::model::{Bank, Cues, Excerpt};

    fn at(text: &str) -> EventTime {
        EventTime::parse(text).unwrap()
    }

    fn unit(id: u64, restatement: &str, said_at: &str, sources: &[&str], excerpts: Vec<Excerpt>) -> EvidenceUnit {
        EvidenceUnit {
            id: UnitId(id),
            restatement: restatement.to_owned(),
            cues: Cues::default(),
            said_at: at(said_at),
            sources: sources.iter().map(|s| (*s).to_owned()).collect(),
            excerpts,
            rho: 0.5,
            anchor: false,
            provenance: Vec::new(),
        }
    }

    #[test]
    fn a_line_cites_the_units_that_it_quotes_and_no_others() {
        let yes = |turn: &str, said_at: &str| Excerpt {
            turn: turn.to_owned(),
            speaker: "Ann".to_owned(),
            said_at: at(said_at),
            text: "Yes".to_owned(),
            range: None,
            metadata: None,
        };
        let excerpts = vec![yes("a", "2024-05-01T18:00:00Z"), yes("b", "2024-05-01T18:05:00Z")];
        let morning = "2024-05-02T09:00:00Z";
        let units = [
            unit(1, "Yes", "2024-05-01T18:00:00Z", &["a", "b"], excerpts),
            unit(2, "Ann likes tea.", morning, &["c"], Vec::new()),
            unit(3, "Bo said Ann likes tea.", morning, &["d", "e"], Vec::new()),
        ];
        let context = "## 1 May 2024, 18:00\nAnn: Yes\nAnn: Yes\n\n## 2 May 2024\n[09:00] Ann likes tea. (May 2024)\n\
                       [09:00] Bo said Ann likes tea.\n";
        let question = Question::new(Bank::parse("b").unwrap(), " Tea? ");
        let (input, lines) = numbered(&question, context, &units);
        assert_eq!(
            input,
            "question: \"Tea?\"\nmemories\n## 1 May 2024, 18:00\n1 Ann: Yes\n2 Ann: Yes\n\n## 2 May 2024\n\
             3 [09:00] Ann likes tea. (May 2024)\n4 [09:00] Bo said Ann likes tea.\n"
        );
        let sources: Vec<String> = lines.iter().map(|line| line.sources.join(" ")).collect();
        assert_eq!(sources, ["a", "b", "c", "d e"]);
    }
}
