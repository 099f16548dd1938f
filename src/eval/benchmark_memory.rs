//! A memory built from a benchmark file, and the questions that it is asked.
//!
//! In: a request, and the questions of its file. Out: evidence and scores, question by question,
//! under the bench's settings or changed ones. The memory is built through the real path: a log
//! in a temporary directory, the real source, the pipeline's own model; every question goes
//! through the real recollection. Dropping a bench deletes its directory; nothing else is
//! written, except the language model's responses, which outlive the bench in their cache.

use std::{sync::Arc, time::Instant};

use super::{
    dataset::{Answerability, Dataset, DatasetQuestion},
    dataset_damage::DatasetDamage,
    delivery::{NormalisedText, ShownUnit, is_delivered},
    error::EvalError,
    generated_answer::AnswerModels,
    recording_source::{BenchmarkTurns, RecordingSource},
    request::EvalRequest,
    result::{BuildCost, GeneratedAnswer, ModelUse},
    score::{AnswerScores, QuestionScore, share},
};
use ingest::ModelExtractionReport;
use memory::language::token_count;
use models::llm::{Contract, LlmClient, LlmError};
use pipeline::Progress;
use ripplemem::PipelineDriver;
use types::{
    config::{LlmSettings, LogKind, Pipeline},
    model::{Evidence, ModelUsage},
};

/// A memory that was built from a file, ready to be asked under other settings.
pub(crate) struct BenchmarkMemory {
    /// The settings, with the log in the temporary directory.
    pub(crate) pipeline: Pipeline,
    /// The request.
    pub(crate) request: EvalRequest,
    /// The questions.
    pub(crate) dataset: Dataset,
    /// The turns that the memory was given.
    pub(crate) recorded: BenchmarkTurns,
    /// The language model, if one is configured.
    pub(crate) llm: Option<Arc<LlmClient>>,
    /// The language model that judges its answers, if one is named.
    judge: Option<Arc<LlmClient>>,
    /// Deleted with everything in it when this is dropped.
    pub(crate) directory: tempfile::TempDir,
}

/// One question's evidence, and its cost.
pub(crate) struct MeasuredEvidence {
    pub(crate) evidence: Evidence,
    /// o200k tokens of the context.
    pub(crate) tokens: usize,
    pub(crate) milliseconds: f64,
    /// The model's answer in words, if the request asks for one.
    pub(crate) generated: Option<GeneratedAnswer>,
    pub(crate) llm: ModelUse,
}

impl BenchmarkMemory {
    /// A bench without questions or turns yet, in a new temporary directory.
    pub(crate) fn open(request: &EvalRequest) -> Result<Self, EvalError> {
        let pipeline = isolated_pipeline(&request.pipeline);
        let configured = pipeline.llm.is_set();
        let llm = if configured { Some(LlmClient::open(&pipeline.llm, Some(pipeline.llm_directory()))?) } else { None };
        if request.answers || request.ablations.iter().any(|a| a.asks_model()) {
            llm.as_ref().ok_or(LlmError::NotConfigured)?.check_key()?;
        }
        let judge = request.judge.as_ref().map(|settings| open_judge(settings, &pipeline)).transpose()?;
        Self::new(pipeline, request.clone(), Dataset::default(), BenchmarkTurns::default(), (llm, judge))
    }

    /// A bench with the same settings for other questions about other turns, in its own directory.
    pub(crate) fn with_questions(&self, dataset: Dataset, recorded: BenchmarkTurns) -> Result<Self, EvalError> {
        Self::new(
            self.pipeline.clone(),
            self.request.clone(),
            dataset,
            recorded,
            (self.llm.clone(), self.judge.clone()),
        )
    }

    fn new(
        mut pipeline: Pipeline,
        request: EvalRequest,
        dataset: Dataset,
        recorded: BenchmarkTurns,
        (llm, judge): (Option<Arc<LlmClient>>, Option<Arc<LlmClient>>),
    ) -> Result<Self, EvalError> {
        let directory = tempfile::tempdir().map_err(EvalError::Directory)?;
        pipeline.log.directory = directory.path().join("log");
        Ok(Self { pipeline, request, dataset, recorded, llm, judge, directory })
    }

