//! The memory that follows the memory log, and what it answers.
//!
//! In: the memory log, questions with a model to embed them. Out: evidence, counts, and how
//! far the memory reaches. Several questions may be asked at once, also while it follows.

use std::{
    collections::BTreeMap,
    sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard},
    time::Instant,
};

use crate::{
    config::Pipeline,
    embed::Embedder,
    log::Log,
    memory::{Answered, Census, CensusProbe, EdgeChanges, MemoryHandle},
    model::{Bank, BankKey, Evidence, MemoryKey, MemoryRecord, ModelRef, Question, Score},
    recall::{self, Planner, RulesPlanner, Unplanned},
};

use super::{PipelineError, reader::Reader};

/// A memory that follows a log.
pub struct Answerer {
    pipeline: Pipeline,
    memory: MemoryHandle,
    reader: RwLock<Reader>,
    /// The first offset of each turns partition that the memory does not reflect.
    reached: Mutex<BTreeMap<u32, u64>>,
    moved: Condvar,
}

impl Answerer {
    /// An empty memory; `edges` is told of every change of the graph.
    ///
    /// # Errors
    /// [`PipelineError::Memory`] when its threads cannot be started.
    pub fn new(
        pipeline: &Pipeline,
        partitions: u32,
        edges: Option<crossbeam_channel::Sender<EdgeChanges>>,
    ) -> Result<Self, PipelineError> {
        let threshold = Score::from_f64(pipeline.model().semantic_threshold);
        Ok(Self {
            memory: MemoryHandle::start(&pipeline.memory, threshold, edges)?,
            reader: RwLock::new(Reader::new(partitions)),
            reached: Mutex::default(),
            moved: Condvar::new(),
            pipeline: pipeline.clone(),
        })
    }

    /// Takes the next records of a memory partition; false when there are none. `each` sees
    /// them, with the offset after each.
    ///
    /// # Errors
    /// [`PipelineError`] that names the offset of a record that cannot be used.
    pub fn follow(
        &self,
        log: &dyn Log,
        partition: u32,
        each: impl FnMut(&MemoryKey, Option<&MemoryRecord>, u64),
    ) -> Result<bool, PipelineError> {
        let mut reader = self.reader.write().unwrap_or_else(PoisonError::into_inner);
        let Some(covers) = reader.read(log, &self.memory, partition, each)? else { return Ok(false) };
        drop(reader);
        if !covers.is_empty() {
            self.reached().extend(covers);
            self.moved.notify_all();
        }
        Ok(true)
    }

    /// The first offset of a turns partition that the memory does not reflect, where known.
    #[must_use]
    pub fn position(&self, partition: u32) -> Option<u64> {
        self.reached().get(&partition).copied()
    }

    /// Waits until the memory reflects a turns partition up to an offset; false when `until`
    /// came first.
    pub fn wait_for(&self, partition: u32, next_offset: u64, until: Instant) -> bool {
        let mut reached = self.reached();
        loop {
            if reached.get(&partition).is_some_and(|at| *at >= next_offset) {
                return true;
            }
            let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
                return false;
            };
            reached = self.moved.wait_timeout(reached, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Recollects evidence for a question.
    ///
    /// # Errors
    /// [`PipelineError`] for an unknown bank or an empty question, or when a room fails.
    pub fn ask(&self, question: &Question, embedder: &mut dyn Embedder) -> Result<Evidence, PipelineError> {
        let model_ref = embedder.model().clone();
        {
            let reader = self.reader();
            known(&reader, &question.bank)?;
            reader.check_model(Some(&model_ref))?;
        }
        let rules = RulesPlanner::new(&self.pipeline.model());
        let planner: &dyn Planner = if self.pipeline.recall.planned { &rules } else { &Unplanned(rules) };
        let mut embed = |text: &str| embedder.embed_query(text).map_err(Into::into);
        Ok(recall::recollect(&self.memory, &mut embed, question, planner, &self.pipeline.recall, &model_ref)?)
    }

    /// Counts of units and edges and a hash that depends only on the set.
    ///
    /// # Errors
    /// [`PipelineError`] for an unknown bank, or when the memory has stopped.
    pub fn digest(&self, bank: Option<&Bank>) -> Result<Answered<Census>, PipelineError> {
        bank.map_or(Ok(()), |bank| known(&self.reader(), bank))?;
        Ok(self.memory.census(CensusProbe { bank: bank.map(Bank::key), listing: false })?)
    }

    /// Waits until everything that was followed is visible, its edges handed over.
    ///
    /// # Errors
    /// [`PipelineError::Memory`].
    pub fn settle(&self) -> Result<(), PipelineError> {
        Ok(self.memory.settle().map(|_| ())?)
    }

    /// The name of a bank that the memory knows, or knew.
    #[must_use]
    pub fn bank(&self, key: BankKey) -> Option<Bank> {
        self.reader().bank(key)
    }

    /// Fails when the log was made with another model.
    pub(super) fn check_model(&self, expected: Option<&ModelRef>) -> Result<(), PipelineError> {
        self.reader().check_model(expected)
    }

    fn reader(&self) -> RwLockReadGuard<'_, Reader> {
        self.reader.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn reached(&self) -> MutexGuard<'_, BTreeMap<u32, u64>> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn known(reader: &Reader, bank: &Bank) -> Result<(), PipelineError> {
    if reader.knows(bank) {
        return Ok(());
    }
    Err(PipelineError::UnknownBank { bank: bank.clone(), known: reader.banks() })
}
