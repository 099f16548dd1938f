//! Sends answers to their topics, and forwards questions to other instances.
//!
//! In: answers, refusals and questions to forward, from any thread. Out: all are sent by one producer and delivered in
//! parallel; nothing waits for a delivery. If a topic does not take an answer, a refusal goes to the default reply
//! topic. A question counts as done when one of the two was delivered, or when both failed: then its asker times out
//! and asks again. A forwarded question counts as done once the forward is delivered; if the forward fails, the
//! question is refused.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, unbounded};
use rdkafka::{
    ClientContext,
    config::RDKafkaLogLevel,
    error::KafkaError,
    message::OwnedHeaders,
    producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext},
};

use super::{
    question_record::{ReplyAddress, RequestRules, reply},
    service_state::ServiceState,
};
use crate::telemetry::OutcomeLabel;
use logs::{
    LogError,
    kafka::client::{KafkaClientState, KafkaCluster, drop_in_background},
};
use types::{
    model::{Evidence, QuestionRefusal, RefusalCode},
    sync,
};

/// How many answers may wait for their delivery; beyond that, questions stay in their topic.
const UNDELIVERED: usize = 4_096;
/// How many bytes these answers may have.
const UNDELIVERED_BYTES: usize = 64 << 20;
/// Time of one poll for delivery reports.
const POLL: Duration = Duration::from_millis(20);
/// The minimum time between the creation of two producers.
const REPLACE: Duration = Duration::from_secs(1);

type ReplyProducer = BaseProducer<ReplyDeliveryContext>;

/// The producer of answers.
pub(super) struct ReplySender {
    cluster: KafkaCluster,
    rules: RequestRules,
    state: Arc<ServiceState>,
    producer: Mutex<Arc<ReplyProducer>>,
    reports: (Sender<ReplyDelivery>, Receiver<ReplyDelivery>),
    /// Takes the partition and offset of each question that is done.
    done: Sender<(u32, u64)>,
    undelivered: AtomicUsize,
    undelivered_bytes: AtomicUsize,
}

/// An answer that was sent.
struct SentReply {
    address: ReplyAddress,
    bytes: usize,
    what: ReplyKind,
}

/// What was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplyKind {
    Answer,
    /// The refusal to the default reply topic.
    Fallback,
    /// The question, to another partition.
    Forward,
}

/// The result of a delivery.
struct ReplyDelivery {
    sent: SentReply,
    failed: Option<KafkaError>,
}

/// Takes the producer's delivery reports.
struct ReplyDeliveryContext {
    watch: KafkaClientState,
    reports: Sender<ReplyDelivery>,
}

impl ClientContext for ReplyDeliveryContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.watch.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.watch.error(error, reason);
    }

    fn stats_raw(&self, statistics: &[u8]) {
        self.watch.stats_raw(statistics);
    }
}

impl ProducerContext for ReplyDeliveryContext {
    type DeliveryOpaque = Box<SentReply>;

    fn delivery(&self, result: &DeliveryResult<'_>, sent: Box<SentReply>) {
        let failed = result.as_ref().err().map(|(error, _)| error.clone());
        drop(self.reports.send(ReplyDelivery { sent: *sent, failed }));
    }
}

impl ReplySender {
    /// A producer; `done` takes the partition and offset of each question that is done.
    pub(super) fn open(
        cluster: &KafkaCluster,
        rules: RequestRules,
        state: Arc<ServiceState>,
        done: Sender<(u32, u64)>,
    ) -> Result<Self, LogError> {
        let reports = unbounded();
        let producer = producer(cluster, &reports.0)?;
        Ok(Self {
            cluster: cluster.clone(),
            rules,
            state,
            producer: Mutex::new(Arc::new(producer)),
            reports,
            done,
            undelivered: AtomicUsize::new(0),
            undelivered_bytes: AtomicUsize::new(0),
        })
    }

    /// Whether more questions may be taken.
    pub(super) fn has_room(&self) -> bool {
        self.undelivered.load(Ordering::Relaxed) < UNDELIVERED
            && self.undelivered_bytes.load(Ordering::Relaxed) < UNDELIVERED_BYTES
    }

    /// Sends the answer to a question; returns at once.
    pub(super) fn send(&self, address: ReplyAddress, result: &Result<Evidence, QuestionRefusal>) {
        let answer = result.as_ref().map_err(|refusal| refusal.code.name());
        self.state.note_answer(answer, address.arrived.elapsed());
        self.produce(address, ReplyKind::Answer, result);
    }

    /// Sends a refusal to the default reply topic.
    pub(super) fn refuse(&self, address: ReplyAddress, code: RefusalCode, message: String) {
        self.send(address.in_default_topic(&self.rules), &Err(QuestionRefusal::new(code, message)));
    }

