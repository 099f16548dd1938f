//! Windows that a language model reads while everything else goes on.
//!
//! In: closed windows, whose units are the rules' until then. Out: what the model made of
//! them, in the order in which it was done. Threads of their own wait for the endpoint, and
//! nobody waits for them: a slow or dead endpoint delays nothing but the model's own units.
//! Where the endpoint is away, or the money is spent, nothing is sent for a while. A window
//! that the endpoint does not take, though it takes others, keeps the rules' units.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, Weak},
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use crate::{
    config::{LLM, Pipeline},
    extract::{self, DraftUnit, ExtractError, Extractor, llm::LlmExtractor, rules::RulesExtractor},
    llm::{Llm, LlmError},
    log::partition_of,
    model::{Bank, Usage, Window, WindowId},
    sync,
};

use super::PipelineError;

/// What stands behind the rules' name in a record that waits for the model.
const WAITS: &str = " until llm";
/// What stands there where the model's units could not be used.
const REFUSED: &str = " instead of ";
/// How long nothing is sent after the endpoint was away.
const REST: Duration = Duration::from_secs(30);
/// Windows in a row that an endpoint may decline before it ever took one: past that the fault
/// is taken to be with what is sent to it, not with the windows.
const DECLINED: u32 = 8;

/// The extractors of a pipeline.
pub(super) struct Extractors {
    pub(super) rules: RulesExtractor,
    /// Absent where the rules are the extractor.
    pub(super) model: Option<Background>,
    /// What this process keeps of what any part of it was told.
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
        let llm = if set { Some(Llm::open(&pipeline.llm, Some(pipeline.llm_directory()))?) } else { None };
        let mut model = None;
        if let Some(llm) = llm.as_ref().filter(|_| pipeline.extract.extractor == LLM) {
            llm.check_key()?;
            model = Some(Background::start(llm)?);
        }
        Ok(Self { rules, model, llm })
    }

    /// Lets go of responses of banks that are not in these partitions.
    pub(super) fn keep_partitions(&self, ours: impl Fn(u32) -> bool, partitions: u32) -> Result<(), PipelineError> {
        let ours = |bank: &Bank| ours(partition_of(bank, partitions));
        self.llm.as_ref().map_or(Ok(()), |llm| Ok(llm.keep_banks(ours)?))
    }

    /// Lets go of responses about a closed window, but for the one to its turns as they are.
    pub(super) fn release_window(&self, window: &Window) -> Result<(), PipelineError> {
        let Some(llm) = &self.llm else { return Ok(()) };
        let keep = self.model.as_ref().map(|_| extract::llm::input(window));
        Ok(llm.release_window(&window.bank, &window.id, keep.as_deref())?)
    }

    /// Lets go of responses that rest on turns which are not what they were.
    pub(super) fn release_turns(&self, revised: &[(Bank, BTreeSet<String>)]) -> Result<(), PipelineError> {
        let Some(llm) = &self.llm else { return Ok(()) };
        for (bank, turns) in revised {
            llm.release_turns(bank, turns.iter().map(String::as_str))?;
        }
        Ok(())
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
    stage: StageId,
    window: Window,
    anew: bool,
}

/// Who asked: a partition, and which of those that worked on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StageId {
    pub(super) partition: u32,
    pub(super) run: u64,
}

/// What a model made of a window.
pub(super) struct Arrived {
    stage: StageId,
    pub(super) window: Window,
    pub(super) anew: bool,
    /// The hash of the turns that it read.
    pub(super) turns_hash: String,
    /// The units and their extractor's name; or why there are none.
    pub(super) result: Result<(String, Vec<DraftUnit>), Failed>,
    /// What it took, also when it was paid for before.
    pub(super) took: Usage,
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
    /// Nothing is sent until somebody says so.
    held: bool,
    rest_until: Option<Instant>,
    /// It has taken a window.
    took: bool,
    /// Windows that it did not take, before it took one.
    declined: u32,
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
        sync::lock(&standing).told.extend(llm.take_warnings());
        Ok(Self { work, done, standing })
    }

    /// Hands a window to the model; gives it back when there is no room, or nothing is sent now.
    fn submit(&self, stage: StageId, window: Window, anew: bool) -> bool {
        if self.rests() {
            return false;
        }
        match self.work.try_send(Job { stage, window, anew }) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }

    /// What was done for a stage since the last call; what was done for those before it on its
    /// partition is theirs, and they are gone.
    pub(super) fn arrived(&self, stage: StageId) -> Vec<Arrived> {
        let mut done = sync::lock(&self.done);
        let mut arrived: Vec<Arrived> = done.extract_if(.., |a| a.stage.partition == stage.partition).collect();
        arrived.retain(|a| a.stage == stage);
        arrived
    }

    /// Whether nothing is sent now.
    pub(super) fn rests(&self) -> bool {
        sync::lock(&self.standing).rests()
    }

    /// Sends nothing until it is woken.
    pub(super) fn hold(&self) {
        sync::lock(&self.standing).held = true;
    }

    /// Goes on at once, whatever happened before.
    pub(super) fn wake(&self) {
        let mut standing = sync::lock(&self.standing);
        (standing.held, standing.rest_until, standing.problem, standing.declined) = (false, None, None, 0);
    }

    /// Why windows still wait, where the endpoint is the reason.
    pub(super) fn problem(&self) -> Option<String> {
        sync::lock(&self.standing).problem.clone()
    }

    /// What a user should know; each is said once.
    pub(super) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut sync::lock(&self.standing).told)
    }
}

