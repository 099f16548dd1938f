//! Windows that a language model reads while everything else goes on.
//!
//! In: closed windows, whose units are the rules' until then. Out: what the model made of
//! them, in the order in which it was done. Threads of their own wait for the endpoint, and
//! nobody waits for them: a slow or dead endpoint delays nothing but the model's own units.
//! Where the endpoint is away, or the money is spent, nothing is sent for a while.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use crate::{
    config::{LLM, Pipeline},
    extract::{self, DraftUnit, ExtractError, Extractor, llm::LlmExtractor, rules::RulesExtractor},
    llm::{Llm, LlmError},
    model::{Bank, Window, WindowId},
};

use super::PipelineError;

/// What stands behind the rules' name in a record that waits for the model.
const WAITS: &str = " until llm";
/// What stands there where the model's units could not be used.
const REFUSED: &str = " instead of ";
/// How long nothing is sent after the endpoint was away.
const REST: Duration = Duration::from_secs(30);

/// The extractors of a pipeline.
pub(super) struct Extractors {
    pub(super) rules: RulesExtractor,
    /// Absent where the rules are the extractor.
    pub(super) model: Option<Background>,
    /// Whatever asks it: what was said about a window goes when the window changes.
    llm: Option<Arc<Llm>>,
}

impl Extractors {
    /// Those that the pipeline names.
    ///
    /// # Errors
    /// [`PipelineError::Llm`] when there is no key, or the cache of responses cannot be used.
    pub(super) fn new(pipeline: &Pipeline) -> Result<Self, PipelineError> {
        let rules = RulesExtractor::new(&pipeline.extract);
        let set = pipeline.llm.is_set();
        let llm = if set { Some(Llm::open(&pipeline.llm, pipeline.llm_directory())?) } else { None };
        let mut model = None;
        if let Some(llm) = llm.as_ref().filter(|_| pipeline.extract.extractor == LLM) {
            llm.check_key()?;
            model = Some(Background::start(llm)?);
        }
        Ok(Self { rules, model, llm })
    }

    /// Lets go of responses that rest on a window or its turns, but for the one to the turns
    /// as they are.
    pub(super) fn release(&self, window: &Window) -> Result<(), PipelineError> {
        let keep = self.model.as_ref().map(|_| extract::llm::input(window));
        self.llm.as_ref().map_or(Ok(()), |llm| Ok(llm.release(window, keep.as_deref())?))
    }

    /// Whether a window's units are only the rules' until the model has read it.
    pub(super) fn awaits(&self, window: &Window) -> bool {
        self.model.is_some() && extract::llm::has_turns(window)
    }

    /// Who made the units of a closed window, as its record says it.
    pub(super) fn provisional(&self, window: &Window) -> String {
        let waits = if self.awaits(window) { WAITS } else { "" };
        format!("{}{waits}", self.rules.name())
    }
}

/// Whether a record with this extractor waits for a model.
pub(super) fn waits(extractor: &str) -> bool {
    extractor.ends_with(WAITS)
}

/// A window on its way to the model.
struct Job {
    partition: u32,
    window: Window,
    anew: bool,
}

/// What a model made of a window.
pub(super) struct Arrived {
    partition: u32,
    pub(super) window: Window,
    pub(super) anew: bool,
    /// The hash of the turns that it read.
    pub(super) turns_hash: String,
    /// The units and their extractor's name; or why there are none.
    pub(super) result: Result<(String, Vec<DraftUnit>), Failed>,
}

/// Why a model made nothing of a window.
pub(super) enum Failed {
    /// It never will: why, what it said, and the name for the record.
    Refused { problem: String, said: String, extractor: String },
    /// It may, another time.
    Later,
}

/// What is to be told, and when to go on.
#[derive(Default)]
struct Standing {
    rest_until: Option<Instant>,
    /// Why the last window failed that is to be tried again.
    problem: Option<String>,
    told: Vec<String>,
}

/// Threads that ask a model.
pub(super) struct Background {
    work: Sender<Job>,
    done: Arc<Mutex<Vec<Arrived>>>,
    standing: Arc<Mutex<Standing>>,
}

impl Background {
    fn start(llm: &Arc<Llm>) -> Result<Self, PipelineError> {
        // One request is left for questions, where more than one may be in flight.
        let threads = llm.settings().in_flight.saturating_sub(1).max(1);
        let (work, jobs) = bounded(threads);
        let done = Arc::new(Mutex::default());
        let standing = Arc::new(Mutex::default());
        for _ in 0..threads {
            let worker = Worker { llm: Arc::downgrade(llm), done: Arc::clone(&done), standing: Arc::clone(&standing) };
            let jobs = jobs.clone();
            // It ends when the sender is gone and its last request has ended.
            std::thread::Builder::new()
                .name("llm".to_owned())
                .spawn(move || worker.run(&jobs))
                .map_err(PipelineError::Thread)?;
        }
        let told = llm.take_warning();
        lock(&standing).told.extend(told);
        Ok(Self { work, done, standing })
    }

