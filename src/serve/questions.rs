//! Questions from a topic, answers to a topic.
//!
//! In: records of the questions topic, which a consumer group divides among the instances. Out: one
//! answer or refusal for each, on its reply topic. A question's offset is committed after its answer
//! was delivered: if the process is killed before, another answers again, with the same id. A
//! question that waits for a turn occupies no thread.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use rdkafka::{
    Message,
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
    producer::BaseProducer,
};

use super::{
    error::ServeError,
    request::{IncomingQuestion, Request, Rules, reply},
    state::State,
};
use crate::{
    config::Pipeline,
    embed::{self, EmbedError, Embedder},
    log::{
        LogError,
        kafka::{
            client::{Cluster, Watch, drop_in_background},
            owner::{Outgoing, drain, send},
            partition_reader::RawRecord,
        },
    },
    model::{Evidence, Refusal, RefusalCode},
    pipeline::{Answerer, PipelineError},
    recall::RecallError,
    snapshot::SnapshotError,
    telemetry::Outcome,
};

/// Most questions in flight; more stay in the topic.
const IN_FLIGHT: usize = 256;
/// Timeout of one poll for a question.
const POLL: Duration = Duration::from_millis(5);
/// Time between two attempts to reach an endpoint of embeddings at the start.
const ENDPOINT_BACKOFF: Duration = Duration::from_millis(500);

/// Answers until `stopping`.
pub(super) fn answer(
    pipeline: &Pipeline,
    cluster: &Cluster,
    answerer: &Answerer,
    state: &State,
    stopping: &AtomicBool,
) -> Result<(), ServeError> {
    let rules = rules(pipeline, cluster);
    let mut embedders: Vec<Box<dyn Embedder>> = Vec::new();
    for _ in 0..pipeline.serve.threads {
        match open_embedder(pipeline, stopping)? {
            Some(embedder) => embedders.push(embedder),
            None => return Ok(()),
        }
    }
    let (work_out, work) = bounded::<Request>(IN_FLIGHT);
    let (done_out, done) = unbounded();
    std::thread::scope(|scope| {
        let mut workers = Vec::new();
        for mut embedder in embedders {
            let (work, done_out, rules) = (work.clone(), done_out.clone(), &rules);
            let (watch, producer) = producer(cluster)?;
            let mut worker = Worker { cluster, answerer, state, rules, watch, producer };
            workers.push(scope.spawn(move || worker.run(&mut *embedder, &work, &done_out)));
        }
        drop((work, done_out));
        let taken = take(cluster, &rules, answerer, state, stopping, work_out, &done);
        for worker in workers {
            worker.join().map_err(|_| ServeError::Ended("a thread that answers questions"))?;
        }
        taken
    })
}

/// An embedder, once its endpoint answers; none when the service stops before.
fn open_embedder(pipeline: &Pipeline, stopping: &AtomicBool) -> Result<Option<Box<dyn Embedder>>, EmbedError> {
    while !stopping.load(Ordering::Relaxed) {
        match embed::open(&pipeline.embed, &pipeline.model()) {
            Err(EmbedError::Unavailable { .. }) => std::thread::sleep(ENDPOINT_BACKOFF),
            opened => return opened.map(Some),
        }
    }
    Ok(None)
}

fn producer(cluster: &Cluster) -> Result<(Watch, BaseProducer<Watch>), LogError> {
    let watch = Watch::default();
    let made = cluster.producer().create_with_context(watch.clone());
    let producer = made.map_err(|e| cluster.failed(&watch, "making a producer of answers", &e))?;
    Ok((watch, producer))
}

fn rules(pipeline: &Pipeline, cluster: &Cluster) -> Rules {
    let reply_topic = cluster.topic("answers");
    let named = &pipeline.serve.reply_prefix;
    Rules {
        reply_prefix: if named.is_empty() { reply_topic.clone() } else { named.clone() },
        reply_topic,
        default_timeout: Duration::from_millis(pipeline.serve.deadline_ms),
        source: format!("/ripplemem/{}", cluster.settings.prefix),
        partitions: pipeline.log.partitions,
    }
}

