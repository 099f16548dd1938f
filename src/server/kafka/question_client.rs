//! Asks a running service one question over its topics.
//!
//! In: a question. Out: the answer with the same correlation id; other answers on the topic are
//! ignored.

use std::time::{Duration, Instant};

use rdkafka::{
    Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
    message::{Header, OwnedHeaders},
    producer::BaseProducer,
};

use super::question_record::{ANSWER, REFUSAL};
use logs::{
    LogError, RawRecord,
    kafka::{
        client::{KafkaClientState, KafkaCluster},
        partition_reader::span,
        transactional_producer::{OutgoingRecord, drain, send},
    },
};
use snapshots::AsOf;
use types::{
    config::Pipeline,
    model::{Evidence, Question, QuestionRefusal},
};

/// Why there is no evidence.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The cluster is unavailable or refuses access.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The service refused.
    #[error("{}", .0.message)]
    Refused(QuestionRefusal),
    /// No service answered in time.
    #[error(
        "no answer within {0:.1} s; is a service with the role \"serve\" running and ready? (`ripplemem run FILE`, \
         /ready)"
    )]
    Timeout(f64),
    /// The topic is missing, or the answer is of a type that this build does not know.
    #[error("{0}")]
    Form(String),
}

/// Asks the service of a pipeline, with `serve.deadline_ms` as timeout. `after` is a turn, by
/// partition and offset, that the answer must reflect; `as_of` asks about the past.
///
/// # Errors
/// [`AskError`].
pub fn ask(
    pipeline: &Pipeline,
    question: &Question,
    after: Option<(u32, u64)>,
    as_of: Option<AsOf>,
) -> Result<Evidence, AskError> {
    let cluster = KafkaCluster::new(&pipeline.log.kafka)?;
    let (questions, answers) = (cluster.topic("questions"), cluster.topic("answers"));
    let watch = KafkaClientState::default();
    let failed = |doing: &str, e: &KafkaError| cluster.failed(&watch, doing, e);
    let consumer: BaseConsumer<KafkaClientState> = cluster
        .reader(1_024)
        .create_with_context(watch.clone())
        .map_err(|e| failed("making a reader of answers", &e))?;
    let metadata = consumer
        .fetch_metadata(Some(&answers), cluster.timeout())
        .map_err(|e| failed("asking for the answers topic", &e))?;
    let mut list = TopicPartitionList::new();
    for partition in metadata.topics().iter().flat_map(|t| t.partitions()) {
        let (_, end) = span(&cluster, &consumer, &watch, (&answers, partition.id()), cluster.timeout())?;
        list.add_partition_offset(&answers, partition.id(), Offset::Offset(end as i64))
            .map_err(|e| failed("reading answers", &e))?;
    }
    if list.count() == 0 {
        return Err(AskError::Form(format!(
            "topic {answers} does not exist; start the service once (`ripplemem run FILE`), which creates its topics"
        )));
    }
    consumer.assign(&list).map_err(|e| failed("reading answers", &e))?;

    let timeout = Duration::from_millis(pipeline.serve.deadline_ms);
    let until = Instant::now() + timeout;
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
    let producer: BaseProducer<KafkaClientState> =
        cluster.producer().create_with_context(watch.clone()).map_err(|e| failed("making a producer", &e))?;
    let out = OutgoingRecord {
        topic: &questions,
        partition: None,
        key: Some(question.bank.as_str().as_bytes()),
        value: Some(&value),
        headers: Some(headers),
    };
    send(&producer, out, until).and_then(|()| drain(&producer, until)).map_err(|e| failed("asking", &e))?;
    if let Some(error) = watch.take_deliveries().failed {
        return Err(failed("asking", &error).into());
    }
    // A refusal because of the deadline arrives shortly after the deadline.
    while Instant::now() < until + Duration::from_secs(1) {
        let Some(Ok(message)) = consumer.poll(Duration::from_millis(20)) else { continue };
        let raw = RawRecord::of(&message);
        let header = |name: &str| raw.headers.iter().find(|(key, _)| key == name).and_then(|(_, v)| v.as_deref());
        if header("kafka_correlationId") != Some(correlation.as_slice()) {
            continue;
        }
        let value = message.payload().unwrap_or_default();
        let kind = header("ce_type").map(String::from_utf8_lossy).unwrap_or_default();
        let unread = |e: serde_json::Error| {
            AskError::Form(format!("the answer cannot be read: {e}; run the same build as the service"))
        };
        return match &*kind {
            ANSWER => serde_json::from_slice(value).map_err(unread),
            REFUSAL => Err(AskError::Refused(serde_json::from_slice(value).map_err(unread)?)),
            other => Err(AskError::Form(format!(
                "the answer has the unknown type {other:?}; run the same build as the service"
            ))),
        };
    }
    Err(AskError::Timeout(timeout.as_secs_f64()))
}

/// Sixteen bytes that are unique to this question.
fn correlation_id() -> Vec<u8> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let seed = (now.as_nanos(), std::process::id(), std::thread::current().id());
    blake3::hash(format!("{seed:?}").as_bytes()).as_bytes()[..16].to_vec()
}
