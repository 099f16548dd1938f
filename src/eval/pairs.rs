//! How well an answer says whether the memory supports it, on small conversations written by hand.
//!
//! In: a file of pairs: a few turns, a question that they answer, and one on the same topic that they do not. Out: for
//! each question, whether it was called supported. Each pair has a bank of its own, in one memory in a temporary
//! directory.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{
    EvalError,
    benchmark_memory::{finish, isolated_pipeline},
    dataset::DatasetError,
};
use pipeline::Progress;
use ripplemem::PipelineDriver;
use sources::{SourceBatch, SourceError, SourceProgress, TurnQueue, TurnSource};
use types::{
    config::Pipeline,
    model::{Bank, EventTime, Question, SessionEnd, Turn, TurnEvent},
};

/// A line of the file.
#[derive(Debug, Deserialize)]
struct AnswerPair {
    lang: String,
    turns: Vec<PairTurn>,
    told: PairQuestion,
    not_told: PairQuestion,
}

#[derive(Debug, Deserialize)]
struct PairTurn {
    speaker: String,
    text: String,
    time: String,
}

#[derive(Debug, Deserialize)]
struct PairQuestion {
    text: String,
    asker: Option<String>,
}

/// The verdict on one question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairVerdict {
    /// The language of the pair.
    pub language: String,
    /// The question.
    pub question: String,
    /// Whether its turns answer it.
    pub told: bool,
    /// Whether the memory called it supported.
    pub supported: bool,
    /// The probability that the memory gave.
    pub sufficiency: f64,
}

/// Builds a memory of all pairs and asks both questions of each.
///
/// # Errors
/// [`EvalError`] when the file is not one of pairs, or the memory fails.
pub fn judge_pairs(
    path: &Path,
    pipeline: &Pipeline,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<PairVerdict>, EvalError> {
    let text = std::fs::read_to_string(path).map_err(|source| DatasetError::Read { path: path.to_owned(), source })?;
    let mut pairs = Vec::new();
    let mut turns = PairSource { queue: TurnQueue::default() };
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let broken =
            |why: String| DatasetError::Empty { path: path.to_owned(), why: format!("line {}: {why}", number + 1) };
        let pair: AnswerPair = serde_json::from_str(line).map_err(|e| broken(e.to_string()))?;
        let bank = Bank::parse(&format!("pairs/{number}")).map_err(|e| broken(e.to_string()))?;
        let mut last = None;
        for (place, said) in pair.turns.iter().enumerate() {
            let time = EventTime::read(&said.time).map_err(|e| broken(e.to_string()))?;
            let mut turn = Turn::new(bank.clone(), &place.to_string(), &said.speaker, &said.text, time);
            turn.session = Some("s".to_owned());
            turn.check().map_err(|e| broken(e.to_string()))?;
            last = Some(time);
            turns.queue.event(TurnEvent::Turn(turn));
        }
        turns.queue.event(TurnEvent::SessionEnd(SessionEnd { bank: bank.clone(), session: "s".to_owned() }));
        pairs.push((bank, pair, last));
    }
    let directory = tempfile::tempdir().map_err(EvalError::Directory)?;
    let mut pipeline = isolated_pipeline(pipeline);
    pipeline.log.directory = directory.path().join("log");
    let mut service = PipelineDriver::open(&pipeline, progress)?;
    service.ingest(&mut turns, progress)?;
    finish(&mut service, progress)?;
    let mut verdicts = Vec::new();
    for (bank, pair, last) in pairs {
        for (asked, told) in [(pair.told, true), (pair.not_told, false)] {
            let question =
                Question { asker: asked.asker, asked_at: last, ..Question::new(bank.clone(), asked.text.clone()) };
            let answer = service
                .ask(&question)
                .map_err(|e| EvalError::Question { id: bank.to_string(), source: Box::new(e) })?;
            verdicts.push(PairVerdict {
                language: pair.lang.clone(),
                question: asked.text,
                told,
                supported: answer.supported,
                sufficiency: answer.sufficiency,
            });
        }
    }
    Ok(verdicts)
}

/// The turns of all pairs as a source.
struct PairSource {
    queue: TurnQueue,
}

impl TurnSource for PairSource {
    fn next(&mut self, limit: usize) -> Result<Option<SourceBatch>, SourceError> {
        Ok(self.queue.next(limit))
    }

    fn describe(&self) -> String {
        "the turns of pairs".to_owned()
    }

    fn progress(&self) -> SourceProgress {
        self.queue.progress()
    }
}
