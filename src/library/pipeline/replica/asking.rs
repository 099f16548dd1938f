//! Asks a question of the shard that holds its bank.
//!
//! In: a shard, a question, the embedders, and how long someone waits. Out: evidence. The language model's timeout ends
//! before the deadline, so that the rules can still answer. After the deadline, no text is embedded and no hop begins.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use heart::recall::{self, EmbedTexts, Explained, Memory, Planner, RecallError, RulesPlanner, Unplanned};
use models::{
    embed::{EmbedderPool, KeptVectors},
    llm::{Llm, LlmError, LlmPlanner},
};
use nouns::{
    config::{LLM, LogKind, Pipeline, RecallSettings},
    model::{Evidence, ModelRef, Question, Subject},
};

use super::{
    AnswerStage, Cancellation, StageTimes,
    recall_memory::{AskedMemory, TimedPlanner},
    shard::Shard,
    timed,
};

/// The maximum time before a question's deadline that is kept for the rules.
const RULES_TIME: Duration = Duration::from_secs(1);

/// The planners of a pipeline, and how questions are recollected.
pub(super) struct Recollector {
    /// Plans, or reads cues, if the pipeline names it for that.
    llm: Option<Arc<Llm>>,
}

/// Where a question is recollected. Texts whose vectors are `kept` are not embedded.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) pipeline: &'a Pipeline,
    pub(super) shard: &'a Shard,
    pub(super) embedders: &'a EmbedderPool,
    pub(super) kept: Option<&'a KeptVectors>,
    pub(super) cancellation: &'a Cancellation,
    /// Where the times of the stages are added, if somebody asks for them.
    pub(super) times: Option<&'a StageTimes>,
}

/// What a recollection works with.
struct Means<'a, 'e> {
    memory: &'a dyn Memory,
    embed: &'a mut EmbedTexts<'e>,
    planner: &'a dyn Planner,
    settings: &'a RecallSettings,
    model: &'a ModelRef,
}

impl Recollector {
    /// Opens the language model if the pipeline has it plan or read cues.
    pub(super) fn open(pipeline: &Pipeline) -> Result<Self, LlmError> {
        let asks = [&pipeline.recall.planner, &pipeline.recall.cues_by].iter().any(|by| *by == LLM);
        let llm = if asks { Some(Llm::open(&pipeline.llm, pipeline.responses())?) } else { None };
        llm.as_ref().map_or(Ok(()), |llm| llm.check_key())?;
        Ok(Self { llm })
    }

    /// Recollects evidence for a question.
    pub(super) fn recollect(&self, asking: &Asking<'_>, question: &Question) -> Result<Evidence, RecallError> {
        self.with(asking, |Means { memory, embed, planner, settings, model }| {
            recall::recollect(memory, embed, question, planner, settings, model)
        })
    }

    /// Explains what the answer to a question did to a turn.
    pub(super) fn explain(
        &self,
        asking: &Asking<'_>,
        question: &Question,
        subject: &Subject,
    ) -> Result<Explained, RecallError> {
        self.with(asking, |Means { memory, embed, planner, settings, model }| {
            recall::explain(memory, embed, question, planner, settings, model, subject)
        })
    }

    fn with<T>(
        &self,
        asking: &Asking<'_>,
        recollect: impl FnOnce(Means<'_, '_>) -> Result<T, RecallError>,
    ) -> Result<T, RecallError> {
        let Asking { pipeline, shard, embedders, kept, cancellation, times } = *asking;
        let rules = RulesPlanner::new(&pipeline.model());
        // On a shared log, only the extracting process learns of deletions and can evict a response.
        let (settings, keep) = (&pipeline.recall, pipeline.log.kind == LogKind::Embedded);
        let until = Instant::now() + Duration::from_secs(pipeline.llm.question_seconds);
        // The rules need time, too, if the model is late.
        let before = |deadline: Instant| {
            let left = deadline.saturating_duration_since(Instant::now());
            deadline.checked_sub((left / 4).min(RULES_TIME)).unwrap_or(deadline)
        };
        let until = cancellation.deadline().map_or(until, |deadline| until.min(before(deadline)));
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
        let (planner, started) = (TimedPlanner { planner, times }, Instant::now());
        let found = recollect(Means { memory: &memory, embed: &mut embed, planner: &planner, settings, model });
        if let Some(times) = times {
            times.note_recollected(started.elapsed());
        }
        found
    }
}
