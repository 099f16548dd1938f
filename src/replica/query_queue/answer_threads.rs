//! The threads that answer questions.
//!
//! In: questions from any transport, through [`QueryQueue::ask`], [`QueryQueue::ask_and_wait`] or
//! [`QueryQueue::submit`]. Out: each gets its answer exactly once, or is dropped with the query queue. Most threads
//! answer usual questions; two more answer long questions and those about the past, so at most two restores run at
//! once. No caller gets an answer after the deadline. Banks whose shard is loading are skipped, so that no thread waits
//! for a shard. The keeper thread ends questions that were cancelled or are past their deadline, and wakes those that
//! waited for a turn or for a shard.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::{
    AnswerStage, Cancellation, CancellationReason, PipelineError, QueryRequest, Replica, charged_to,
    count_forgotten_since,
    query_queue_state::{AnswerDelivery, QueryQueueState, QueueSection, QueuedQuery, RequestedAnswer, busy},
    timed,
};
use logs::Log;
use memory::recall::{RecallError, RecallExplanation};
use models::{embed::EmbedderPool, join_threads};
use types::{
    model::{Bank, Evidence, ExplanationQuery, MAX_QUESTION_BYTES},
    sync, trace_parent,
    wake_signal::WakeSignal,
};

/// How many long questions and questions about the past are answered at the same time.
const APART_THREADS: usize = 2;
/// The keeper's longest wait while questions wait: anything that raises no news, such as a cancelled question, is
/// noticed after it.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// The keeper's longest wait while nothing waits.
const IDLE: Duration = Duration::from_secs(1);

/// Whether turns of a bank's partition wait to be extracted.
type ExtractionLagCheck = Arc<dyn Fn(&Bank) -> bool + Send + Sync>;

/// Answers the questions of a queue: a memory, or in tests a script.
pub(super) trait QueryAnswerer: Send + Sync {
    /// Answers one question.
    fn answer(&self, asked: &QueryRequest) -> Result<Evidence, PipelineError>;
    /// Explains the answer to one question.
    fn explain(&self, asked: &QueryRequest, subject: &ExplanationQuery) -> Result<RecallExplanation, PipelineError>;
    /// The first offset of a bank's turns in a partition that the memory does not reflect, where known.
    fn reached(&self, partition: u32, bank: &Bank) -> Option<u64>;
    /// Whether a bank's shard is loading, so that its questions wait.
    fn is_loading(&self, bank: &Bank) -> bool;
    /// Texts that were embedded for questions.
    fn embedded_texts(&self) -> u64;
    /// Why questions get no vectors, if the model's endpoint is unavailable.
    fn endpoint_problem(&self) -> Option<String>;
}

/// Answers from a memory.
struct ReplicaAnswerer {
    replica: Arc<Replica>,
    embedders: Arc<EmbedderPool>,
    /// A log in a directory, to count the turns that were forgotten since a point of the past.
    log: Option<Arc<dyn Log>>,
    /// Called for unknown banks while the endpoint of the embedding model is unavailable.
    is_behind: ExtractionLagCheck,
}

impl QueryAnswerer for ReplicaAnswerer {
    fn answer(&self, asked: &QueryRequest) -> Result<Evidence, PipelineError> {
        let memory = memory_of(&self.replica, asked)?;
        let mut found = found_in(&memory, asked, &self.embedders, &*self.is_behind)?;
        if let Some(log) = &self.log {
            let bank = &asked.question.bank;
            found.forgotten = memory.count_forgotten_since(|at_ms| count_forgotten_since(&**log, bank, &[at_ms]))?;
        }
        Ok(found)
    }

    fn explain(&self, asked: &QueryRequest, subject: &ExplanationQuery) -> Result<RecallExplanation, PipelineError> {
        let memory = memory_of(&self.replica, asked)?;
        let found = memory.explain(&asked.question, subject, &self.embedders, &asked.cancellation);
        found.map_err(|error| unknown_bank_error(error, asked, || self.endpoint_problem(), &*self.is_behind))
    }

