//! A client that asks a service over its topics, as other programs do.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use rdkafka::{
    ClientConfig, Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    message::{Header, Headers, OwnedHeaders},
    producer::{BaseProducer, BaseRecord, Producer},
};

use super::broker_process::Broker;

/// A client of a service's topics.
pub(crate) struct Client {
    producer: BaseProducer,
    consumer: BaseConsumer,
    prefix: String,
    asked: u64,
    /// The `ce_id` and the value of each reply that was not asked for yet.
    replies: HashMap<u64, (String, serde_json::Value)>,
}

impl Client {
    pub(crate) fn new(broker: &Broker, prefix: &str) -> Self {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", broker.bootstrap()).set("group.id", "test").set("enable.auto.commit", "false");
        // The partitioner of Java clients, and of this project.
        config.set("partitioner", "murmur2_random");
        let (producer, consumer): (BaseProducer, BaseConsumer) = (config.create().unwrap(), config.create().unwrap());
        let mut list = TopicPartitionList::new();
        let answers = format!("{prefix}.answers");
        let metadata = consumer.fetch_metadata(Some(&answers), Duration::from_secs(60)).unwrap();
        for partition in metadata.topics()[0].partitions() {
            list.add_partition_offset(&answers, partition.id(), Offset::Beginning).unwrap();
        }
        consumer.assign(&list).unwrap();
        Self { producer, consumer, prefix: prefix.to_owned(), asked: 0, replies: HashMap::new() }
    }

    pub(crate) fn ask(&mut self, bank: &str, text: &str, headers: &[(&str, &str)]) -> u64 {
        self.ask_in(None, bank, text, headers)
    }

    /// Asks in a partition of the questions topic.
    pub(crate) fn ask_in(&mut self, partition: Option<i32>, bank: &str, text: &str, headers: &[(&str, &str)]) -> u64 {
        let value = serde_json::json!({"bank": bank, "text": text}).to_string();
        self.send("questions", partition, bank, &value, headers)
    }

    /// Sends a question with all its fields.
    pub(crate) fn ask_whole(&mut self, bank: &str, question: &serde_json::Value) -> u64 {
        self.send("questions", None, bank, &question.to_string(), &[])
    }

    /// Asks to forget turns: sends a record to the topic of such requests.
    pub(crate) fn forget(&mut self, bank: &str, value: &str) -> u64 {
        self.send("forgets", None, bank, value, &[])
    }

    fn send(&mut self, topic: &str, partition: Option<i32>, key: &str, value: &str, headers: &[(&str, &str)]) -> u64 {
        self.asked += 1;
        let id = self.asked.to_be_bytes();
        let mut all = OwnedHeaders::new().insert(Header { key: "kafka_correlationId", value: Some(&id) });
        for (name, value) in headers {
            all = all.insert(Header { key: name, value: Some(*value) });
        }
        let topic = format!("{}.{topic}", self.prefix);
        let mut record = BaseRecord::to(&topic).key(key).payload(value).headers(all);
        record.partition = partition;
        self.producer.send(record).map_err(|e| e.0).unwrap();
        self.asked
    }

    /// What the service has committed of a partition of the questions: the offset, and the note beside it.
    pub(crate) fn committed(&self, broker: &Broker, partition: i32) -> (Offset, String) {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", broker.bootstrap()).set("group.id", format!("{}.questions", self.prefix));
        let consumer: BaseConsumer = config.create().unwrap();
        let mut list = TopicPartitionList::new();
        list.add_partition(&format!("{}.questions", self.prefix), partition);
        let committed = consumer.committed_offsets(list, Duration::from_secs(60)).unwrap();
        (committed.elements()[0].offset(), committed.elements()[0].metadata().to_owned())
    }

    /// Whether the reply to a question has come.
    pub(crate) fn has_reply(&self, id: u64) -> bool {
        self.replies.contains_key(&id)
    }

    /// The reply to a question, on the default topic.
    pub(crate) fn reply(&mut self, id: u64, within: Duration) -> serde_json::Value {
        self.reply_with_id(id, within).1
    }

    /// The reply to a question, and its `ce_id`.
    pub(crate) fn reply_with_id(&mut self, id: u64, within: Duration) -> (String, serde_json::Value) {
        let begun = Instant::now();
        self.producer.flush(within).unwrap();
        loop {
            if let Some(reply) = self.replies.remove(&id) {
                return reply;
            }
            assert!(begun.elapsed() < within, "no reply to question {id}; others: {:?}", self.replies.keys());
            let Some(Ok(message)) = self.consumer.poll(Duration::from_millis(50)) else { continue };
            let headers = message.headers().unwrap();
            let header = |name: &str| headers.iter().find(|header| header.key == name).and_then(|header| header.value);
            // A reply to somebody else's record.
            let Some(of) = header("kafka_correlationId") else { continue };
            let value = serde_json::from_slice(message.payload().unwrap()).unwrap();
            let id = String::from_utf8(header("ce_id").unwrap().to_vec()).unwrap();
            self.replies.insert(u64::from_be_bytes(of.try_into().unwrap()), (id, value));
        }
    }
}
