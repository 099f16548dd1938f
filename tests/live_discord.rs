//! Discord's gateway, scripted: a session begins, is resumed, and is lost, and what was said meanwhile
//! is asked for.

use std::sync::{Mutex, mpsc::Sender};

use ingest::LiveSourceEvent;
use serde_json::{Value, json};

use super::{
    http_service::{HttpService, pipeline_file},
    kafka::wait,
    live::{Home, TOKEN, until_lines},
    live_platform::Platform,
};

/// An API whose channel 10 holds these messages, and that refuses that many requests for them first.
fn discord(messages: Vec<Value>, limited: usize) -> Platform {
    let limited = Mutex::new(limited);
    Platform::start(move |own, asked| {
        assert_eq!(asked.authorization, format!("Bot {TOKEN}"));
        match asked.path.as_str() {
            "gateway/bot" => (200, "", json!({"url": format!("ws://{own}/ws")})),
            "channels/10" => (200, "", json!({"id": "10", "type": 0, "name": "general", "guild_id": "1"})),
            "channels/10/messages" => {
                let mut limited = limited.lock().unwrap();
                if *limited > 0 {
                    *limited -= 1;
                    return (429, "", json!({"message": "You are being rate limited.", "retry_after": 0.2}));
                }
                let after: u64 = asked.given["after"].parse().unwrap();
                let id = |message: &Value| message["id"].as_str().unwrap().parse::<u64>().unwrap();
                let mut newer: Vec<&Value> = messages.iter().filter(|m| id(m) > after).take(100).collect();
                newer.reverse();
                (200, "", json!(newer))
            }
            other => panic!("{other}"),
        }
    })
}

/// An API that answers requests for a channel or a server with what `known` returns for the path.
pub(crate) fn discord_with(known: impl Fn(&str) -> Value + Send + Sync + 'static) -> Platform {
    Platform::start(move |own, asked| match asked.path.as_str() {
        "gateway/bot" => (200, "", json!({"url": format!("ws://{own}/ws")})),
        path => (200, "", known(path)),
    })
}

fn message(id: u64, text: &str) -> Value {
    json!({
        "id": id.to_string(), "channel_id": "10", "guild_id": "1", "type": 0, "content": text,
        "timestamp": "2024-05-01T10:00:00+00:00", "edited_timestamp": null,
        "author": {"id": "5", "username": "ann", "discriminator": "0"}, "member": {"nick": "Ann"},
    })
}

fn server(last: u64) -> Value {
    json!({
        "id": "1", "name": "Makers", "roles": [],
        "channels": [{"id": "10", "type": 0, "name": "general", "last_message_id": last.to_string()},
            {"id": "12", "type": 0, "name": "board",
                "permission_overwrites": [{"id": "1", "type": 0, "allow": "0", "deny": "1024"}]}],
        "threads": [{"id": "20", "type": 11, "name": "a thread", "parent_id": "10"}],
    })
}

/// Sends an event of the gateway.
pub(crate) fn send(to: &Sender<String>, seq: u64, kind: &str, data: Value) {
    to.send(json!({"op": 0, "s": seq, "t": kind, "d": data}).to_string()).unwrap();
}

/// Greets a client and returns its answer: that it begins a session, or resumes one.
pub(crate) fn greet(platform: &Platform, interval_ms: u64) -> (Sender<String>, Value) {
    let to = platform.connected();
    to.send(json!({"op": 10, "d": {"heartbeat_interval": interval_ms}}).to_string()).unwrap();
    (to, platform.text(|text| text["op"] == 2 || text["op"] == 6))
}

/// Begins a session in answer to a client that identifies itself.
pub(crate) fn ready(to: &Sender<String>, platform: &Platform, last: u64) {
    let url = format!("ws://{}/ws", platform.address);
    send(to, 1, "READY", json!({"session_id": "abc", "resume_gateway_url": url, "user": {"id": "99"}}));
    send(to, 2, "GUILD_CREATE", server(last));
}

fn notices(told: &[LiveSourceEvent]) -> Vec<&str> {
    let mut notices = Vec::new();
    for event in told {
        if let LiveSourceEvent::Notice(notice) = event {
            notices.push(notice.as_str());
        }
    }
    notices
}

const KEYS: &str = "bank = \"acme\"\n";
/// An id of a time long after this test was written, so that it is newer than the first run.
const NEW: u64 = 9_000_000_000_000_000_000;