/// Reads questions, passes them to the workers, and commits what is answered.
fn take(
    cluster: &Cluster,
    rules: &Rules,
    answerer: &Answerer,
    state: &State,
    stopping: &AtomicBool,
    work: Sender<Request>,
    done: &Receiver<(u32, u64)>,
) -> Result<(), ServeError> {
    let topic = cluster.topic("questions");
    let failed = |watch: &Watch, e: &KafkaError| cluster.failed(watch, "reading questions", e);
    let asking = || -> Result<(Watch, BaseConsumer<Watch>), LogError> {
        let watch = Watch::default();
        let mut member = cluster.member("questions");
        member.set("enable.auto.commit", "true").set("auto.commit.interval.ms", "200");
        let consumer = member.create_with_context(watch.clone()).map_err(|e| failed(&watch, &e))?;
        Ok((watch, consumer))
    };
    let (mut watch, mut consumer) = asking()?;
    let mut in_flight = InFlight::default();
    let mut waiting: Vec<Request> = Vec::new();
    let mut subscribed = false;
    while !stopping.load(Ordering::Relaxed) {
        // Before the memory is loaded, every bank would be unknown.
        if !subscribed && state.loaded.load(Ordering::Relaxed) {
            consumer.subscribe(&[&topic]).map_err(|e| failed(&watch, &e))?;
            subscribed = true;
        }
        if watch.stranded() {
            let (fresh, another) = asking()?;
            watch = fresh;
            drop_in_background(std::mem::replace(&mut consumer, another));
            subscribed = false;
            continue;
        }
        for (partition, offset) in done.try_iter() {
            if let Some(next) = in_flight.done(partition, offset) {
                // This fails if another instance owns the partition by now; then it answers again.
                drop(consumer.store_offset(&topic, partition as i32, next as i64 - 1));
            }
        }
        let (ready, later): (Vec<Request>, Vec<Request>) = waiting.into_iter().partition(|r| is_ready(r, answerer));
        waiting = later;
        for request in ready {
            work.send(request).map_err(|_| ServeError::Ended("answering questions"))?;
        }
        if in_flight.count() >= IN_FLIGHT || !subscribed {
            std::thread::sleep(POLL);
            continue;
        }
        match consumer.poll(POLL) {
            None => {}
            Some(Ok(message)) => {
                let raw = RawRecord::of(&message);
                let partition = message.partition().unsigned_abs();
                in_flight.take(partition, raw.record.offset);
                let asked = IncomingQuestion {
                    partition,
                    offset: raw.record.offset,
                    key: &raw.record.key,
                    value: raw.record.value.as_deref().unwrap_or_default(),
                    headers: &raw.headers,
                };
                let request = Request::read(&asked, rules, Instant::now(), now_ms());
                if is_ready(&request, answerer) {
                    work.send(request).map_err(|_| ServeError::Ended("answering questions"))?;
                } else {
                    waiting.push(request);
                }
            }
            Some(Err(error)) => {
                let failure = failed(&watch, &error);
                if matches!(failure, LogError::Cluster { retriable: false, .. }) {
                    return Err(failure.into());
                }
            }
        }
    }
    Ok(())
}

/// Whether a question can be answered or refused now: it need not wait for a turn.
fn is_ready(request: &Request, answerer: &Answerer) -> bool {
    let now = Instant::now();
    request.question.is_err()
        || now >= request.deadline
        || request.after.is_none_or(|(partition, next)| answerer.wait_for(partition, next, now))
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64)
}

/// A thread that answers questions.
struct Worker<'a> {
    cluster: &'a Cluster,
    answerer: &'a Answerer,
    state: &'a State,
    rules: &'a Rules,
    watch: Watch,
    producer: BaseProducer<Watch>,
}

