//! Requests to the language model about closed windows, made while ingestion continues (decision 26).
//!
//! In: closed windows, which have the rules' units until the model answers. Out: the units that the model makes from
//! them, in the order in which it answers. Worker threads wait for the endpoint, so that a slow or unavailable one
//! delays nothing but the model's own units. After a failure of the endpoint, or once the budget is spent, the workers
//! back off. A window that the endpoint declines, or fails on again and again, keeps the rules' units if the endpoint
//! answers a probe.

use crate::log_events;
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, Weak},
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use logs::partition_of;
use memory::extract::{DraftUnit, Extractor, rules_extractor::RulesExtractor};
use models::llm::{LlmClient, LlmError, LlmExtractor, extractor};
use types::{
    config::{ExtractSettings, LLM, Pipeline},
    model::{Bank, ModelUsage, Window, WindowId},
    sync,
    wake_signal::WakeSignal,
};

use super::PipelineError;
use pipeline::redacted_llm_error;

/// Suffix of the rules' name in a record that waits for the model.
const PROVISIONAL: &str = " until llm";
/// Between the rules' name and the model's in a record for which the model's units could not be used.
const FALLBACK: &str = " instead of ";
/// Backoff after a failure of the endpoint.
const BACKOFF: Duration = Duration::from_secs(30);

/// The extractors of a pipeline.
pub struct ExtractorSet {
    pub(super) rules: RulesExtractor,
    /// `None` if the rules are the extractor.
    pub model: Option<ModelWorkerPool>,
    /// Its cache holds responses even if the rules are the extractor, because planners ask it, too.
    llm: Option<Arc<LlmClient>>,
}

impl ExtractorSet {
    /// The extractors that the pipeline names; `news` is raised when the language model has read a window.
    ///
    /// # Errors
    /// [`PipelineError::Llm`] when there is no key, or the cache of responses cannot be used.
    pub fn new(pipeline: &Pipeline, news: &Arc<WakeSignal>) -> Result<Self, PipelineError> {
        let rules = RulesExtractor::new(&pipeline.extract);
        let set = pipeline.llm.is_set();
        let llm = if set { Some(LlmClient::open(&pipeline.llm, Some(pipeline.llm_directory()))?) } else { None };
        let mut model = None;
        if let Some(llm) = llm.as_ref().filter(|_| pipeline.extract.extractor == LLM) {
            llm.check_key()?;
            model = Some(ModelWorkerPool::start(llm, &pipeline.extract, news)?);
        }
        Ok(Self { rules, model, llm })
    }

    /// Evicts the responses of banks whose partitions are not assigned to this process: only the
    /// owner of a partition learns what is deleted there.
    pub(super) fn keep_partitions(&self, ours: impl Fn(u32) -> bool, partitions: u32) -> Result<(), PipelineError> {
        let ours = |bank: &Bank| ours(partition_of(bank, partitions));
        self.llm.as_ref().map_or(Ok(()), |llm| Ok(llm.retain_banks(ours)?))
    }

    /// Removes evicted responses from the files of the cache. Without a configured model no one evicts responses, so
    /// the whole cache is removed.
    pub(super) fn erase_cache(&self, pipeline: &Pipeline) -> Result<(), PipelineError> {
        match &self.llm {
            Some(llm) => Ok(llm.rewrite_cache()?),
            None => Ok(models::llm::remove_cache(&pipeline.llm_directory())?),
        }
    }

    /// Evicts the responses about a closed window, except the one about its current turns: that response is paid for,
    /// and a model that extracts later reads it again, even if no model extracts now.
    pub(super) fn evict_window(&self, window: &Window) -> Result<(), PipelineError> {
        let Some(llm) = &self.llm else { return Ok(()) };
        let keep = extractor::inputs(window, llm.settings());
        Ok(llm.evict_window(&window.bank, &window.id, &keep)?)
    }

    /// Evicts the responses that depend on turns which were edited or deleted.
    pub(super) fn evict_turns(&self, revised: &[(Bank, BTreeSet<String>)]) -> Result<(), PipelineError> {
        let Some(llm) = &self.llm else { return Ok(()) };
        for (bank, turns) in revised {
            llm.evict_turns(bank, turns.iter().map(String::as_str))?;
        }
        Ok(())
    }

    /// The extractor's name in the record of a window that has just closed.
    pub(super) fn provisional_name(&self, window: &Window) -> String {
        let model_will_read = self.model.is_some() && extractor::has_turns(window);
        format!("{}{}", self.rules.name(), if model_will_read { PROVISIONAL } else { "" })
    }
}

/// Whether a record with this extractor waits for a model.
pub(super) fn is_provisional(extractor: &str) -> bool {
    extractor.ends_with(PROVISIONAL)
}

/// The extractor's name in a record for which the model's units could not be used.
pub(super) fn fallback_name(rules: &RulesExtractor, extractor: &str) -> String {
    format!("{}{FALLBACK}{extractor}", rules.name())
}

/// A window on its way to the model.
struct WindowJob {
    stage: StageId,
    window: Window,
    bypass_cache: bool,
}

