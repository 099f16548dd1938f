//! Live sources of a service on Kafka: webhooks on its HTTP listener, and leases that move.

use std::{
    collections::BTreeMap,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use logs::{Log, Topic};
use ring::hmac;
use serde_json::{Value, json};
use types::model::{Turn, TurnEvent};

use super::{
    broker_process::Broker,
    kafka::{self, Home, wait},
    live_platform::Platform,
};

const SECRET: &str = "a secret of this test";

/// An instance with an address of its own.
struct Instance {
    child: Child,
    address: String,
    told: std::path::PathBuf,
}

impl Instance {
    fn start(home: &Home, number: usize) -> Self {
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let file = home.directory.path().join(format!("instance-{number}.toml"));
        let text = std::fs::read_to_string(&home.file).unwrap();
        let text = text
            .replace("\"127.0.0.1:1\"", &format!("\"{address}\""))
            .replace("\"local\"", &format!("\"local-{number}\""));
        std::fs::write(&file, text).unwrap();
        let told = file.with_extension("told");
        let child = Command::new(env!("CARGO_BIN_EXE_ripplemem"))
            .args(["run", file.to_str().unwrap()])
            .env("RIPPLEMEM_TEST_SECRET", SECRET)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::options().create(true).append(true).open(&told).unwrap())
            .spawn()
            .unwrap();
        Self { child, address, told }
    }

    fn told(&self) -> String {
        std::fs::read_to_string(&self.told).unwrap_or_default()
    }

    /// Sends a request with these headers; returns the status, and 0 if nobody answers.
    fn post(&self, source: &str, headers: &[(&str, &str)], body: &str) -> u16 {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let request = agent.post(format!("http://{}/sources/{source}", self.address));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.send(body).map_or(0, |response| response.status().as_u16())
    }

    /// Sends an update of Telegram until it is stored.
    fn update(&self, update: &Value) {
        let headers = [("x-telegram-bot-api-secret-token", SECRET)];
        wait(&|| self.told(), || self.post("tg", &headers, &update.to_string()) == 200);
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn signed(seconds_ago: u64, body: &str) -> [(&'static str, String); 2] {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() - seconds_ago;
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let digest = hmac::sign(&key, format!("{now}.{body}").as_bytes());
    let digits: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    [("x-ripplemem-timestamp", now.to_string()), ("x-ripplemem-signature", format!("v1={digits}"))]
}

fn update(id: i64, message: i64, text: &str) -> Value {
    json!({"update_id": id, "message": {"message_id": message, "date": 1_714_557_600, "text": text,
        "from": {"id": 5, "first_name": "Ann"},
        "chat": {"id": -1_000_000_000_077_i64, "type": "supergroup", "title": "Trip", "username": "trip"}}})
}

/// All turns.
fn read(home: &Home) -> Vec<Turn> {
    let log = home.log();
    let records = (0..2).flat_map(|partition| log.read(Topic::Turns, partition, 0, usize::MAX).unwrap().records);
    let turn = |event| if let Ok(TurnEvent::Turn(turn)) = event { Some(turn) } else { None };
    records.filter_map(|record| turn(TurnEvent::from_json(&record.value.unwrap()))).collect()
}

/// The ids and texts of all turns, sorted.
fn turns(home: &Home) -> Vec<String> {
    let mut found: Vec<String> = read(home).iter().map(|turn| format!("{} {}", turn.turn, turn.text)).collect();
    found.sort();
    found
}

#[test]
fn webhooks_are_stored_once_wherever_their_lease_lies() {
    let _turn = kafka::turn();
    let Some(broker) = Broker::shared("webhooks_are_stored_once_wherever_their_lease_lies") else { return };
    let home = Home::with(
        &broker,
        "live",
        "roles = [\"extract\"]\n",
        "[metrics]\nlisten = \"127.0.0.1:1\"\n\
         [[source]]\nname = \"tg\"\nplatform = \"telegram\"\ndelivery = \"webhook\"\nbank = \"acme\"\n\
         secret_env = \"RIPPLEMEM_TEST_SECRET\"\n\
         [[source]]\nname = \"any\"\nplatform = \"webhook\"\nbank = \"acme\"\nsecret_env = \"RIPPLEMEM_TEST_SECRET\"\n",
    );
    let first = Instance::start(&home, 1);
    first.update(&update(1, 1, "one"));
    wait(&|| first.told(), || first.told().contains("\"source\":\"any\""));

    let body = r#"{"turn": "a", "speaker": "Bo", "text": "signed", "time": "2024-05-01T10:00:00Z"}"#;
    let post = |headers: &[(&str, String)], body: &str| {
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        first.post("any", &headers, body)
    };
    assert_eq!(post(&signed(0, body), body), 200);
    assert_eq!(post(&signed(400, body), body), 401, "a request that was recorded");
    assert_eq!(post(&signed(0, "other"), body), 401, "another body");
    assert_eq!(post(&[], body), 401, "no signature");
    assert_eq!(first.post("tg", &[("x-telegram-bot-api-secret-token", "guess")], "{}"), 401);
    assert_eq!(first.post("nobody", &[], "{}"), 404);
    assert_eq!(turns(&home), ["a signed", "channel77/1 one"]);

    // A second instance holds nothing at first; when the first is killed, it takes over and knows what
    // was stored. An earlier request that comes again changes nothing.
    let second = Instance::start(&home, 2);
    first.update(&update(2, 2, "two"));
    drop(first);
    second.update(&update(2, 2, "two"));
    second.update(&update(1, 1, "one"));
    second.update(&update(3, 3, "three"));
    assert_eq!(turns(&home), ["a signed", "channel77/1 one", "channel77/2 two", "channel77/3 three"]);
}

/// A bot's updates, one more at each poll until there are `most`; it notes when two ask at once.
fn bot_api(most: i64, at_once: Arc<AtomicUsize>) -> Platform {
    let (said, polls) = (AtomicI64::new(0), AtomicUsize::new(0));
    Platform::start(move |_, asked| {
        if polls.fetch_add(1, Ordering::SeqCst) > 0 {
            at_once.fetch_add(1, Ordering::SeqCst);
        }
        let offset = asked.body["offset"].as_i64().unwrap_or_default().max(1);
        let newest = (said.fetch_add(1, Ordering::SeqCst) + 1).min(most);
        let found: Vec<Value> = (offset..=newest).take(3).map(|id| update(id, id, &format!("number {id}"))).collect();
        std::thread::sleep(Duration::from_millis(if found.is_empty() { 100 } else { 20 }));
        polls.fetch_sub(1, Ordering::SeqCst);
        (200, "", json!({"ok": true, "result": found}))
    })
}

#[test]
fn sources_move_between_running_instances_and_no_message_is_lost_or_doubled() {
    let test = "sources_move_between_running_instances_and_no_message_is_lost_or_doubled";
    let _turn = kafka::turn();
    let Some(broker) = Broker::shared(test) else { return };
    const MAX: i64 = 400;
    let at_once: Arc<AtomicUsize> = Arc::default();
    let bots: Vec<Platform> = (0..6).map(|_| bot_api(MAX, Arc::clone(&at_once))).collect();
    let sources: String = bots
        .iter()
        .enumerate()
        .map(|(n, bot)| {
            format!(
                "[[source]]\nname = \"s{n}\"\nplatform = \"telegram\"\nbank = \"acme/s{n}\"\ntoken_env = \"CARGO_PKG_NAME\"\n\
                 endpoint = \"http://{}\"\n",
                bot.address
            )
        })
        .collect();
    let home = Home::with(
        &broker,
        "lease",
        "roles = [\"extract\"]\n",
        &format!("[metrics]\nlisten = \"127.0.0.1:1\"\n{sources}"),
    );
    let followed = |instance: &Instance| instance.told().matches("the source is followed").count();
    let first = Instance::start(&home, 1);
    wait(&|| first.told(), || followed(&first) == 6);
    // Another instance comes, and takes some of the sources over while both run and everybody talks.
    let second = Instance::start(&home, 2);
    wait(&|| second.told(), || followed(&second) > 0);
    assert!(first.told().contains("another instance follows the source"), "{}", first.told());
    assert!(turns(&home).len() < 6 * MAX as usize, "everything was said before a source moved");
    // It ends in order, and the first takes its sources again.
    let moved = followed(&second);
    assert!(Command::new("kill").args(["-TERM", &second.child.id().to_string()]).status().unwrap().success());
    wait(&|| first.told(), || followed(&first) >= 6 + moved);
    wait(&|| format!("{} {}", turns(&home).len(), first.told()), || turns(&home).len() >= 6 * MAX as usize);
    let mut found: BTreeMap<(String, String), usize> = BTreeMap::new();
    for turn in read(&home) {
        *found.entry((turn.bank.to_string(), turn.text)).or_default() += 1;
    }
    assert_eq!(found.len(), 6 * MAX as usize, "a message is lost");
    let doubled: Vec<_> = found.iter().filter(|(_, times)| **times > 1).collect();
    assert!(doubled.is_empty(), "{doubled:?}");
    println!("{} polls met another one", at_once.load(Ordering::SeqCst));
}