    /// Sends a question to another partition of the questions topic; returns at once.
    pub(super) fn forward(&self, address: ReplyAddress, partition: u32, value: &[u8], headers: OwnedHeaders) {
        self.state.metrics.questions.get_or_create(&OutcomeLabel { outcome: "forwarded" }).inc();
        let (topic, key) = (self.cluster.topic("questions"), address.key.clone());
        let sent = SentReply { address, bytes: value.len(), what: ReplyKind::Forward };
        self.put(sent, &topic, Some(partition), &key, value, headers);
    }

    fn produce(&self, address: ReplyAddress, what: ReplyKind, result: &Result<Evidence, QuestionRefusal>) {
        let (kind, value) = reply(result);
        let headers = address.answer_headers(kind, &self.rules);
        let (topic, partition, key) = (address.reply_topic.clone(), address.reply_partition, address.key.clone());
        self.put(SentReply { address, bytes: value.len(), what }, &topic, partition, &key, &value, headers);
    }

    fn put(
        &self,
        sent: SentReply,
        topic: &str,
        partition: Option<u32>,
        key: &[u8],
        value: &[u8],
        headers: OwnedHeaders,
    ) {
        let bytes = sent.bytes;
        let mut record = BaseRecord::with_opaque_to(topic, Box::new(sent)).payload(value).headers(headers);
        if let Some(partition) = partition {
            record = record.partition(partition as i32);
        }
        if !key.is_empty() {
            record = record.key(key);
        }
        self.undelivered.fetch_add(1, Ordering::Relaxed);
        self.undelivered_bytes.fetch_add(bytes, Ordering::Relaxed);
        let producer = Arc::clone(&sync::lock(&self.producer));
        if let Err((error, record)) = producer.send(record) {
            drop(self.reports.0.send(ReplyDelivery { sent: *record.delivery_opaque, failed: Some(error) }));
        }
    }

    /// Handles delivery reports until `ended`, and then until all deliveries are finished, but for at most the timeout
    /// of a request.
    pub(super) fn deliver(&self, ended: &AtomicBool) {
        let (mut replaced, mut retired) = (Instant::now(), Vec::new());
        let mut until = None;
        loop {
            let producer = Arc::clone(&sync::lock(&self.producer));
            producer.poll(POLL);
            let mut broken = producer.context().watch.stranded() || producer.client().fatal_error().is_some();
            drop(producer);
            retired.retain(|old: &Arc<ReplyProducer>| {
                old.poll(Duration::ZERO);
                old.in_flight_count() > 0 || Arc::strong_count(old) > 1
            });
            for report in self.reports.1.try_iter() {
                broken |= self.handle(report);
            }
            if broken
                && replaced.elapsed() > REPLACE
                && let Ok(fresh) = self::producer(&self.cluster, &self.reports.0)
            {
                retired.push(std::mem::replace(&mut *sync::lock(&self.producer), Arc::new(fresh)));
                replaced = Instant::now();
            }
            if ended.load(Ordering::Relaxed) {
                let until = *until.get_or_insert_with(|| Instant::now() + self.cluster.timeout());
                if self.undelivered.load(Ordering::Relaxed) == 0 || Instant::now() > until {
                    break;
                }
            }
        }
        drop_in_background(retired);
    }

    /// Returns whether the producer may be broken.
    fn handle(&self, ReplyDelivery { sent, failed }: ReplyDelivery) -> bool {
        let SentReply { address, bytes, what } = sent;
        self.undelivered.fetch_sub(1, Ordering::Relaxed);
        self.undelivered_bytes.fetch_sub(bytes, Ordering::Relaxed);
        match failed {
            Some(error) if what == ReplyKind::Forward => {
                let error = self.cluster.failed(&KafkaClientState::default(), "forwarding a question", &error);
                self.refuse(address, RefusalCode::Failed, format!("{error}; ask again"));
                true
            }
            Some(error) if what == ReplyKind::Answer => {
                let error = self.cluster.failed(&KafkaClientState::default(), "sending an answer", &error);
                let topic = &address.reply_topic;
                let message = format!("{topic}: {error}; name another kafka_replyTopic or partition");
                let refusal = QuestionRefusal::new(RefusalCode::ReplyTopic, message);
                self.produce(address.in_default_topic(&self.rules), ReplyKind::Fallback, &Err(refusal));
                true
            }
            failed => {
                // At the end no thread sends it; another instance then answers the question again.
                let _ = self.done.send((address.partition, address.offset));
                failed.is_some()
            }
        }
    }
}

fn producer(cluster: &KafkaCluster, reports: &Sender<ReplyDelivery>) -> Result<ReplyProducer, LogError> {
    let watch = KafkaClientState::default();
    let context = ReplyDeliveryContext { watch: watch.clone(), reports: reports.clone() };
    // An answer does not wait for others: if many are ready, they are sent together anyway.
    let made = cluster.producer().set("linger.ms", "0").create_with_context(context);
    made.map_err(|e| cluster.failed(&watch, "making a producer of answers", &e))
}
