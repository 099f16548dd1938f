//! Turns that a client put into another partition of the turns topic than their bank's: they are forwarded, once.

use std::time::Duration;

use logs::{Log, Topic, partition_of};
use rdkafka::admin::NewPartitions;
use serde_json::json;
use types::model::Bank;

use super::{
    broker_process::Broker,
    kafka::{Home, administer, produce, turn, turns, wait},
    kafka_http::http_of,
    question_client::Client,
};

/// With a key other than the bank, Java's partitioner chooses another partition than the bank's.
#[test]
fn a_turn_in_another_partition_is_forwarded_to_its_banks() {
    let _turn = turn();
    let test = "kafka_forwarded::a_turn_in_another_partition_is_forwarded_to_its_banks";
    let Some(broker) = Broker::shared(test) else { return };
    let home = Home::new(&broker, "forwarded", "http.listen = \"127.0.0.1:0\"\nserve.deadline_ms = 300000\n");
    let log = home.log();
    let partition = |name: &str| partition_of(&Bank::parse(name).unwrap(), 2);
    let stray = (0..).map(|n| format!("key-{n}")).find(|key| partition(key) != partition("b")).unwrap();
    let say = |turn: u32, text: &str| json!({"bank": "b", "turn": turn.to_string(), "speaker": "Ann", "text": text, "time": "2024-05-06T09:00:00Z"});
    let _service = home.run();
    wait(&|| home.told(), || home.told().contains("ready: "));
    // Asked before the turn is there: the answer waits until it was forwarded and is remembered.
    let after = format!("{}:0", partition(&stray));
    let question = "Where does Ann live now?";
    let mut client = Client::new(&broker, "forwarded");
    let asked = client.ask("b", question, &[("ripplemem_after", &after)]);
    let http = http_of(&home, 1);
    std::thread::scope(|scope| {
        let ask = || http.post("/v1/ask", &json!({"bank": "b", "text": question, "after": after}));
        let over_http = scope.spawn(ask);
        let lines = format!("b\t{}\n{stray}\t{}\n", say(1, "I moved to Lisbon."), say(2, "Now I live near Porto."));
        let placed = produce(&broker, "forwarded.turns", &lines);
        let expected = format!("{}\t0\n{}\t0\n", partition("b"), partition(&stray));
        assert_eq!(placed, expected, "Kafka's Java client chooses the partition that we expect");
        for answer in [client.reply(asked, Duration::from_secs(300)), over_http.join().unwrap()] {
            assert!(answer["context"].as_str().is_some_and(|context| context.contains("Porto")), "{answer}");
        }
    });
    // A partition that does not exist is refused at once.
    let nowhere = json!({"bank": "b", "text": question, "after": "9:0"}).to_string();
    let (status, _, refused) = http.send("POST", "/v1/ask", "", nowhere.as_bytes());
    assert_eq!(status, 400, "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("murmur2_random"), "{refused}");
    home.extracted();
    let there = log.read(Topic::Turns, partition("b"), 0, 10).unwrap().records;
    assert_eq!(there.len(), 2, "forwarded once");
    assert_eq!(log.read_position(partition(&stray)).unwrap(), 1);
    assert_eq!(home.census().units, 2);
    assert!(there.iter().all(|record| record.key == b"b"));
}

#[test]
fn turns_in_partitions_added_while_running_are_forwarded() {
    let _turn = turn();
    let test = "kafka_forwarded::turns_in_partitions_added_while_running_are_forwarded";
    let Some(broker) = Broker::shared(test) else { return };
    let refresh = "[log.kafka.client]\n\"topic.metadata.refresh.interval.ms\" = \"500\"\n";
    let home = Home::with(&broker, "grown", "serve.deadline_ms = 300000\n", refresh);
    let _service = home.run();
    wait(&|| home.told(), || home.told().matches("the partition is extracted here").count() == 2);
    administer(&broker, async |admin, options| {
        let more = [NewPartitions::new("grown.turns", 4)];
        admin.create_partitions(&more, options).await.unwrap().into_iter().for_each(|made| drop(made.unwrap()));
    });
    wait(&|| home.told(), || home.told().matches("the partition is extracted here").count() == 4);
    // Java's partitioner now puts these banks into other partitions than their memory's.
    let strays: Vec<Bank> =
        (0..).map(|n| Bank::parse(&format!("b{n}")).unwrap()).filter(|b| partition_of(b, 4) > 1).take(3).collect();
    let say = |bank: &Bank, turn: &str, text: &str| json!({"bank": bank.as_str(), "turn": turn, "speaker": "Ann", "text": text, "time": "2024-05-06T09:00:00Z"});
    let line = |bank: &Bank| format!("{bank}\t{}\n", say(bank, "1", "I moved to Lisbon."));
    let lines: String = strays.iter().map(line).collect();
    let placed = produce(&broker, "grown.turns", &lines);
    assert!(placed.lines().all(|line| line.starts_with(['2', '3'])), "{placed}");
    wait(&|| home.told(), || turns(&home.log()).len() == 3);
    home.extracted();
    assert_eq!(home.census().units, 3);
    for partition in 2..4 {
        assert_eq!(home.log().lag(partition, home.log().read_position(partition).unwrap()).unwrap(), 0);
    }
    // The position of such a partition is in the memory, too, so a turn there is waited for.
    let line = format!("{}\t{}\n", strays[0], say(&strays[0], "2", "Now I live near Porto."));
    let after = produce(&broker, "grown.turns", &line).trim().replace('\t', ":");
    let mut client = Client::new(&broker, "grown");
    let asked = client.ask(strays[0].as_str(), "Where does Ann live now?", &[("ripplemem_after", &after)]);
    let answer = client.reply(asked, Duration::from_secs(300));
    assert!(answer["context"].as_str().is_some_and(|context| context.contains("Porto")), "{after}: {answer}");
}
