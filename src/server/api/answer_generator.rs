//! Answers in words, from evidence.
//!
//! In: evidence, a language model. Out: its answer as a whole, or piece by piece while it is generated; then
//! what it cites. Without a model: a problem that names the setting. At most `llm.in_flight` answers are generated at
//! once; a limited number more wait, without holding a thread; others are refused. An answer that has begun goes on
//! when its caller leaves, because its reply is paid for and cached.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use schemars::JsonSchema;
use serde::Serialize;
use tokio::{
    sync::{
        Semaphore,
        mpsc::{UnboundedReceiver, unbounded_channel},
    },
    time::timeout_at,
};

use super::problem::{ApiProblem, ProblemCode};
use crate::quota::{Quota, QuotaLimits, QuotaRefusals};
use models::llm::{self, LlmAnswer, LlmClient, LlmError, ReplyPiece, UsageMeter};
use types::model::Evidence;

/// Answers in progress, waiting ones included, per answer that may be generated at once.
const AWAITED: usize = 8;

/// Evidence with an answer in words.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "AnsweredEvidence")]
pub struct EvidenceWithAnswer {
    /// The evidence.
    #[serde(flatten)]
    pub evidence: Arc<Evidence>,
    /// The answer.
    pub answer: LlmAnswer,
}

/// A piece of an answer that is being generated.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerPiece {
    /// Further words.
    Text(String),
    /// The words so far are void; the answer starts over.
    Restart,
    /// The answer is complete.
    Answer(Box<LlmAnswer>),
    /// There is no answer; the words so far are void.
    Problem(ApiProblem),
}

/// The words of a piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Words")]
pub struct AnswerText {
    /// Further words of the answer.
    pub text: String,
}

/// The language model that answers, if one is set.
pub struct AnswerGenerator {
    llm: Option<Arc<LlmClient>>,
    /// How long an answer may take, including its wait for a place.
    time: Duration,
    /// One place for each answer that is being generated.
    generated: Arc<Semaphore>,
    /// One share for each answer that is being generated or waits for a place. A token has at most half of them.
    awaited: Arc<Quota>,
}

/// The messages when too many answers are in progress.
const REFUSALS: QuotaRefusals = QuotaRefusals {
    all: "answers in words are awaited already; ask again in a moment",
    of_one: "answers in words of this token are awaited already; ask again in a moment",
};

impl AnswerGenerator {
    /// Answers by a model, each within `time`.
    #[must_use]
    pub fn new(llm: Option<Arc<LlmClient>>, time: Duration) -> Self {
        let at_once = llm.as_ref().map_or(1, |llm| llm.settings().in_flight);
        let all = AWAITED * at_once;
        let awaited = Quota::new(QuotaLimits { all, of_one: all / 2 }, REFUSALS);
        Self { llm, time, generated: Arc::new(Semaphore::new(at_once)), awaited }
    }

    /// The model.
    ///
    /// # Errors
    /// [`ProblemCode::NoModel`] if none is set.
    pub(super) fn model(&self) -> Result<Arc<LlmClient>, ApiProblem> {
        let none =
            || ApiProblem::new(ProblemCode::NoModel, format!("{}; or leave out `answer`", LlmError::NotConfigured));
        self.llm.clone().ok_or_else(none)
    }

    /// The pieces of an answer, as they are generated; `token` is the name of the caller's token, if any.
    ///
    /// # Errors
    /// [`ProblemCode::NoModel`]; [`ProblemCode::Busy`] if too many answers are in progress, or if no place becomes free
    /// in time.
    pub(super) async fn generate_answer(
        &self,
        token: Option<&str>,
        evidence: Arc<Evidence>,
    ) -> Result<UnboundedReceiver<AnswerPiece>, ApiProblem> {
        let (llm, share) = (self.model()?, self.awaited.take(token)?);
        let until = Instant::now() + self.time;
        let turn = timeout_at(until.into(), Arc::clone(&self.generated).acquire_owned()).await;
        let late =
            || ApiProblem::new(ProblemCode::Busy, "the language model was busy until the deadline; ask again later");
        let turn = turn.ok().and_then(Result::ok).ok_or_else(late)?;
        let (out, pieces) = unbounded_channel();
        tokio::task::spawn_blocking(move || {
            let _held = (share, turn);
            // Fails if the caller has left; the answer goes on.
            let say = |piece| drop(out.send(piece));
            let answer = llm::answer(&llm, &evidence, Some(until), &UsageMeter::default(), &mut |piece| {
                say(match piece {
                    ReplyPiece::Text(text) => AnswerPiece::Text(text.to_owned()),
                    ReplyPiece::Restart => AnswerPiece::Restart,
                });
            });
            say(match answer {
                Ok(answer) => AnswerPiece::Answer(Box::new(answer)),
                Err(error) => AnswerPiece::Problem(model_problem(&error)),
            });
        });
        Ok(pieces)
    }

    /// The whole answer.
    ///
    /// # Errors
    /// As [`Self::generate_answer`]; [`ProblemCode::Failed`] if the model failed.
    pub(super) async fn answer(
        &self,
        token: Option<&str>,
        evidence: Arc<Evidence>,
    ) -> Result<EvidenceWithAnswer, ApiProblem> {
        let mut pieces = self.generate_answer(token, Arc::clone(&evidence)).await?;
        while let Some(piece) = pieces.recv().await {
            match piece {
                AnswerPiece::Answer(answer) => return Ok(EvidenceWithAnswer { evidence, answer: *answer }),
                AnswerPiece::Problem(problem) => return Err(problem),
                AnswerPiece::Text(_) | AnswerPiece::Restart => {}
            }
        }
        Err(ApiProblem::new(ProblemCode::Failed, "the answer panicked; this is a defect, please report it"))
    }
}

fn model_problem(error: &LlmError) -> ApiProblem {
    ApiProblem::new(ProblemCode::Failed, format!("no answer in words: {error}"))
}