    fn reached(&self, partition: u32, bank: &Bank) -> Option<u64> {
        self.replica.position_of(partition, bank)
    }

    fn is_loading(&self, bank: &Bank) -> bool {
        self.replica.is_loading(bank)
    }

    fn embedded_texts(&self) -> u64 {
        self.embedders.embedded()
    }

    fn endpoint_problem(&self) -> Option<String> {
        self.embedders.problem()
    }
}

/// Where questions wait and are answered.
pub struct QueryQueue {
    shared: Arc<QueryQueueCore>,
    threads: Vec<JoinHandle<()>>,
}

/// How many questions wait and are in progress.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueryQueueLoad {
    /// Questions that wait for a thread.
    pub ready: usize,
    /// Questions that wait for a turn.
    pub parked: usize,
    /// Questions about the past, and long ones, that wait.
    pub apart: usize,
    /// Questions that are being answered.
    pub in_progress: usize,
}

struct QueryQueueCore {
    answerer: Box<dyn QueryAnswerer>,
    /// The maximum number of questions in progress, of one bank and of one token.
    of_one: usize,
    state: Mutex<QueryQueueState>,
    /// Signals a usual question.
    ready: Condvar,
    /// Signals a question that waits apart.
    apart: Condvar,
    /// Raised when the keeper has something to check: the memory has read more turns, or a question waits.
    news: Arc<WakeSignal>,
    panics: AtomicU64,
}

impl QueryQueue {
    /// Starts `threads` threads for the usual questions, and the threads for the others, and loads the reranker. With a
    /// `log` in a directory, answers about the past say how many turns were forgotten since. `is_behind` is called for
    /// unknown banks while the endpoint of the embedding model is unavailable.
    ///
    /// # Errors
    /// [`PipelineError::Thread`]; [`PipelineError::Rerank`] if the reranker that the pipeline names cannot be loaded.
    pub fn start(
        replica: Arc<Replica>,
        embedders: Arc<EmbedderPool>,
        log: Option<Arc<dyn Log>>,
        is_behind: ExtractionLagCheck,
        threads: usize,
    ) -> Result<Self, PipelineError> {
        replica.open_reranker()?;
        let news = Arc::clone(replica.news());
        let answerer = ReplicaAnswerer { replica, embedders, log, is_behind };
        Self::with(Box::new(answerer), news, threads)
    }

    /// A queue with this answerer.
    pub(super) fn with(
        answerer: Box<dyn QueryAnswerer>,
        news: Arc<WakeSignal>,
        threads: usize,
    ) -> Result<Self, PipelineError> {
        let threads = threads.max(1);
        let shared = Arc::new(QueryQueueCore {
            answerer,
            // The questions of one bank leave a quarter of the threads to others, and so do those of one token.
            of_one: threads - threads / 4,
            state: Mutex::new(QueryQueueState::new()),
            ready: Condvar::new(),
            apart: Condvar::new(),
            news,
            panics: AtomicU64::new(0),
        });
        let mut queue = Self { shared, threads: Vec::new() };
        for _ in 0..threads {
            queue.spawn("answer", QueryQueueCore::answer_usual)?;
        }
        for _ in 0..APART_THREADS {
            queue.spawn("answer-apart", QueryQueueCore::answer_apart)?;
        }
        queue.spawn("queue-keeper", QueryQueueCore::keep)?;
        Ok(queue)
    }

