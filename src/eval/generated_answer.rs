//! Answers in words, and how good they are.
//!
//! In: a question with its reference, the evidence for it, and a language model. Out: the
//! model's answer, its F1 and BLEU-1 against the reference, and the judge's verdict, who sees
//! the question, the reference and the answer, and nothing else (paper, the judge's
//! protocol). Questions that the dialogue does not support have a reference that says so.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    answer_metrics::{bleu1, f1, f1_of_lists},
    dataset::{Asked, Standing},
};
use crate::{
    llm::{Contract, Llm, LlmError, Meter, Request, RestsOn},
    model::Evidence,
    recall,
};

/// The reference of a question that has no answer.
const NO_ANSWER: &str = "The dialogue does not say; the question has no answer.";
/// LoCoMo's category whose answers are lists.
const LISTS: &str = "multi-hop";
/// LoCoMo's category whose references give reasons behind a semicolon, which its scorer leaves out.
const REASONED: &str = "open-domain";

/// An answer and its marks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spoken {
    /// What the model answered.
    pub answer: String,
    /// Token F1 against the reference; absent without one.
    pub f1: Option<f64>,
    /// BLEU-1 against the reference; absent without one.
    pub bleu1: Option<f64>,
    /// Whether the judge accepted it; absent without a reference.
    pub correct: Option<bool>,
}

/// Answers and marks one question.
pub(crate) fn spoken(llm: &Llm, asked: &Asked, evidence: &Evidence) -> Result<Spoken, LlmError> {
    let answer = recall::answer(llm, evidence, None, &mut |_| {})?.text;
    let scored = asked.reference.as_deref().filter(|_| asked.standing != Standing::Unsupported);
    let scored = scored.map(|r| if asked.category == REASONED { r.split(';').next().unwrap_or(r).trim() } else { r });
    let marks = |measure: fn(&str, &str) -> f64| scored.map(|reference| measure(&answer, reference));
    let reference = match asked.standing {
        Standing::Unsupported => Some(NO_ANSWER),
        Standing::Supported | Standing::Unknown => asked.reference.as_deref(),
    };
    let turns: Vec<String> = evidence.units.iter().flat_map(|u| u.sources.iter().cloned()).collect();
    let correct = reference.map(|reference| judge(llm, asked, &turns, reference, &answer)).transpose()?;
    let measure = if asked.category == LISTS { f1_of_lists } else { f1 };
    Ok(Spoken { f1: marks(measure), bleu1: marks(bleu1), correct, answer })
}

fn judge(llm: &Llm, asked: &Asked, turns: &[String], reference: &str, answer: &str) -> Result<bool, LlmError> {
    let input = json!({"question": asked.text, "reference": reference, "answer": answer}).to_string();
    let request = Request {
        contract: Contract::Judge,
        bank: &asked.bank,
        rests_on: RestsOn::Turns(turns),
        input: &input,
        until: None,
        anew: false,
        keep: true,
        meter: &Meter::default(),
    };
    llm.ask(&request, &mut |verdict: Verdict| Ok(verdict.label == "correct"))
}

#[derive(Debug, Deserialize)]
struct Verdict {
    label: String,
}
