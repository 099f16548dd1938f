//! HTTP below `/v1` on a service whose log is on Kafka: the same calls, turns in the turns topic.

use std::time::Duration;

use ripplemem::model::Evidence;
use serde_json::{Value, json};

use super::{
    broker_process::Broker,
    http_service::HttpClient,
    kafka::{Home, load, turn, wait},
    question_client::Client,
};

/// What HTTP wrote is asked for over both, and forgotten over HTTP.
#[test]
fn turns_over_http_are_durable_in_the_topic_and_both_ways_of_asking_agree() {
    let _turn = turn();
    let name = "kafka_http::turns_over_http_are_durable_in_the_topic_and_both_ways_of_asking_agree";
    let Some(broker) = Broker::shared(name) else { return };
    let home = Home::with(&broker, "http", "", "[http]\nlisten = \"127.0.0.1:0\"\n");
    let service = home.run();
    let address = || {
        let told = home.told();
        told.lines().find_map(|line| Some(line.split_once("http://")?.1.strip_suffix("/v1")?.to_owned()))
    };
    wait(&|| home.told(), || address().is_some());
    let http = HttpClient { address: address().unwrap() };
    load(&home);
    let turn = json!({"bank": "b", "turn": "1", "speaker": "Eve", "text": "The red kayak is stored in the boathouse",
        "time": "2024-05-06T09:00:00Z"});
    let written = http.post("/v1/turns", &json!({"turns": [turn]}));
    let asked =
        |after: &Value| json!({"bank": "b", "text": "Where is the red kayak?", "after": after, "timeout_ms": 60_000});
    let evidence: Evidence = serde_json::from_value(http.post("/v1/ask", &asked(&written["after"]))).unwrap();
    assert_eq!(evidence.units[0].sources, ["1"], "{}", home.told());
    let mut client = Client::new(&broker, "http");
    let after = written["after"].as_str().unwrap();
    let id = client.ask("b", "Where is the red kayak?", &[("ripplemem_after", after)]);
    let answer = client.reply(id, Duration::from_secs(60));
    assert_eq!(answer["context"], json!(evidence.context));
    assert!(http.get("/v1/banks")["banks"].as_array().unwrap().contains(&json!("sample/harbour")));
    let (status, _, forgotten) = http.send("DELETE", "/v1/turns?bank=b&turn=1&wait_ms=60000", "", b"");
    assert_eq!((status, &forgotten["gone"]), (200, &json!(true)), "{forgotten}");
    let (status, _, problem) = http.send("POST", "/v1/ask", "", asked(&forgotten["after"]).to_string().as_bytes());
    let gone = problem["code"] == "unknown_bank" || !problem["context"].as_str().unwrap_or_default().contains("kayak");
    assert!(gone, "{status} {problem}");
    assert!(http.get("/v1/status")["after"].as_str().unwrap().contains(':'));
    service.stop();
}
