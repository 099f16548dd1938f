//! HTTP below `/v1` on a service whose log is on Kafka: the same calls, turns in the turns topic.

use std::{
    collections::BTreeSet,
    io::{Read, Write},
    time::Duration,
};

use serde_json::{Value, json};
use types::{config::ShardAssignmentMode, model::Evidence};

use super::{
    broker_process::Broker,
    event_stream::{EventStream, Followed, evidence_of},
    http_service::HttpClient,
    kafka::{Home, Running, load, turn, wait},
    kafka_instances::{BANKS, event, fact, instance, ready},
    question_client::Client,
};

const HTTP: &str = "[http]\nlisten = \"127.0.0.1:0\"\n";

/// The address of an instance that has been started this often.
pub(crate) fn http_of(home: &Home, starts: usize) -> HttpClient {
    let addresses = || -> Vec<String> {
        let told = home.told();
        let address = |line: &str| Some(line.split_once("http://")?.1.split_once("/v1")?.0.to_owned());
        told.lines().filter_map(address).collect()
    };
    wait(&|| home.told(), || addresses().len() >= starts);
    HttpClient { address: addresses().pop().unwrap() }
}

/// What HTTP wrote is asked for over both, and forgotten over HTTP.
#[test]
fn turns_over_http_are_durable_in_the_topic_and_both_ways_of_asking_agree() {
    let _turn = turn();
    let name = "kafka_http::turns_over_http_are_durable_in_the_topic_and_both_ways_of_asking_agree";
    let Some(broker) = Broker::shared(name) else { return };
    let home = Home::with(&broker, "http", "", HTTP);
    let service = home.run();
    let http = http_of(&home, 1);
    load(&home);
    let turn = json!({"bank": "b", "turn": "1", "speaker": "Eve", "text": "The red kayak is stored in the boathouse",
        "time": "2024-05-06T09:00:00Z"});
    let written = http.post("/v1/turns", &json!({"turns": [turn]}));
    let asked =
        |after: &Value| json!({"bank": "b", "text": "Where is the red kayak?", "after": after, "timeout_ms": 60_000});
    let evidence: Evidence = serde_json::from_value(http.post("/v1/ask", &asked(&written["after"]))).unwrap();
    assert_eq!(evidence.units[0].sources, ["1"], "{}", home.told());
    let explained = |turn: &str| {
        let mut explain = asked(&written["after"]);
        explain["turn"] = json!(turn);
        http.post("/v1/explain", &explain)
    };
    let (known, unknown) = (explained("1"), explained("2"));
    assert_eq!((&known["quoted"], &known["steps"][0]["state"]), (&json!(true), &json!("passed")), "{known}");
    assert_eq!((&unknown["failed"], &unknown["steps"][0]["state"]), (&json!("unit"), &json!("unknown")), "{unknown}");
    // A follower of the same question has the same evidence, and sees it removed.
    let mut stream = EventStream::open(&http, "/v1/subscribe?bank=b&text=Where+is+the+red+kayak%3F", "");
    let mut followed = Followed::default();
    while !followed.is_complete() {
        followed.take(&stream.next().unwrap());
    }
    assert_eq!(followed.evidence(), evidence_of(&serde_json::to_value(&evidence).unwrap()));
    let mut client = Client::new(&broker, "http");
    let after = written["after"].as_str().unwrap();
    let id = client.ask("b", "Where is the red kayak?", &[("ripplemem_after", after)]);
    let answer = client.reply(id, Duration::from_secs(60));
    assert_eq!(answer["context"], json!(evidence.context));
    assert!(http.get("/v1/banks")["banks"].as_array().unwrap().contains(&json!("sample/harbour")));
    let (status, _, forgotten) = http.send("DELETE", "/v1/turns?bank=b&turn=1&wait_ms=60000", "", b"");
    assert_eq!((status, &forgotten["gone"]), (200, &json!(true)), "{forgotten}");
    while !followed.is_complete() || !followed.evidence().is_empty() {
        followed.take(&stream.next().unwrap());
    }
    drop(stream);
    let (status, _, problem) = http.send("POST", "/v1/ask", "", asked(&forgotten["after"]).to_string().as_bytes());
    let gone = problem["code"] == "unknown_bank" || !problem["context"].as_str().unwrap_or_default().contains("kayak");
    assert!(gone, "{status} {problem}");
    assert!(http.get("/v1/status")["after"].as_str().unwrap().contains(':'));
    service.stop();
}

