//! Recollects from the shard that holds a question's bank.
//!
//! In: a question with its shard, the embedders, a reranker, and how long someone waits. Out: evidence. The timeouts of
//! the language model and of the reranker end before the deadline, so that an answer can still be found without them.
//! After the deadline, no text is embedded and no hop begins.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use memory::recall::{
    self, BoxError, EmbedFunction, ExhaustivePlanner, Planner, RecallError, RecallExplanation, RecallModels, Reranker,
    RulesPlanner,
};
use models::{
    embed::{EmbedError, EmbedderPool, QuestionVectorCache},
    llm::{LlmClient, LlmPlanner},
    rerank::{RerankError, RerankerPool},
};
use types::{
    config::{LLM, LogKind, Pipeline},
    model::{Evidence, ExplanationQuery, LogPosition, Question, Vector},
    sync,
};

use super::{
    AnswerStage, AnswerStageTimes, Cancellation, PipelineError,
    awake_shard::AwakeShard,
    cancellable_memory::{CancellableMemory, DeadlineReranker, TimedPlanner},
    timed,
};

/// The maximum time before a question's deadline that is reserved for an answer without the models.
const RULES_TIME: Duration = Duration::from_secs(1);

/// The models that a pipeline names for questions.
pub(super) struct Recollector {
    /// Plans, or reads cues, if the pipeline names it for that.
    llm: Option<Arc<LlmClient>>,
    /// Opened when questions may come: a memory that answers none needs no model.
    reranker: Mutex<Option<Arc<RerankerPool>>>,
}

/// A question with what is needed to answer it: its shard, the models, and how long someone waits. Texts whose vectors
/// are `kept` are not embedded.
pub(super) struct PreparedQuery<'a> {
    pub(super) question: &'a Question,
    pub(super) pipeline: &'a Pipeline,
    pub(super) shard: AwakeShard,
    pub(super) embedders: &'a EmbedderPool,
    pub(super) kept: Option<&'a QuestionVectorCache>,
    pub(super) llm: Option<Arc<LlmClient>>,
    pub(super) reranker: Option<Arc<RerankerPool>>,
    pub(super) cancellation: &'a Cancellation,
    /// Where the times of the stages are added, if the caller asks for them.
    pub(super) times: Option<&'a AnswerStageTimes>,
}

impl Recollector {
    /// Opens the language model if the pipeline has it plan or read cues.
    pub(super) fn open(pipeline: &Pipeline) -> Result<Self, PipelineError> {
        let asks = [&pipeline.recall.planner, &pipeline.recall.cues_by].iter().any(|by| *by == LLM);
        let llm = if asks { Some(LlmClient::open(&pipeline.llm, pipeline.response_directory())?) } else { None };
        llm.as_ref().map_or(Ok(()), |llm| llm.check_key())?;
        Ok(Self { llm, reranker: Mutex::default() })
    }

    /// The reranker that the pipeline names, loaded by the first call.
    pub(super) fn reranker(&self, pipeline: &Pipeline) -> Result<Option<Arc<RerankerPool>>, RerankError> {
        let Some(settings) = &pipeline.recall.rerank else { return Ok(None) };
        let mut opened = sync::lock(&self.reranker);
        if let Some(reranker) = &*opened {
            return Ok(Some(Arc::clone(reranker)));
        }
        let reranker = Arc::new(RerankerPool::open(&pipeline.embed, &settings.model)?);
        Ok(Some(Arc::clone(opened.insert(reranker))))
    }

    /// The language model that plans or reads cues, if the pipeline names it for that.
    pub(super) fn llm(&self) -> Option<Arc<LlmClient>> {
        self.llm.clone()
    }
}

