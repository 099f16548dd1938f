//! Live sources of a service on Kafka: webhooks on its HTTP listener, and leases that move.

use std::{
    process::{Child, Command, Stdio},
    time::{SystemTime, UNIX_EPOCH},
};

use ring::hmac;
use ripplemem::{
    log::{Log, Topic},
    model::TurnEvent,
};
use serde_json::{Value, json};

use super::{
    broker_process::Broker,
    kafka::{self, Home, wait},
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

    /// Sends a request with these headers; returns the status, and 0 where nobody answers.
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

/// The ids and texts of all turns, sorted.
fn turns(home: &Home) -> Vec<String> {
    let log = home.log();
    let mut found = Vec::new();
    for partition in 0..2 {
        for record in log.read(Topic::Turns, partition, 0, usize::MAX).unwrap().records {
            if let Ok(TurnEvent::Turn(turn)) = TurnEvent::from_json(&record.value.unwrap()) {
                found.push(format!("{} {}", turn.turn, turn.text));
            }
        }
    }
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
    wait(&|| first.told(), || first.told().contains("source any: followed"));

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
    // was stored. A request of before that comes again changes nothing.
    let second = Instance::start(&home, 2);
    first.update(&update(2, 2, "two"));
    drop(first);
    second.update(&update(2, 2, "two"));
    second.update(&update(1, 1, "one"));
    second.update(&update(3, 3, "three"));
    assert_eq!(turns(&home), ["a signed", "channel77/1 one", "channel77/2 two", "channel77/3 three"]);
}
