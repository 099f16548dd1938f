//! Questions over Kafka beside an asker that means harm, or is badly written.

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
use ripplemem::{
    log::{Log, partition_of},
    model::{Bank, TurnEvent},
};

use super::{
    broker_process::Broker,
    kafka::{Home, load, turn},
};

/// A client of a service's topics.
struct Client {
    producer: BaseProducer,
    consumer: BaseConsumer,
    prefix: String,
    asked: u64,
    replies: HashMap<u64, serde_json::Value>,
}

impl Client {
    fn new(broker: &Broker, prefix: &str) -> Self {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", broker.bootstrap()).set("group.id", "test").set("enable.auto.commit", "false");
        let (producer, consumer): (BaseProducer, BaseConsumer) = (config.create().unwrap(), config.create().unwrap());
        let mut list = TopicPartitionList::new();
        for partition in 0..2 {
            list.add_partition_offset(&format!("{prefix}.answers"), partition, Offset::Beginning).unwrap();
        }
        consumer.assign(&list).unwrap();
        Self { producer, consumer, prefix: prefix.to_owned(), asked: 0, replies: HashMap::new() }
    }

    fn ask(&mut self, bank: &str, text: &str, headers: &[(&str, &str)]) -> u64 {
        self.asked += 1;
        let value = serde_json::json!({"bank": bank, "text": text}).to_string();
        let id = self.asked.to_be_bytes();
        let mut all = OwnedHeaders::new().insert(Header { key: "kafka_correlationId", value: Some(&id) });
        for (key, value) in headers {
            all = all.insert(Header { key, value: Some(*value) });
        }
        let topic = format!("{}.questions", self.prefix);
        self.producer.send(BaseRecord::to(&topic).key(bank).payload(&value).headers(all)).map_err(|e| e.0).unwrap();
        self.asked
    }

    /// The reply to a question, on the default topic.
    fn reply(&mut self, id: u64, within: Duration) -> serde_json::Value {
        self.producer.flush(Duration::from_secs(30)).unwrap();
        let begun = Instant::now();
        loop {
            if let Some(reply) = self.replies.remove(&id) {
                return reply;
            }
            assert!(begun.elapsed() < within, "no reply to question {id}; others: {:?}", self.replies.keys());
            let Some(Ok(message)) = self.consumer.poll(Duration::from_millis(50)) else { continue };
            let headers = message.headers().unwrap();
            let of = headers.iter().find(|header| header.key == "kafka_correlationId").unwrap().value.unwrap();
            let value = serde_json::from_slice(message.payload().unwrap()).unwrap();
            self.replies.insert(u64::from_be_bytes(of.try_into().unwrap()), value);
        }
    }
}

/// Lost reply topics, turns that never come, long texts, unknown banks: others are answered all the
/// same, at once, and the asker learns no name of another bank.
#[test]
fn an_asker_that_means_harm_stops_nobody() {
    let _turn = turn();
    let Some(broker) = Broker::shared("kafka_questions::an_asker_that_means_harm_stops_nobody") else { return };
    let home = Home::new(&broker, "harm", "");
    let _service = home.run();
    load(&home);
    let hostile = "hostile";
    let turn = serde_json::json!({"bank": hostile, "turn": "1", "speaker": "Eve", "text": "I read many books.",
        "time": "2024-05-06T09:00:00Z"});
    home.log().append_turns(&[TurnEvent::from_json(turn.to_string().as_bytes()).unwrap()]).unwrap();
    home.extracted();
    let mut client = Client::new(&broker, "harm");
    let question = "Which books has Marta recommended to Elias?";
    let first = client.ask("sample/harbour", question, &[]);
    let expected = client.reply(first, Duration::from_secs(120));
    assert!(!expected["units"].as_array().unwrap().is_empty(), "{expected} {}", home.told());

    let far = jiff::Timestamp::now().as_millisecond() + 3_600_000;
    let far = ("ripplemem_deadline", far.to_string());
    let far = (far.0, far.1.as_str());
    let partition = partition_of(&Bank::parse(hostile).unwrap(), 2);
    let never = format!("{partition}:4000000000");
    let (long, longer) = ("books ".repeat(1_300), "books ".repeat(10_900));
    let (mut lost, mut parked, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..300 {
        let topic = format!("harm.answers.lost-{n}");
        lost.push(client.ask(hostile, question, &[far, ("kafka_replyTopic", &topic)]));
        parked.push(client.ask(hostile, question, &[far, ("ripplemem_after", &never)]));
        unknown.push(client.ask(&format!("nobody/{n}"), question, &[far]));
        if n % 10 == 0 {
            client.ask(hostile, &long, &[far]);
            client.ask(hostile, &longer, &[far]);
        }
    }
    let good = client.ask("sample/harbour", question, &[]);
    let answer = client.reply(good, Duration::from_secs(20));
    assert_eq!(answer["units"], expected["units"]);
    for id in lost {
        let refusal = client.reply(id, Duration::from_secs(60));
        assert_eq!(refusal["code"], "reply_topic", "{refusal}");
        assert!(refusal["message"].as_str().unwrap().contains("does not exist"), "{refusal}");
    }
    for id in unknown {
        let refusal = client.reply(id, Duration::from_secs(60));
        assert_eq!(refusal["code"], "unknown_bank");
        assert!(!refusal["message"].as_str().unwrap().contains("sample"), "{refusal}");
    }
    // A bank has 256 places for questions that wait for a turn.
    for id in parked.split_off(256) {
        assert_eq!(client.reply(id, Duration::from_secs(60))["code"], "busy");
    }
    // The others wait until their deadline, and hold up nobody.
    let good = client.ask(hostile, question, &[]);
    let answer = client.reply(good, Duration::from_secs(20));
    assert!(answer["context"].is_string(), "{answer}");
    assert!(parked.iter().all(|id| !client.replies.contains_key(id)));
}
