//! Tests of whole exports, each written by hand in the platform's form.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::FORMAT;
use crate::{
    SourceError,
    chat::{ChatItem, ConversationPrivacy, FileSample},
    format::FormatOpener,
};
use types::config::SourceSettings;

const INBOX: &str = "your_activity_across_facebook/messages/inbox";

fn items_of(files: &[(&str, Vec<u8>)]) -> Result<Vec<ChatItem>, SourceError> {
    let home = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let path = match files {
        [(name, _)] if !name.contains('/') => home.path().join(name),
        _ => home.path().to_owned(),
    };
    let FormatOpener::Chat(open) = FORMAT.open else { panic!("a chat format") };
    let mut reader = open(&SourceSettings::new("messenger", path))?;
    let mut items = Vec::new();
    while let Some(item) = reader.next()? {
        items.push(item);
    }
    assert_eq!(reader.next()?, None, "the end is final");
    Ok(items)
}

fn line(item: &ChatItem) -> String {
    match item {
        ChatItem::Message(m) => format!("{} {} {}: {}", m.conversation.id, m.id, m.author.name, m.text),
        ChatItem::Deletion { id, version, .. } => format!("deletes {id} {version:?}"),
        ChatItem::Transcript { .. } => panic!("no transcript"),
        ChatItem::Skip(skip) => format!("{skip:?}"),
        ChatItem::Reject { letter, .. } => {
            format!("reject {} {}", letter.origin.rsplit('/').next().unwrap(), letter.reason)
        }
    }
}

fn lines(files: &[(&str, Vec<u8>)]) -> Vec<String> {
    items_of(files).unwrap().iter().map(line).collect()
}

fn said(sender: &str, at: i64, text: &str) -> Value {
    json!({"sender_name": sender, "timestamp_ms": at, "content": text, "type": "Generic"})
}

fn chat(path: &str, title: &str, participants: &[&str], messages: &[Value]) -> Vec<u8> {
    let participants: Vec<Value> = participants.iter().map(|name| json!({"name": name})).collect();
    let whole = json!({"participants": participants, "messages": messages, "title": title, "thread_path": path});
    serde_json::to_vec_pretty(&whole).unwrap()
}

#[test]
fn a_folder_of_encrypted_chats_alone_is_recognised() {
    let folder = tempfile::tempdir().unwrap();
    let chat = json!({"participants": ["Ann", "Dora"], "threadName": "Dora_7", "messages": []});
    std::fs::write(folder.path().join("Dora_7.json"), chat.to_string()).unwrap();
    assert!((FORMAT.looks_like)(&FileSample::of(folder.path()).unwrap()));
    std::fs::write(folder.path().join("Dora_7.json"), json!({"participants": [], "messages": []}).to_string()).unwrap();
    assert!(!(FORMAT.looks_like)(&FileSample::of(folder.path()).unwrap()));
}

#[test]
fn the_files_of_a_chat_are_joined_oldest_first() {
    let part = |messages: &[Value]| chat("inbox/bob_1", "Bob", &["Ann", "Bob"], messages);
    let found = lines(&[
        ("bob_1/message_1.json", part(&[said("Ann", 6, "six"), said("Bob", 5, "five")])),
        ("bob_1/message_10.json", part(&[said("Ann", 2, "two"), said("Bob", 1, "one")])),
        ("bob_1/message_2.json", part(&[said("Ann", 4, "four"), said("Bob", 3, "three")])),
    ]);
    assert_eq!(
        found,
        [
            "bob_1 1/Bob Bob: one",
            "bob_1 2/Ann Ann: two",
            "bob_1 3/Bob Bob: three",
            "bob_1 4/Ann Ann: four",
            "bob_1 5/Bob Bob: five",
            "bob_1 6/Ann Ann: six",
        ]
    );
}

#[test]
fn an_unsent_message_deletes_the_one_that_an_older_export_had() {
    let part = |messages: &[Value]| vec![("message_1.json", chat("inbox/bob_1", "Bob", &["Ann", "Bob"], messages))];
    let older = lines(&part(&[said("Ann", 5, "regretted"), said("Ann", 5, "kept")]));
    assert_eq!(older, ["bob_1 5/Ann Ann: regretted", "bob_1 5/Ann/2 Ann: kept"]);
    let unsent = json!({"sender_name": "Ann", "timestamp_ms": 5, "is_unsent": true});
    assert_eq!(lines(&part(&[unsent, said("Ann", 5, "kept")])), ["deletes 5/Ann None", "bob_1 5/Ann/2 Ann: kept"]);
}

