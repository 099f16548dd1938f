//! Reads questions from a topic, and has their answers written to topics.
//!
//! In: records of the questions topic, which a consumer group divides among the instances. Out: one
//! answer or refusal for each, on its reply topic. The query queue answers them; this file hands them over and
//! continues reading, whatever their outcome. A question's offset is committed after its answer was delivered: if the
//! process is killed before that, another one answers again, with the same id. When too many questions are waiting in
//! total, the rest stay in the topic, and the consumer keeps polling. If a question waits, a note beside its committed
//! offset says which of the later ones are answered.
//!
//! If the instances divide the memory, the group's decisions are noted here for `shard_assignment`. A question that is
//! not in its bank's partition is forwarded there, and one whose partition is revoked is cancelled: the instance that
//! then holds the partition reads it again.

use super::log_events;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crossbeam_channel::{Receiver, Sender, unbounded};
use rdkafka::{
    Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, CommitMode, Consumer},
    error::KafkaError,
};

use super::{
    api::ShardHolders,
    error::ServeError,
    forward_wait_list::{ForwardWaitList, WaitingQuestion},
    in_flight_questions::{CommittedOffset, InFlightQuestions},
    instance_announcements,
    question_pauses::{QuestionPauses, QueueFill},
    question_record::{IncomingRequest, KafkaQuestion, RequestRules, forwarded_headers, other_partition_refusal},
    question_span,
    reply_sender::ReplySender,
    reply_topics::{ReplyTopics, TopicExistence},
    service_state::ServiceState,
    v1::{self, HttpServer, ServerParts},
};
use logs::{
    AssignmentChange, KafkaLog, Log, LogError, RawRecord,
    kafka::{
        client::{KafkaClientState, KafkaCluster, drop_in_background},
        group_member::GroupMemberContext,
    },
    partition_of,
};
use models::embed::EmbedderPool;
use pipeline::{Cancellation, CancellationReason, PipelineError};
use replica::{QueryQueue, QueryRequest, Replica, refusal};
use ripplemem::{Memory, MetadataReader};
use types::{
    config::{Pipeline, ShardAssignmentMode},
    model::{Bank, RefusalCode},
    wake_signal::WakeSignal,
};

/// The maximum number of questions whose reply topics are being looked up at the same time; further ones are refused.
const UNVERIFIED: usize = 1_024;
/// The longest wait for a question. Every question ends the wait; after it, finished work is committed and the reply
/// topics that have been looked up are used.
const POLL: Duration = Duration::from_millis(25);

/// Time between two commits of notes.
const COMMIT: Duration = Duration::from_millis(200);
/// The longest wait for what was committed of partitions that are taken over.
const COMMITTED: Duration = Duration::from_secs(5);