    /// Hands a window to the model; gives it back when there is no room, or nothing is sent now.
    pub(super) fn submit(&self, partition: u32, window: Window, anew: bool) -> bool {
        if self.rests() {
            return false;
        }
        match self.work.try_send(Job { partition, window, anew }) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }

    /// What was done for a partition since the last call.
    pub(super) fn arrived(&self, partition: u32) -> Vec<Arrived> {
        let mut done = lock(&self.done);
        done.extract_if(.., |a| a.partition == partition).collect()
    }

    /// Whether nothing is sent now, because of what happened last.
    pub(super) fn rests(&self) -> bool {
        lock(&self.standing).rest_until.is_some_and(|until| Instant::now() < until)
    }

    /// Goes on at once, whatever happened before.
    pub(super) fn wake(&self) {
        let mut standing = lock(&self.standing);
        (standing.rest_until, standing.problem) = (None, None);
    }

    /// Why windows still wait, where the endpoint is the reason.
    pub(super) fn problem(&self) -> Option<String> {
        lock(&self.standing).problem.clone()
    }

    /// What a user should know; each is said once.
    pub(super) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.standing).told)
    }
}

struct Worker {
    /// Held only while there is something to ask: whoever is done with the pipeline can open
    /// the client anew.
    llm: Weak<Llm>,
    done: Arc<Mutex<Vec<Arrived>>>,
    standing: Arc<Mutex<Standing>>,
}

impl Worker {
    fn run(&self, jobs: &Receiver<Job>) {
        for Job { partition, window, anew } in jobs {
            let Some(llm) = self.llm.upgrade() else { break };
            let extractor = LlmExtractor::new(llm, anew);
            let result = match extractor.extract(&window) {
                Ok(drafts) => {
                    lock(&self.standing).problem = None;
                    Ok((extractor.name().to_owned(), drafts))
                }
                Err(ExtractError::Model(LlmError::Unusable { problem, said, .. })) => {
                    Err(Failed::Refused { problem, said, extractor: extractor.name().to_owned() })
                }
                Err(error) => {
                    self.rest(&error.to_string());
                    Err(Failed::Later)
                }
            };
            drop(extractor);
            let turns_hash = window.turns_hash();
            lock(&self.done).push(Arrived { partition, window, anew, turns_hash, result });
        }
    }

    fn rest(&self, problem: &str) {
        let mut standing = lock(&self.standing);
        if standing.problem.as_deref() != Some(problem) {
            standing.told.push(format!("{problem}; the rules' units stand in until the model's arrive"));
        }
        standing.problem = Some(problem.to_owned());
        standing.rest_until = Some(Instant::now() + REST);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The windows of a partition that wait for the model.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Not handed over yet; true: to be asked anew, whatever is known.
    due: BTreeMap<(Bank, WindowId), bool>,
    /// With the model.
    at_work: usize,
}

impl Waiting {
    /// A window waits, for the first time or again.
    pub(super) fn add(&mut self, bank: &Bank, window: &WindowId, anew: bool) {
        self.due.insert((bank.clone(), window.clone()), anew);
    }

    /// How many wait or are at work.
    pub(super) fn count(&self) -> usize {
        self.due.len() + self.at_work
    }

    /// How many the model has in hand.
    pub(super) fn at_work(&self) -> usize {
        self.at_work
    }

    /// A window came back.
    pub(super) fn came_back(&mut self) {
        self.at_work = self.at_work.saturating_sub(1);
    }

    /// Hands over as many as there is room for; `window` finds one as it is now.
    pub(super) fn hand_over(
        &mut self,
        partition: u32,
        background: &Background,
        window: impl Fn(&Bank, &WindowId) -> Option<Window>,
    ) {
        while let Some(entry) = self.due.first_entry() {
            let ((bank, id), anew) = (entry.key(), *entry.get());
            if let Some(window) = window(bank, id) {
                if !background.submit(partition, window, anew) {
                    break;
                }
                self.at_work += 1;
            }
            // Handed over, or no more.
            entry.remove();
        }
    }
}

/// The name of the rules in the record of a window whose model's units could not be used.
pub(super) fn instead_of(rules: &RulesExtractor, extractor: &str) -> String {
    format!("{}{REFUSED}{extractor}", rules.name())
}