impl Worker<'_> {
    fn run(&mut self, embedder: &mut dyn Embedder, work: &Receiver<Request>, done: &Sender<(u32, u64)>) {
        for request in work {
            let result = self.evidence(&request, embedder);
            let outcome = result.as_ref().map_or_else(|refusal| refusal.code.name(), |_| "answered");
            self.send(&request, &result);
            self.state.metrics.questions.get_or_create(&Outcome { outcome }).inc();
            self.state.metrics.question_seconds.observe(request.arrived.elapsed().as_secs_f64());
            if let Some(took) = result.ok().and_then(|evidence| evidence.trace.llm) {
                self.state.metrics.llm_question_tokens.observe(took.tokens() as f64);
                self.state.metrics.llm_question_seconds.observe(took.milliseconds as f64 / 1_000.0);
            }
            if done.send((request.partition, request.offset)).is_err() {
                break;
            }
        }
    }

    fn evidence(&self, request: &Request, embedder: &mut dyn Embedder) -> Result<Evidence, Refusal> {
        let question = request.question.as_ref().map_err(Clone::clone)?;
        let now = Instant::now();
        if now >= request.deadline {
            let missing = request.after.filter(|(p, next)| !self.answerer.wait_for(*p, *next, now));
            let message = match missing {
                Some((partition, next)) => format!(
                    "the deadline passed before turns/{partition} was remembered up to offset {}; ask again, or allow \
                     more time in ripplemem_deadline",
                    next - 1
                ),
                None => "the deadline passed while the question was queued; allow more time in ripplemem_deadline"
                    .to_owned(),
            };
            return Err(Refusal::new(RefusalCode::Deadline, message));
        }
        let past = request.as_of.map(|at| self.answerer.past(&question.bank, at)).transpose();
        let answered = past
            .and_then(|past| past.as_deref().unwrap_or(self.answerer).ask(question, embedder, Some(request.deadline)));
        answered.map_err(|error| {
            let code = match &error {
                PipelineError::UnknownBank { .. } => RefusalCode::UnknownBank,
                PipelineError::Quarantined { .. } => RefusalCode::Quarantined,
                PipelineError::Recall(RecallError::EmptyQuestion)
                | PipelineError::Snapshot(SnapshotError::Before { .. } | SnapshotError::None) => RefusalCode::Invalid,
                _ => RefusalCode::Failed,
            };
            Refusal::new(code, error.to_string())
        })
    }

    /// Sends an answer and waits for its delivery; if its topic does not take it, a refusal is sent to the
    /// default reply topic.
    fn send(&mut self, request: &Request, result: &Result<Evidence, Refusal>) {
        let (kind, value) = reply(result);
        let until = Instant::now() + self.cluster.timeout();
        let out = |topic, partition, value| Outgoing {
            topic,
            partition,
            key: &request.key,
            value: Some(value),
            headers: Some(request.answer_headers(kind, self.rules)),
        };
        let sent = send(&self.producer, out(&request.reply_topic, request.reply_partition, &value), until);
        let fallback = match sent {
            Ok(()) => None,
            Err(error) => {
                let message = format!("{}: {error}; name another kafka_replyTopic or partition", request.reply_topic);
                Some(Refusal::new(RefusalCode::ReplyTopic, message))
            }
        };
        if let Some(refusal) = fallback {
            let (_, value) = reply(&Err(refusal));
            // The last attempt: if it fails too, the question counts as answered.
            drop(send(&self.producer, out(&self.rules.reply_topic, None, &value), until));
        }
        // If an answer is not delivered, the caller times out and asks again.
        let drained = drain(&self.producer, until);
        if (drained.is_err() || self.watch.take_deliveries().failed.is_some())
            && let Ok((watch, another)) = producer(self.cluster)
        {
            self.watch = watch;
            drop_in_background(std::mem::replace(&mut self.producer, another));
        }
    }
}

/// The questions of each partition that are in flight.
#[derive(Debug, Default)]
struct InFlight(BTreeMap<u32, (BTreeSet<u64>, u64)>);

impl InFlight {
    fn count(&self) -> usize {
        self.0.values().map(|(offsets, _)| offsets.len()).sum()
    }

    fn take(&mut self, partition: u32, offset: u64) {
        let (offsets, next) = self.0.entry(partition).or_default();
        offsets.insert(offset);
        *next = (*next).max(offset + 1);
    }

    /// The offset before which everything is done, when there is one.
    fn done(&mut self, partition: u32, offset: u64) -> Option<u64> {
        let (offsets, next) = self.0.get_mut(&partition)?;
        offsets.remove(&offset);
        let safe = offsets.first().copied().unwrap_or(*next);
        (safe > 0).then_some(safe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_committed_when_all_before_it_are_answered() {
        let mut in_flight = InFlight::default();
        (3..6).for_each(|offset| in_flight.take(0, offset));
        assert_eq!(in_flight.count(), 3);
        assert_eq!(in_flight.done(0, 4), Some(3), "3 is not done");
        assert_eq!(in_flight.done(0, 3), Some(5));
        assert_eq!(in_flight.done(0, 5), Some(6));
        assert_eq!(in_flight.count(), 0);
    }
}
