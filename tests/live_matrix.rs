//! A Matrix homeserver, scripted: syncs, parts that it cuts off, edits, redactions and encryption.

use std::{sync::Mutex, time::Duration};

use ingest::LiveSourceEvent;
use serde_json::{Value, json};

use super::{
    live::{Home, TOKEN, until_lines},
    live_platform::{Asked, Platform, Reply},
};

const ROOM: &str = "!trip:example.org";

fn state() -> Value {
    json!([
        {"type": "m.room.name", "state_key": "", "content": {"name": "Trip"}, "sender": "@ann:example.org"},
        {"type": "m.room.join_rules", "state_key": "", "content": {"join_rule": "public"}},
        {"type": "m.room.member", "state_key": "@ann:example.org", "content": {"membership": "join", "displayname": "Ann"}},
    ])
}

fn said(id: &str, body: &str, more: Value) -> Value {
    let mut event = json!({"type": "m.room.message", "event_id": id, "sender": "@ann:example.org",
        "origin_server_ts": 1_714_557_600_000_i64, "content": {"msgtype": "m.text", "body": body}});
    event["content"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

/// A homeserver with these syncs, by the token that they follow. A null sync fails once.
fn homeserver(syncs: Vec<(&'static str, Value)>, others: fn(&Asked) -> Option<Value>) -> Platform {
    let syncs = Mutex::new(syncs);
    Platform::start(move |_, asked| -> Reply {
        assert_eq!(asked.authorization, format!("Bearer {TOKEN}"));
        if asked.path != "_matrix/client/v3/sync" {
            return match others(asked) {
                Some(reply) => (200, "", reply),
                None => (404, "", json!({"errcode": "M_NOT_FOUND", "error": "no such thing"})),
            };
        }
        let since = asked.given.get("since").map(String::as_str).unwrap_or_default();
        let mut syncs = syncs.lock().unwrap();
        match syncs.iter().position(|(token, _)| *token == since) {
            Some(at) if syncs[at].1.is_null() => {
                syncs.remove(at);
                (429, "retry-after: 0\r\n", json!({"errcode": "M_LIMIT_EXCEEDED", "error": "slow down"}))
            }
            Some(at) => (200, "", syncs[at].1.clone()),
            None => {
                std::thread::sleep(Duration::from_millis(20));
                (200, "", json!({"next_batch": since}))
            }
        }
    })
}

fn sync(next: &str, timeline: Value, more: Value) -> Value {
    let mut joined = json!({"timeline": {"events": timeline}});
    joined["timeline"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"next_batch": next, "rooms": {"join": {ROOM: joined}}})
}

#[test]
fn matrix_tells_what_is_said_edited_redacted_and_cut_off() {
    let first = json!({"next_batch": "s1", "rooms": {"join": {ROOM: {
        "state": {"events": state()}, "timeline": {"events": [said("$old", "before", json!({}))]}}}}});
    let edit = json!({"type": "m.room.message", "event_id": "$e", "sender": "@ann:example.org",
        "origin_server_ts": 1_714_557_660_000_i64, "content": {"msgtype": "m.text", "body": "* hello all",
            "m.new_content": {"msgtype": "m.text", "body": "hello all"},
            "m.relates_to": {"rel_type": "m.replace", "event_id": "$1"}}});
    let redaction = json!({"type": "m.room.redaction", "event_id": "$r", "sender": "@ann:example.org",
        "origin_server_ts": 1_714_557_700_000_i64, "redacts": "$1", "content": {}});
    let encrypted = json!({"type": "m.room.encrypted", "event_id": "$c", "sender": "@ann:example.org",
        "origin_server_ts": 1_714_557_600_000_i64, "content": {"algorithm": "m.megolm.v1.aes-sha2"}});
    let in_thread = said("$2", "yes", json!({"m.relates_to": {"rel_type": "m.thread", "event_id": "$1"}}));
    let broken = json!({"type": "m.room.message", "sender": "@ann:example.org", "content": {"body": "x"}});
    let server = homeserver(
        vec![
            ("", first),
            ("s1", Value::Null),
            ("s1", sync("s2", json!([said("$1", "hello", json!({})), edit, in_thread, broken]), json!({}))),
            ("s2", sync("s3", json!([said("$9", "newest", json!({}))]), json!({"limited": true, "prev_batch": "p9"}))),
            ("s3", sync("s4", json!([redaction, encrypted.clone(), encrypted]), json!({}))),
        ],
        |asked| {
            let room = "_matrix/client/v3/rooms/%21trip%3Aexample.org";
            let given = |key: &str| asked.given.get(key).map(String::as_str).unwrap_or_default();
            match asked.path.strip_prefix(room)? {
                // The pause made the source forget what it knew.
                "/state" => Some(state()),
                "/event/%241" => Some(said("$1", "hello", json!({}))),
                "/messages" if given("from") == "p9" => {
                    assert_eq!((given("to"), given("dir")), ("s2", "b"));
                    Some(
                        json!({"chunk": [said("$8", "third", json!({})), said("$7", "second", json!({}))], "end": "p6"}),
                    )
                }
                "/messages" if given("from") == "p6" => Some(json!({"chunk": [said("$6", "first", json!({}))]})),
                other => panic!("{other}"),
            }
        },
    );
    let home = Home::new("matrix", &format!("http://{}", server.address), "bank = \"acme\"\n");
    let told = home.pull(|wait| {
        until_lines(
            wait,
            &[
                "acme !trip:example.org/$1 v0 Ann: hello | session=Trip",
                "acme !trip:example.org/$1 v1714557660000 Ann: hello all | session=Trip",
                "acme !trip:example.org/$2 v0 Ann: yes | thread=!trip:example.org/$1 | session=Trip",
                "acme !trip:example.org/$6 v0 Ann: first | session=Trip",
                "acme !trip:example.org/$7 v0 Ann: second | session=Trip",
                "acme !trip:example.org/$8 v0 Ann: third | session=Trip",
                "acme !trip:example.org/$9 v0 Ann: newest | session=Trip",
                "acme !trip:example.org/$1 deleted",
            ],
        );
    });
    let notices: Vec<&String> = told
        .iter()
        .filter_map(|event| if let LiveSourceEvent::Notice(notice) = event { Some(notice) } else { None })
        .collect();
    assert!(matches!(notices[..], [notice] if notice.contains("Trip") && notice.contains("encrypted")), "{told:?}");
    let encrypted: u64 = told
        .iter()
        .filter_map(|event| match event {
            LiveSourceEvent::Committed { skipped, .. } => skipped.get("encrypted"),
            _ => None,
        })
        .sum();
    assert_eq!(encrypted, 2);
}

#[test]
fn matrix_goes_on_at_its_last_token_and_asks_for_the_state_again() {
    let first = json!({"next_batch": "s1", "rooms": {"join": {ROOM: {"state": {"events": state()}}}}});
    let server =
        homeserver(vec![("", first), ("s1", sync("s2", json!([said("$1", "one", json!({}))]), json!({})))], |_| None);
    let mut home = Home::new("matrix", &format!("http://{}", server.address), "");
    home.pull(|wait| wait(&|log| log.lines().len() == 1));
    let server = homeserver(vec![("s2", sync("s3", json!([said("$2", "two", json!({}))]), json!({})))], |asked| {
        asked.path.ends_with("/state").then(state)
    });
    home.settings.endpoint = format!("http://{}", server.address);
    home.pull(|wait| {
        until_lines(
            wait,
            &["matrix/Trip !trip:example.org/$1 v0 Ann: one", "matrix/Trip !trip:example.org/$2 v0 Ann: two"],
        );
    });
}

#[test]
fn a_gap_without_end_is_read_up_to_its_bound_and_the_user_is_told() {
    let first = json!({"next_batch": "s1", "rooms": {"join": {ROOM: {"state": {"events": state()}}}}});
    let cut = json!({"limited": true, "prev_batch": "p0"});
    let syncs = vec![("", first), ("s1", sync("s2", json!([said("$newest", "newest", json!({}))]), cut))];
    let server = homeserver(syncs, |asked| {
        let page: u64 = asked.given.get("from")?.strip_prefix('p')?.parse().ok()?;
        // Newest first, page after page, and always another one.
        let chunk: Vec<Value> = (0..100).map(|n| said(&format!("${}", page * 100 + n), "x", json!({}))).collect();
        Some(json!({"chunk": chunk, "end": format!("p{}", page + 1)}))
    });
    let home = Home::new("matrix", &format!("http://{}", server.address), "");
    let told = home.pull(|wait| wait(&|log| log.lines().last().is_some_and(|line| line.contains("$newest"))));
    let read: Vec<String> = home.events().iter().map(|event| format!("{event:?}")).collect();
    assert_eq!(read.len(), 20_001);
    assert!(read[0].contains("$19999") && read[19_999].contains("$0\""), "the oldest first: {}", read[0]);
    assert_eq!(server.asked().iter().filter(|asked| asked.path.ends_with("/messages")).count(), 200);
    let notice = |event: &LiveSourceEvent| matches!(event, LiveSourceEvent::Notice(text) if text.contains("20000") && text.contains("Trip"));
    assert_eq!(told.iter().filter(|event| notice(event)).count(), 1, "{told:?}");
}