    fn spawn(&mut self, name: &str, work: fn(&QueryQueueCore)) -> Result<(), PipelineError> {
        let shared = Arc::clone(&self.shared);
        let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || work(&shared));
        self.threads.push(started.map_err(PipelineError::Thread)?);
        Ok(())
    }

    /// Submits a question and returns; `reply` gets its answer, on a thread of the query queue. `reply` is dropped
    /// without a call when the query queue stops.
    pub fn submit(&self, asked: QueryRequest, reply: impl FnOnce(Result<Evidence, PipelineError>) + Send + 'static) {
        self.hand_in(asked, RequestedAnswer::Evidence(Box::new(reply)));
    }

    /// As [`Self::submit`], for an explanation.
    fn submit_explanation(
        &self,
        asked: QueryRequest,
        subject: ExplanationQuery,
        reply: impl FnOnce(Result<RecallExplanation, PipelineError>) + Send + 'static,
    ) {
        self.hand_in(asked, RequestedAnswer::Explanation(subject, Box::new(reply)));
    }

    fn hand_in(&self, asked: QueryRequest, wanted: RequestedAnswer) {
        let shared = &self.shared;
        let bytes = asked.question.text.len();
        if bytes > MAX_QUESTION_BYTES {
            return wanted.refused(RecallError::LongQuestion { bytes }.into())();
        }
        let waiting = QueuedQuery { asked: Box::new(asked), wanted };
        let mut state = shared.lock();
        let added = state.add(waiting, |partition, bank| shared.answerer.reached(partition, bank));
        // A keeper with questions to watch soon checks again anyway.
        let idles = added.is_ok() && std::mem::take(&mut state.keeper_idles);
        drop(state);
        match added {
            Ok(QueueSection::Ready) => shared.ready.notify_one(),
            Ok(QueueSection::Apart) => shared.apart.notify_one(),
            Ok(QueueSection::Parked) => {}
            Err((waiting, full)) => waiting.wanted.refused(busy(full))(),
        }
        if idles {
            shared.news.raise();
        }
    }

    /// Answers a question. Dropping the future cancels the question.
    ///
    /// # Errors
    /// [`PipelineError`]: [`PipelineError::Busy`] if too many questions wait, [`PipelineError::Deadline`], and those of
    /// recollection.
    pub async fn ask(&self, asked: QueryRequest) -> Result<Evidence, PipelineError> {
        let _cancel = asked.cancellation.on_drop();
        let (out, answer) = oneshot::channel();
        self.submit(asked, move |result| drop(out.send(result)));
        answer.await.unwrap_or(Err(PipelineError::Cancelled))
    }

    /// As [`Self::ask`], for a caller without a runtime.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn ask_and_wait(&self, asked: QueryRequest) -> Result<Evidence, PipelineError> {
        let (out, answer) = crossbeam_channel::bounded(1);
        self.submit(asked, move |result| drop(out.send(result)));
        answer.recv().unwrap_or(Err(PipelineError::Cancelled))
    }

    /// Explains what the answer to a question does with a turn, from its unit on. Dropping the future cancels it.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn explain(
        &self,
        asked: QueryRequest,
        subject: ExplanationQuery,
    ) -> Result<RecallExplanation, PipelineError> {
        let _cancel = asked.cancellation.on_drop();
        let (out, answer) = oneshot::channel();
        self.submit_explanation(asked, subject, move |result| drop(out.send(result)));
        answer.await.unwrap_or(Err(PipelineError::Cancelled))
    }

    /// As [`Self::explain`], for a caller without a runtime.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn explain_and_wait(
        &self,
        asked: QueryRequest,
        subject: ExplanationQuery,
    ) -> Result<RecallExplanation, PipelineError> {
        let (out, answer) = crossbeam_channel::bounded(1);
        self.submit_explanation(asked, subject, move |result| drop(out.send(result)));
        answer.recv().unwrap_or(Err(PipelineError::Cancelled))
    }

    /// How many questions wait and are in progress.
    #[must_use]
    pub fn load(&self) -> QueryQueueLoad {
        let state = self.shared.lock();
        QueryQueueLoad {
            ready: state.ready.len(),
            parked: state.parked.len(),
            apart: state.apart.len(),
            in_progress: state.order.all_in_progress() + state.apart_in_progress(),
        }
    }

    /// Whether a bank without questions here can submit one. If not, a transport that reads from its own log leaves its
    /// questions there.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.shared.lock().ready.has_room()
    }

    /// Whether at least half of the queue's shared capacity is used.
    #[must_use]
    pub fn is_half_full(&self) -> bool {
        self.shared.lock().ready.is_half_full()
    }

    /// Texts that were embedded for questions.
    #[must_use]
    pub fn embedded_texts(&self) -> u64 {
        self.shared.answerer.embedded_texts()
    }

    /// Why questions get no vectors, if the model's endpoint is unavailable.
    #[must_use]
    pub fn endpoint_problem(&self) -> Option<String> {
        self.shared.answerer.endpoint_problem()
    }

    /// Questions whose answer panicked.
    #[must_use]
    pub fn panics(&self) -> u64 {
        self.shared.panics.load(Ordering::Relaxed)
    }
}

