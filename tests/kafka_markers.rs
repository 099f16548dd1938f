//! Offsets that hold no record: markers of transactions and turns of aborted ones are not counted, and a question may
//! wait for one.

use std::time::Duration;

use logs::{Log, Topic, partition_of};
use rdkafka::{
    ClientConfig,
    producer::{BaseProducer, BaseRecord, Producer},
};
use serde_json::{Value, json};
use types::model::Bank;

use super::{
    broker_process::Broker,
    kafka::{Home, turn, wait},
    kafka_http::http_of,
    support::ripplemem,
};

/// A client that writes turns in transactions.
struct Transactional {
    producer: BaseProducer,
    topic: String,
}

const PATIENCE: Duration = Duration::from_secs(60);

impl Transactional {
    fn new(broker: &Broker, prefix: &str) -> Self {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", broker.bootstrap()).set("partitioner", "murmur2_random");
        let producer: BaseProducer = config.set("transactional.id", format!("{prefix}.client")).create().unwrap();
        producer.init_transactions(PATIENCE).unwrap();
        Self { producer, topic: format!("{prefix}.turns") }
    }

    fn write(&self, ids: &[&str], bank: &str, is_committed: bool) {
        self.producer.begin_transaction().unwrap();
        for id in ids {
            let text = format!("The kept heron {id} stands in the reed.");
            let turn =
                json!({"bank": bank, "turn": id, "speaker": "Ann", "text": text, "time": "2026-03-01T09:00:00Z"});
            let value = turn.to_string();
            self.producer.send(BaseRecord::to(&self.topic).key(bank).payload(&value)).map_err(|e| e.0).unwrap();
        }
        self.producer.flush(PATIENCE).unwrap();
        match is_committed {
            true => self.producer.commit_transaction(PATIENCE).unwrap(),
            false => self.producer.abort_transaction(PATIENCE).unwrap(),
        }
    }
}

#[test]
fn markers_and_aborted_turns_are_counted_by_nobody_and_may_be_waited_for() {
    let _turn = turn();
    let name = "kafka_markers::markers_and_aborted_turns_are_counted_by_nobody_and_may_be_waited_for";
    let Some(broker) = Broker::shared(name) else { return };
    let home = Home::with(&broker, "marked", "", "[http]\nlisten = \"127.0.0.1:0\"\n");
    let log = home.log();
    let partition = partition_of(&Bank::parse("k/t").unwrap(), 2);
    let client = Transactional::new(&broker, "marked");
    client.write(&["1", "2", "3"], "k/t", true);
    client.write(&["4"], "k/t", true);
    client.write(&["5", "6"], "k/t", false);
    let lag = || -> Vec<Value> {
        serde_json::from_slice(&ripplemem(&["lag", "--json", "--pipeline", home.path()]).stdout).unwrap()
    };
    // Before anything is extracted: four turns in nine offsets.
    assert_eq!((log.lag(partition, 0).unwrap(), log.lag(partition, 1).unwrap()), (4, 3));
    assert_eq!(log.lag(partition, 4).unwrap(), 1, "from a marker on");
    assert!(lag().iter().any(|of| of["lag"] == 4), "{:?}", lag());

    let _service = home.run();
    let http = http_of(&home, 1);
    let ask = |offset: u64| {
        let after = format!("{partition}:{offset}");
        let body = json!({"bank": "k/t", "text": "Which heron stands?", "after": after, "timeout_ms": 120_000});
        http.send("POST", "/v1/ask", "", body.to_string().as_bytes())
    };
    let counted_as_none = || {
        let status = http.get("/v1/status")["behind"].clone();
        let bank = http.get("/v1/bank?bank=k/t")["behind"].clone();
        let listed = http.get("/v1/banks?counts=true")["counts"][0]["behind"].clone();
        let metrics = http.send_text("GET", "/metrics", "", b"").1;
        let metric = |name: &str| metrics.contains(&format!("{name}{{partition=\"{partition}\"}} 0\n"));
        let measured = metric("ripplemem_shard_behind_offsets") && metric("ripplemem_turns_lag");
        ([status, bank, listed], measured)
    };
    let none = ([json!(0), json!(0), json!(0)], true);
    // After a commit with its marker, then after an abort, and again after both.
    for round in 0..3 {
        let end = log.end(Topic::Turns, partition).unwrap();
        let (status, _, answer) = ask(end - 1);
        assert_eq!(status, 200, "after the last offset of the partition: {answer} {}", home.told());
        wait(&|| format!("round {round}: {:?} {}", counted_as_none(), home.told()), || counted_as_none() == none);
        assert_eq!(lag().iter().map(|of| of["lag"].as_u64().unwrap()).sum::<u64>(), 0);
        client.write(&[&format!("more-{round}")], "k/t", round % 2 == 0);
    }
    let turns = http.get("/v1/turns?bank=k/t");
    let ids: Vec<&str> = turns["turns"].as_array().unwrap().iter().filter_map(|turn| turn["turn"].as_str()).collect();
    assert!(ids.contains(&"4") && !ids.contains(&"5"), "{ids:?}");
}
