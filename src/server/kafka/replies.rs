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
    request::{ReplyAddress, Rules, reply},
    state::State,
};
use crate::telemetry::Outcome;
use nouns::{
    model::{Evidence, Refusal, RefusalCode},
    sync,
};
use ripplemem::log::{
    LogError,
    kafka::client::{Cluster, Watch, drop_in_background},
};

/// How many answers may wait for their delivery; beyond that, questions stay in their topic.
const UNDELIVERED: usize = 4_096;
/// How many bytes these answers may have.
const UNDELIVERED_BYTES: usize = 64 << 20;
/// Time of one poll for delivery reports.
const POLL: Duration = Duration::from_millis(20);
/// The minimum time between the creation of two producers.
const REPLACE: Duration = Duration::from_secs(1);

type AnswerProducer = BaseProducer<Deliveries>;

/// The producer of answers.
pub(super) struct Replies {
    cluster: Cluster,
    rules: Rules,
    state: Arc<State>,
    producer: Mutex<Arc<AnswerProducer>>,
    reports: (Sender<Report>, Receiver<Report>),
    /// Takes the partition and offset of each question that is done.
    done: Sender<(u32, u64)>,
    undelivered: AtomicUsize,
    undelivered_bytes: AtomicUsize,
}

/// An answer that was sent.
struct SentAnswer {
    address: ReplyAddress,
    bytes: usize,
    what: What,
}

/// What was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Answer,
    /// The refusal to the default reply topic.
    Fallback,
    /// The question, to another partition.
    Forward,
}

/// The result of a delivery.
struct Report {
    sent: SentAnswer,
    failed: Option<KafkaError>,
}

/// Takes the producer's delivery reports.
struct Deliveries {
    watch: Watch,
    reports: Sender<Report>,
}

impl ClientContext for Deliveries {
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

impl ProducerContext for Deliveries {
    type DeliveryOpaque = Box<SentAnswer>;

    fn delivery(&self, result: &DeliveryResult<'_>, sent: Box<SentAnswer>) {
        let failed = result.as_ref().err().map(|(error, _)| error.clone());
        drop(self.reports.send(Report { sent: *sent, failed }));
    }
}

impl Replies {
    /// A producer; `done` takes the partition and offset of each question that is done.
    pub(super) fn open(
        cluster: &Cluster,
        rules: Rules,
        state: Arc<State>,
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
    pub(super) fn send(&self, address: ReplyAddress, result: &Result<Evidence, Refusal>) {
        let answer = result.as_ref().map_err(|refusal| refusal.code.name());
        self.state.note_answer(answer, address.arrived.elapsed());
        self.produce(address, What::Answer, result);
    }

    /// Sends a refusal to the default reply topic.
    pub(super) fn refuse(&self, address: ReplyAddress, code: RefusalCode, message: String) {
        self.send(address.at_default(&self.rules), &Err(Refusal::new(code, message)));
    }

    /// Sends a question to another partition of the questions topic; returns at once.
    pub(super) fn forward(&self, address: ReplyAddress, partition: u32, value: &[u8], headers: OwnedHeaders) {
        self.state.metrics.questions.get_or_create(&Outcome { outcome: "forwarded" }).inc();
        let (topic, key) = (self.cluster.topic("questions"), address.key.clone());
        let sent = SentAnswer { address, bytes: value.len(), what: What::Forward };
        self.put(sent, &topic, Some(partition), &key, value, headers);
    }

    fn produce(&self, address: ReplyAddress, what: What, result: &Result<Evidence, Refusal>) {
        let (kind, value) = reply(result);
        let headers = address.answer_headers(kind, &self.rules);
        let (topic, partition, key) = (address.reply_topic.clone(), address.reply_partition, address.key.clone());
        self.put(SentAnswer { address, bytes: value.len(), what }, &topic, partition, &key, &value, headers);
    }

    fn put(
        &self,
        sent: SentAnswer,
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
            drop(self.reports.0.send(Report { sent: *record.delivery_opaque, failed: Some(error) }));
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
            retired.retain(|old: &Arc<AnswerProducer>| {
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
    fn handle(&self, Report { sent, failed }: Report) -> bool {
        let SentAnswer { address, bytes, what } = sent;
        self.undelivered.fetch_sub(1, Ordering::Relaxed);
        self.undelivered_bytes.fetch_sub(bytes, Ordering::Relaxed);
        match failed {
            Some(error) if what == What::Forward => {
                let error = self.cluster.failed(&Watch::default(), "forwarding a question", &error);
                self.refuse(address, RefusalCode::Failed, format!("{error}; ask again"));
                true
            }
            Some(error) if what == What::Answer => {
                let error = self.cluster.failed(&Watch::default(), "sending an answer", &error);
                let topic = &address.reply_topic;
                let message = format!("{topic}: {error}; name another kafka_replyTopic or partition");
                let refusal = Refusal::new(RefusalCode::ReplyTopic, message);
                self.produce(address.at_default(&self.rules), What::Fallback, &Err(refusal));
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

fn producer(cluster: &Cluster, reports: &Sender<Report>) -> Result<AnswerProducer, LogError> {
    let watch = Watch::default();
    let context = Deliveries { watch: watch.clone(), reports: reports.clone() };
    // An answer does not wait for others: if many are ready, they are sent together anyway.
    let made = cluster.producer().set("linger.ms", "0").create_with_context(context);
    made.map_err(|e| cluster.failed(&watch, "making a producer of answers", &e))
}