/// Sends a request until the shard of the bank has moved; returns the status and the body.
fn settled(http: &HttpClient, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    for _ in 0..600 {
        let (status, kind, answer) = http.send(method, path, "", body.as_bytes());
        if status != 503 {
            return (status, answer);
        }
        assert_eq!((kind.as_str(), &answer["code"]), ("application/problem+json", &json!("loading")), "{answer}");
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{path}: the shard moves for a minute");
}

/// The header `Location` of a response.
fn location(http: &HttpClient, path: &str, body: &Value) -> String {
    let (mut stream, body) = (http.connect(), body.to_string());
    let length = body.len();
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {length}\r\nConnection: close", http.address);
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let found = text.lines().find_map(|line| line.strip_prefix("location: ")).unwrap_or_else(|| panic!("{text}"));
    found.to_owned()
}

/// What two instances say of each bank, once the group has divided the partitions: which one answers, its answer, and
/// the problem that the other gives. The first instance has every shard until the group gives the second its own. So
/// the banks are asked for until, in one pass, each answers at one instance and both have some.
fn divided(http: &[HttpClient], told: &dyn Fn() -> String, ask: impl Fn(usize) -> Value) -> Vec<(usize, Value, Value)> {
    let mut found: Vec<(usize, Value, Value)> = Vec::new();
    wait(told, || {
        found.clear();
        for n in 0..BANKS.len() {
            let [first, second] = [0, 1].map(|at| settled(&http[at], "POST", "/v1/ask", &ask(n)));
            found.push(match (first, second) {
                ((200, answer), (421, problem)) => (0, answer, problem),
                ((421, problem), (200, answer)) => (1, answer, problem),
                _ => return false,
            });
        }
        found.iter().map(|(at, ..)| at).collect::<BTreeSet<_>>().len() == 2
    });
    found
}

/// An instance that listens over HTTP. On a busy machine a session of two seconds ends by itself, and shards move.
fn instance_with_http(broker: &Broker, prefix: &str) -> Home {
    let home = instance(broker, prefix, "");
    home.change("[log]", &format!("{HTTP}[log]"));
    home.change("session_seconds = 2", "session_seconds = 20");
    home
}

/// Two instances divide the memory: each answers for its banks, and names the other for the rest. Once one
/// is killed, the other answers for all.
#[test]
fn a_request_for_a_bank_of_another_instance_names_that_instance() {
    let _turn = turn();
    let name = "kafka_http::a_request_for_a_bank_of_another_instance_names_that_instance";
    let Some(broker) = Broker::shared(name) else { return };
    let homes: Vec<Home> = (0..2).map(|_| instance_with_http(&broker, "there")).collect();
    assert_eq!(homes[0].pipeline().serve.hold, ShardAssignmentMode::Assigned);
    let mut running: Vec<Running> = homes.iter().map(Home::run).collect();
    homes.iter().for_each(|home| ready(home, 1));
    let http: Vec<HttpClient> = homes.iter().map(|home| http_of(home, 1)).collect();
    let turns: Vec<Value> =
        BANKS.iter().enumerate().map(|(n, bank)| serde_json::to_value(event(bank, n)).unwrap()).collect();
    // Turns are taken anywhere.
    let written = http[0].post("/v1/turns", &json!({"turns": turns}));
    assert_eq!(written["turns"], BANKS.len());
    let ask = |n: usize| json!({"bank": BANKS[n], "text": fact(n).1, "after": written["after"], "timeout_ms": 60_000});
    let context = |answer: &Value, n: usize| answer["context"].as_str().unwrap_or_default().contains(&fact(n).0);
    let told = || homes.iter().map(Home::told).collect::<String>();
    let found = divided(&http, &told, ask);
    for (n, (at, answer, problem)) in found.iter().enumerate() {
        assert!(context(answer, n), "{}: {answer}\n{}", BANKS[n], told());
        let url = format!("http://{}", http[*at].address);
        assert_eq!((&problem["code"], &problem["holder"]), (&json!("misdirected"), &json!(url)), "{problem}");
        assert_eq!(location(&http[1 - at], "/v1/ask", &ask(n)), format!("{url}/v1/ask"));
    }
    // A deletion and a digest of one bank are sent to its instance, too.
    let (holder, other) = (&http[found[0].0], &http[1 - found[0].0]);
    for (method, path) in
        [("GET", format!("/v1/digest?bank={}", BANKS[0])), ("DELETE", format!("/v1/turns?bank={}&turn=0", BANKS[0]))]
    {
        assert_eq!(settled(other, method, &path, &Value::Null).0, 421, "{path}");
        let (status, answer) = settled(holder, method, &format!("{path}&wait_ms=60000"), &Value::Null);
        assert_eq!(status, 200, "{path}: {answer}");
        assert_ne!(answer["gone"], false, "{answer}");
    }
    let all: BTreeSet<String> = http
        .iter()
        .flat_map(|http| http.get("/v1/banks")["banks"].as_array().unwrap().clone())
        .map(|bank| bank.as_str().unwrap().to_owned())
        .collect();
    assert!(BANKS[1..].iter().all(|bank| all.contains(*bank)), "each names its own: {all:?}");
    // Until the group gives its partitions to the other, nobody has the banks of the killed instance.
    running.remove(1).kill();
    for n in 1..BANKS.len() {
        wait(&told, || {
            let (status, answer) = settled(&http[0], "POST", "/v1/ask", &ask(n));
            assert!(status == 421 || (status == 200 && context(&answer, n)), "{status} {answer}");
            status == 200
        });
    }
}

/// A follower, and how to follow again.
struct Follower {
    path: String,
    stream: EventStream,
    followed: Followed,
}

impl Follower {
    /// Follows a question up to its first progress.
    fn open(http: &HttpClient, bank: &str, text: &str) -> Self {
        let text: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
        let path = format!("/v1/subscribe?bank={bank}&text={text}");
        let stream = EventStream::open(http, &path, "");
        assert_eq!(stream.status, 200, "{path}");
        let mut follower = Self { path, stream, followed: Followed::default() };
        follower.until(Followed::is_complete);
        follower
    }

    /// Takes events until something holds.
    fn until(&mut self, holds: impl Fn(&Followed) -> bool) {
        while !holds(&self.followed) {
            self.followed.take(&self.stream.next().expect("the stream goes on"));
        }
    }

    /// Takes events to the end of the stream.
    fn drain(&mut self) {
        while let Some(event) = self.stream.next() {
            self.followed.take(&event);
        }
    }
}

/// An instance that joins takes shards from the one that had all. Followers of a question of such a shard are reset,
/// the stream ends, and a client that follows the question at the new holder has what asking there gives, also after
/// the next turn.
#[test]
fn who_follows_a_question_of_a_shard_that_moves_is_reset_and_goes_on_at_its_new_holder() {
    let _turn = turn();
    let name = "kafka_http::who_follows_a_question_of_a_shard_that_moves_is_reset_and_goes_on_at_its_new_holder";
    let Some(broker) = Broker::shared(name) else { return };
    let homes: Vec<Home> = (0..2).map(|_| instance_with_http(&broker, "follow")).collect();
    let told = || homes.iter().map(Home::told).collect::<String>();
    let mut running = vec![homes[0].run()];
    ready(&homes[0], 1);
    let mut http = vec![http_of(&homes[0], 1)];
    let turns: Vec<Value> =
        BANKS.iter().enumerate().map(|(n, bank)| serde_json::to_value(event(bank, n)).unwrap()).collect();
    let mut written = http[0].post("/v1/turns", &json!({"turns": turns}));
    let ask =
        |n: usize, after: &Value| json!({"bank": BANKS[n], "text": fact(n).1, "after": after, "timeout_ms": 60_000});
    let mut followers: Vec<Follower> = Vec::new();
    for (n, bank) in BANKS.into_iter().enumerate() {
        assert_eq!(settled(&http[0], "POST", "/v1/ask", &ask(n, &written["after"])).0, 200);
        followers.push(Follower::open(&http[0], bank, &fact(n).1));
        assert!(!followers[n].followed.evidence().is_empty(), "{bank}");
    }
    running.push(homes[1].run());
    ready(&homes[1], 1);
    http.push(http_of(&homes[1], 1));
    let holders = divided(&http, &told, |n| ask(n, &written["after"]));
    for (n, follower) in followers.iter_mut().enumerate() {
        let (at, bank) = (holders[n].0, BANKS[n]);
        if at == 1 {
            follower.drain();
            assert!(follower.followed.seen.contains(&"reset".to_owned()), "{bank}: {:?}", follower.followed.seen);
            // A follower who comes back learns who has the bank.
            let (status, problem) = settled(&http[0], "GET", &follower.path, &Value::Null);
            let url = format!("http://{}", http[1].address);
            assert_eq!((status, &problem["holder"]), (421, &json!(url)), "{problem}");
            *follower = Follower::open(&http[1], bank, &fact(n).1);
        }
        assert!(!follower.followed.evidence().is_empty(), "{bank}");
        // The next turn is taken by any instance, and changes what is evidence.
        let text = format!("Marta moved the token{n} to the garage.");
        let time = "2024-05-06T12:00:00Z";
        let turn = json!({"bank": bank, "turn": "next", "speaker": "Bo", "text": text, "time": time, "session": "s"});
        written = http[1 - at].post("/v1/turns", &json!({"turns": [turn]}));
        let after = written["after"].as_str().unwrap();
        let offset: u64 = after.split_once(':').unwrap().1.parse().unwrap();
        follower.until(|followed| followed.is_complete() && followed.offset("turns") > offset);
        let said = format!("{:?}", follower.followed.evidence());
        assert!(said.contains("garage"), "{bank}: {said}");
        // A window that closes between the two reads changes both.
        wait(&told, || {
            let (status, answer) = settled(&http[at], "POST", "/v1/ask", &ask(n, &written["after"]));
            assert_eq!(status, 200, "{answer}");
            let memory = answer["reflects"].as_array().unwrap().iter().find(|at| at["topic"] == "memory").unwrap();
            let memory = memory["next_offset"].as_u64().unwrap();
            follower.until(|followed| followed.is_complete() && followed.offset("memory") >= memory);
            follower.followed.evidence() == evidence_of(&answer)
        });
    }
    running.into_iter().for_each(Running::stop);
}