impl Standing {
    fn rests(&self) -> bool {
        self.held || self.rest_until.is_some_and(|until| Instant::now() < until)
    }

    fn rest(&mut self, problem: &str) {
        if self.problem.as_deref() != Some(problem) {
            self.told.push(format!("{problem}; the rules' units stand in until the model's arrive"));
        }
        self.problem = Some(problem.to_owned());
        self.rest_until = Some(Instant::now() + REST);
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
        for Job { stage, window, anew } in jobs {
            let Some(llm) = self.llm.upgrade() else { break };
            let extractor = LlmExtractor::new(Arc::clone(&llm), anew);
            let result =
                if sync::lock(&self.standing).rests() { Err(Failed::Later) } else { self.read(&extractor, &window) };
            let took = extractor.took();
            sync::lock(&self.standing).told.extend(llm.take_warnings());
            drop((llm, extractor));
            let turns_hash = window.turns_hash();
            sync::lock(&self.done).push(Arrived { stage, window, anew, turns_hash, result, took });
        }
    }

    fn read(&self, extractor: &dyn Extractor, window: &Window) -> Result<(String, Vec<DraftUnit>), Failed> {
        let refused =
            |problem: String, said: String| Failed::Refused { problem, said, extractor: extractor.name().to_owned() };
        // A thread that ended would leave its window waiting for ever.
        let read = catch_unwind(AssertUnwindSafe(|| extractor.extract(window)));
        let mut standing = sync::lock(&self.standing);
        match read {
            Ok(Ok(drafts)) => {
                (standing.problem, standing.took) = (None, true);
                Ok((extractor.name().to_owned(), drafts))
            }
            Ok(Err(ExtractError::Model(LlmError::Unusable { problem, said, .. }))) => {
                standing.took = true;
                Err(refused(problem, said))
            }
            Ok(Err(ExtractError::Model(error @ LlmError::Declined { .. }))) => {
                if standing.took {
                    return Err(refused(error.to_string(), String::new()));
                }
                standing.declined += 1;
                if standing.declined >= DECLINED {
                    standing.rest(&error.to_string());
                }
                standing.problem = Some(error.to_string());
                Err(Failed::Later)
            }
            Ok(Err(error)) => {
                standing.rest(&error.to_string());
                Err(Failed::Later)
            }
            Err(_) => {
                Err(refused("reading it broke off; this is a defect, please report it".to_owned(), String::new()))
            }
        }
    }
}

/// The windows of a partition that wait for the model.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Not handed over yet; true: to be asked anew, whatever is known.
    due: BTreeMap<(Bank, WindowId), bool>,
    /// The one that was handed over last: one that comes back is behind the others then.
    last: Option<(Bank, WindowId)>,
    /// With the model.
    at_work: usize,
}

impl Waiting {
    /// A window waits, for the first time or again.
    pub(super) fn add(&mut self, bank: &Bank, window: &WindowId, anew: bool) {
        *self.due.entry((bank.clone(), window.clone())).or_default() |= anew;
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
        stage: StageId,
        background: &Background,
        window: impl Fn(&Bank, &WindowId) -> Option<Window>,
    ) {
        while let Some((id, anew)) = self.next() {
            if let Some(window) = window(&id.0, &id.1) {
                if !background.submit(stage, window, anew) {
                    break;
                }
                self.at_work += 1;
            }
            // Handed over, or no more.
            self.due.remove(&id);
            self.last = Some(id);
        }
    }

    fn next(&self) -> Option<((Bank, WindowId), bool)> {
        let behind = self.last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.due.range((behind, Bound::Unbounded)).next().or_else(|| self.due.first_key_value());
        next.map(|(id, anew)| (id.clone(), *anew))
    }
}

/// The name of the rules in the record of a window whose model's units could not be used.
pub(super) fn instead_of(rules: &RulesExtractor, extractor: &str) -> String {
    format!("{}{REFUSED}{extractor}", rules.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SessionId;

    struct Breaks;

    impl Extractor for Breaks {
        fn name(&self) -> &str {
            "breaks"
        }

        fn extract(&self, _: &Window) -> Result<Vec<DraftUnit>, ExtractError> {
            panic!("on purpose")
        }
    }

    /// Its window does not wait for ever, and the next one is read.
    #[test]
    fn reading_that_breaks_off_is_refused() {
        let worker = Worker { llm: Weak::new(), done: Arc::default(), standing: Arc::default() };
        let id = WindowId { session: SessionId("s".to_owned()), start: 0 };
        let window = Window { bank: Bank::parse("b").expect("a name"), id, turns: Vec::new() };
        for _ in 0..2 {
            let Err(Failed::Refused { problem, extractor, .. }) = worker.read(&Breaks, &window) else {
                panic!("not refused")
            };
            assert!(problem.contains("report it") && extractor == "breaks", "{problem}");
        }
    }
}
