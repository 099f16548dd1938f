//! Questions over Kafka beside an asker that means harm, or is badly written.

use std::time::Duration;

use logs::{Log, Topic, partition_of};
use rdkafka::Offset;
use serde_json::json;
use types::model::{Bank, TurnEvent};

use super::{
    broker_process::Broker,
    kafka::{Home, load, turn, wait},
    question_client::Client,
};

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
        let answer = client.reply(id, Duration::from_secs(60));
        assert_eq!((&answer["notice"]["code"], &answer["units"]), (&json!("empty_bank"), &json!([])), "{answer}");
        assert!(!answer.to_string().contains("sample"), "{answer}");
    }
    // 256 questions of a bank may wait for a turn.
    for id in parked.split_off(256) {
        assert_eq!(client.reply(id, Duration::from_secs(60))["code"], "busy");
    }
    // The others wait until their deadline, and hold up nobody.
    let good = client.ask(hostile, question, &[]);
    let answer = client.reply(good, Duration::from_secs(20));
    assert!(answer["context"].is_string(), "{answer}");
    assert!(parked.iter().all(|id| !client.has_reply(*id)));
}

/// One waits for a turn, twenty behind it are answered, and the instance is killed: the next one answers none of them
/// again, and the first once its turn is there.
#[test]
fn questions_behind_one_that_waits_are_answered_once() {
    let _turn = turn();
    let Some(broker) = Broker::shared("kafka_questions::questions_behind_one_that_waits_are_answered_once") else {
        return;
    };
    let home = Home::new(&broker, "waits", "");
    let service = home.run();
    let bank = Bank::parse("b").unwrap();
    let said = |turn: &str| {
        let turn = serde_json::json!({"bank": "b", "turn": turn, "speaker": "Eve",
            "text": "The red kayak is stored in the boathouse.", "time": "2024-05-06T09:00:00Z"});
        home.log().append_turns(&[TurnEvent::from_json(turn.to_string().as_bytes()).unwrap()]).unwrap();
        home.extracted();
    };
    said("1");
    let partition = partition_of(&bank, 2);
    let next = format!("{partition}:{}", home.log().end(Topic::Turns, partition).unwrap());
    let far = (jiff::Timestamp::now().as_millisecond() + 3_600_000).to_string();
    let question = "Where is the red kayak?";
    let mut client = Client::new(&broker, "waits");
    let waiting = client.ask("b", question, &[("ripplemem_deadline", &far), ("ripplemem_after", &next)]);
    let answered: Vec<u64> = (0..20).map(|_| client.ask("b", question, &[])).collect();
    for id in &answered {
        assert!(client.reply(*id, Duration::from_secs(120))["context"].is_string(), "{}", home.told());
    }
    let all = (Offset::Offset(0), "1 21".to_owned());
    wait(&|| home.told(), || client.committed(&broker, partition as i32) == all);
    service.kill();

    let _service = home.run();
    let id = client.ask("b", question, &[]);
    assert!(client.reply(id, Duration::from_secs(120))["context"].is_string(), "{}", home.told());
    assert!(!client.has_reply(waiting) && !answered.iter().any(|id| client.has_reply(*id)));
    said("2");
    let answer = client.reply(waiting, Duration::from_secs(120));
    assert!(answer["context"].is_string(), "{answer}");
    assert!(!answered.iter().any(|id| client.has_reply(*id)), "none is answered twice");
    let end = (Offset::Offset(22), String::new());
    wait(&|| home.told(), || client.committed(&broker, partition as i32) == end);
}
