//! Answers in words, and their scores.
//!
//! In: questions with their references, their evidence, a language model, and another one that judges, if one is named.
//! Out: the model's answers, their F1 and BLEU-1 against the references, and the judge's verdicts. As many questions
//! are answered at once as the model accepts requests. The judge sees the question, the reference and the answer, and
//! nothing else (paper, the judge's protocol). If the dialogue does not support a question, its reference says so.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;
use serde_json::json;

use super::{
    answer_metrics::{bleu1, f1, f1_of_lists},
    dataset::{Answerability, DatasetQuestion},
    error::EvalError,
    result::GeneratedAnswer,
};
use models::llm::{self, Contract, LlmClient, LlmError, LlmRequest, RequestDependency, UsageMeter};
use pipeline::Progress;
use types::model::{Evidence, ModelUsage};

/// The reference of a question that has no answer.
const NO_ANSWER: &str = "The dialogue does not say; the question has no answer.";
/// LoCoMo's category whose answers are lists.
const LISTS: &str = "multi-hop";
/// LoCoMo's category whose references give reasons after a semicolon, which its scorer drops.
const REASONED: &str = "open-domain";
/// How many questions in a row may fail because the endpoint does not answer, before the evaluation stops. The next run
/// continues where it stopped.
const MAX_UNAVAILABLE: usize = 2;

/// An answer, or why there is none, and its usage. The error concerns only this question.
pub(crate) type AnswerOutcome = (Result<GeneratedAnswer, LlmError>, ModelUsage);

/// The model that answers, and the one that judges.
#[derive(Clone, Copy)]
pub(crate) struct AnswerModels<'a> {
    pub(crate) llm: &'a LlmClient,
    pub(crate) judge: Option<&'a LlmClient>,
    /// How many questions are answered at once.
    pub(crate) at_once: usize,
}

impl AnswerModels<'_> {
    /// Answers each question from its evidence, in the order of the questions.
    ///
    /// # Errors
    /// An error that would affect every question, such as a wrong key, or an endpoint that answered no question so far
    /// or failed for several in a row.
    pub(crate) fn all(
        &self,
        asked: &[(&DatasetQuestion, &Evidence)],
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<AnswerOutcome>, EvalError> {
        let next = AtomicUsize::new(0);
        let (done, finished) = crossbeam_channel::unbounded();
        let mut answers: Vec<(usize, AnswerOutcome)> = Vec::with_capacity(asked.len());
        std::thread::scope(|scope| {
            for _ in 0..self.at_once.clamp(1, asked.len().max(1)) {
                let (done, next) = (done.clone(), &next);
                scope.spawn(move || {
                    while let Some((at, (question, evidence))) = {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        asked.get(at).map(|asked| (at, asked))
                    } {
                        // The receiver is dropped at the first error.
                        if done.send((at, self.one(question, evidence))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(done);
            let mut unavailable = 0;
            for (at, answered) in finished {
                let answered = match answered? {
                    (Err(error @ LlmError::Unavailable { .. }), usage) => {
                        unavailable += 1;
                        if unavailable > MAX_UNAVAILABLE || unavailable > answers.len() {
                            let id = asked.get(at).map_or_else(String::new, |(question, _)| question.id.clone());
                            return Err(EvalError::Answer { id, source: error });
                        }
                        (Err(error), usage)
                    }
                    answered => {
                        unavailable = 0;
                        answered
                    }
                };
                answers.push((at, answered));
                let (done, total) = (answers.len() as u64, Some(asked.len() as u64));
                progress(Progress { doing: "answering", done, total, unit: "questions" });
            }
            Ok::<(), EvalError>(())
        })?;
        answers.sort_by_key(|(at, _)| *at);
        Ok(answers.into_iter().map(|(_, answered)| answered).collect())
    }

    /// Answers one question.
    ///
    /// # Errors
    /// An error that would affect every question, such as a wrong key.
    pub(crate) fn one(&self, asked: &DatasetQuestion, evidence: &Evidence) -> Result<AnswerOutcome, EvalError> {
        let meter = UsageMeter::default();
        match self.answer_and_judge(asked, evidence, &meter) {
            Ok(generated) => Ok((Ok(generated), meter.total())),
            Err(
                error @ (LlmError::InvalidReply { .. }
                | LlmError::Rejected { .. }
                | LlmError::TooLong { .. }
                | LlmError::Unavailable { .. }),
            ) => Ok((Err(error), meter.total())),
            // Any other error, such as a wrong key, would affect every question.
            Err(source) => Err(EvalError::Answer { id: asked.id.clone(), source }),
        }
    }

    fn answer_and_judge(
        &self,
        asked: &DatasetQuestion,
        evidence: &Evidence,
        meter: &UsageMeter,
    ) -> Result<GeneratedAnswer, LlmError> {
        let answer = llm::answer(self.llm, evidence, None, meter, &mut |_| {})?.text;
        let scored = asked.reference.as_deref().filter(|_| asked.answerability != Answerability::Unsupported);
        let scored =
            scored.map(|r| if asked.category == REASONED { r.split(';').next().unwrap_or(r).trim() } else { r });
        let score = |metric: fn(&str, &str) -> f64| scored.map(|reference| metric(&answer, reference));
        let reference = match asked.answerability {
            Answerability::Unsupported => Some(NO_ANSWER),
            Answerability::Supported | Answerability::Unknown => asked.reference.as_deref(),
        };
        let judged = self.judge.zip(reference);
        let turns: Vec<String> = evidence.units.iter().flat_map(|u| u.sources.iter().cloned()).collect();
        let judged = judged.map(|(judge, reference)| verdict(judge, asked, &turns, reference, &answer, meter));
        let correct = judged.transpose()?;
        let f1 = score(if asked.category == LISTS { f1_of_lists } else { f1 });
        Ok(GeneratedAnswer { f1, bleu1: score(bleu1), correct, answer })
    }
}

fn verdict(
    llm: &LlmClient,
    asked: &DatasetQuestion,
    turns: &[String],
    reference: &str,
    answer: &str,
    meter: &UsageMeter,
) -> Result<bool, LlmError> {
    let input = json!({"question": asked.text, "reference": reference, "answer": answer}).to_string();
    let request = LlmRequest {
        contract: Contract::Judge,
        bank: &asked.bank,
        depends_on: RequestDependency::Turns(turns),
        input: &input,
        reply_tokens: None,
        deadline: None,
        bypass_cache: false,
        cacheable: true,
        meter,
    };
    llm.ask(&request, &mut |verdict: JudgeVerdict| Ok(verdict.label == "correct"))
}

#[derive(Debug, Deserialize)]
struct JudgeVerdict {
    label: String,
}
