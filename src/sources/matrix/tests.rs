//! Tests of whole exports, each written by hand in Element's form.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::FORMAT;
use crate::{
    SourceError,
    chat::{ChatItem, ChatMessage, SkipReason},
    format::FormatOpener,
};
use types::config::SourceSettings;

fn items_of(files: &[(&str, String)]) -> Result<Vec<ChatItem>, SourceError> {
    let home = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(home.path().join(name), text).unwrap();
    }
    let path = if let [(name, _)] = files { home.path().join(name) } else { home.path().to_owned() };
    let FormatOpener::Chat(open) = FORMAT.open else { panic!("a chat format") };
    let mut reader = open(&SourceSettings::new("matrix", path))?;
    let mut items = Vec::new();
    while let Some(item) = reader.next()? {
        items.push(item);
    }
    assert_eq!(reader.next()?, None, "the end is final");
    Ok(items)
}

/// An export of these events.
fn export(events: &[Value]) -> String {
    let whole = json!({"room_name": "Tea", "room_creator": "Ann", "topic": "", "export_date": "1/1/2024",
        "exported_by": "Ann", "messages": events});
    serde_json::to_string_pretty(&whole).unwrap()
}

fn items(events: &[Value]) -> Vec<ChatItem> {
    items_of(&[("export.json", export(events))]).unwrap()
}

fn event(id: &str, at: i64, kind: &str, content: Value) -> Value {
    json!({"type": kind, "event_id": id, "room_id": "!tea:example.org", "sender": "@ann:example.org",
        "origin_server_ts": 1_700_000_000_000_i64 + at, "content": content})
}

fn said(id: &str, at: i64, text: &str) -> Value {
    event(id, at, "m.room.message", json!({"msgtype": "m.text", "body": text}))
}

fn with(mut event: Value, key: &str, value: Value) -> Value {
    event[key] = value;
    event
}

fn line(item: &ChatItem) -> String {
    match item {
        ChatItem::Message(m) => format!("{} v{} {}: {}", m.id, m.version % 1_000, m.author.name, m.text),
        ChatItem::Deletion { id, version, .. } => format!("deletes {id} {:?}", version.map(|v| v % 1_000)),
        ChatItem::Skip(SkipReason::UnsupportedKind(kind)) => format!("Unsupported {kind}"),
        ChatItem::Transcript { .. } => panic!("no transcript"),
        ChatItem::Skip(skip) => format!("{skip:?}"),
        ChatItem::Reject { letter, .. } => {
            format!("reject {} {}", letter.origin.rsplit('/').next().unwrap(), letter.reason)
        }
    }
}

fn check(events: &[Value], expected: &[&str]) {
    assert_eq!(items(events).iter().map(line).collect::<Vec<_>>(), expected, "{events:?}");
}

fn messages(events: &[Value]) -> Vec<ChatMessage> {
    items(events).into_iter().filter_map(|i| if let ChatItem::Message(m) = i { Some(*m) } else { None }).collect()
}

#[test]
fn a_room_is_read_with_the_names_of_its_members() {
    let member = |at, id: &str, name: Value, before: Value| {
        let content = json!({"membership": "join", "displayname": name});
        let event = with(event(&format!("$m{at}"), at, "m.room.member", content), "state_key", json!(id));
        with(event, "unsigned", json!({"prev_content": {"displayname": before}}))
    };
    let events = [
        member(1, "@ann:example.org", json!("Ann"), Value::Null),
        said("$1", 2, "hello"),
        with(said("$2", 3, "hi"), "sender", json!("@bob:example.org")),
        with(said("$3", 4, "hey"), "sender", json!("@cara:example.org")),
        event("$4", 5, "m.room.message", json!({"msgtype": "m.emote", "body": "waves"})),
        event("$5", 6, "m.room.message", json!({"msgtype": "m.notice", "body": "build done"})),
        member(7, "@cara:example.org", Value::Null, json!("Cara")),
    ];
    check(
        &events,
        &[
            "ServiceMessage",
            "ServiceMessage",
            "$1 v0 Ann: hello",
            "$2 v0 bob: hi",
            "$3 v0 Cara: hey",
            "$4 v0 Ann: Ann waves",
            "$5 v0 Ann: build done",
        ],
    );
    let found = messages(&events);
    assert_eq!((found[0].conversation.id.as_str(), found[0].conversation.name.as_str()), ("!tea:example.org", "Tea"));
    assert_eq!(found[1].author.handle.as_deref(), Some("bob:example.org"));
    assert_eq!(found.iter().map(|m| m.author.bot).collect::<Vec<_>>(), [false, false, false, false, true]);
    assert_eq!(found[0].time.to_string(), "2023-11-14T22:13:20.002Z");
}