    /// Builds the memory from the file, and records the turns that it was given.
    pub(crate) fn build(
        &mut self,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(PipelineDriver, BuildCost), EvalError> {
        let before = self.model_usage(&[Contract::Extract]);
        let (service, recorded, seconds) = build_memory(&self.request, &self.pipeline, true, progress)?;
        let ModelUse { llm_calls, llm_tokens } = self.model_use_since(before, &[Contract::Extract]);
        let turns = recorded.count();
        let build = BuildCost {
            conversations: recorded.turns.len() as u64,
            turns,
            rejected: recorded.rejects.len() as u64,
            units: 0,
            seconds,
            turns_per_second: if seconds > 0.0 { turns as f64 / seconds } else { 0.0 },
            llm_calls,
            llm_tokens,
        };
        self.recorded = recorded;
        Ok((service, build))
    }

    /// Builds a second memory of the same file under other settings; also returns the seconds that it took. Without
    /// `close_windows`, the marks that close windows are left out.
    pub(crate) fn build_variant(
        &self,
        name: &str,
        pipeline: &mut Pipeline,
        close_windows: bool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(PipelineDriver, f64), EvalError> {
        pipeline.log.directory = self.directory.path().join(name);
        let (service, _, seconds) = build_memory(&self.request, pipeline, close_windows, progress)?;
        Ok((service, seconds))
    }

    /// Asks every question on the same log, under other settings of memory and recall.
    pub(crate) fn ask_with(
        &self,
        pipeline: &Pipeline,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<MeasuredEvidence>, EvalError> {
        let service = PipelineDriver::open(pipeline, progress)?;
        self.ask(&service, progress)
    }

    /// Asks a service every question.
    pub(crate) fn ask(
        &self,
        service: &PipelineDriver,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<MeasuredEvidence>, EvalError> {
        let total = Some(self.dataset.questions.len() as u64);
        let mut answers = Vec::with_capacity(self.dataset.questions.len());
        for (asked, done) in self.dataset.questions.iter().zip(1..) {
            let question = asked.question();
            let from = Instant::now();
            let evidence = service
                .ask(&question)
                .map_err(|e| EvalError::Question { id: asked.id.clone(), source: Box::new(e) })?;
            let milliseconds = from.elapsed().as_secs_f64() * 1_000.0;
            let usage = evidence.trace.llm.unwrap_or_default();
            let llm = ModelUse { llm_calls: usage.calls, llm_tokens: usage.tokens() };
            let tokens = token_count::count_tokens(&evidence.context);
            answers.push(MeasuredEvidence { tokens, evidence, milliseconds, generated: None, llm });
            progress(Progress { doing: "asking", done, total, unit: "questions" });
        }
        Ok(answers)
    }

    /// Asks a service every question and scores the evidence, except that of the first hop. A bank that the memory does
    /// not know delivers nothing.
    pub(crate) fn score(
        &self,
        service: &PipelineDriver,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<QuestionScore>, EvalError> {
        let total = Some(self.dataset.questions.len() as u64);
        let mut scored = Vec::with_capacity(self.dataset.questions.len());
        for (asked, done) in self.dataset.questions.iter().zip(1..) {
            let evidence = service
                .ask(&asked.question())
                .map_err(|e| EvalError::Question { id: asked.id.clone(), source: Box::new(e) })?;
            scored.push(QuestionScore {
                recall: share(&self.delivered(asked, &evidence)),
                tokens: token_count::count_tokens(&evidence.context),
                units: evidence.units.len(),
                recollection: None,
                answer: match self.answerers().map(|who| who.one(asked, &evidence)).transpose()? {
                    Some((Ok(generated), _)) => AnswerScores::from(&generated),
                    Some((Err(_), _)) | None => AnswerScores::default(),
                },
            });
            progress(Progress { doing: "asking", done, total, unit: "questions" });
        }
        Ok(scored)
    }

    /// Has the model answer the questions from their evidence, and judge the answers. If no model judges, a question
    /// that the dialogue does not support is not asked, because nothing would score its answer.
    pub(crate) fn generate_answers(
        &mut self,
        answers: &mut [MeasuredEvidence],
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), EvalError> {
        let Some(answerers) = self.answerers() else { return Ok(()) };
        let scored =
            |asked: &DatasetQuestion| answerers.judge.is_some() || asked.answerability != Answerability::Unsupported;
        let places: Vec<usize> = (0..answers.len()).filter(|at| scored(&self.dataset.questions[*at])).collect();
        let asked: Vec<_> = places.iter().map(|at| (&self.dataset.questions[*at], &answers[*at].evidence)).collect();
        let generated = answerers.all(&asked, progress)?;
        for (at, (generated, usage)) in places.into_iter().zip(generated) {
            let (asked, answer) = (&self.dataset.questions[at], &mut answers[at]);
            match generated {
                Ok(generated) => answer.generated = Some(generated),
                Err(problem) => {
                    self.dataset.problems.note(DatasetDamage::Unanswered, format!("{}: {problem}", asked.id));
                }
            }
            answer.llm.llm_calls += usage.calls;
            answer.llm.llm_tokens += usage.tokens();
        }
        Ok(())
    }

    /// The models that answer in words, if the request asks for answers.
    pub(crate) fn answerers(&self) -> Option<AnswerModels<'_>> {
        let llm = self.llm.as_deref().filter(|_| self.request.answers)?;
        Some(AnswerModels { llm, judge: self.judge.as_deref(), at_once: self.pipeline.llm.in_flight })
    }

    /// What these contracts have used so far; a cached response counts with its full cost.
    pub(crate) fn model_usage(&self, contracts: &[Contract]) -> ModelUsage {
        let mut sum = ModelUsage::default();
        for (contract, usage) in self.llm.iter().chain(&self.judge).flat_map(|llm| llm.used_response_cost()) {
            if contracts.contains(&contract) {
                sum += usage;
            }
        }
        sum
    }

    /// What these contracts have used since an earlier [`Self::model_usage`].
    pub(crate) fn model_use_since(&self, before: ModelUsage, contracts: &[Contract]) -> ModelUse {
        let now = self.model_usage(contracts);
        ModelUse { llm_calls: now.calls - before.calls, llm_tokens: now.tokens() - before.tokens() }
    }

    /// For each evidence turn of a question, whether this evidence delivers it.
    pub(crate) fn delivered(&self, asked: &DatasetQuestion, evidence: &Evidence) -> Vec<bool> {
        let shown: Vec<ShownUnit<'_>> = evidence.units.iter().map(ShownUnit::from).collect();
        self.delivered_by(asked, &shown, &NormalisedText::of(&evidence.context))
    }

    /// For each evidence turn of a question, whether these units deliver it in this context.
    pub(crate) fn delivered_by(
        &self,
        asked: &DatasetQuestion,
        shown: &[ShownUnit<'_>],
        context: &NormalisedText,
    ) -> Vec<bool> {
        let delivered = |turn: &String| {
            let recorded = self.recorded.turn(&asked.bank, turn);
            recorded.is_some_and(|t| is_delivered(turn, &t.required, shown, context))
        };
        asked.evidence.iter().map(delivered).collect()
    }
}

/// The settings for a memory in a directory of its own, which the caller still names: no log and no snapshot of the
/// pipeline is touched. The cache of the language model's responses stays that of the pipeline.
pub(crate) fn isolated_pipeline(pipeline: &Pipeline) -> Pipeline {
    let mut apart = pipeline.clone();
    apart.llm.cache_directory = Some(pipeline.llm_directory());
    apart.log.kind = LogKind::Embedded;
    apart.snapshot.directory.clear();
    apart
}

/// The judge, with a cache of its own. It must be another model than the one that answers.
fn open_judge(settings: &LlmSettings, pipeline: &Pipeline) -> Result<Arc<LlmClient>, EvalError> {
    if settings.model == pipeline.llm.model {
        return Err(EvalError::SameJudge { model: settings.model.clone() });
    }
    let judge = LlmClient::open(settings, Some(pipeline.llm_directory().join("judge")))?;
    judge.check_key()?;
    Ok(judge)
}

/// Builds a memory from the request's file; returns its turns and the seconds that it took.
fn build_memory(
    request: &EvalRequest,
    pipeline: &Pipeline,
    close_windows: bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<(PipelineDriver, BenchmarkTurns, f64), EvalError> {
    let mut source = request.open_source()?;
    let mut service = PipelineDriver::open(pipeline, progress)?;
    let mut recorded = BenchmarkTurns::default();
    let from = Instant::now();
    service.ingest(&mut RecordingSource::new(&mut *source, &mut recorded, close_windows), progress)?;
    finish(&mut service, progress)?;
    Ok((service, recorded, from.elapsed().as_secs_f64()))
}

/// Waits until every window is extracted; an error if the language model did not read all of them.
pub(crate) fn finish(service: &mut PipelineDriver, progress: &mut dyn FnMut(Progress)) -> Result<(), EvalError> {
    let ModelExtractionReport { left, problem, .. } = service.wait_for_model(progress)?;
    if left > 0 {
        return Err(EvalError::Unread { left, problem: problem.unwrap_or_default() });
    }
    Ok(())
}