/// Answers until `stopping`.
pub(super) fn serve_questions(
    pipeline: &Pipeline,
    log: &Arc<KafkaLog>,
    (replica, embedders): (&Arc<Replica>, Arc<EmbedderPool>),
    state: &Arc<ServiceState>,
    stopping: &AtomicBool,
) -> Result<(), ServeError> {
    let cluster = log.cluster();
    let rules = rules(pipeline, cluster);
    let (looking, durable): (_, Arc<dyn Log>) = (Arc::clone(state), Arc::<KafkaLog>::clone(log));
    let is_behind = move |bank: &Bank| looking.log_ends(&durable).found.is_some_and(|ends| ends.is_behind(bank));
    let threads = pipeline.serve.threads;
    let queue = Arc::new(QueryQueue::start(Arc::clone(replica), embedders, None, Arc::new(is_behind), threads)?);
    state.queue.get_or_init(|| Arc::downgrade(&queue));
    let (mut http, mut instance) = (None, None);
    let mut metadata = MetadataReader::new(Arc::<KafkaLog>::clone(log));
    if !pipeline.http.listen.is_empty() {
        let memory =
            Memory::with_replica(Arc::<KafkaLog>::clone(log), Arc::clone(replica), Arc::clone(&queue), pipeline);
        metadata = memory.metadata_reader();
        let holders = (pipeline.serve.hold == ShardAssignmentMode::Assigned).then(Arc::<ShardHolders>::default);
        let (log, memory): (Arc<dyn Log>, _) = (Arc::<KafkaLog>::clone(log), Some(Arc::new(memory)));
        let parts = ServerParts { state: Arc::clone(state), log, memory, holders: holders.clone() };
        let serving = v1::start(pipeline, &pipeline.http.listen, parts)?;
        instance = holders.map(|holders| (holders, serving.advertised.clone()));
        http = Some(serving);
    }
    let (done_out, done) = unbounded();
    let replies = Arc::new(ReplySender::open(cluster, rules.clone(), Arc::clone(state), done_out)?);
    let topics = ReplyTopics::new(rules.reply_prefix.clone());
    let ended = AtomicBool::new(false);
    let (events_out, events) = unbounded();
    let (found_out, found) = unbounded();
    let forwarded = ForwardWaitList::new(log, replica, found_out);
    std::thread::scope(|scope| {
        let delivering = scope.spawn(|| replies.deliver(&ended));
        let looking = scope.spawn(|| topics.read(cluster, &ended));
        scope.spawn(|| forwarded.release_forwarded(&ended));
        let announcing = instance.as_ref().map(|(holders, url)| {
            scope.spawn(|| instance_announcements::announce(log, replica, (holders, url), state, &ended))
        });
        let reader = QuestionTopicReader {
            cluster,
            rules: &rules,
            hold: pipeline.serve.hold,
            replica,
            state,
            replies: &replies,
            metadata,
            topics: &topics,
            forwarded: &forwarded,
            found,
            news: log.news(),
            in_flight: InFlightQuestions::default(),
            notes: BTreeMap::new(),
            noted: Instant::now(),
            unverified: Vec::new(),
            events: (events_out, events),
        };
        let read = reader.read((http, queue), &done, stopping, || {
            ended.store(true, Ordering::Relaxed);
            drop(delivering.join());
        });
        ended.store(true, Ordering::Relaxed);
        looking.join().map_err(|_| ServeError::Ended("the search for reply topics"))??;
        if let Some(announcing) = announcing {
            announcing.join().map_err(|_| ServeError::Ended("the announcement of which banks this instance has"))??;
        }
        read
    })
}

/// What a request is checked against.
pub(super) fn rules(pipeline: &Pipeline, cluster: &KafkaCluster) -> RequestRules {
    let reply_topic = cluster.topic("answers");
    let named = &pipeline.serve.reply_prefix;
    RequestRules {
        reply_prefix: if named.is_empty() { reply_topic.clone() } else { named.clone() },
        reply_topic,
        default_timeout: Duration::from_millis(pipeline.serve.deadline_ms),
        source: format!("/ripplemem/{}", cluster.settings.prefix),
        partitions: pipeline.log.partitions,
        follows_all: pipeline.serve.hold == ShardAssignmentMode::All,
    }
}

/// The reader of the questions topic.
struct QuestionTopicReader<'a> {
    cluster: &'a KafkaCluster,
    rules: &'a RequestRules,
    hold: ShardAssignmentMode,
    replica: &'a Replica,
    state: &'a ServiceState,
    replies: &'a Arc<ReplySender>,
    metadata: MetadataReader,
    topics: &'a ReplyTopics,
    /// The list of questions that wait until their turn is forwarded; `found` receives each once that is so.
    forwarded: &'a ForwardWaitList<'a>,
    found: Receiver<WaitingQuestion>,
    in_flight: InFlightQuestions,
    /// Offsets with a note, which this reader commits itself: the client commits only offsets that have grown.
    notes: BTreeMap<u32, CommittedOffset>,
    /// When notes were committed last.
    noted: Instant,
    /// Questions whose reply topic is being looked up.
    unverified: Vec<(KafkaQuestion, Cancellation)>,
    /// Raised with each decision of the group.
    news: &'a Arc<WakeSignal>,
    /// What the group decides.
    events: (Sender<AssignmentChange>, Receiver<AssignmentChange>),
}

/// A consumer of questions.
type QuestionConsumer = BaseConsumer<GroupMemberContext>;