#[test]
fn the_last_valid_edit_is_what_was_said() {
    let edit = |id: &str, at, of: &str, text: &str| {
        event(
            id,
            at,
            "m.room.message",
            json!({"msgtype": "m.text", "body": format!("* {text}"),
            "m.new_content": {"msgtype": "m.text", "body": text},
            "m.relates_to": {"rel_type": "m.replace", "event_id": of}}),
        )
    };
    let bundled = |content: Value| {
        let mut bundle =
            json!({"event_id": "$e", "origin_server_ts": 1_700_000_000_009_i64, "sender": "@ann:example.org"});
        if !content.is_null() {
            bundle["content"] = content;
        }
        json!({"m.relations": {"m.replace": bundle}})
    };
    check(
        &[with(
            said("$1", 1, "old"),
            "unsigned",
            bundled(json!({"body": "* new", "m.new_content": {"msgtype": "m.text", "body": "new"}})),
        )],
        &["$1 v9 ann: new"],
    );
    // Older servers put the new words into the message itself.
    check(&[with(said("$1", 1, "new"), "unsigned", bundled(Value::Null))], &["$1 v9 ann: new"]);
    check(
        &[
            said("$1", 1, "old"),
            edit("$2", 3, "$1", "newest"),
            edit("$3", 2, "$1", "newer"),
            with(edit("$4", 4, "$1", "forged"), "sender", json!("@eve:example.org")),
        ],
        &["$1 v3 ann: newest", "Copy", "Copy", "Copy"],
    );
    check(
        &[
            said("$1", 1, "old"),
            edit("$2", 2, "$1", "newer"),
            edit("$3", 3, "$1", "newest"),
            with(event("$4", 4, "m.room.redaction", json!({})), "redacts", json!("$3")),
        ],
        &["$1 v2 ann: newer", "Copy", "Copy", "Copy"],
    );
    let found = items(&[edit("$2", 2, "$1", "newer")]);
    assert!(line(&found[0]).contains("it edits a message that the export does not hold"), "{found:?}");
}

#[test]
fn redactions_are_deletions() {
    let because = json!({"redacted_because": {"type": "m.room.redaction", "origin_server_ts": 1_700_000_000_007_i64}});
    check(
        &[
            with(event("$1", 1, "m.room.message", json!({})), "unsigned", because.clone()),
            event("$2", 2, "m.room.message", json!({})),
            with(event("$3", 3, "m.room.encrypted", json!({})), "unsigned", because),
            said("$4", 4, "regretted"),
            event("$5", 5, "m.room.redaction", json!({"redacts": "$4"})),
            with(event("$6", 6, "m.room.redaction", json!({})), "redacts", json!("$gone")),
        ],
        &[
            "deletes $1 Some(7)",
            "deletes $2 None",
            "deletes $3 Some(7)",
            "deletes $4 Some(5)",
            "Copy",
            "deletes $gone Some(6)",
        ],
    );
}