/// Identifies a stage: its partition, and a number among the stages that have worked on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StageId {
    pub(super) partition: u32,
    pub(super) run: u64,
}

/// A model's result for a window.
pub(super) struct ModelResult {
    stage: StageId,
    pub(super) window: Window,
    pub(super) bypass_cache: bool,
    /// The hash of the turns that the model read.
    pub(super) turns_hash: String,
    /// The extractor's name and the units, or why there are none.
    pub(super) result: Result<(String, Vec<DraftUnit>), ModelFailure>,
    /// What the response cost, even if it came from the cache.
    pub(super) usage: ModelUsage,
}

/// Why a model made no units for a window.
pub(super) enum ModelFailure {
    /// No retry helps. `extractor` is the model's name for the record.
    Refused { problem: String, response: String, extractor: String },
    /// The window has to be sent again later.
    RetryLater,
}

/// What the workers share: whether they may send, and what to warn about.
#[derive(Default)]
struct ModelWorkerStatus {
    /// Whether nothing is sent until [`ModelWorkerPool::resume`].
    paused: bool,
    back_off_until: Option<Instant>,
    /// Why the last window that has to be retried failed.
    problem: Option<String>,
}

/// The worker threads that send windows to a model.
pub struct ModelWorkerPool {
    jobs: Sender<WindowJob>,
    results: Arc<Mutex<Vec<ModelResult>>>,
    status: Arc<Mutex<ModelWorkerStatus>>,
}

impl ModelWorkerPool {
    fn start(llm: &Arc<LlmClient>, rules: &ExtractSettings, news: &Arc<WakeSignal>) -> Result<Self, PipelineError> {
        // One request stays free for questions if more than one may be in flight.
        let threads = llm.settings().in_flight.saturating_sub(1).max(1);
        let (jobs, incoming) = bounded(threads);
        let results = Arc::new(Mutex::default());
        let status = Arc::new(Mutex::default());
        for _ in 0..threads {
            let (results, status) = (Arc::clone(&results), Arc::clone(&status));
            let (rules, news) = (rules.clone(), Arc::clone(news));
            let worker = ModelWorker { llm: Arc::downgrade(llm), rules, results, status, news };
            let incoming = incoming.clone();
            // The thread ends when the sender is dropped and its last request has ended.
            std::thread::Builder::new()
                .name("llm".to_owned())
                .spawn(move || worker.run(&incoming))
                .map_err(PipelineError::Thread)?;
        }
        Ok(Self { jobs, results, status })
    }

    /// Gives a window to a worker; false if all workers are busy, or paused.
    fn submit(&self, stage: StageId, window: Window, bypass_cache: bool) -> bool {
        if self.is_paused() {
            return false;
        }
        match self.jobs.try_send(WindowJob { stage, window, bypass_cache }) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }

    /// The results for a stage since the last call. Results for earlier stages of its partition
    /// are discarded: those stages no longer exist.
    pub(super) fn take_results(&self, stage: StageId) -> Vec<ModelResult> {
        let mut results = sync::lock(&self.results);
        let mut taken: Vec<ModelResult> =
            results.extract_if(.., |result| result.stage.partition == stage.partition).collect();
        taken.retain(|result| result.stage == stage);
        taken
    }

    /// Whether nothing is sent now.
    pub fn is_paused(&self) -> bool {
        sync::lock(&self.status).is_paused()
    }

    /// Stops sending until [`Self::resume`].
    pub fn pause(&self) {
        sync::lock(&self.status).paused = true;
    }

    /// Ends a pause or a backoff at once.
    pub fn resume(&self) {
        let mut status = sync::lock(&self.status);
        (status.paused, status.back_off_until, status.problem) = (false, None, None);
    }

    /// Why windows still wait, if the endpoint is the reason.
    pub fn problem(&self) -> Option<String> {
        sync::lock(&self.status).problem.clone()
    }
}

impl ModelWorkerStatus {
    fn is_paused(&self) -> bool {
        self.paused || self.back_off_until.is_some_and(|until| Instant::now() < until)
    }

    fn back_off(&mut self, error: &LlmError) {
        let problem = error.to_string();
        if self.problem.as_ref() != Some(&problem) {
            let seconds = BACKOFF.as_secs();
            log_events::language_model_unavailable(&redacted_llm_error(error), seconds);
        }
        self.problem = Some(problem);
        self.back_off_until = Some(Instant::now() + BACKOFF);
    }
}

struct ModelWorker {
    /// Weak, so that the client can be opened again as soon as the pipeline is dropped.
    llm: Weak<LlmClient>,
    rules: ExtractSettings,
    results: Arc<Mutex<Vec<ModelResult>>>,
    status: Arc<Mutex<ModelWorkerStatus>>,
    /// Raised with each result.
    news: Arc<WakeSignal>,
}

impl ModelWorker {
    fn run(&self, jobs: &Receiver<WindowJob>) {
        for WindowJob { stage, window, bypass_cache } in jobs {
            let Some(llm) = self.llm.upgrade() else { break };
            let extractor = LlmExtractor::new(Arc::clone(&llm), &self.rules, bypass_cache);
            let paused = sync::lock(&self.status).is_paused();
            let result = if paused { Err(ModelFailure::RetryLater) } else { self.read(&extractor, &window) };
            let usage = extractor.usage();
            drop((llm, extractor));
            let turns_hash = window.turns_hash();
            sync::lock(&self.results).push(ModelResult { stage, window, bypass_cache, turns_hash, result, usage });
            self.news.raise();
        }
    }