#[test]
fn discord_tells_what_is_said_edited_and_deleted() {
    let platform = discord(Vec::new(), 0);
    let home = Home::new("discord", &format!("http://{}", platform.address), KEYS);
    home.pull(|wait| {
        let (to, identified) = greet(&platform, 60_000);
        assert_eq!(identified["op"], 2);
        assert_eq!(identified["d"]["token"], TOKEN);
        assert_eq!(identified["d"]["intents"].as_u64().unwrap() & (1 << 15), 1 << 15, "the words of messages");
        ready(&to, &platform, 5);
        send(&to, 3, "MESSAGE_CREATE", message(100, "hello"));
        let mut edit = message(100, "hello all");
        edit["edited_timestamp"] = "2024-05-01T10:01:00+00:00".into();
        send(&to, 4, "MESSAGE_UPDATE", edit);
        send(&to, 5, "MESSAGE_UPDATE", json!({"id": "100", "channel_id": "10", "embeds": []}));
        let mut in_thread = message(101, "in a thread");
        in_thread["channel_id"] = "20".into();
        send(&to, 6, "MESSAGE_CREATE", in_thread);
        let mut private = message(102, "the plan");
        private["channel_id"] = "12".into();
        send(&to, 7, "MESSAGE_CREATE", private);
        send(&to, 8, "MESSAGE_CREATE", message(103, "gone soon"));
        send(&to, 9, "MESSAGE_DELETE", json!({"id": "103", "channel_id": "10"}));
        send(&to, 10, "MESSAGE_DELETE_BULK", json!({"ids": ["100"], "channel_id": "10"}));
        until_lines(
            wait,
            &[
                "acme 10/100 v0 Ann: hello | session=general",
                "acme 10/100 v1714557660000 Ann: hello all | session=general",
                "acme 10/101 v0 Ann: in a thread | thread=10/20 | session=general",
                "acme 10/103 v0 Ann: gone soon | session=general",
                "acme 10/103 deleted",
                "acme 10/100 deleted",
            ],
        );
    });
    assert!(!platform.asked().iter().any(|asked| asked.path.ends_with("messages")), "the first run begins now");
}

#[test]
fn a_broken_or_silent_connection_is_resumed_behind_the_last_durable_event() {
    let platform = discord(Vec::new(), 0);
    let home = Home::new("discord", &format!("http://{}", platform.address), KEYS);
    // A sender that is dropped cuts its connection.
    let mut kept = Vec::new();
    let told = home.pull(|wait| {
        let (to, _) = greet(&platform, 60_000);
        ready(&to, &platform, 5);
        send(&to, 3, "MESSAGE_CREATE", message(100, "one"));
        wait(&|log| log.lines().len() == 1);
        drop(to);
        // The client sends heartbeats, and this connection never answers.
        let (to, resumed) = greet(&platform, 100);
        assert_eq!(resumed, json!({"op": 6, "d": {"token": TOKEN, "session_id": "abc", "seq": 3}}));
        send(&to, 3, "MESSAGE_CREATE", message(100, "one"));
        send(&to, 4, "MESSAGE_CREATE", message(101, "two"));
        send(&to, 5, "RESUMED", json!({}));
        let beat = platform.text(|text| text["op"] == 1);
        assert!(beat["d"].as_u64().is_some_and(|seq| seq >= 3), "{beat}");
        let (to, resumed) = greet(&platform, 100);
        assert_eq!(resumed["d"]["seq"], 5);
        // This one answers, so it stays.
        for _ in 0..3 {
            platform.text(|text| text["op"] == 1);
            to.send(json!({"op": 11}).to_string()).unwrap();
        }
        send(&to, 6, "MESSAGE_CREATE", message(102, "three"));
        // What Discord repeats is stored again, as the same turn.
        wait(&|log| log.lines().last().is_some_and(|line| line.contains("three")));
        wait(&|log| log.lines().len() == 4);
        kept.push(to);
    });
    let lost = told.iter().filter(|event| matches!(event, LiveSourceEvent::Interrupted { .. })).count();
    assert_eq!(lost, 2, "{told:?}");
    assert!(!platform.asked().iter().any(|asked| asked.path.ends_with("messages")));
}

