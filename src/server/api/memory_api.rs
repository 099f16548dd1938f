//! The calls of a memory: from a request to an answer or a problem.
//!
//! In: parsed requests, each with its caller. Out: answers, if the caller has the right in the bank; every public call
//! takes a caller. A call holds no thread of the caller's runtime while it waits. Dropping the future of a question
//! cancels the question, and so does a token that ends; a put that has begun is carried out. When the service stops,
//! all waits end at once and all questions within some seconds: a call returns what is durable, or
//! [`ProblemCode::Stopping`].

use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::{Either, select};
use tokio::sync::mpsc::UnboundedReceiver;
use tracing::Instrument as _;

use super::{
    answer_generator::{AnswerGenerator, AnswerPiece, EvidenceWithAnswer},
    api_forms::{AskRequest, ForgetRequest, ForgetResponse, MemoryDigest, MemoryStats, PlainIdCount},
    bank_status::{BankStatus, bank_status},
    blocking_work::{blocking, run_while_awaited},
    operations::ServiceOperations,
    past_point::past_point,
    problem::{ApiProblem, ProblemCode, wrong_id},
    read_limiters::{ReadScope, queue_key, while_allowed, within_deadline},
    shard_holders::ShardHolders,
    short_ids::{is_shortened, resolve_turn_id},
    unit_view::{UnitView, unit_id},
};
use crate::{
    access::{AccessRight, Caller},
    quota::{QuotaLimits, QuotaShare},
    request_trace,
    single_flight::SingleFlight,
    subscriptions::{BankFollower, PollResponse, QuestionSubscriber, SubscribeRequest, SubscriptionHub},
};
use erasure::Receipt;
use logs::{WritePosition, partition_of};
use memory::index::DataflowAnswer;
use pipeline::{Cancellation, PipelineError};
use replica::BankWatchGuard;
use replica::{AnswerStage, AnswerStageTimes, QueryRequest, ShardLocation};
use ripplemem::Memory;
use types::{
    model::{Bank, Evidence, Question},
    trace_parent::TraceParent,
};

/// Longest wait that a request may ask for.
const MAX: Duration = Duration::from_secs(600);
/// How long a deletion or a digest waits until turns are reflected, if the request does not say.
const WAIT: Duration = Duration::from_secs(10);

/// How long a question may still take once the service is being stopped. The listener waits longer, so that the
/// client gets a response.
const LAST_ANSWERS: Duration = Duration::from_secs(8);

/// The calls of one memory.
pub struct MemoryApi {
    pub(super) memory: Arc<Memory>,
    /// The deadline of questions that name none.
    deadline: Duration,
    /// Which instances hold the other banks, if instances divide the memory.
    holders: Option<Arc<ShardHolders>>,
    /// The questions and banks that are followed.
    hub: SubscriptionHub,
    answers: AnswerGenerator,
    pub(super) operations: Arc<ServiceOperations>,
    /// Receipts of a log on Kafka, as they were found last.
    pub(super) receipts: Arc<SingleFlight<Vec<Receipt>>>,
}

impl MemoryApi {
    /// The calls of a memory, which has only one such value. `deadline` is for questions that name none. `holders` says
    /// which instances hold the other banks, if instances divide the memory.
    #[must_use]
    pub fn new(
        memory: Arc<Memory>,
        deadline: Duration,
        holders: Option<Arc<ShardHolders>>,
        subscriptions: QuotaLimits,
        answers: AnswerGenerator,
        operations: Arc<ServiceOperations>,
    ) -> Self {
        let hub = SubscriptionHub::new(Arc::clone(&memory), deadline, subscriptions);
        let receipts = Arc::new(SingleFlight::new());
        Self { memory, deadline, holders, hub, answers, operations, receipts }
    }

    /// Status, metrics, and what administrators may order.
    #[must_use]
    pub fn operations(&self) -> &Arc<ServiceOperations> {
        &self.operations
    }

