//! Extraction by a language model in a running service.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    io::{Read, Write},
    net::TcpListener,
};

use logs::{Log, partition_of};
use models::embed::VectorCache;
use types::model::{Bank, TurnEvent};

use super::{
    broker_process::Broker,
    kafka::{Home, turn, wait},
    model_process::ScriptedModel,
    support::{fails, lines, ripplemem},
};

/// A bank in each of the two partitions.
fn banks() -> [Bank; 2] {
    [0, 1].map(|partition| {
        let mut names = (0..).map(|n| Bank::parse(&format!("bank-{n}")).unwrap());
        names.find(|bank| partition_of(bank, 2) == partition).unwrap()
    })
}

/// Appends two windows of two turns each, and closes the last one.
fn say(home: &Home, bank: &Bank) {
    let turns = [("1", "Ann", "The red kayak is stored in the boathouse"), ("2", "Bo", "I sold my bicycle")];
    let more = [("3", "Ann", "My sister plays the bassoon"), ("4", "Bo", "The ferry leaves at noon")];
    let end = format!("{{\"type\":\"session_end\",\"bank\":\"{bank}\",\"session\":\"s\"}}");
    let text = lines(bank.as_str(), "s", &[turns, more].concat()) + &end;
    let events: Vec<TurnEvent> = text.lines().map(|l| TurnEvent::from_json(l.as_bytes()).unwrap()).collect();
    home.log().append_turns(&events).unwrap();
}

fn home(broker: &Broker, server: &ScriptedModel, prefix: &str) -> (Home, String) {
    let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let extra = "extract.extractor = \"llm\"\nwindow.turns = 2\nwindow.overlap = 0\nrecall.cues_by = \"llm\"";
    let http = "[http]\nlisten = \"127.0.0.1:0\"";
    let tables = format!("[metrics]\nlisten = \"{listen}\"\n{http}\n{}", server.toml("scripted"));
    (Home::with(broker, prefix, extra, &tables), listen)
}

/// The sum of a metric over all its labels.
fn metric(listen: &str, name: &str) -> Option<f64> {
    let mut stream = std::net::TcpStream::connect(listen).ok()?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {listen}\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let values = text.lines().filter(|l| l.starts_with(name)).map(|l| l.rsplit(' ').next().unwrap().parse::<f64>());
    values.reduce(|a, b| Ok(a.unwrap() + b.unwrap()))?.ok()
}

#[test]
fn a_service_extracts_a_bank_again_on_request() {
    let _turn = turn();
    let Some(broker) = Broker::shared("kafka_reading::a_service_extracts_a_bank_again_on_request") else { return };
    let server = ScriptedModel::start(&[]);
    let (home, listen) = home(&broker, &server, "rereads");
    let reextract = |bank: &str| ripplemem(&["reextract", "--bank", bank, "--pipeline", home.path()]);
    fails(&reextract("b"), 1, &["no service", "start the one"]);
    let service = home.run();
    wait(&|| home.told(), || {
        home.told().contains("ready: ") && home.told().matches("the partition is extracted here").count() == 2
    });
    let banks = banks();
    banks.iter().for_each(|bank| say(&home, bank));
    let read = |windows: f64| {
        wait(&|| home.told(), || {
            metric(&listen, "ripplemem_llm_window_tokens_count") == Some(windows)
                && metric(&listen, "ripplemem_llm_windows_waiting") == Some(0.0)
        });
    };
    read(4.0);
    assert_eq!(server.requests().len(), 4);
    let output = reextract(banks[0].as_str());
    fails(&output, 0, &[]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("2 windows are read again"), "{told}");
    read(6.0);
    assert_eq!(server.requests().len(), 6, "both windows of the bank, and none of the other");
    fails(&reextract("nobody"), 1, &["bank nobody: unknown"]);
    // The answer and the metrics state the cost of a question.
    let output =
        ripplemem(&["ask", "Who has a kayak?", "--bank", banks[0].as_str(), "--json", "--pipeline", home.path()]);
    let evidence: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(evidence["trace"]["llm"]["calls"], 1, "{evidence}");
    wait(&|| home.told(), || metric(&listen, "ripplemem_llm_question_tokens_count") == Some(1.0));
    service.stop();
}

