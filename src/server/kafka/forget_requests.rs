//! Carries out the requests to forget turns that come as records of a topic.
//!
//! In: records of the topic of requests, which a consumer group divides among the instances. A record is a request of
//! `POST /v1/forget`; who may write to the topic has every right to forget. Out: one answer or refusal for each, in the
//! topic of answers. A record's offset is committed after its answer was delivered: if the process is killed before
//! that, another one carries the request out again, which changes nothing. The instance that takes over the partitions
//! of a killed one also finishes its operations.

use super::log_events;
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, unbounded};
use rdkafka::{
    Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, CommitMode, Consumer},
    error::KafkaError,
    producer::BaseProducer,
};

use super::{
    api::{ApiProblem, ForgetTurnsRequest, ForgetTurnsResponse, ProblemCode},
    cluster_retry::ClusterRetry,
    error::ServeError,
    question_record::{IncomingRequest, REFUSAL, ReplyAddress, RequestRules},
    question_topic::rules,
    service_state::ServiceState,
};
use erasure::ForgetOperationTracker;
use logs::{
    AssignmentChange, KafkaLog, Log, LogError, RawRecord, WritePosition,
    kafka::{
        client::{KafkaClientState, drop_in_background},
        group_member::GroupMemberContext,
        partitions_of,
        transactional_producer::{OutgoingRecord, drain, send},
    },
    partition_of,
};
use pipeline::{Cancellation, PipelineError, wait_until_listed};
use replica::Replica;
use types::{
    backoff::Backoff,
    config::{LLM, Pipeline},
    model::{QuestionRefusal, RefusalCode},
    sync,
};

/// The type of an answer (`schemas/topics/forgotten.v1.json`).
const FORGOTTEN: &str = "ripplemem.forgotten.v1";
/// The longest wait for a request; after it, operations are settled if that is due.
const POLL: Duration = Duration::from_millis(100);
/// The time between two checks of which stages the operations have reached.
const SETTLED_EVERY: Duration = Duration::from_secs(10);
/// The longest wait of a request until its turns are extracted and answers no longer reflect them, and its wait if it
/// names none.
const MAX_WAIT: Duration = Duration::from_secs(60);
const WAIT: Duration = Duration::from_secs(10);
/// The longest time until a stop is noticed.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// How long a request may take before the group takes the instance for dead: the first list of a partition reads all of
/// it.
const MAX_REQUEST_MS: u64 = 600_000;
/// The pauses before an answer that failed is sent again.
const RETRY: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(4));

/// A consumer of requests.
type ForgetConsumer = BaseConsumer<GroupMemberContext>;

/// Carries requests out until `stopping`; keeps in `taken` which partitions of requests are this instance's.
pub(super) fn serve_forget_requests(
    pipeline: &Pipeline,
    log: &Arc<KafkaLog>,
    replica: &Replica,
    state: &ServiceState,
    taken: &Mutex<BTreeSet<u32>>,
    stopping: &AtomicBool,
) -> Result<(), ServeError> {
    let waiting_for_model = (pipeline.extract.extractor != LLM).then_some(0);
    let requests = ForgetRequestReader {
        log,
        topic: log.cluster().topic(&log.cluster().settings.forgets_topic),
        rules: rules(pipeline, log.cluster()),
        operations: ForgetOperationTracker { log: &**log, settings: &pipeline.forget, replica, waiting_for_model },
        taken,
        stopping,
        events: unbounded(),
    };
    requests.read(&mut ClusterRetry::new(state, "the requests to forget turns"), state)
}

/// The reader of the topic of requests.
struct ForgetRequestReader<'a> {
    log: &'a KafkaLog,
    topic: String,
    rules: RequestRules,
    operations: ForgetOperationTracker<'a>,
    taken: &'a Mutex<BTreeSet<u32>>,
    stopping: &'a AtomicBool,
    /// What the group decides.
    events: (Sender<AssignmentChange>, Receiver<AssignmentChange>),
}