impl PreparedQuery<'_> {
    /// Recollects evidence.
    pub(super) fn recollect(&self) -> Result<Evidence, RecallError> {
        let (started, planner, reranker) = (Instant::now(), self.planner(), self.reranker());
        let mut embed = |texts: &[&str]| self.embed(texts);
        let models = self.models(&mut embed, reranker.as_ref())?;
        let planner = TimedPlanner { planner: planner.as_ref(), times: self.times };
        let found = recall::recollect(&self.memory(), models, self.question, &planner, &self.pipeline.recall);
        self.note_recollected(started);
        found
    }

    /// Explains what the answer does with a turn.
    pub(super) fn explain(&self, subject: &ExplanationQuery) -> Result<RecallExplanation, RecallError> {
        let (started, planner, reranker) = (Instant::now(), self.planner(), self.reranker());
        let mut embed = |texts: &[&str]| self.embed(texts);
        let models = self.models(&mut embed, reranker.as_ref())?;
        let planner = TimedPlanner { planner: planner.as_ref(), times: self.times };
        let settings = &self.pipeline.recall;
        let found = recall::explain(&self.memory(), models, self.question, &planner, settings, subject);
        self.note_recollected(started);
        found
    }

    /// The time until which models may work: if a model is late, the rules still need time.
    fn models_until(&self) -> Option<Instant> {
        let before = |deadline: Instant| {
            let left = deadline.saturating_duration_since(Instant::now());
            deadline.checked_sub((left / 4).min(RULES_TIME)).unwrap_or(deadline)
        };
        self.cancellation.deadline().map(before)
    }

    fn planner(&self) -> Box<dyn Planner> {
        let rules = RulesPlanner::new(&self.pipeline.model());
        let settings = &self.pipeline.recall;
        let Some(llm) = self.llm.as_ref().filter(|_| settings.planned) else {
            return if settings.planned { Box::new(rules) } else { Box::new(ExhaustivePlanner(rules)) };
        };
        // On a shared log, only the extracting process learns of deletions and can evict a response.
        let keep = self.pipeline.log.kind == LogKind::Embedded;
        let until = Instant::now() + Duration::from_secs(self.pipeline.llm.question_seconds);
        let until = self.models_until().map_or(until, |ends| until.min(ends));
        Box::new(LlmPlanner::new(Arc::clone(llm), rules, settings, until, keep))
    }

    fn reranker(&self) -> Option<DeadlineReranker<'_>> {
        let Self { cancellation, times, .. } = *self;
        let until = self.models_until();
        self.reranker.as_deref().map(|reranker| DeadlineReranker { reranker, cancellation, until, times })
    }

    fn memory(&self) -> CancellableMemory<'_> {
        CancellableMemory { memory: &self.shard.memory, cancellation: self.cancellation, times: self.times }
    }

    fn models<'m>(
        &'m self,
        embed: &'m mut EmbedFunction<'m>,
        reranker: Option<&'m DeadlineReranker<'_>>,
    ) -> Result<RecallModels<'m>, RecallError> {
        let failed = |error: EmbedError| RecallError::Embed { what: "question".to_owned(), source: error.into() };
        let model = self.embedders.model().map_err(failed)?;
        Ok(RecallModels { embed, model, rerank: reranker.map(|reranker| reranker as &dyn Reranker) })
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>, BoxError> {
        self.cancellation.check()?;
        let embedded = |texts: &[&str]| timed(self.times, AnswerStage::Embed, || self.embedders.embed_queries(texts));
        self.kept.map_or_else(|| embedded(texts), |kept| kept.get_or_embed(texts, embedded)).map_err(Into::into)
    }

    fn note_recollected(&self, started: Instant) {
        if let Some(times) = self.times {
            times.note_recollected(started.elapsed());
        }
    }
}

/// Raises the offsets of turns that an answer reflects.
pub(super) fn raise_positions(reflects: &mut [LogPosition], known: &[LogPosition]) {
    for of in reflects.iter_mut().filter(|of| of.topic == "turns") {
        let known = known.iter().filter(|known| known.topic == of.topic && known.partition == of.partition);
        of.next_offset = known.map(|known| known.next_offset).fold(of.next_offset, u64::max);
    }
}