#[test]
fn a_whole_account_tells_direct_and_group_chats() {
    let direct = chat(
        "inbox/zo\u{c3}\u{ab}_1",
        "Zo\u{c3}\u{ab}",
        &["Ann", "Zo\u{c3}\u{ab}"],
        &[said("Zo\u{c3}\u{ab}", 1, "hi")],
    );
    let group = chat("inbox/crew_2", "Crew", &["Ann", "Bob", "Cara"], &[said("Cara", 2, "hey")]);
    let encrypted = json!({"participants": ["Ann", "Dora"], "threadName": "Dora_7", "messages": [
        {"senderName": "Dora", "text": "secret", "timestamp": 3, "type": "text", "isUnsent": false, "media": [], "reactions": []},
        {"senderName": "Ann", "text": "", "timestamp": 4, "type": "media", "isUnsent": false,
            "media": [{"uri": "./media/cat.jpg"}], "reactions": []},
    ]});
    let found = items_of(&[
        (&format!("{INBOX}/zoe_1/message_1.json"), direct),
        (&format!("{INBOX}/crew_2/message_1.json"), group),
        ("your_activity_across_facebook/messages/Dora_7.json", encrypted.to_string().into_bytes()),
        ("your_activity_across_facebook/messages/autofill_information.json", b"{\"a\": []}".to_vec()),
        (&format!("{INBOX}/crew_2/photos/1.jpg"), vec![0xff]),
    ])
    .unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|item| {
            let ChatItem::Message(m) = item else { panic!("{item:?}") };
            let caption = m.attachments.first().and_then(|a| a.caption.as_deref());
            (m.conversation.name.as_str(), m.conversation.privacy, m.author.name.as_str(), m.text.as_str(), caption)
        })
        .collect();
    assert_eq!(
        found,
        [
            ("Zoë", ConversationPrivacy::Direct, "Zoë", "hi", None),
            ("Crew", ConversationPrivacy::Private, "Cara", "hey", None),
            ("Dora", ConversationPrivacy::Direct, "Dora", "secret", None),
            ("Dora", ConversationPrivacy::Direct, "Ann", "", Some("cat.jpg")),
        ]
    );
}

#[test]
fn a_single_file_is_the_users_choice_and_may_begin_with_a_mark() {
    let instagram = json!({"messages": [{"sender_name": "Ann", "timestamp_ms": 2, "content": "hi"}]});
    let bytes = [b"\xEF\xBB\xBF".to_vec(), instagram.to_string().into_bytes()].concat();
    let items = items_of(&[("with_bob.json", bytes)]).unwrap();
    let [ChatItem::Message(message)] = &items[..] else { panic!("{items:?}") };
    assert_eq!(message.conversation.privacy, ConversationPrivacy::Open);
    assert_eq!((message.conversation.id.as_str(), message.conversation.name.as_str()), ("with_bob", "Ann"));
}

#[test]
fn damaged_records_and_files_are_rejects_and_the_rest_is_read() {
    let good =
        |id: &str| chat(&format!("inbox/{id}"), id, &["Ann", "Bob"], &[said("Ann", 1, "one"), said("Bob", 2, "two")]);
    let mut damaged =
        String::from_utf8(good("a_1")).unwrap().replacen("\"sender_name\": \"Bob\"", "\"sender\": \"Bob\"", 1);
    damaged = damaged.replacen("\"timestamp_ms\": 1", "\"timestamp_ms\": 99999999999999999", 1);
    let cut = good("b_2");
    let found = lines(&[
        (&format!("{INBOX}/a_1/message_1.json"), damaged.into_bytes()),
        (&format!("{INBOX}/b_2/message_1.json"), cut[..cut.windows(5).position(|w| w == b"\"two\"").unwrap()].to_vec()),
        (&format!("{INBOX}/c_3/message_1.json"), b"{this is not: valid json".to_vec()),
        (&format!("{INBOX}/d_4/message_1.html"), b"<html>".to_vec()),
        (&format!("{INBOX}/e_5/message_1.html"), b"<html>".to_vec()),
        (&format!("{INBOX}/e_5/message_1.json"), good("e_5")),
    ]);
    let rejects: Vec<&String> = found.iter().filter(|l| l.starts_with("reject")).collect();
    assert_eq!(rejects.len(), 5, "{found:#?}");
    assert!(rejects[0].contains("no messages in it"), "{rejects:#?}");
    assert!(rejects[1].contains("message_1.html") && rejects[1].contains("no messages in it"), "{rejects:#?}");
    assert!(rejects.iter().any(|r| r.contains("sender_name: missing")), "{rejects:#?}");
    assert!(rejects.iter().any(|r| r.contains("timestamp_ms: ")), "{rejects:#?}");
    assert_eq!(found.len() - rejects.len(), 3, "{found:#?}");
}