#[test]
fn encrypted_events_and_reactions_are_counted() {
    check(
        &[
            event("$1", 1, "m.room.encrypted", json!({"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "Aw"})),
            event("$2", 2, "m.room.message", json!({"msgtype": "m.bad.encrypted", "body": "** Unable to decrypt **"})),
            event(
                "$3",
                3,
                "m.reaction",
                json!({"m.relates_to": {"rel_type": "m.annotation", "event_id": "$1", "key": "👍"}}),
            ),
            with(event("$4", 4, "m.room.redaction", json!({})), "redacts", json!("$3")),
            event("$5", 5, "m.room.message", json!({"msgtype": "m.text", "body": " "})),
            event("$6", 6, "m.call.invite", json!({})),
            event("$7", 7, "org.example.unknown", json!({})),
            event("$8", 8, "m.room.message", json!({"msgtype": "m.key.verification.request", "body": "verify"})),
        ],
        &[
            "Encrypted",
            "Encrypted",
            "Unsupported m.reaction",
            "ServiceMessage",
            "Unsupported org.example.unknown",
            "Copy",
            "Empty",
            "ServiceMessage",
        ],
    );
}

#[test]
fn threads_and_replies_are_kept_apart() {
    let related = |id: &str, at, text: &str, relation: Value| {
        event(id, at, "m.room.message", json!({"msgtype": "m.text", "body": text, "m.relates_to": relation}))
    };
    let found = messages(&[
        said("$1", 1, "root"),
        related(
            "$2",
            2,
            "in thread",
            json!({"rel_type": "m.thread", "event_id": "$1", "is_falling_back": true,
            "m.in_reply_to": {"event_id": "$1"}}),
        ),
        related(
            "$3",
            3,
            "> <@ann:example.org> in thread\n\nanswer in thread",
            json!({"rel_type": "m.thread",
            "event_id": "$1", "m.in_reply_to": {"event_id": "$2"}}),
        ),
        related("$4", 4, "> <@ann:example.org> root\n\nanswer", json!({"m.in_reply_to": {"event_id": "$1"}})),
        with(said("$5", 5, "root elsewhere"), "unsigned", json!({"m.relations": {"m.thread": {"count": 2}}})),
    ]);
    let found: Vec<_> = found.iter().map(|m| (m.text.as_str(), m.thread.as_deref(), m.reply_to.as_deref())).collect();
    assert_eq!(
        found,
        [
            ("root", Some("$1"), None),
            ("in thread", Some("$1"), None),
            ("answer in thread", Some("$1"), Some("$2")),
            ("answer", None, Some("$1")),
            ("root elsewhere", Some("$5"), None),
        ]
    );
}

#[test]
fn events_in_any_order_and_in_any_file_come_oldest_first() {
    let page = json!({"chunk": [said("$2", 2, "two"), said("$1", 1, "one")], "start": "x", "end": "y"}).to_string();
    let list =
        json!([with(said("$3", 3, "three"), "room_id", json!("!b:example.org")), said("$1", 1, "one")]).to_string();
    let found = items_of(&[("a.json", page), ("b.json", list), ("photo.json", "[1,2]".to_owned())]).unwrap();
    let found: Vec<String> = found.iter().map(line).collect();
    assert_eq!(found, ["Copy", "$1 v0 ann: one", "$2 v0 ann: two", "$3 v0 ann: three"]);
}

#[test]
fn damaged_events_are_rejects_with_their_lines() {
    let mut text = export(&[said("$1", 1, "one"), said("$2", 2, "two"), said("$3", 3, "three"), said("$4", 4, "four")]);
    text = text.replacen("\"event_id\": \"$2\"", "\"event_id\": 2", 1);
    text = text.replacen("\"origin_server_ts\": 1700000000003", "\"origin_server_ts\": -99999999999999", 1);
    let found: Vec<String> = items_of(&[("export.json", text)]).unwrap().iter().map(line).collect();
    assert!(found[0].starts_with("reject export.json:16 event_id: a number where a text belongs"), "{found:?}");
    assert!(found[1].contains("origin_server_ts: missing or out of range"), "{found:?}");
    assert_eq!(found[2..], ["$1 v0 ann: one", "$4 v0 ann: four"]);
}

#[test]
fn a_file_that_is_blank_or_cut_before_its_events_is_told() {
    let found = items_of(&[
        ("a.json", export(&[said("$1", 1, "one")])),
        ("b.json", String::new()),
        ("c.json", r#"{"room_name": "Tea", "room_cr"#.to_owned()),
        ("d.json", r#"{"room_name": "Te"#.to_owned()),
        ("photo.json", "{}".to_owned()),
    ]);
    let found: Vec<String> = found.unwrap().iter().map(line).collect();
    assert_eq!(
        found,
        [
            "reject b.json:1 holds no list of messages; export it again",
            "reject c.json:1 holds no list of messages; export it again",
            "reject d.json:1 the file ends early, inside this record; export or copy it again",
            "$1 v0 ann: one",
        ]
    );
}

#[test]
fn an_export_in_html_names_json() {
    for (name, text) in
        [("messages.html", "<!DOCTYPE html><html><div class=\"mx_MessagePanel\">"), ("a.json", "{\"a\": 1")]
    {
        let found = items_of(&[(name, text.to_owned())]);
        if name.ends_with("html") {
            let error = found.unwrap_err().to_string();
            assert!(error.contains("in HTML is not read; export the room again and choose JSON"), "{error}");
        } else {
            assert_eq!(found.unwrap(), []);
        }
    }
}

proptest! {
    #[test]
    fn no_mutated_export_panics(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = export(&[
            said("$1", 1, "one"),
            with(said("$2", 2, "two"), "unsigned", json!({"m.relations": {"m.replace": {"origin_server_ts": 5}}})),
            event("$3", 3, "m.room.message", json!({"msgtype": "m.image", "body": "x", "url": "mxc://a/b"})),
            with(event("$4", 4, "m.room.redaction", json!({})), "redacts", json!("$1")),
        ]).into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(bytes.len() - cut.index(20));
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Err(error) = items_of(&[("export.json", text)]) {
            prop_assert!(error.to_string().contains("; "), "{}", error);
        }
    }
}

#[test]
fn what_clients_quote_before_an_answer_is_counted_and_shown() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("export.json");
    let said = |id: &str, content: Value| {
        json!({"type": "m.room.message", "event_id": id, "room_id": "!t:e.org",
        "sender": "@ann:e.org", "origin_server_ts": 1_714_557_600_000_u64, "content": content})
    };
    let html = "<mx-reply><blockquote>When do we meet?</blockquote></mx-reply>At <b>seven</b>.";
    let events = [
        said("$1", json!({"msgtype": "m.text", "body": "> <@bo:e.org> When do\n> we meet?\n\nAt six."})),
        said(
            "$2",
            json!({"msgtype": "m.text", "body": "At seven.", "format": "org.matrix.custom.html",
            "formatted_body": html}),
        ),
        said("$3", json!({"msgtype": "m.text", "body": "> my own quote\n\nyes"})),
    ];
    std::fs::write(&path, export(&events)).unwrap();
    let FormatOpener::Chat(open) = FORMAT.open else { panic!("a chat format") };
    let mut reader = open(&SourceSettings::new("matrix", path)).unwrap();
    while reader.next().unwrap().is_some() {}
    assert_eq!(reader.trimmed().counts(), "quotation of 2 messages (12 words)");
    let trimmed = reader.trimmed();
    let shown: Vec<(&str, &str)> = trimmed.examples().collect();
    assert_eq!(shown, [("quotation", "> <@bo:e.org> When do > we meet?"), ("quotation", "> When do we meet?")]);
}