    /// Fails unless this instance holds the bank: [`ProblemCode::Misdirected`] with the holder's URL, or
    /// [`ProblemCode::Loading`] while the bank's shard moves.
    pub(super) fn check_here(&self, bank: &Bank) -> Result<(), ApiProblem> {
        let Some(holders) = &self.holders else { return Ok(()) };
        holders.check(bank, self.memory.replica().place_of(bank))
    }

    /// Answers a question with evidence.
    ///
    /// # Errors
    /// [`ApiProblem`]: an unknown bank, a wrong field, a deadline, or too many questions.
    pub async fn ask(&self, who: &Caller, ask: AskRequest) -> Result<Evidence, ApiProblem> {
        Ok(self.ask_timed(who, ask).await?.0)
    }

    /// As [`Self::ask`], with how long its stages took.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn ask_timed(
        &self,
        who: &Caller,
        ask: AskRequest,
    ) -> Result<(Evidence, Arc<AnswerStageTimes>), ApiProblem> {
        let (started, times) = (Instant::now(), Arc::new(AnswerStageTimes::start()));
        let trace = request_trace::current();
        let span = request_trace::question_span(&ask.bank, trace.as_ref());
        let asked = self.ask_within(who, ask, trace, Arc::clone(&times)).instrument(span.clone()).await;
        let outcome = asked.as_ref().map_err(ApiProblem::name);
        span.in_scope(|| self.operations.state.note_answer(outcome, started.elapsed()));
        Ok((asked?, times))
    }

    async fn ask_within(
        &self,
        who: &Caller,
        ask: AskRequest,
        trace: Option<TraceParent>,
        times: Arc<AnswerStageTimes>,
    ) -> Result<Evidence, ApiProblem> {
        let times = Some(times);
        let evidence = self.question(who, ask, trace, |asked| self.memory.ask(QueryRequest { times, ..asked })).await?;
        self.with_metadata(evidence).await
    }

    /// The evidence with the metadata of its turns, if its question asks for them.
    async fn with_metadata(&self, mut evidence: Evidence) -> Result<Evidence, ApiProblem> {
        if !evidence.question.metadata {
            return Ok(evidence);
        }
        let reader = self.memory.metadata_reader();
        blocking(move || {
            reader.add(&mut evidence)?;
            Ok(evidence)
        })
        .await
    }

    /// Checks a question, and hands it over.
    pub(super) async fn question<T, F: Future<Output = Result<T, PipelineError>>>(
        &self,
        who: &Caller,
        ask: AskRequest,
        trace: Option<TraceParent>,
        hand_over: impl FnOnce(QueryRequest) -> F,
    ) -> Result<T, ApiProblem> {
        let AskRequest { bank, text, asked_at, asker, said_before, most_tokens, near, walk, compare, profile, .. } =
            ask;
        let AskRequest { select, metadata, after, as_of, timeout_ms, .. } = ask;
        who.may_in(AccessRight::Read, &bank)?;
        self.check_here(&bank)?;
        let timeout = timeout_ms.map_or(self.deadline, Duration::from_millis);
        if timeout.is_zero() || timeout > MAX {
            return Err(ApiProblem::invalid("timeout_ms: out of range; allowed is 1 to 600000"));
        }
        let (deadline, token) = (Instant::now() + timeout, who.name().map(Arc::from));
        let cancellation = Cancellation::at(deadline);
        let after = match after {
            Some(after) => while_allowed(who, AccessRight::Read, &bank, self.after(&after, &bank, timeout)).await??,
            None => None,
        };
        let as_of = as_of.map(|text| past_point("as_of", &text));
        let question = Question {
            bank,
            text,
            asked_at,
            asker,
            said_before,
            most_tokens,
            near,
            walk,
            compare,
            profile,
            select,
            metadata,
        };
        let bank = question.bank.clone();
        let place = after.map(|(partition, next)| {
            let mut place = WritePosition::nothing(self.memory.partitions());
            place.extend(partition, next);
            place.of_bank(&bank)
        });
        // Whether the question still waits for turns or for its shard.
        let waits = || {
            place.as_ref().is_some_and(|place| !self.memory.wait_for(place, Instant::now()))
                || matches!(self.memory.replica().place_of(&bank), ShardLocation::Loading { .. })
        };
        let (as_of, kept, times) = (as_of.transpose()?, None, None);
        let asked = hand_over(QueryRequest { question, token, after, as_of, cancellation, kept, trace, times });
        let asked = while_allowed(who, AccessRight::Read, &bank, within_deadline(deadline, asked));
        let asked = self.until_service_stops(asked, waits).await???;
        // The question may have waited for ten minutes, and the token may have been revoked meanwhile.
        who.may_in(AccessRight::Read, &bank)?;
        // The shard may have moved meanwhile.
        asked.map_err(|error| match error {
            PipelineError::OtherInstance { .. } => self.check_here(&bank).err().unwrap_or_else(|| error.into()),
            error => error.into(),
        })
    }

    /// Answers a question in words, with the evidence.
    ///
    /// # Errors
    /// As [`Self::ask`]; [`ProblemCode::NoModel`] before anything is asked; [`ProblemCode::Failed`] if the model
    /// failed.
    pub async fn answer(
        &self,
        who: &Caller,
        ask: AskRequest,
    ) -> Result<(EvidenceWithAnswer, Arc<AnswerStageTimes>), ApiProblem> {
        let bank = ask.bank.clone();
        who.may_in(AccessRight::Read, &bank)?;
        self.answers.model()?;
        let (evidence, times) = self.ask_timed(who, ask).await?;
        let spoken = Instant::now();
        let answered =
            while_allowed(who, AccessRight::Read, &bank, self.answers.answer(who.name(), Arc::new(evidence)));
        let answered = self.until_service_stops(answered, || false).await??;
        times.add(AnswerStage::Words, spoken.elapsed());
        // The model may take minutes, and the token may have been revoked meanwhile.
        who.may_in(AccessRight::Read, &bank)?;
        Ok((answered?, times))
    }

    /// As [`Self::answer`], but gives the words while they are generated.
    ///
    /// # Errors
    /// As [`Self::answer`]; a later problem is the last piece.
    pub async fn stream_answer(
        &self,
        who: &Caller,
        ask: AskRequest,
    ) -> Result<(Arc<Evidence>, UnboundedReceiver<AnswerPiece>), ApiProblem> {
        let bank = ask.bank.clone();
        who.may_in(AccessRight::Read, &bank)?;
        self.answers.model()?;
        let evidence = Arc::new(self.ask(who, ask).await?);
        let pieces = self.answers.generate_answer(who.name(), Arc::clone(&evidence));
        let pieces = while_allowed(who, AccessRight::Read, &bank, pieces).await??;
        // The wait for the model may have taken minutes. What it says from here on comes from this evidence only.
        who.may_in(AccessRight::Read, &bank)?;
        Ok((evidence, pieces))
    }

    /// Follows a question: its evidence now, and every change of it.
    ///
    /// # Errors
    /// [`ApiProblem`]: a wrong field, too many subscriptions, or no first answer.
    pub async fn subscribe(
        &self,
        who: &Arc<Caller>,
        subscribe: SubscribeRequest,
    ) -> Result<QuestionSubscriber, ApiProblem> {
        let SubscribeRequest { bank, text, asked_at, asker, said_before, most_tokens, last_event_id, .. } = subscribe;
        let SubscribeRequest { select, metadata, .. } = subscribe;
        who.may_in(AccessRight::Read, &bank)?;
        self.check_here(&bank)?;
        let question = Question {
            asked_at,
            asker,
            said_before,
            most_tokens,
            select,
            metadata,
            ..Question::new(bank.clone(), text)
        };
        let subscribed = self.hub.subscribe(who, question, last_event_id.as_deref());
        let subscribed = while_allowed(who, AccessRight::Read, &bank, subscribed);
        let subscribed = self.until_service_stops(subscribed, || true).await??;
        // The shard may have moved meanwhile.
        subscribed.map_err(|problem| self.check_here(&bank).err().unwrap_or(problem))
    }

    /// What changed in the evidence of a question since `last_event_id`. Returns at a change, or after `wait_ms`.
    ///
    /// # Errors
    /// As [`Self::subscribe`].
    pub async fn poll(&self, who: &Arc<Caller>, subscribe: SubscribeRequest) -> Result<PollResponse, ApiProblem> {
        let wait = wait(Some(subscribe.wait_ms.unwrap_or_default()))?;
        self.subscribe(who, subscribe).await?.poll(wait).await
    }

    /// Follows a bank: what happens in it from now on, or since `last_event_id`.
    ///
    /// # Errors
    /// [`ApiProblem`]: too many subscriptions, or the bank cannot be read.
    pub async fn follow_bank(
        &self,
        who: &Arc<Caller>,
        bank: &Bank,
        last_event_id: Option<&str>,
        metadata: bool,
    ) -> Result<BankFollower, ApiProblem> {
        who.may_in(AccessRight::Read, bank)?;
        self.check_here(bank)?;
        let followed = while_allowed(who, AccessRight::Read, bank, self.hub.follow_bank(who, bank, last_event_id));
        let followed = self.until_service_stops(followed, || true).await??;
        // The shard may have moved meanwhile.
        let followed = followed.map_err(|problem| self.check_here(bank).err().unwrap_or(problem))?;
        Ok(if metadata { followed.with_metadata(self.memory.metadata_reader()) } else { followed })
    }

    /// A share of the subscriptions, for a client that waits for news of what it follows.
    ///
    /// # Errors
    /// [`ApiProblem`]: there are too many subscriptions already.
    pub(crate) fn share(&self, who: &Caller) -> Result<QuotaShare, ApiProblem> {
        self.hub.share(who)
    }

    /// Waits until the subscriptions end.
    pub(crate) async fn subscriptions_ended(&self) {
        self.hub.closed().await;
    }

    /// A bank watched from now on, and the offset of the memory topic before which answers now reflect everything.
    pub(crate) fn watch(&self, bank: &Bank) -> (BankWatchGuard, u64) {
        let watched = self.memory.replica().changes().watch(bank);
        let read_to = self.memory.replica().read_to(bank);
        (watched, read_to.iter().find(|at| at.topic == "memory").map_or(0, |at| at.next_offset))
    }

    /// Ends all subscriptions and waits, including later ones, so that a listener can end.
    pub fn end_waits(&self) {
        self.hub.close();
    }

    /// Deletes a turn, and waits until no answer reflects it.
    ///
    /// # Errors
    /// [`ApiProblem`] for a wrong field, or if the log failed.
    pub async fn forget(&self, who: &Caller, forget: ForgetRequest) -> Result<ForgetResponse, ApiProblem> {
        let ForgetRequest { bank, turn, wait_ms, expected_version } = forget;
        // A token that may only forget must not learn what is held. The audit log notes the right that is checked last.
        let may_read = who.may_in(AccessRight::Read, &bank).is_ok();
        who.may_in(AccessRight::Forget, &bank)?;
        // While the shard moves, the deletion is still written.
        self.check_here(&bank).or_else(|problem| if problem.holder.is_some() { Err(problem) } else { Ok(()) })?;
        let (wait, memory) = (wait(wait_ms)?, Arc::clone(&self.memory));
        // A short id is looked for among all turns of the bank.
        let named = if may_read && is_shortened(&turn) {
            let (memory, from, turn) = (Arc::clone(&memory), bank.clone(), turn.clone());
            let named = move |cancellation: &Cancellation| resolve_turn_id(&memory, &from, &turn, cancellation);
            Some(self.read_in_scope(who, AccessRight::Forget, &bank, ReadScope::AllOfIt, named).await?)
        } else {
            None
        };
        let named = match (expected_version, named) {
            (None, named) => named,
            (Some(expected), named) => {
                // A verdict says which version stands.
                who.may_in(AccessRight::Read, &bank)?;
                let (id, held) = named.unwrap_or((turn.clone(), None));
                self.delete_expected(&bank, &id, expected).await?;
                Some((id, held.or(Some(expected > 0))))
            }
        };
        let from = bank.clone();
        // In one blocking call: if the client leaves, a deletion that has begun is still written.
        let deleted = blocking(move || {
            let (id, held) = match named {
                Some(named) => named,
                None if may_read => resolve_turn_id(&memory, &from, &turn, &Cancellation::default())?,
                None => (turn, None),
            };
            let deleted = memory.forget(&from, &id).map_err(wrong_id)?;
            Ok((deleted, id, held))
        });
        let (deleted, turn, held) = deleted.await?;
        let gone = self.reflects(&deleted.written, wait).await;
        let after = deleted.written.to_string();
        let receipt = self.receipt_of(Some(deleted.operation.operation)).await?;
        Ok(ForgetResponse { bank, turn, held, after, gone, receipt })
    }

    /// A unit of a bank, with the units that its edges lead to.
    ///
    /// # Errors
    /// [`ApiProblem`]: an unknown bank, a wrong id, or a unit that is not in the bank.
    pub async fn unit(&self, who: &Caller, bank: Bank, id: &str) -> Result<UnitView, ApiProblem> {
        who.may_in(AccessRight::Read, &bank)?;
        self.check_here(&bank)?;
        let id = unit_id("id", id)?;
        let (memory, of) = (Arc::clone(&self.memory), bank.clone());
        let unit = move |_: &Cancellation| {
            let DataflowAnswer { value, epoch, reflects } = memory.replica().unit(&of, id)?;
            let unknown = || {
                let detail = format!("bank {of}: it has no unit {id}; an edit or a deletion may have replaced it");
                ApiProblem::new(ProblemCode::UnknownUnit, detail)
            };
            let value = value.ok_or_else(unknown)?;
            Ok(UnitView::of(of, DataflowAnswer { value, epoch, reflects }))
        };
        self.read(who, &bank, ReadScope::Little, unit).await
    }

    /// Counts of a bank, and the offsets up to which its turns are reflected.
    ///
    /// # Errors
    /// [`ApiProblem`] for an unknown bank.
    pub async fn bank(&self, who: &Caller, bank: Bank) -> Result<BankStatus, ApiProblem> {
        who.may_in(AccessRight::Read, &bank)?;
        self.check_here(&bank)?;
        let (memory, of) = (Arc::clone(&self.memory), bank.clone());
        self.read(who, &bank, ReadScope::Little, move |_| bank_status(&memory, of, &memory.end()?)).await
    }

    /// Counts of one bank, or of all banks. With `after`, waits until they reflect the turns that it names.
    ///
    /// # Errors
    /// [`ApiProblem`] for an unknown bank, or if the wait was too short.
    pub async fn digest(
        &self,
        who: &Caller,
        bank: Option<Bank>,
        after: Option<&str>,
        wait_ms: Option<u64>,
    ) -> Result<MemoryDigest, ApiProblem> {
        self.check_count_right(who, bank.as_ref())?;
        let wait = wait(wait_ms)?;
        if let Some(after) = after {
            let written = positions_of_bank(self.written(after)?, bank.as_ref());
            let reflects = self.reflects(&written, wait);
            let reflects = match &bank {
                Some(bank) => while_allowed(who, AccessRight::Read, bank, reflects).await?,
                None => reflects.await,
            };
            if !reflects {
                let detail = format!("the deadline passed before {after} was reflected; ask again, or allow more time");
                return Err(self.not_reflected_problem(detail));
            }
        }
        // The wait may have taken ten minutes, and the token may have been revoked meanwhile.
        self.check_count_right(who, bank.as_ref())?;
        let (memory, of) = (Arc::clone(&self.memory), bank.clone());
        let counted = move || -> Result<MemoryDigest, ApiProblem> {
            let counted = memory.replica().digest(of.as_ref())?;
            Ok(MemoryDigest::of(of, counted))
        };
        match &bank {
            Some(bank) => self.read(who, bank, ReadScope::AllOfIt, move |_| counted()).await,
            None => blocking(counted).await,
        }
    }

    /// How many bytes one bank takes in memory, or all banks; with `plain_ids`, also how many turns have ids that hold
    /// a phone number or a mail address, for which every record is read.
    ///
    /// # Errors
    /// [`ApiProblem`] for an unknown bank.
    pub async fn stats(&self, who: &Caller, bank: Option<Bank>, plain_ids: bool) -> Result<MemoryStats, ApiProblem> {
        self.check_count_right(who, bank.as_ref())?;
        let (memory, of) = (Arc::clone(&self.memory), bank.clone());
        let measured = move |cancellation: &Cancellation| -> Result<MemoryStats, ApiProblem> {
            let measured = memory.replica().footprint(of.as_ref())?;
            let banks = || of.clone().map_or_else(|| memory.banks_where(&|_| true), |bank| vec![bank]);
            let plain_ids = plain_ids.then(|| PlainIdCount::of(&**memory.log(), banks(), cancellation)).transpose()?;
            Ok(MemoryStats::of(of, measured, plain_ids))
        };
        let reads = if plain_ids { ReadScope::AllOfIt } else { ReadScope::Little };
        match &bank {
            Some(bank) => self.read(who, bank, reads, measured).await,
            None => run_while_awaited(measured).await,
        }
    }

    /// Fails if the caller may not read the bank (every bank if none is named), or if this instance does not hold it.
    fn check_count_right(&self, who: &Caller, bank: Option<&Bank>) -> Result<(), ApiProblem> {
        match bank {
            Some(bank) => {
                who.may_in(AccessRight::Read, bank)?;
                self.check_here(bank)
            }
            None => Ok(who.may_everywhere(AccessRight::Read)?),
        }
    }

    /// Does work that reads a bank, once its turn has come. The caller's right to read it is checked before the work
    /// and after it, as both may take long.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        who: &Caller,
        bank: &Bank,
        reads: ReadScope,
        work: impl FnOnce(&Cancellation) -> Result<T, ApiProblem> + Send + 'static,
    ) -> Result<T, ApiProblem> {
        self.read_in_scope(who, AccessRight::Read, bank, reads, work).await
    }

    /// As [`Self::read`], for another right.
    pub(super) async fn read_in_scope<T: Send + 'static>(
        &self,
        who: &Caller,
        right: AccessRight,
        bank: &Bank,
        reads: ReadScope,
        work: impl FnOnce(&Cancellation) -> Result<T, ApiProblem> + Send + 'static,
    ) -> Result<T, ApiProblem> {
        who.may_in(right, bank)?;
        let lane = queue_key(who, bank);
        let read = self.operations.reads.read(&lane, reads, work);
        let read = self.until_service_stops(while_allowed(who, right, bank, read), || true).await???;
        who.may_in(right, bank)?;
        Ok(read)
    }

    /// The result of a question. At a stop, a question that `waits` ends at once, any other after [`LAST_ANSWERS`].
    pub(super) async fn until_service_stops<T>(
        &self,
        question: impl Future<Output = T>,
        waits: impl Fn() -> bool,
    ) -> Result<T, ApiProblem> {
        let end = pin!(async {
            self.hub.closed().await;
            if !waits() {
                tokio::time::sleep(LAST_ANSWERS).await;
            }
        });
        match select(pin!(question), end).await {
            Either::Left((answered, _)) => Ok(answered),
            Either::Right(_) => Err(ApiProblem::stopping()),
        }
    }

    /// The problem for turns that are not reflected in time.
    pub(super) fn not_reflected_problem(&self, detail: impl Into<String>) -> ApiProblem {
        if self.hub.is_closed() { ApiProblem::stopping() } else { ApiProblem::new(ProblemCode::Deadline, detail) }
    }

    /// Waits until the memory reflects turns; false after `wait`, or once the service is being stopped.
    pub(super) async fn reflects(&self, written: &WritePosition, wait: Duration) -> bool {
        let mut over = pin!(async {
            let (time, end) = (pin!(tokio::time::sleep(wait)), pin!(self.hub.closed()));
            select(time, end).await;
        });
        let mut moves = self.memory.replica().subscribe_watermarks();
        loop {
            moves.mark_unchanged();
            if self.memory.wait_for(written, Instant::now()) {
                return true;
            }
            // The turns of another instance's partitions are never reflected here.
            if wait.is_zero() || self.hub.is_closed() || !self.memory.follows(written) {
                return false;
            }
            if let Either::Right(_) = select(pin!(moves.changed()), &mut over).await {
                return self.memory.wait_for(written, Instant::now());
            }
        }
    }

    fn written(&self, after: &str) -> Result<WritePosition, ApiProblem> {
        WritePosition::parse(after, self.memory.partitions())
            .ok_or_else(|| ApiProblem::invalid("after: not PARTITION:OFFSET; send the `after` of turns as it came"))
    }

    /// The position in the bank's partition that an `after` names; `None` if that partition is empty. For turns that a
    /// client of Kafka put into another partition, it is the end of the bank's partition once they were forwarded to
    /// it.
    async fn after(&self, text: &str, bank: &Bank, timeout: Duration) -> Result<Option<(u32, u64)>, ApiProblem> {
        let written = self.written(text)?;
        if let Some(place) = written.of(bank) {
            return Ok(Some(place));
        }
        let names_none = format!("after: {text} names no turn of the partition of bank {bank}");
        // An embedded log writes each turn into its bank's partition.
        if self.memory.log().erasable().is_some() {
            return Err(ApiProblem::invalid(format!("{names_none}; send the `after` of this bank's turns")));
        }
        if !self.memory.follows(&written) {
            let remedy = "set the `partitioner` of the turns' producer to `murmur2_random`, which librdkafka's clients, \
                          such as Python's, do not use by themselves";
            let problem = "and when they were forwarded to it is not known here";
            return Err(ApiProblem::invalid(format!("{names_none}, {problem}; {remedy}")));
        }
        if !self.reflects(&written.of_bank(bank), timeout).await {
            return Err(
                self.not_reflected_problem(format!("the deadline passed before {text} was forwarded; ask again"))
            );
        }
        let (memory, bank) = (Arc::clone(&self.memory), bank.clone());
        let home = partition_of(&bank, self.memory.partitions());
        let end = blocking(move || Ok(memory.log().end_of_turns(home).map_err(PipelineError::from)?)).await?;
        Ok(Some((home, end)).filter(|_| end > 0))
    }
}

/// The positions of what was written, only those of the bank if one is named.
fn positions_of_bank(written: WritePosition, bank: Option<&Bank>) -> WritePosition {
    match bank {
        Some(bank) => written.of_bank(bank),
        None => written,
    }
}

/// The wait that a request asks for; [`WAIT`] if it asks for none.
pub(super) fn wait(wait_ms: Option<u64>) -> Result<Duration, ApiProblem> {
    let wait = wait_ms.map_or(WAIT, Duration::from_millis);
    if wait > MAX { Err(ApiProblem::invalid("wait_ms: too large; at most 600000 are allowed")) } else { Ok(wait) }
}
