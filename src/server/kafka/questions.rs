//! Reads questions from a topic, and has their answers written to topics.
//!
//! In: records of the questions topic, which a consumer group divides among the instances. Out: one
//! answer or refusal for each, on its reply topic. The front answers them; this file hands them over and continues
//! reading, whatever their outcome. A question's offset is committed after its answer was delivered: if the process is
//! killed before that, another one answers again, with the same id. When too many questions are waiting in total, the
//! rest stay in the topic, and the consumer keeps polling. If a question waits, a note beside its committed offset says
//! which of the later ones are answered.
//!
//! If the instances divide the memory, the group's decisions are noted here for `hold`. A question that is not in its
//! bank's partition is forwarded there, and one whose partition is revoked is cancelled: the instance that then holds
//! the partition reads it again.

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
use tracing::warn;

use super::{
    api::Holders,
    error::ServeError,
    forwarded::{ForwardedTurns, Waiting},
    in_flight::{Committed, InFlight},
    instances,
    pauses::{Fill, Pauses},
    question_span,
    replies::Replies,
    reply_topics::{ReplyTopics, TopicState},
    request::{IncomingQuestion, Request, Rules, elsewhere, forwarded_headers},
    state::State,
    v1::{self, HttpServer, ServedParts},
};
use models::embed::EmbedderPool;
use nouns::{
    config::{Hold, Pipeline},
    model::{Bank, RefusalCode},
    signal::Signal,
};
use ripplemem::{
    log::{
        KafkaLog, Log, LogError, Membership, RawRecord,
        kafka::{
            client::{Cluster, Watch, drop_in_background},
            members::MemberContext,
        },
        partition_of,
    },
    pipeline::{Asked, Cancellation, Ended, Front, Memory, PipelineError, Replica, refusal},
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
pub(super) fn answer(
    pipeline: &Pipeline,
    log: &Arc<KafkaLog>,
    (replica, embedders): (&Arc<Replica>, Arc<EmbedderPool>),
    state: &Arc<State>,
    stopping: &AtomicBool,
) -> Result<(), ServeError> {
    let cluster = log.cluster();
    let rules = rules(pipeline, cluster);
    let (looking, durable): (_, Arc<dyn Log>) = (Arc::clone(state), Arc::<KafkaLog>::clone(log));
    let is_behind = move |bank: &Bank| looking.log_ends(&durable).found.is_some_and(|ends| ends.is_behind(bank));
    let threads = pipeline.serve.threads;
    let front = Arc::new(Front::start(Arc::clone(replica), embedders, None, Arc::new(is_behind), threads)?);
    state.front.get_or_init(|| Arc::downgrade(&front));
    let (mut http, mut instance) = (None, None);
    if !pipeline.http.listen.is_empty() {
        let memory = Memory::over(Arc::<KafkaLog>::clone(log), Arc::clone(replica), Arc::clone(&front), pipeline);
        let holders = (pipeline.serve.hold == Hold::Assigned).then(Arc::<Holders>::default);
        let (log, memory): (Arc<dyn Log>, _) = (Arc::<KafkaLog>::clone(log), Some(Arc::new(memory)));
        let parts = ServedParts { state: Arc::clone(state), log, memory, holders: holders.clone() };
        let serving = v1::start(pipeline, &pipeline.http.listen, parts)?;
        instance = holders.map(|holders| (holders, serving.advertised.clone()));
        http = Some(serving);
    }
    let (done_out, done) = unbounded();
    let replies = Arc::new(Replies::open(cluster, rules.clone(), Arc::clone(state), done_out)?);
    let topics = ReplyTopics::new(rules.reply_prefix.clone());
    let ended = AtomicBool::new(false);
    let (events_out, events) = unbounded();
    let (found_out, found) = unbounded();
    let forwarded = ForwardedTurns::new(log, replica, found_out);
    std::thread::scope(|scope| {
        let delivering = scope.spawn(|| replies.deliver(&ended));
        let looking = scope.spawn(|| topics.read(cluster, &ended));
        scope.spawn(|| forwarded.find(&ended));
        let announcing = instance
            .as_ref()
            .map(|(holders, url)| scope.spawn(|| instances::announce(log, replica, (holders, url), state, &ended)));
        let reader = Questions {
            cluster,
            rules: &rules,
            hold: pipeline.serve.hold,
            replica,
            state,
            replies: &replies,
            topics: &topics,
            forwarded: &forwarded,
            found,
            news: log.news(),
            in_flight: InFlight::default(),
            notes: BTreeMap::new(),
            noted: Instant::now(),
            unverified: Vec::new(),
            events: (events_out, events),
        };
        let read = reader.read((http, front), &done, stopping, || {
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
pub(super) fn rules(pipeline: &Pipeline, cluster: &Cluster) -> Rules {
    let reply_topic = cluster.topic("answers");
    let named = &pipeline.serve.reply_prefix;
    Rules {
        reply_prefix: if named.is_empty() { reply_topic.clone() } else { named.clone() },
        reply_topic,
        default_timeout: Duration::from_millis(pipeline.serve.deadline_ms),
        source: format!("/ripplemem/{}", cluster.settings.prefix),
        partitions: pipeline.log.partitions,
        follows_all: pipeline.serve.hold == Hold::All,
    }
}

/// The reader of the questions topic.
struct Questions<'a> {
    cluster: &'a Cluster,
    rules: &'a Rules,
    hold: Hold,
    replica: &'a Replica,
    state: &'a State,
    replies: &'a Arc<Replies>,
    topics: &'a ReplyTopics,
    /// Questions that wait until their turn was forwarded, and those for which that is so.
    forwarded: &'a ForwardedTurns<'a>,
    found: Receiver<Waiting>,
    in_flight: InFlight,
    /// What is to be committed by name: the client itself commits only offsets that have grown.
    notes: BTreeMap<u32, Committed>,
    /// When that was done last.
    noted: Instant,
    /// Questions whose reply topic is being looked up.
    unverified: Vec<(Request, Cancellation)>,
    /// Raised with each decision of the group.
    news: &'a Arc<Signal>,
    /// What the group decides.
    events: (Sender<Membership>, Receiver<Membership>),
}

/// A consumer of questions.
type Member = BaseConsumer<MemberContext>;

impl Questions<'_> {
    /// Reads questions, hands them to the front, and commits what is done. At the end the front
    /// stops, and `deliver` waits for the last deliveries.
    fn read(
        mut self,
        (http, front): (Option<HttpServer>, Arc<Front>),
        done: &Receiver<(u32, u64)>,
        stopping: &AtomicBool,
        deliver: impl FnOnce(),
    ) -> Result<(), ServeError> {
        let topic = self.cluster.topic("questions");
        let (mut watch, mut consumer) = self.consumer()?;
        let (mut subscribed, mut rejoins, mut pauses) = (false, false, Pauses::default());
        let mut result = Ok(());
        while !stopping.load(Ordering::Relaxed) {
            // Before the memory is loaded, every bank would be unknown. If the group assigns the memory, nothing is
            // loaded before the instance is a member.
            if !subscribed && (self.hold == Hold::Assigned || self.state.loaded.load(Ordering::Relaxed)) {
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
                (subscribed, rejoins, pauses) = (false, true, Pauses::default());
                continue;
            }
            self.store(&consumer, &topic, done);
            if self.noted.elapsed() > COMMIT {
                self.commit_notes(&consumer, &topic, CommitMode::Async);
            }
            let found: Vec<Waiting> = self.found.try_iter().collect();
            for (request, cancellation) in found {
                self.submit(request, cancellation, &front);
            }
            for (request, cancellation) in std::mem::take(&mut self.unverified) {
                self.hand_over(request, cancellation, &front);
            }
            if !subscribed {
                std::thread::sleep(POLL);
                continue;
            }
            self.pause(&consumer, &topic, &front, &mut pauses);
            let polled = consumer.poll(POLL);
            let decisions: Vec<Membership> = self.events.1.try_iter().collect();
            for decision in decisions {
                pauses.note(&decision);
                match &decision {
                    Membership::Assigned(partitions) => self.take_over(&consumer, &topic, partitions),
                    Membership::Revoked(partitions) => {
                        self.in_flight.revoke(partitions);
                        self.notes.retain(|partition, _| !partitions.contains(partition));
                    }
                }
                if self.hold == Hold::Assigned {
                    match decision {
                        Membership::Assigned(partitions) => {
                            self.replica.assign(&partitions, std::mem::take(&mut rejoins))
                        }
                        Membership::Revoked(partitions) => self.replica.revoke(&partitions),
                    }
                }
            }
            match polled {
                None => {}
                Some(Ok(message)) => {
                    let raw = RawRecord::of(&message);
                    let partition = message.partition().unsigned_abs();
                    let asked = IncomingQuestion {
                        partition,
                        offset: raw.record.offset,
                        key: &raw.record.key,
                        value: raw.record.value.as_deref().unwrap_or_default(),
                        headers: &raw.headers,
                    };
                    let request = Request::read(&asked, self.rules, Instant::now(), now_ms());
                    let cancellation = Cancellation::at(request.deadline);
                    if !self.in_flight.take(partition, raw.record.offset, cancellation.clone()) {
                        continue;
                    }
                    match self.elsewhere(&request) {
                        Some(_) if request.is_forwarded => {
                            let message = "the question was forwarded to another partition than its bank's: \
                                           the instances differ in log.partitions; set the same number for all";
                            self.replies.refuse(request.address, RefusalCode::Failed, message.to_owned());
                        }
                        Some(home) => {
                            let headers = forwarded_headers(&raw.headers, &request, now_ms());
                            self.replies.forward(request.address, home, asked.value, headers);
                        }
                        None => self.hand_over(request, cancellation, &front),
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
        // Requests that came over HTTP are finished first, because they keep the front alive.
        drop(http);
        drop(front);
        deliver();
        self.store(&consumer, &topic, done);
        self.commit_notes(&consumer, &topic, CommitMode::Sync);
        result
    }

    /// Pauses partitions while too much waits: a member that does not poll would leave its group.
    fn pause(&self, consumer: &Member, topic: &str, front: &Front, pauses: &mut Pauses) {
        let fill = if !front.has_room() || !self.replies.has_room() {
            Fill::Full
        } else if self.hold == Hold::Assigned && front.is_half_full() {
            Fill::Half
        } else {
            Fill::Low
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
    fn elsewhere(&self, request: &Request) -> Option<u32> {
        let question = request.question.as_ref().ok().filter(|_| self.hold == Hold::Assigned)?;
        let home = partition_of(&question.bank, self.rules.partitions);
        (home != request.address.partition).then_some(home)
    }

    fn consumer(&self) -> Result<(Watch, Member), LogError> {
        let watch = Watch::default();
        let context = MemberContext {
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

    fn failed(&self, watch: &Watch, error: &KafkaError) -> LogError {
        self.cluster.failed(watch, "reading questions", error)
    }

    /// Notes what is done, for the next commit.
    fn store(&mut self, consumer: &Member, topic: &str, done: &Receiver<(u32, u64)>) {
        let mut last = BTreeMap::new();
        for (partition, offset) in done.try_iter() {
            last.extend(self.in_flight.done(partition, offset).map(|committed| (partition, committed)));
        }
        if let Some(list) = listed(topic, &last) {
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
    fn commit_notes(&mut self, consumer: &Member, topic: &str, mode: CommitMode) {
        if let Some(list) = listed(topic, &std::mem::take(&mut self.notes)) {
            // If this fails, questions may be answered again.
            drop(consumer.commit(&list, mode));
        }
        self.noted = Instant::now();
    }

    /// Reads which questions are answered in partitions that the group assigns to this instance.
    fn take_over(&mut self, consumer: &Member, topic: &str, partitions: &[u32]) {
        let mut list = TopicPartitionList::new();
        for partition in partitions {
            list.add_partition(topic, *partition as i32);
        }
        let committed = match consumer.committed_offsets(list, COMMITTED) {
            Ok(committed) => committed,
            Err(error) => {
                warn!(problem = %error, "cannot find out which questions are answered; some may be answered again");
                return;
            }
        };
        for element in committed.elements() {
            if let Offset::Offset(offset) = element.offset() {
                let note = element.metadata().to_owned();
                let committed = Committed { offset: offset.unsigned_abs(), note };
                self.in_flight.take_over(element.partition().unsigned_abs(), &committed);
            }
        }
    }

    /// Hands a question to the front, once its reply topic is known to exist and its turn was forwarded.
    fn hand_over(&mut self, request: Request, cancellation: Cancellation, front: &Front) {
        if cancellation.check() == Err(Ended::Cancelled) {
            return;
        }
        let address = &request.address;
        if address.reply_topic != self.rules.reply_topic || address.reply_partition.is_some() {
            match self.topics.look_up(&address.reply_topic, address.reply_partition, address.arrived) {
                TopicState::Yes => {}
                TopicState::No(problem) => {
                    let message = format!("kafka_replyTopic: {problem}; create it, or name another topic or partition");
                    return self.replies.refuse(request.address, RefusalCode::ReplyTopic, message);
                }
                TopicState::Unknown if Instant::now() >= request.deadline => {
                    let message = "the deadline passed before the reply topic was found; ask again".to_owned();
                    return self.replies.refuse(request.address, RefusalCode::Deadline, message);
                }
                TopicState::Unknown if self.unverified.len() >= UNVERIFIED => {
                    let message = "too many questions with new reply topics wait; ask again in a moment".to_owned();
                    return self.replies.refuse(request.address, RefusalCode::Busy, message);
                }
                TopicState::Unknown => return self.unverified.push((request, cancellation)),
            }
        }
        let home = request.question.as_ref().ok().map(|question| partition_of(&question.bank, self.rules.partitions));
        if let (Some(home), Some((partition, _))) = (home, request.after)
            && home != partition
        {
            if !self.forwarded.knows(partition) {
                return self.replies.send(request.address, &Err(elsewhere(home, partition)));
            }
            if let Err(refused) = self.forwarded.add((request, cancellation)) {
                let (request, _) = *refused;
                let message = "too many questions wait until turns are forwarded; ask again in a moment".to_owned();
                self.replies.refuse(request.address, RefusalCode::Busy, message);
            }
            return;
        }
        self.submit(request, cancellation, front);
    }

    /// Hands a question to the front.
    fn submit(&self, request: Request, cancellation: Cancellation, front: &Front) {
        let Request { question, after, as_of, address, .. } = request;
        match question {
            Err(refusal) => self.replies.send(address, &Err(refusal)),
            Ok(question) => {
                let replies = Arc::clone(self.replies);
                let (trace, span) = (address.trace.clone(), question_span(&question.bank, address.trace.as_ref()));
                let asked = Asked { question, token: None, after, as_of, cancellation, kept: None, trace, times: None };
                front.submit(asked, move |result| match result {
                    // The partition was revoked; its new holder reads the question again.
                    Err(PipelineError::Cancelled | PipelineError::OtherInstance { .. }) => {}
                    result => span.in_scope(|| replies.send(address, &result.map_err(|error| refusal(&error)))),
                });
            }
        }
    }
}

/// What is committed, as the client takes it; none where there is nothing.
fn listed(topic: &str, committed: &BTreeMap<u32, Committed>) -> Option<TopicPartitionList> {
    let mut list = TopicPartitionList::new();
    for (partition, Committed { offset, note }) in committed {
        let mut element = list.add_partition(topic, *partition as i32);
        element.set_offset(Offset::Offset(*offset as i64)).ok()?;
        element.set_metadata(note);
    }
    (!committed.is_empty()).then_some(list)
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64)
}
