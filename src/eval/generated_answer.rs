//! Answers in words, and their scores.
//!
//! In: a question with its reference, its evidence, a language model, and another one that judges
//! where one is named. Out: the model's answer, its F1 and BLEU-1 against the reference, and the
//! judge's verdict. The judge sees the
//! question, the reference and the answer, and nothing else (paper, the judge's protocol). The
//! reference of a question that the dialogue does not support says so.

use serde::Deserialize;
use serde_json::json;

use super::{
    answer_metrics::{bleu1, f1, f1_of_lists},
    dataset::{Answerability, DatasetQuestion},
    result::GeneratedAnswer,
};
use crate::{
    llm::{Contract, DependsOn, Llm, LlmError, LlmRequest, Meter},
    model::Evidence,
    recall,
};

/// The reference of a question that has no answer.
const NO_ANSWER: &str = "The dialogue does not say; the question has no answer.";
/// LoCoMo's category whose answers are lists.
const LISTS: &str = "multi-hop";
/// LoCoMo's category whose references give reasons after a semicolon, which its scorer drops.
const REASONED: &str = "open-domain";

/// Has the model answer one question, scores the answer and has the judge mark it.
pub(crate) fn answer_and_judge(
    llm: &Llm,
    judge: Option<&Llm>,
    asked: &DatasetQuestion,
    evidence: &Evidence,
) -> Result<GeneratedAnswer, LlmError> {
    let answer = recall::answer(llm, evidence, None, &mut |_| {})?.text;
    let scored = asked.reference.as_deref().filter(|_| asked.answerability != Answerability::Unsupported);
    let scored = scored.map(|r| if asked.category == REASONED { r.split(';').next().unwrap_or(r).trim() } else { r });
    let score = |metric: fn(&str, &str) -> f64| scored.map(|reference| metric(&answer, reference));
    let reference = match asked.answerability {
        Answerability::Unsupported => Some(NO_ANSWER),
        Answerability::Supported | Answerability::Unknown => asked.reference.as_deref(),
    };
    let turns: Vec<String> = evidence.units.iter().flat_map(|u| u.sources.iter().cloned()).collect();
    let judged = judge.zip(reference);
    let correct = judged.map(|(judge, reference)| verdict(judge, asked, &turns, reference, &answer)).transpose()?;
    let f1 = score(if asked.category == LISTS { f1_of_lists } else { f1 });
    Ok(GeneratedAnswer { f1, bleu1: score(bleu1), correct, answer })
}

fn verdict(
    llm: &Llm,
    asked: &DatasetQuestion,
    turns: &[String],
    reference: &str,
    answer: &str,
) -> Result<bool, LlmError> {
    let input = json!({"question": asked.text, "reference": reference, "answer": answer}).to_string();
    let request = LlmRequest {
        contract: Contract::Judge,
        bank: &asked.bank,
        depends_on: DependsOn::Turns(turns),
        input: &input,
        reply_tokens: None,
        deadline: None,
        bypass_cache: false,
        cacheable: true,
        meter: &Meter::default(),
    };
    llm.ask(&request, &mut |verdict: Verdict| Ok(verdict.label == "correct"))
}

#[derive(Debug, Deserialize)]
struct Verdict {
    label: String,
}