    fn read(
        &self,
        extractor: &impl Extractor<Error = LlmError>,
        window: &Window,
    ) -> Result<(String, Vec<DraftUnit>), ModelFailure> {
        let refused = |problem: String, response: String| ModelFailure::Refused {
            problem,
            response,
            extractor: extractor.name().to_owned(),
        };
        // A thread that panicked would never return its window.
        let read = catch_unwind(AssertUnwindSafe(|| extractor.extract(window)));
        let mut status = sync::lock(&self.status);
        match read {
            Ok(Ok(drafts)) => {
                status.problem = None;
                Ok((extractor.name().to_owned(), drafts))
            }
            Ok(Err(LlmError::InvalidReply { problem, reply, .. })) => Err(refused(problem, reply)),
            // The endpoint answers other requests.
            Ok(Err(error @ (LlmError::Rejected { .. } | LlmError::TooLong { .. }))) => {
                Err(refused(error.to_string(), String::new()))
            }
            Ok(Err(error)) => {
                status.back_off(&error);
                Err(ModelFailure::RetryLater)
            }
            Err(_) => Err(refused(
                "the extractor panicked on it; this is a defect, please report it".to_owned(),
                String::new(),
            )),
        }
    }
}

/// The windows of a partition that wait for the model.
#[derive(Debug, Default)]
pub(super) struct WaitingWindows {
    /// The windows that are not sent yet; true if a window is sent again without using the cache.
    due: BTreeMap<(Bank, WindowId), bool>,
    /// The last window that was sent. The search continues after it, so that a window that is retried comes after the
    /// others.
    last: Option<(Bank, WindowId)>,
    /// The number of windows that the workers have, of each bank.
    in_flight: BTreeMap<Bank, usize>,
}

impl WaitingWindows {
    /// Adds a window, or adds it again.
    pub(super) fn add(&mut self, bank: &Bank, window: &WindowId, bypass_cache: bool) {
        *self.due.entry((bank.clone(), window.clone())).or_default() |= bypass_cache;
    }

    /// How many wait or are in flight.
    pub(super) fn count(&self) -> usize {
        self.due.len() + self.in_flight()
    }

    /// How many windows the workers have.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.values().sum()
    }

    /// Whether windows of a bank wait or are in flight.
    pub(super) fn holds(&self, bank: &Bank) -> bool {
        self.in_flight.contains_key(bank) || self.due.keys().any(|(of, _)| of == bank)
    }

    /// Counts a window of a bank that a worker has returned.
    pub(super) fn note_returned(&mut self, bank: &Bank) {
        if let Some(count) = self.in_flight.get_mut(bank) {
            *count -= 1;
            if *count == 0 {
                self.in_flight.remove(bank);
            }
        }
    }

    /// Sends windows to the workers until they are all busy; `window` returns a window with its current turns.
    pub(super) fn send_windows(
        &mut self,
        stage: StageId,
        background: &ModelWorkerPool,
        window: impl Fn(&Bank, &WindowId) -> Option<Window>,
    ) {
        while let Some((id, bypass_cache)) = self.next() {
            if let Some(window) = window(&id.0, &id.1) {
                if !background.submit(stage, window, bypass_cache) {
                    break;
                }
                *self.in_flight.entry(id.0.clone()).or_default() += 1;
            }
            // It was sent, or no longer exists.
            self.due.remove(&id);
            self.last = Some(id);
        }
    }

    fn next(&self) -> Option<((Bank, WindowId), bool)> {
        let behind = self.last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.due.range((behind, Bound::Unbounded)).next().or_else(|| self.due.first_key_value());
        next.map(|(id, bypass_cache)| (id.clone(), *bypass_cache))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::model::SessionId;

    struct PanickingExtractor;

    impl Extractor for PanickingExtractor {
        type Error = LlmError;

        fn name(&self) -> &str {
            "panics"
        }

        fn extract(&self, _: &Window) -> Result<Vec<DraftUnit>, LlmError> {
            panic!("on purpose")
        }
    }

    #[test]
    fn a_window_on_which_the_extractor_panics_is_refused_and_the_next_is_read() {
        let worker = ModelWorker {
            llm: Weak::new(),
            rules: Pipeline::parse("version = 1").expect("a pipeline").extract,
            results: Arc::default(),
            status: Arc::default(),
            news: Arc::default(),
        };
        let id = WindowId { session: SessionId("s".to_owned()), start: 0 };
        let window = Window { bank: Bank::parse("b").expect("a name"), id, turns: Vec::new() };
        for _ in 0..2 {
            let Err(ModelFailure::Refused { problem, extractor, .. }) = worker.read(&PanickingExtractor, &window)
            else {
                panic!("not refused")
            };
            assert!(problem.contains("report it") && extractor == "panics", "{problem}");
        }
    }
}
