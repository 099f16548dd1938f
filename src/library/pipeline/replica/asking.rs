//! Asks a question of the shard that holds its bank.
//!
//! In: a shard, a question, the embedders, a reranker, and how long someone waits. Out: evidence. The timeouts of the
//! language model and of the reranker end before the deadline, so that an answer can still be found without them. After
//! the deadline, no text is embedded and no hop begins.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use heart::recall::{self, AskedModels, Explained, Memory, Planner, RecallError, Rerank, RulesPlanner, Unplanned};
use models::{
    embed::{EmbedderPool, KeptVectors},
    llm::{Llm, LlmPlanner},
    rerank::{RerankError, RerankerPool},
};
use nouns::{
    config::{LLM, LogKind, Pipeline, RecallSettings},
    model::{Evidence, Position, Question, Subject},
    sync,
};

use super::{
    AnswerStage, Cancellation, PipelineError, StageTimes,
    recall_memory::{AskedMemory, AskedReranker, TimedPlanner},
    shard::Shard,
    timed,
};

/// The maximum time before a question's deadline that is kept for an answer without the models.
const RULES_TIME: Duration = Duration::from_secs(1);

/// The planners of a pipeline, and how questions are recollected.
pub(super) struct Recollector {
    /// Plans, or reads cues, if the pipeline names it for that.
    llm: Option<Arc<Llm>>,
    /// Opened when questions may come, since a memory that answers none needs no model.
    reranker: Mutex<Option<Arc<RerankerPool>>>,
}

/// Where a question is recollected. Texts whose vectors are `kept` are not embedded.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) pipeline: &'a Pipeline,
    pub(super) shard: &'a Shard,
    pub(super) embedders: &'a EmbedderPool,
    pub(super) kept: Option<&'a KeptVectors>,
    pub(super) reranker: Option<&'a RerankerPool>,
    pub(super) cancellation: &'a Cancellation,
    /// Where the times of the stages are added, if somebody asks for them.
    pub(super) times: Option<&'a StageTimes>,
}

/// What a recollection works with.
struct Means<'a> {
    memory: &'a dyn Memory,
    models: AskedModels<'a>,
    planner: &'a dyn Planner,
    settings: &'a RecallSettings,
}

impl Recollector {
    /// Opens the language model if the pipeline has it plan or read cues.
    pub(super) fn open(pipeline: &Pipeline) -> Result<Self, PipelineError> {
        let asks = [&pipeline.recall.planner, &pipeline.recall.cues_by].iter().any(|by| *by == LLM);
        let llm = if asks { Some(Llm::open(&pipeline.llm, pipeline.responses())?) } else { None };
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

    /// Recollects evidence for a question.
    pub(super) fn recollect(&self, asking: &Asking<'_>, question: &Question) -> Result<Evidence, RecallError> {
        self.with(asking, |Means { memory, models, planner, settings }| {
            recall::recollect(memory, models, question, planner, settings)
        })
    }

    /// Explains what the answer to a question did to a turn.
    pub(super) fn explain(
        &self,
        asking: &Asking<'_>,
        question: &Question,
        subject: &Subject,
    ) -> Result<Explained, RecallError> {
        self.with(asking, |Means { memory, models, planner, settings }| {
            recall::explain(memory, models, question, planner, settings, subject)
        })
    }

    fn with<T>(
        &self,
        asking: &Asking<'_>,
        recollect: impl FnOnce(Means<'_>) -> Result<T, RecallError>,
    ) -> Result<T, RecallError> {
        let Asking { pipeline, shard, embedders, kept, reranker, cancellation, times } = *asking;
        let rules = RulesPlanner::new(&pipeline.model());
        // On a shared log, only the extracting process learns of deletions and can evict a response.
        let (settings, keep) = (&pipeline.recall, pipeline.log.kind == LogKind::Embedded);
        let until = Instant::now() + Duration::from_secs(pipeline.llm.question_seconds);
        // The rules need time, too, if the model is late.
        let before = |deadline: Instant| {
            let left = deadline.saturating_duration_since(Instant::now());
            deadline.checked_sub((left / 4).min(RULES_TIME)).unwrap_or(deadline)
        };
        let models_until = cancellation.deadline().map(before);
        let until = models_until.map_or(until, |ends| until.min(ends));
        let model = self.llm.as_ref().map(|llm| LlmPlanner::new(Arc::clone(llm), rules, settings, until, keep));
        let planner: &dyn Planner = match &model {
            _ if !settings.planned => &Unplanned(rules),
            Some(model) => model,
            None => &rules,
        };
        let mut embed = |texts: &[&str]| {
            cancellation.check()?;
            let embedded = |texts: &[&str]| timed(times, AnswerStage::Embed, || embedders.embed_queries(texts));
            kept.map_or_else(|| embedded(texts), |kept| kept.of(texts, embedded)).map_err(Into::into)
        };
        let memory = AskedMemory { memory: &shard.memory, cancellation, times };
        let model = embedders
            .model()
            .map_err(|error| RecallError::Embed { what: "question".to_owned(), source: error.into() })?;
        let reranker = reranker.map(|reranker| AskedReranker { reranker, cancellation, until: models_until, times });
        let rerank = reranker.as_ref().map(|reranker| reranker as &dyn Rerank);
        let models = AskedModels { embed: &mut embed, model, rerank };
        let (planner, started) = (TimedPlanner { planner, times }, Instant::now());
        let found = recollect(Means { memory: &memory, models, planner: &planner, settings });
        if let Some(times) = times {
            times.note_recollected(started.elapsed());
        }
        found
    }
}

/// Raises the offsets of turns in what an answer reflects.
pub(super) fn raise_turns(reflects: &mut [Position], known: &[Position]) {
    for of in reflects.iter_mut().filter(|of| of.topic == "turns") {
        let known = known.iter().filter(|known| known.topic == of.topic && known.partition == of.partition);
        of.next_offset = known.map(|known| known.next_offset).fold(of.next_offset, u64::max);
    }
}
