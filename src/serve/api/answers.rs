//! Answers in words, from evidence.
//!
//! In: evidence, a language model. Out: its answer as a whole, or piece by piece while it is generated; then
//! what it cites. A problem that names the setting where no model is set. The model may take until its
//! timeout, also where nobody waits any more.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::problem::{Code, Problem};
use crate::{
    llm::{Llm, LlmError, Streamed},
    model::Evidence,
    recall::{self, Answer},
};

/// Evidence with an answer in words.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AnsweredEvidence {
    /// The evidence.
    #[serde(flatten)]
    pub evidence: Arc<Evidence>,
    /// The answer.
    pub answer: Answer,
}

/// A piece of an answer that is being generated.
#[derive(Debug, Clone, PartialEq)]
pub enum Spoken {
    /// Further words.
    Text(String),
    /// The words so far are void; the answer starts over.
    Restart,
    /// The answer is complete.
    Answer(Box<Answer>),
    /// There is none; the words so far are void.
    Problem(Problem),
}

/// The words of a [`Spoken::Text`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Words {
    /// Further words of the answer.
    pub text: String,
}

/// The language model that answers, where one is set.
pub struct Answers {
    llm: Option<Arc<Llm>>,
    /// How long it may take.
    time: Duration,
}

impl Answers {
    /// Answers by a model within a time.
    #[must_use]
    pub fn new(llm: Option<Arc<Llm>>, time: Duration) -> Self {
        Self { llm, time }
    }

    /// The model.
    ///
    /// # Errors
    /// [`Code::NoModel`] where none is set.
    pub(super) fn model(&self) -> Result<Arc<Llm>, Problem> {
        let none = || Problem::new(Code::NoModel, format!("{}; or leave out `answer`", LlmError::NotConfigured));
        self.llm.clone().ok_or_else(none)
    }

    /// The pieces of an answer, as they are generated.
    pub(super) fn speak(&self, evidence: Arc<Evidence>) -> Result<UnboundedReceiver<Spoken>, Problem> {
        let (llm, until) = (self.model()?, Instant::now() + self.time);
        let (out, pieces) = unbounded_channel();
        tokio::task::spawn_blocking(move || {
            // Whoever waited may be gone.
            let say = |piece| drop(out.send(piece));
            let answer = recall::answer(&llm, &evidence, Some(until), &mut |piece| {
                say(match piece {
                    Streamed::Text(text) => Spoken::Text(text.to_owned()),
                    Streamed::Restart => Spoken::Restart,
                });
            });
            say(match answer {
                Ok(answer) => Spoken::Answer(Box::new(answer)),
                Err(error) => Spoken::Problem(failed(&error)),
            });
        });
        Ok(pieces)
    }

    /// The whole answer.
    pub(super) async fn answer(&self, evidence: Arc<Evidence>) -> Result<AnsweredEvidence, Problem> {
        let mut pieces = self.speak(Arc::clone(&evidence))?;
        while let Some(piece) = pieces.recv().await {
            match piece {
                Spoken::Answer(answer) => return Ok(AnsweredEvidence { evidence, answer: *answer }),
                Spoken::Problem(problem) => return Err(problem),
                Spoken::Text(_) | Spoken::Restart => {}
            }
        }
        Err(Problem::new(Code::Failed, "the answer panicked; this is a defect, please report it"))
    }
}

fn failed(error: &LlmError) -> Problem {
    Problem::new(Code::Failed, format!("no answer in words: {error}"))
}