#[test]
fn a_page_without_zones_is_named_in_the_notice() {
    for (when, expected) in [("Sep 13, 2020 12:27 PM", true), ("Friday, October 4, 2013 at 10:05pm PDT", false)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("message_1.html");
        let page = format!("<div class=\"_a6-h\">Bob</div><div>hi</div><div class=\"_a72d\">{when}</div>");
        std::fs::write(&path, page).unwrap();
        let FormatOpener::Chat(open) = FORMAT.open else { panic!("a chat format") };
        let notice = open(&SourceSettings::new("messenger", &path)).unwrap().notice();
        assert_eq!(
            notice.is_some_and(|notice| notice.contains("message_1.html: its times have no zone")),
            expected,
            "{when}"
        );
    }
}

#[test]
fn pages_are_read_where_no_json_is_and_what_has_no_time_is_rejected() {
    let message = |who: &str, what: &str, when: &str| {
        format!(
            "<div class=\"_a6-g\"><div class=\"_2ph_ _a6-h _a6-i\">{who}</div><div class=\"_2ph_ _a6-p\"><div>{what}</div></div>\
             <div class=\"_3-94 _a6-o\"><div class=\"_a72d\">{when}</div></div></div>\n"
        )
    };
    let page = [
        "<html><head><title>Bob</title></head><body><div class=\"_a6-h\">Participants: Ann and Bob</div>\n".to_owned(),
        message("Bob", "third", "13 September 2020 12:28"),
        message("Bob", "second", "Sep 13, 2020 12:27 PM"),
        message("Ann", "first", "Sep 13, 2020 12:27 PM"),
        message("Ann", "when?", "13/9/20 12:20"),
    ]
    .concat();
    let found = items_of(&[(&format!("{INBOX}/bob_1/message_1.html"), page.clone().into_bytes())]).unwrap();
    let shown: Vec<String> = found
        .iter()
        .map(|item| match item {
            ChatItem::Message(m) => {
                format!("{} {} {} {}: {}", m.conversation.id, m.conversation.name, m.time, m.author.name, m.text)
            }
            ChatItem::Reject { letter, .. } => letter.reason.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        shown,
        [
            "\"13/9/20 12:20\": not a time that is known; download your information again and choose JSON as the format",
            "bob_1 Bob 2020-09-13T12:27:00Z Ann: first",
            "bob_1 Bob 2020-09-13T12:27:00Z Bob: second",
            "bob_1 Bob 2020-09-13T12:28:00Z Bob: third",
        ]
    );
    let json = chat("inbox/bob_1", "Bob", &["Ann", "Bob"], &[said("Bob", 1, "hi")]);
    let found = items_of(&[
        (&format!("{INBOX}/bob_1/message_1.html"), page.into_bytes()),
        (&format!("{INBOX}/bob_1/message_1.json"), json),
    ])
    .unwrap();
    assert_eq!(found.len(), 1, "the JSON alone");
}

proptest! {
    #[test]
    fn no_mutated_export_panics(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = chat("inbox/a_1", "Bob", &["Ann", "Bob"], &[
            said("Ann", 1, "caf\u{c3}\u{a9}"),
            json!({"sender_name": "Bob", "timestamp_ms": 2, "photos": [{"uri": "a.jpg"}], "share": {"link": "x"}}),
            json!({"sender_name": "Bob", "timestamp_ms": 3, "is_unsent": true}),
        ]);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(bytes.len() - cut.index(40));
        if let Err(error) = items_of(&[("message_1.json", bytes)]) {
            prop_assert!(error.to_string().contains("; "), "{}", error);
        }
    }
}