/// When a partition is revoked, its cached responses are deleted: an instance keeps none of another's.
#[test]
fn cached_responses_of_a_revoked_partition_are_deleted() {
    let _turn = turn();
    let Some(broker) = Broker::shared("kafka_reading::cached_responses_of_a_revoked_partition_are_deleted") else {
        return;
    };
    let server = ScriptedModel::start(&[]);
    let (one, listen) = home(&broker, &server, "given");
    let (two, _) = home(&broker, &server, "given");
    let first = one.run();
    wait(&|| one.told(), || one.told().matches("the partition is extracted here").count() == 2);
    banks().iter().for_each(|bank| say(&one, bank));
    wait(&|| one.told(), || metric(&listen, "ripplemem_llm_window_tokens_count") == Some(4.0));
    // The vectors of open windows alone are cached.
    for bank in &banks() {
        let open = lines(bank.as_str(), "open", &[("5", "Ann", "The lighthouse has a new lamp")]);
        let events: Vec<TurnEvent> = open.lines().map(|l| TurnEvent::from_json(l.as_bytes()).unwrap()).collect();
        one.log().append_turns(&events).unwrap();
    }
    let second = two.run();
    wait(&|| two.told(), || two.told().matches("the partition is extracted here").count() == 1);
    wait(&|| one.told(), || metric(&listen, "ripplemem_owned_partitions") == Some(1.0));
    // Of the two banks, exactly one is in the partition that the other instance owns now.
    let told: Vec<String> = banks()
        .iter()
        .map(|bank| {
            let output = ripplemem(&["reextract", "--bank", bank.as_str(), "--pipeline", one.path()]);
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
        })
        .collect();
    assert_eq!(told.iter().filter(|t| t.contains("is assigned to another instance")).count(), 1, "{told:?}");
    first.stop();
    second.stop();
    let output = ripplemem(&["cost", "--windows", "--json", "--pipeline", one.path()]);
    let kept: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let kept: BTreeSet<&str> = kept.iter().map(|w| w["bank"].as_str().unwrap()).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    // So are its vectors: this instance does not learn what is deleted there.
    let (mut cache, _) = VectorCache::open(&one.pipeline().log.directory.join("cache")).unwrap();
    let cached = RefCell::new(BTreeSet::new());
    let note = |bank: &Bank| {
        cached.borrow_mut().insert(bank.to_string());
        true
    };
    cache.retain_banks(note).unwrap();
    assert_eq!(cached.into_inner(), kept.into_iter().map(str::to_owned).collect());
}

/// The endpoint of the vectors is away at the start and later: turns wait, questions are refused, and
/// the service stays up.
#[test]
fn a_service_waits_for_the_endpoint_of_its_vectors() {
    let _turn = turn();
    let test = "kafka_reading::a_service_waits_for_the_endpoint_of_its_vectors";
    let Some(broker) = Broker::shared(test) else { return };
    let server = ScriptedModel::start(&[]);
    let entry = "[embed.models.served]\nrunner = \"endpoint\"\nsemantic_threshold = 0.6\nquestion_floor = 0.1\n\
                 question_ceiling = 0.6\n[embed.models.served.served]\nmodel = \"scripted\"\nretries = 0\n";
    let home = Home::with(&broker, "away", "", &format!("{entry}endpoint = \"{}\"\n", server.endpoint));
    home.change("embed.model = \"fixed\"", "embed.model = \"served\"");
    let address = server.endpoint.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    let back = || ScriptedModel::start(&["--listen", &address]);
    let [first, second] = banks();
    drop(server);
    let service = home.run();
    wait(&|| home.told(), || home.told().contains("texts wait until the endpoint answers again"));
    let server = back();
    wait(&|| home.told(), || {
        home.told().contains("ready: ") && home.told().matches("the partition is extracted here").count() == 2
    });
    say(&home, &first);
    home.extracted();
    let ask = |bank: &Bank| ripplemem(&["ask", "Who has a kayak?", "--bank", bank.as_str(), "--pipeline", home.path()]);
    wait(&|| home.told(), || ask(&first).status.success());
    drop(server);
    say(&home, &second);
    wait(&|| home.told(), || home.told().contains("extraction failed; it is tried again"));
    fails(&ask(&first), 1, &["texts wait until the endpoint answers again"]);
    let _server = back();
    home.extracted();
    wait(&|| home.told(), || ask(&first).status.success() && ask(&second).status.success());
    service.stop();
}
