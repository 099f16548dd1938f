//! One question to a running service, over its topics.
//!
//! In: a question. Out: what the service answered. The answer is known by the correlation
//! id; other answers on the topic pass by.

use std::time::{Duration, Instant};

use rdkafka::{
    Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
    message::{Header, OwnedHeaders},
    producer::BaseProducer,
};

use super::request::{ANSWER, REFUSAL};
use crate::{
    config::Pipeline,
    log::{
        LogError,
        kafka::{
            client::{Cluster, Watch},
            owner::{Outgoing, drain, send},
            partition_reader::{RawRecord, span},
        },
    },
    model::{Evidence, Question, Refusal},
    snapshot::AsOf,
};

/// Why there is no evidence.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The cluster cannot be reached or does not let us in.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The service refused.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// Nobody answered.
    #[error(
        "no answer within {0:.1} s; is a service with the role \"serve\" running and ready? (`ripplemem run FILE`, \
         /ready)"
    )]
    Silence(f64),
    /// The question or the answer has a form that this build does not know.
    #[error("{0}")]
    Form(String),
}

/// Asks the service of a pipeline, and waits as long as `serve.deadline_ms` says. `after` is
/// a turn, by partition and offset, that the answer must reflect; `as_of`, the past that is asked.
///
/// # Errors
/// [`AskError`].
pub fn ask(
    pipeline: &Pipeline,
    question: &Question,
    after: Option<(u32, u64)>,
    as_of: Option<AsOf>,
) -> Result<Evidence, AskError> {
    let cluster = Cluster::new(&pipeline.log.kafka)?;
    let (questions, answers) = (cluster.topic("questions"), cluster.topic("answers"));
    let watch = Watch::default();
    let failed = |doing: &str, e: &KafkaError| cluster.failed(&watch, doing, e);
    let consumer: BaseConsumer<Watch> = cluster
        .reader(1_024)
        .create_with_context(watch.clone())
        .map_err(|e| failed("making a reader of answers", &e))?;
    let there = consumer
        .fetch_metadata(Some(&answers), cluster.timeout())
        .map_err(|e| failed("asking for the answers topic", &e))?;
    let mut list = TopicPartitionList::new();
    for partition in there.topics().iter().flat_map(|t| t.partitions()) {
        let (_, end) = span(&cluster, &consumer, &watch, (&answers, partition.id()), cluster.timeout())?;
        list.add_partition_offset(&answers, partition.id(), Offset::Offset(end as i64))
            .map_err(|e| failed("reading answers", &e))?;
    }
    if list.count() == 0 {
        return Err(AskError::Form(format!(
            "topic {answers} is not there; start the service once (`ripplemem run FILE`), it makes its topics"
        )));
    }
    consumer.assign(&list).map_err(|e| failed("reading answers", &e))?;

    let patience = Duration::from_millis(pipeline.serve.deadline_ms);
    let until = Instant::now() + patience;
    let correlation = correlation_id();
    let value = serde_json::to_vec(question).map_err(|e| AskError::Form(e.to_string()))?;
    let after = after.map(|(partition, offset)| format!("{partition}:{offset}"));
    let mut headers = OwnedHeaders::new().insert(Header { key: "kafka_correlationId", value: Some(&correlation) });
    if let Some(after) = &after {
        headers = headers.insert(Header { key: "ripplemem_after", value: Some(after) });
    }
    let as_of = as_of.map(|at| match at {
        AsOf::Offset(offset) => offset.to_string(),
        time @ AsOf::Time(_) => time.to_string(),
    });
    if let Some(as_of) = &as_of {
        headers = headers.insert(Header { key: "ripplemem_as_of", value: Some(as_of) });
    }
    let producer: BaseProducer<Watch> =
        cluster.producer().create_with_context(watch.clone()).map_err(|e| failed("making a producer", &e))?;
    let out = Outgoing {
        topic: &questions,
        partition: None,
        key: question.bank.as_str().as_bytes(),
        value: Some(&value),
        headers: Some(headers),
    };
    send(&producer, out, until).and_then(|()| drain(&producer, until)).map_err(|e| failed("asking", &e))?;
    if let Some(error) = watch.take_deliveries().failed {
        return Err(failed("asking", &error).into());
    }
    // A refusal for the deadline takes a moment more than the deadline.
    while Instant::now() < until + Duration::from_secs(1) {
        let Some(Ok(message)) = consumer.poll(Duration::from_millis(20)) else { continue };
        let raw = RawRecord::of(&message);
        let header = |name: &str| raw.headers.iter().find(|(key, _)| key == name).and_then(|(_, v)| v.as_deref());
        if header("kafka_correlationId") != Some(correlation.as_slice()) {
            continue;
        }
        let value = message.payload().unwrap_or_default();
        let kind = header("ce_type").map(String::from_utf8_lossy).unwrap_or_default();
        let unread = |e: serde_json::Error| AskError::Form(format!("the answer cannot be read: {e}; use one build"));
        return match &*kind {
            ANSWER => serde_json::from_slice(value).map_err(unread),
            REFUSAL => Err(AskError::Refused(serde_json::from_slice(value).map_err(unread)?)),
            other => {
                Err(AskError::Form(format!("the answer is of a type that is not known: {other:?}; use one build")))
            }
        };
    }
    Err(AskError::Silence(patience.as_secs_f64()))
}

/// Sixteen bytes that nobody else has.
fn correlation_id() -> Vec<u8> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let seed = (now.as_nanos(), std::process::id(), std::thread::current().id());
    blake3::hash(format!("{seed:?}").as_bytes()).as_bytes()[..16].to_vec()
}