impl ForgetRequestReader<'_> {
    fn read(&self, retry: &mut ClusterRetry<'_>, state: &ServiceState) -> Result<(), ServeError> {
        let cluster = self.log.cluster();
        let (mut watch, mut consumer) = self.join()?;
        let answers_watch = KafkaClientState::default();
        let mut answers = self.producer(&answers_watch)?;
        // Partitions whose operations may be unfinished.
        let mut taken_over: Vec<u32> = Vec::new();
        let mut settled = Instant::now();
        while !self.stopping() {
            if watch.stranded() {
                let (fresh, another) = self.join()?;
                watch = fresh;
                sync::lock(self.taken).clear();
                drop_in_background(std::mem::replace(&mut consumer, another));
            }
            let polled = consumer.poll(POLL);
            for decision in self.events.1.try_iter() {
                let mut taken = sync::lock(self.taken);
                match decision {
                    AssignmentChange::Assigned(partitions) => {
                        taken.extend(&partitions);
                        taken_over.extend(partitions);
                    }
                    AssignmentChange::Revoked(partitions) => taken.retain(|partition| !partitions.contains(partition)),
                }
            }
            if !taken_over.is_empty() || settled.elapsed() > SETTLED_EVERY {
                match self.resume_operations(&taken_over) {
                    Ok(unreadable) => {
                        retry.reset();
                        taken_over.clear();
                        settled = Instant::now();
                        state.note_unreadable_operations(unreadable);
                    }
                    Err(PipelineError::Log(error @ LogError::Cluster { retriable: true, .. })) => retry.wait(&error),
                    Err(error) => return Err(error.into()),
                }
            }
            match polled {
                None => {}
                Some(Ok(message)) => {
                    let raw = RawRecord::of(&message);
                    let (partition, offset) = (message.partition().unsigned_abs(), raw.record.offset);
                    let asked = IncomingRequest {
                        partition,
                        offset,
                        key: &raw.record.key,
                        value: raw.record.value.as_deref().unwrap_or_default(),
                        headers: &raw.headers,
                    };
                    let address = ReplyAddress::of(&asked, &self.rules, Instant::now());
                    let Some(answer) = self.answer(asked.value) else { break };
                    if !self.send(&address, &answer, &answers_watch, &mut answers)? {
                        break;
                    }
                    self.commit(&consumer, partition, offset);
                }
                Some(Err(error)) => {
                    let failure = cluster.failed(&watch, "reading requests to forget turns", &error);
                    if matches!(failure, LogError::Cluster { retriable: false, .. }) {
                        return Err(failure.into());
                    }
                }
            }
        }
        Ok(())
    }

    fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    fn join(&self) -> Result<(KafkaClientState, ForgetConsumer), LogError> {
        let (cluster, watch) = (self.log.cluster(), KafkaClientState::default());
        let failed = |e: &KafkaError| cluster.failed(&watch, "joining the group of requests to forget turns", e);
        let context = GroupMemberContext {
            watch: watch.clone(),
            events: self.events.0.clone(),
            news: Arc::clone(self.log.news()),
            reads: true,
        };
        let mut member = cluster.member("forgets");
        let session_ms = cluster.settings.session_seconds * 1_000;
        member.set("max.poll.interval.ms", MAX_REQUEST_MS.max(session_ms).to_string());
        let consumer: ForgetConsumer = member.create_with_context(context).map_err(|e| failed(&e))?;
        consumer.subscribe(&[&self.topic]).map_err(|e| failed(&e))?;
        Ok((watch, consumer))
    }

    /// Finishes operations of the banks of these partitions, and notes which stages all of them have reached. Returns
    /// how many entries of operations cannot be read.
    fn resume_operations(&self, taken_over: &[u32]) -> Result<usize, PipelineError> {
        if !taken_over.is_empty() {
            let partitions = partitions_of(self.log.cluster(), &self.topic)?;
            let finished = self.operations.resume(&|bank| taken_over.contains(&partition_of(bank, partitions)))?;
            if finished > 0 {
                log_events::operations_resumed(finished);
            }
        }
        self.operations.settle()?;
        self.operations.unreadable()
    }

    /// The answer to a request; `None` once the service is being stopped.
    fn answer(&self, value: &[u8]) -> Option<Result<ForgetTurnsResponse, QuestionRefusal>> {
        let forgotten = serde_json::from_slice::<ForgetTurnsRequest>(value)
            .map_err(|error| {
                let detail = format!("not a request to forget turns: {error}; see schemas/topics/forgets.v1.json");
                ApiProblem::invalid(detail)
            })
            .and_then(|forget| self.forget(forget));
        if self.stopping() && forgotten.is_err() {
            return None;
        }
        Some(forgotten.map_err(refused))
    }

    fn forget(&self, forget: ForgetTurnsRequest) -> Result<ForgetTurnsResponse, ApiProblem> {
        forget.check()?;
        let wait = forget.wait_ms.map_or(WAIT, Duration::from_millis).min(MAX_WAIT);
        let until = Instant::now() + wait.max(Duration::from_secs(1));
        let may_wait = || Instant::now() < until && !self.stopping();
        let (bank, dry_run) = (forget.bank.clone(), forget.dry_run);
        if !wait_until_listed(self.log, &bank, &may_wait)? {
            let detail = "some durable turns are not extracted yet; send the request again in a moment";
            return Err(ApiProblem::new(ProblemCode::Deadline, detail));
        }
        let carried = forget.carry_out(self.log, self.operations.settings, &Cancellation::default(), false)?;
        let gone = match carried.written() {
            Some(written) => self.is_hidden(written, &may_wait),
            None => !dry_run,
        };
        let receipt = match carried.operation() {
            Some(operation) => self.operations.receipt(operation)?,
            None => None,
        };
        Ok(carried.answer(bank, gone, receipt))
    }

    /// Waits until answers here no longer reflect what was deleted. False after the wait, and if another instance holds
    /// the bank.
    fn is_hidden(&self, written: &WritePosition, may_wait: &dyn Fn() -> bool) -> bool {
        let replica = self.operations.replica;
        let is_reflected = |until| replica.wait_for(written, until);
        let is_held = written.partition_ends().all(|(partition, _)| replica.holds(partition % self.log.partitions()));
        loop {
            if is_reflected(Instant::now()) {
                return true;
            }
            if !is_held || !may_wait() {
                return false;
            }
            if is_reflected(Instant::now() + CHECK_INTERVAL) {
                return true;
            }
        }
    }

    fn producer(&self, watch: &KafkaClientState) -> Result<BaseProducer<KafkaClientState>, LogError> {
        let cluster = self.log.cluster();
        let made = cluster.producer().create_with_context(watch.clone());
        made.map_err(|e| cluster.failed(watch, "making a producer of receipts", &e))
    }

    /// Sends an answer, and returns once it is delivered; false if the service is being stopped before that.
    fn send(
        &self,
        address: &ReplyAddress,
        answer: &Result<ForgetTurnsResponse, QuestionRefusal>,
        watch: &KafkaClientState,
        producer: &mut BaseProducer<KafkaClientState>,
    ) -> Result<bool, ServeError> {
        // Serialising cannot fail: both types have a JSON form.
        let (kind, value) = match answer {
            Ok(forgotten) => (FORGOTTEN, serde_json::to_vec(forgotten).unwrap_or_default()),
            Err(refusal) => (REFUSAL, serde_json::to_vec(refusal).unwrap_or_default()),
        };
        let (cluster, mut pauses) = (self.log.cluster(), RETRY);
        while !self.stopping() {
            let until = Instant::now() + cluster.timeout();
            drop(watch.take_deliveries());
            let out = OutgoingRecord {
                topic: &address.reply_topic,
                partition: None,
                key: Some(address.key.as_slice()).filter(|key| !key.is_empty()),
                value: Some(&value),
                headers: Some(address.answer_headers(kind, &self.rules)),
            };
            let sent = send(producer, out, until).and_then(|()| drain(producer, until));
            let Some(error) = sent.err().or(watch.take_deliveries().failed) else { return Ok(true) };
            let failure = cluster.failed(watch, "sending a receipt", &error);
            if matches!(failure, LogError::Cluster { retriable: false, .. }) {
                return Err(failure.into());
            }
            log_events::receipt_resent(&failure);
            std::thread::sleep(pauses.jittered());
            drop_in_background(std::mem::replace(producer, self.producer(watch)?));
        }
        Ok(false)
    }

    fn commit(&self, consumer: &ForgetConsumer, partition: u32, offset: u64) {
        let mut list = TopicPartitionList::new();
        let next = Offset::Offset(offset as i64 + 1);
        if list.add_partition_offset(&self.topic, partition as i32, next).is_ok() {
            // If this fails, the request is carried out again, which changes nothing.
            drop(consumer.commit(&list, CommitMode::Sync));
        }
    }
}

/// A problem as a refusal.
fn refused(problem: ApiProblem) -> QuestionRefusal {
    let code = match problem.code {
        ProblemCode::Invalid => RefusalCode::Invalid,
        ProblemCode::Held => RefusalCode::Held,
        ProblemCode::Quarantined => RefusalCode::Quarantined,
        ProblemCode::Deadline => RefusalCode::Deadline,
        _ => RefusalCode::Failed,
    };
    QuestionRefusal::new(code, problem.detail)
}