impl QuestionTopicReader<'_> {
    /// Reads questions, hands them to the query queue, and commits what is done. At the end the query queue
    /// stops, and `deliver` waits for the last deliveries.
    fn read(
        mut self,
        (http, queue): (Option<HttpServer>, Arc<QueryQueue>),
        done: &Receiver<(u32, u64)>,
        stopping: &AtomicBool,
        deliver: impl FnOnce(),
    ) -> Result<(), ServeError> {
        let topic = self.cluster.topic("questions");
        let (mut watch, mut consumer) = self.consumer()?;
        let (mut subscribed, mut rejoins, mut pauses) = (false, false, QuestionPauses::default());
        let mut result = Ok(());
        while !stopping.load(Ordering::Relaxed) {
            // Before the memory is loaded, every bank would be unknown. If the group assigns the memory, nothing is
            // loaded before the instance is a member.
            if !subscribed && (self.hold == ShardAssignmentMode::Assigned || self.state.loaded.load(Ordering::Relaxed))
            {
                consumer.subscribe(&[&topic]).map_err(|e| self.failed(&watch, &e))?;
                subscribed = true;
            }
            if watch.stranded() {
                let (fresh, another) = self.consumer()?;
                watch = fresh;
                drop_in_background(std::mem::replace(&mut consumer, another));
                // What the old consumer had in flight is read again; its shards stay until the group has decided.
                self.in_flight.revoke_all();
                self.notes.clear();
                (subscribed, rejoins, pauses) = (false, true, QuestionPauses::default());
                continue;
            }
            self.store(&consumer, &topic, done);
            if self.noted.elapsed() > COMMIT {
                self.commit_notes(&consumer, &topic, CommitMode::Async);
            }
            let found: Vec<WaitingQuestion> = self.found.try_iter().collect();
            for (request, cancellation) in found {
                self.submit(request, cancellation, &queue);
            }
            for (request, cancellation) in std::mem::take(&mut self.unverified) {
                self.accept_question(request, cancellation, &queue);
            }
            if !subscribed {
                std::thread::sleep(POLL);
                continue;
            }
            self.pause(&consumer, &topic, &queue, &mut pauses);
            let polled = consumer.poll(POLL);
            let decisions: Vec<AssignmentChange> = self.events.1.try_iter().collect();
            for decision in decisions {
                pauses.note(&decision);
                match &decision {
                    AssignmentChange::Assigned(partitions) => self.take_over(&consumer, &topic, partitions),
                    AssignmentChange::Revoked(partitions) => {
                        self.in_flight.revoke(partitions);
                        self.notes.retain(|partition, _| !partitions.contains(partition));
                    }
                }
                if self.hold == ShardAssignmentMode::Assigned {
                    match decision {
                        AssignmentChange::Assigned(partitions) => {
                            self.replica.assign(&partitions, std::mem::take(&mut rejoins))
                        }
                        AssignmentChange::Revoked(partitions) => self.replica.revoke(&partitions),
                    }
                }
            }
            match polled {
                None => {}
                Some(Ok(message)) => {
                    let raw = RawRecord::of(&message);
                    let partition = message.partition().unsigned_abs();
                    let asked = IncomingRequest {
                        partition,
                        offset: raw.record.offset,
                        key: &raw.record.key,
                        value: raw.record.value.as_deref().unwrap_or_default(),
                        headers: &raw.headers,
                    };
                    let request = KafkaQuestion::read(&asked, self.rules, Instant::now(), now_ms());
                    let cancellation = Cancellation::at(request.deadline);
                    if !self.in_flight.take(partition, raw.record.offset, cancellation.clone()) {
                        continue;
                    }
                    match self.other_partition(&request) {
                        Some(_) if request.is_forwarded => {
                            let message = "the question was forwarded to another partition than its bank's: \
                                           the instances differ in log.partitions; set the same number for all";
                            self.replies.refuse(request.address, RefusalCode::Failed, message.to_owned());
                        }
                        Some(home) => {
                            let headers = forwarded_headers(&raw.headers, &request, now_ms());
                            self.replies.forward(request.address, home, asked.value, headers);
                        }
                        None => self.accept_question(request, cancellation, &queue),
                    }
                }
                Some(Err(error)) => {
                    let failure = self.failed(&watch, &error);
                    if matches!(failure, LogError::Cluster { retriable: false, .. }) {
                        result = Err(failure.into());
                        break;
                    }
                }
            }
        }
        // Requests that came over HTTP are finished first, because they keep the query queue alive.
        drop(http);
        drop(queue);
        deliver();
        self.store(&consumer, &topic, done);
        self.commit_notes(&consumer, &topic, CommitMode::Sync);
        result
    }

    /// Pauses partitions while too much waits: a member that does not poll would leave its group.
    fn pause(&self, consumer: &QuestionConsumer, topic: &str, queue: &QueryQueue, pauses: &mut QuestionPauses) {
        let fill = if !queue.has_room() || !self.replies.has_room() {
            QueueFill::Full
        } else if self.hold == ShardAssignmentMode::Assigned && queue.is_half_full() {
            QueueFill::Half
        } else {
            QueueFill::Low
        };
        let list = |partitions: &[u32]| {
            let mut list = TopicPartitionList::new();
            for partition in partitions {
                list.add_partition(topic, *partition as i32);
            }
            list
        };
        // Whatever fails is tried again.
        let (pause, resume) = pauses.due(fill, || self.replica.loading());
        if !pause.is_empty() && consumer.pause(&list(&pause)).is_ok() {
            pauses.paused(&pause);
        }
        if !resume.is_empty() && consumer.resume(&list(&resume)).is_ok() {
            pauses.resumed(&resume);
        }
    }

    /// The partition of a question's bank, if the question is in a different one and instances divide the memory.
    fn other_partition(&self, request: &KafkaQuestion) -> Option<u32> {
        let question = request.question.as_ref().ok().filter(|_| self.hold == ShardAssignmentMode::Assigned)?;
        let home = partition_of(&question.bank, self.rules.partitions);
        (home != request.address.partition).then_some(home)
    }

    fn consumer(&self) -> Result<(KafkaClientState, QuestionConsumer), LogError> {
        let watch = KafkaClientState::default();
        let context = GroupMemberContext {
            watch: watch.clone(),
            events: self.events.0.clone(),
            news: Arc::clone(self.news),
            reads: true,
        };
        let mut member = self.cluster.member("questions");
        member.set("enable.auto.commit", "true").set("auto.commit.interval.ms", "200");
        let consumer = member.create_with_context(context).map_err(|e| self.failed(&watch, &e))?;
        Ok((watch, consumer))
    }

    fn failed(&self, watch: &KafkaClientState, error: &KafkaError) -> LogError {
        self.cluster.failed(watch, "reading questions", error)
    }

    /// Notes what is done, for the next commit.
    fn store(&mut self, consumer: &QuestionConsumer, topic: &str, done: &Receiver<(u32, u64)>) {
        let mut last = BTreeMap::new();
        for (partition, offset) in done.try_iter() {
            last.extend(self.in_flight.done(partition, offset).map(|committed| (partition, committed)));
        }
        if let Some(list) = offset_list(topic, &last) {
            // This fails if another instance owns the partition by now; then that instance answers again.
            drop(consumer.store_offsets(&list));
        }
        for (partition, committed) in last {
            match committed.note.is_empty() {
                true => drop(self.notes.remove(&partition)),
                false => drop(self.notes.insert(partition, committed)),
            }
        }
    }

    /// Commits which questions after a waiting one are answered.
    fn commit_notes(&mut self, consumer: &QuestionConsumer, topic: &str, mode: CommitMode) {
        if let Some(list) = offset_list(topic, &std::mem::take(&mut self.notes)) {
            // If this fails, questions may be answered again.
            drop(consumer.commit(&list, mode));
        }
        self.noted = Instant::now();
    }

    /// Reads which questions are answered in partitions that the group assigns to this instance.
    fn take_over(&mut self, consumer: &QuestionConsumer, topic: &str, partitions: &[u32]) {
        let mut list = TopicPartitionList::new();
        for partition in partitions {
            list.add_partition(topic, *partition as i32);
        }
        let committed = match consumer.committed_offsets(list, COMMITTED) {
            Ok(committed) => committed,
            Err(error) => {
                log_events::answers_unknown(&error);
                return;
            }
        };
        for element in committed.elements() {
            if let Offset::Offset(offset) = element.offset() {
                let note = element.metadata().to_owned();
                let committed = CommittedOffset { offset: offset.unsigned_abs(), note };
                self.in_flight.take_over(element.partition().unsigned_abs(), &committed);
            }
        }
    }

    /// Hands a question to the query queue, once its reply topic is known to exist and its turn was forwarded.
    fn accept_question(&mut self, request: KafkaQuestion, cancellation: Cancellation, queue: &QueryQueue) {
        if cancellation.check() == Err(CancellationReason::Cancelled) {
            return;
        }
        let address = &request.address;
        if address.reply_topic != self.rules.reply_topic || address.reply_partition.is_some() {
            match self.topics.look_up(&address.reply_topic, address.reply_partition, address.arrived) {
                TopicExistence::Yes => {}
                TopicExistence::No(problem) => {
                    let message = format!("kafka_replyTopic: {problem}; create it, or name another topic or partition");
                    return self.replies.refuse(request.address, RefusalCode::ReplyTopic, message);
                }
                TopicExistence::Unknown if Instant::now() >= request.deadline => {
                    let message = "the deadline passed before the reply topic was found; ask again".to_owned();
                    return self.replies.refuse(request.address, RefusalCode::Deadline, message);
                }
                TopicExistence::Unknown if self.unverified.len() >= UNVERIFIED => {
                    let message = "too many questions with new reply topics wait; ask again in a moment".to_owned();
                    return self.replies.refuse(request.address, RefusalCode::Busy, message);
                }
                TopicExistence::Unknown => return self.unverified.push((request, cancellation)),
            }
        }
        let home = request.question.as_ref().ok().map(|question| partition_of(&question.bank, self.rules.partitions));
        if let (Some(home), Some((partition, _))) = (home, request.after)
            && home != partition
        {
            if !self.forwarded.knows(partition) {
                return self.replies.send(request.address, &Err(other_partition_refusal(home, partition)));
            }
            if let Err(refused) = self.forwarded.add((request, cancellation)) {
                let (request, _) = *refused;
                let message = "too many questions wait until turns are forwarded; ask again in a moment".to_owned();
                self.replies.refuse(request.address, RefusalCode::Busy, message);
            }
            return;
        }
        self.submit(request, cancellation, queue);
    }

    /// Hands a question to the query queue.
    fn submit(&self, request: KafkaQuestion, cancellation: Cancellation, queue: &QueryQueue) {
        let KafkaQuestion { question, after, as_of, address, .. } = request;
        match question {
            Err(refusal) => self.replies.send(address, &Err(refusal)),
            Ok(question) => {
                let (replies, metadata) = (Arc::clone(self.replies), self.metadata.clone());
                let (trace, span) = (address.trace.clone(), question_span(&question.bank, address.trace.as_ref()));
                let asked =
                    QueryRequest { question, token: None, after, as_of, cancellation, kept: None, trace, times: None };
                queue.submit(asked, move |result| match result {
                    // The partition was revoked; its new holder reads the question again.
                    Err(PipelineError::Cancelled | PipelineError::OtherInstance { .. }) => {}
                    result => span.in_scope(|| {
                        let complete = result.and_then(|mut evidence| metadata.add(&mut evidence).map(|()| evidence));
                        replies.send(address, &complete.map_err(|error| refusal(&error)));
                    }),
                });
            }
        }
    }
}

/// What is committed, as the client takes it; `None` if that is nothing.
fn offset_list(topic: &str, committed: &BTreeMap<u32, CommittedOffset>) -> Option<TopicPartitionList> {
    let mut list = TopicPartitionList::new();
    for (partition, CommittedOffset { offset, note }) in committed {
        let mut element = list.add_partition(topic, *partition as i32);
        element.set_offset(Offset::Offset(*offset as i64)).ok()?;
        element.set_metadata(note);
    }
    (!committed.is_empty()).then_some(list)
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64)
}