impl Drop for QueryQueue {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        for signal in [&self.shared.ready, &self.shared.apart] {
            signal.notify_all();
        }
        self.shared.news.raise();
        join_threads(self.threads.drain(..));
    }
}

impl QueryQueueCore {
    fn lock(&self) -> MutexGuard<'_, QueryQueueState> {
        sync::lock(&self.state)
    }

    fn answer_usual(&self) {
        let mut state = self.lock();
        while !state.stopping {
            let Some((lane, waiting, ticket)) = state.next_ready(self.of_one, |bank| self.answerer.is_loading(bank))
            else {
                state = sync::wait(&self.ready, state);
                continue;
            };
            drop(state);
            let delivery = self.answer(waiting);
            state = self.lock();
            state.done(&lane, ticket, delivery);
            let mut again = false;
            while let Some(delivery) = state.order.next(&lane.bank, again) {
                drop(state);
                self.hand_over(delivery);
                again = true;
                state = self.lock();
            }
            // Another thread may have skipped this bank.
            self.ready.notify_one();
        }
    }

    fn answer_apart(&self) {
        let mut state = self.lock();
        while !state.stopping {
            let Some((lane, waiting)) = state.next_apart(|bank| self.answerer.is_loading(bank)) else {
                state = sync::wait(&self.apart, state);
                continue;
            };
            drop(state);
            self.hand_over(self.answer(waiting));
            state = self.lock();
            state.done_apart(&lane);
            self.apart.notify_one();
        }
    }

    fn keep(&self) {
        let mut state = self.lock();
        while !state.stopping {
            let seen = self.news.count();
            let (over, next_deadline) = state.over(Instant::now());
            let parked = state.parked.len();
            let full = state.unpark(|partition, bank| self.answerer.reached(partition, bank));
            let woken = state.parked.len() < parked || state.may_go_on(|bank| self.answerer.is_loading(bank));
            drop(state);
            if woken {
                self.ready.notify_all();
                self.apart.notify_all();
            }
            for QueuedQuery { asked, wanted } in over {
                let error = missed(&asked, &*self.answerer);
                self.hand_over(wanted.refused(error));
            }
            for (waiting, full) in full {
                self.hand_over(waiting.wanted.refused(busy(full)));
            }
            state = self.lock();
            if !state.stopping {
                state.keeper_idles = state.is_empty();
                let until = next_deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
                let patience = if state.keeper_idles {
                    IDLE
                } else {
                    until.map_or(CHECK_INTERVAL, |until| until.min(CHECK_INTERVAL))
                };
                drop(state);
                self.news.wait(seen, patience);
                state = self.lock();
            }
        }
    }

    fn answer(&self, QueuedQuery { asked, wanted }: QueuedQuery) -> AnswerDelivery {
        match wanted {
            RequestedAnswer::Evidence(reply) => {
                let result = self.result(&asked, || self.answerer.answer(&asked));
                Box::new(move || reply(result))
            }
            RequestedAnswer::Explanation(subject, reply) => {
                let result = self.result(&asked, || self.answerer.explain(&asked, &subject));
                Box::new(move || reply(result))
            }
        }
    }

    fn result<T>(
        &self,
        asked: &QueryRequest,
        answer: impl FnOnce() -> Result<T, PipelineError>,
    ) -> Result<T, PipelineError> {
        if let Some(times) = &asked.times {
            times.note_taken_up();
        }
        over(&asked.cancellation)?;
        let answer = || charged_to(asked.token.as_ref(), answer);
        let answer = || trace_parent::run_in_trace(asked.trace.clone(), answer);
        let result = catch_unwind(AssertUnwindSafe(answer));
        let result = result.unwrap_or_else(|_| {
            self.panics.fetch_add(1, Ordering::Relaxed);
            Err(PipelineError::Panicked)
        });
        // A step that was not begun because the question had ended reports a failure of that step.
        if let Err(PipelineError::Recall(RecallError::Embed { .. } | RecallError::Memory { .. })) = result {
            over(&asked.cancellation)?;
        }
        // The caller counts on an answer in time, and may have asked elsewhere since.
        match asked.cancellation.check() {
            Err(ended @ CancellationReason::Deadline) if result.is_ok() => Err(ended.into()),
            _ => result,
        }
    }

    /// A transport that panics at one answer loses only that answer.
    fn hand_over(&self, delivery: AnswerDelivery) {
        if catch_unwind(AssertUnwindSafe(delivery)).is_err() {
            self.panics.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The memory that answers a question: a memory of the past if the question names a point.
fn memory_of(replica: &Arc<Replica>, asked: &QueryRequest) -> Result<Arc<Replica>, PipelineError> {
    let restore = |at| timed(asked.times.as_deref(), AnswerStage::Restore, || replica.past(&asked.question.bank, at));
    let past = asked.as_of.map(restore).transpose()?;
    // A restore takes long.
    over(&asked.cancellation)?;
    Ok(past.unwrap_or_else(|| Arc::clone(replica)))
}

/// The answer of a memory. A bank that holds nothing gets an empty answer, with two exceptions: a followed question
/// waits for the first turn, and for a question about the past the error names the first point of the bank.
fn found_in(
    memory: &Replica,
    asked: &QueryRequest,
    embedders: &EmbedderPool,
    is_behind: &dyn Fn(&Bank) -> bool,
) -> Result<Evidence, PipelineError> {
    let (question, kept, times) = (&asked.question, asked.kept.as_deref(), asked.times.as_deref());
    let ask = || {
        let found = memory.ask(question, embedders, kept, &asked.cancellation, times);
        found.map_err(|error| unknown_bank_error(error, asked, || embedders.problem(), is_behind))
    };
    let found = ask();
    if kept.is_some() || asked.as_of.is_some() || !matches!(found, Err(PipelineError::UnknownBank { .. })) {
        return found;
    }
    // Read before the second attempt, so that the answer claims no turn that came in between.
    let reflects = memory.read_to(&question.bank);
    match ask() {
        Err(PipelineError::UnknownBank { .. }) => memory.empty_evidence(question, reflects),
        found => found,
    }
}

/// The error of a question. It does not say that the bank is unknown while the bank's first turns may wait for the
/// endpoint of the embedding model. A followed question gets these turns later, and one about the past never does.
pub(super) fn unknown_bank_error(
    error: PipelineError,
    asked: &QueryRequest,
    problem: impl FnOnce() -> Option<String>,
    is_behind: &dyn Fn(&Bank) -> bool,
) -> PipelineError {
    let PipelineError::UnknownBank { bank, .. } = &error else { return error };
    if asked.kept.is_some() || asked.as_of.is_some() {
        return error;
    }
    match problem() {
        Some(problem) if is_behind(bank) => PipelineError::EndpointAway { bank: bank.clone(), problem },
        _ => error,
    }
}

fn over(cancellation: &Cancellation) -> Result<(), PipelineError> {
    Ok(cancellation.check()?)
}

/// Why a question ended while it waited.
fn missed(asked: &QueryRequest, answerer: &dyn QueryAnswerer) -> PipelineError {
    if asked.cancellation.check() == Err(CancellationReason::Cancelled) {
        return PipelineError::Cancelled;
    }
    let missing =
        asked.after.filter(|(partition, next)| answerer.reached(*partition, &asked.question.bank) < Some(*next));
    PipelineError::Deadline {
        before: match missing {
            Some((partition, next)) => format!("turns/{partition} was remembered up to offset {}", next - 1),
            None if answerer.is_loading(&asked.question.bank) => "its bank was loaded here".to_owned(),
            None => "its turn came among the questions that wait".to_owned(),
        },
    }
}
