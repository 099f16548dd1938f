//! A memory that this process holds.
//!
//! In: a pipeline with an embedded log. Out: what the tools ask of it. The directory is this process's
//! until it is dropped.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    access::{AskedOfMemory, MemoryAccess, MemoryState, Stored, ToolError},
    tools::Counts,
};
use crate::{
    config::{LogKind, Pipeline},
    llm::{Llm, LlmError},
    log::Written,
    model::{Bank, Evidence, TurnEvent},
    pipeline::{Asked, Memory, MemoryOptions, PipelineError, parse_as_of},
    recall::{self, Answer},
};

pub(super) struct LocalMemory {
    memory: Memory,
    llm: Option<Arc<Llm>>,
    pipeline: Pipeline,
    say: Arc<dyn Fn(&str) + Send + Sync>,
}

impl LocalMemory {
    /// Opens the memory, or creates it. `say` takes messages for people.
    pub(super) fn open(pipeline: &Pipeline, say: &Arc<dyn Fn(&str) + Send + Sync>) -> Result<Self, ToolError> {
        if pipeline.log.kind == LogKind::Kafka {
            let why = "log.kind is \"kafka\": the tools reach a memory in a directory; name a pipeline file with an \
                       embedded log";
            return Err(ToolError(why.to_owned()));
        }
        let llm = if pipeline.llm.is_set() {
            Some(Llm::open(&pipeline.llm, pipeline.responses()).map_err(PipelineError::from)?)
        } else {
            None
        };
        let heard = Arc::clone(say);
        let options = MemoryOptions { edges: None, say: Box::new(move |text| heard(text)), progress: &mut |_| {} };
        let memory = Memory::open_with(pipeline, options)?;
        Ok(Self { memory, llm, pipeline: pipeline.clone(), say: Arc::clone(say) })
    }

    /// A question as the memory's front takes it.
    fn asked(&self, asked: AskedOfMemory) -> Result<Asked, ToolError> {
        let AskedOfMemory { question, after, as_of, cancellation } = asked;
        let after = after.filter(|text| !text.trim().is_empty());
        let as_of = as_of.filter(|text| !text.trim().is_empty());
        let wrong = |name: &str, text: &str, form: &str| ToolError(format!("{name}: {text:?}; {form}"));
        let as_of = as_of
            .map(|text| {
                parse_as_of(&text).ok_or_else(|| wrong("as_of", &text, "give a time in RFC 3339, or an offset"))
            })
            .transpose()?;
        let written = after
            .map(|text| {
                let form = "give `after` as remember or forget returned it";
                Written::parse(&text, self.memory.partitions()).ok_or_else(|| wrong("after", &text, form))
            })
            .transpose()?;
        let asked = Asked { as_of, cancellation, ..Asked::now(question) };
        Ok(match &written {
            Some(written) => asked.after(written),
            None => asked,
        })
    }
}

impl MemoryAccess for LocalMemory {
    fn put(&self, events: Vec<TurnEvent>, wait: Duration) -> Result<Stored, ToolError> {
        let written = self.memory.put(events)?;
        let included = self.memory.wait_for(&written, Instant::now() + wait);
        Ok(Stored { included, after: written.to_string() })
    }

    fn ask(&self, asked: AskedOfMemory) -> Result<Evidence, ToolError> {
        Ok(self.memory.ask_and_wait(self.asked(asked)?)?)
    }

    fn answer(&self, asked: AskedOfMemory) -> Result<(Evidence, Answer), ToolError> {
        let Some(llm) = &self.llm else {
            let why = format!("{}; or use recall and answer from its text", LlmError::NotConfigured);
            return Err(ToolError(why));
        };
        let cancellation = asked.cancellation.clone();
        let evidence = self.ask(asked)?;
        // Whoever cancelled must not pay for an answer.
        cancellation.check().map_err(|ended| ToolError(format!("{ended}; ask again")))?;
        let until = Instant::now() + Duration::from_secs(self.pipeline.llm.timeout_seconds);
        let answer = recall::answer(llm, &evidence, Some(until), &mut |_| {}).map_err(PipelineError::from)?;
        Ok((evidence, answer))
    }

    fn banks(&self) -> Result<Vec<Bank>, ToolError> {
        Ok(self.memory.banks())
    }

    fn counts(&self, bank: &Bank) -> Result<Counts, ToolError> {
        let census = self.memory.digest(Some(bank))?.value;
        let edges = census.semantic_edges + census.structural_edges;
        Ok(Counts { bank: bank.clone(), units: census.units, edges })
    }

    fn state(&self) -> Result<MemoryState, ToolError> {
        let status = self.memory.status();
        Ok(MemoryState {
            language_model: self.llm.as_ref().map(|_| self.pipeline.llm.model.clone()),
            behind: status.behind,
            waiting_for_model: status.waiting_for_model,
            problem: status.problem,
        })
    }

    fn close(&self) {
        if let Err(error) = self.memory.snapshot() {
            (self.say)(&error.to_string());
        }
    }
}