#[test]
fn after_a_lost_session_the_channels_are_asked_for_what_came_since() {
    // Of three messages that were heard, one is as it was, one was edited, and one deleted.
    let mut edited = message(NEW - 1, "edited");
    edited["edited_timestamp"] = "2024-05-01T10:01:00+00:00".into();
    let missed = (1..=150).map(|n| message(NEW + n, &format!("missed {n}")));
    let platform = discord([message(NEW - 2, "before"), edited].into_iter().chain(missed).collect(), 1);
    let home = Home::new("discord", &format!("http://{}", platform.address), KEYS);
    let told = home.pull(|wait| {
        let (to, _) = greet(&platform, 60_000);
        ready(&to, &platform, 5);
        send(&to, 3, "MESSAGE_CREATE", message(NEW - 2, "before"));
        send(&to, 4, "MESSAGE_CREATE", message(NEW - 1, "to be edited"));
        send(&to, 5, "MESSAGE_CREATE", message(NEW, "to be deleted"));
        wait(&|log| log.lines().len() == 3);
    });
    assert_eq!(notices(&told), [""; 0], "the first run misses nothing");
    let told = home.pull(|wait| {
        let (to, resumed) = greet(&platform, 60_000);
        assert_eq!(resumed["op"], 6);
        to.send(json!({"op": 9, "d": false}).to_string()).unwrap();
        platform.text(|text| text["op"] == 2);
        ready(&to, &platform, NEW + 150);
        send(&to, 3, "MESSAGE_CREATE", message(NEW + 151, "live"));
        wait(&|log| log.lines().len() >= 156);
        wait(&|log| {
            let lines = log.lines();
            assert_eq!(lines.len(), 156, "{lines:?}");
            for found in [
                format!("acme 10/{} v1714557660000 Ann: edited | session=general", NEW - 1),
                format!("acme 10/{NEW} deleted"),
            ] {
                assert!(lines.contains(&found), "{found}: {lines:?}");
            }
            let at = |text: &str| lines.iter().position(|line| line.ends_with(&format!(": {text} | session=general")));
            for n in 1..150 {
                assert!(at(&format!("missed {n}")) < at(&format!("missed {}", n + 1)), "{lines:?}");
            }
            true
        });
    });
    let notices = notices(&told);
    let [notice] = notices[..] else { panic!("{told:?}") };
    assert!(notice.contains("Not checked: edits and deletions of older messages"), "{notice}");
    let after: Vec<String> = platform
        .asked()
        .into_iter()
        .filter(|asked| asked.path.ends_with("messages"))
        .map(|asked| asked.given["after"].clone())
        .collect();
    assert_eq!(after, [NEW - 3, NEW - 3, NEW + 98].map(|id| id.to_string()), "refused once, then two pages");
}

#[test]
fn what_a_lost_session_hides_stands_in_the_log_and_in_the_status() {
    let platform = discord(Vec::new(), 0);
    let home = tempfile::tempdir().unwrap();
    let source = format!(
        "[[source]]\nname = \"guild\"\nplatform = \"discord\"\ntoken_env = \"CARGO_PKG_NAME\"\nendpoint = \"http://{}\"\n{KEYS}",
        platform.address
    );
    pipeline_file(home.path(), &source);
    let service = HttpService::of(home.path());
    let source = || service.get("/v1/status")["sources"][0].clone();
    let (to, _) = greet(&platform, 60_000);
    ready(&to, &platform, 5);
    send(&to, 3, "MESSAGE_CREATE", message(100, "one"));
    wait(&|| source().to_string(), || service.get("/v1/digest")["units"] == 1);
    assert_eq!(source(), json!({"name": "guild", "following": true}));
    to.send("close 4009".to_owned()).unwrap();
    let (to, identified) = greet(&platform, 60_000);
    assert_eq!(identified["op"], 2);
    ready(&to, &platform, 5);
    wait(&|| source().to_string(), || source()["notice"].is_string());
    let notice = source()["notice"].as_str().unwrap().to_owned();
    assert!(notice.contains("session was lost") && notice.contains("edits and deletions"), "{notice}");
    assert!(std::fs::read_to_string(home.path().join("stderr")).unwrap().contains(&notice));
    assert!(service.stop());
}

#[test]
fn the_code_with_which_discord_closes_says_what_comes_next() {
    let platform = discord(Vec::new(), 0);
    let home = Home::new("discord", &format!("http://{}", platform.address), KEYS);
    let told = home.pull(|wait| {
        let (to, _) = greet(&platform, 60_000);
        ready(&to, &platform, 5);
        send(&to, 3, "MESSAGE_CREATE", message(100, "one"));
        wait(&|log| log.lines().len() == 1);
        // Whatever Discord does not explain is resumed.
        to.send("close 4000".to_owned()).unwrap();
        let (to, resumed) = greet(&platform, 60_000);
        assert_eq!((&resumed["op"], &resumed["d"]["seq"]), (&json!(6), &json!(3)));
        // A session that timed out is over: another begins at once.
        to.send("close 4009".to_owned()).unwrap();
        let (to, identified) = greet(&platform, 60_000);
        assert_eq!(identified["op"], 2);
        ready(&to, &platform, 5);
        send(&to, 3, "MESSAGE_CREATE", message(101, "two"));
        wait(&|log| log.lines().len() == 2);
        // A token that is no longer valid is refused, and nobody asks again at once.
        to.send("close 4004".to_owned()).unwrap();
        // Once the client has answered, nobody listens to what is sent.
        while to.send("{}".to_owned()).is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    });
    let problems: Vec<(&str, u64)> = told
        .iter()
        .filter_map(|event| match event {
            LiveSourceEvent::Interrupted { problem, after } => Some((problem.as_str(), after.as_secs())),
            _ => None,
        })
        .collect();
    let [(resumed, 0), (refused, 60)] = problems[..] else { panic!("{problems:?}") };
    assert!(resumed.contains("4000"), "{resumed}");
    assert!(refused.contains("4004") && refused.contains("check the bot's token"), "{refused}");
}
