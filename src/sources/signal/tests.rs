//! Tests of Signal's exports, each with a file written for it.

use proptest::prelude::*;

use super::reader::{FORMAT, SignalReader};
use crate::{
    SourceError,
    chat::{
        ChatItem, ChatReader, ConversationPrivacy, FileSample,
        transcript::{file_items, folder, ids, items, transcript},
    },
};
use types::config::SourceSettings;

fn open(settings: &SourceSettings) -> Result<Box<dyn ChatReader>, SourceError> {
    Ok(Box::new(SignalReader::open(settings)?))
}

fn check(name: &str, content: &str, expected: &[&str]) {
    assert_eq!(transcript(&file_items(&open, name, content)), expected, "{content}");
}

#[test]
fn markdown_is_read_with_quotes_files_and_deletions() {
    check(
        "chat.md",
        "[2024-05-01 10:00:00] Ann: We meet at six: in the park  \n\n\
         [2024-05-01 10:01:00] Me: \n\n> We meet at six: in the park\n\nGood  \nidea  \n(- Ann: 👍, Bo: ❤️ -)\n\n\
         [2024-05-01 10:02:00] Ann: look  ![2024-05-01T10-02-00.000_00_boat.jpg](./media/2024-05-01T10-02-00.000_00_boat.jpg)  \
         [2024_plan_[1].pdf](./media/2024_plan_[1].pdf)  \n\n\
         [2024-05-01 10:03:00] Ann:   [👋](../exported_stickers/p/1.webp)  \n\n\
         [2024-05-01 10:04:00] Ann:   \n(( 🎉 ))\n\n\
         [2024-05-01 10:05:00] Ann:   (media not exported)  \n\n\
         [2024-05-01 10:06:00] Ann: (This message was deleted)\n\n\
         [2024-05-01 10:07:00] Ann: Outgoing voice call (accepted, 2m 3s)  \n\n\
         [2024-05-01 10:08:00] No-Sender:   \n\n\
         [2024-05-01 10:09:00] Ann:   \n\n\
         [2024-05-01 10:10:00] Ann: see [the page](https://x.example/a.html)  \n",
        &[
            "2024-05-01T10:00:00Z Ann: We meet at six: in the park",
            "2024-05-01T10:01:00Z Me: Good  \nidea (answers 2024-05-01T10:00:00/Ann)",
            "2024-05-01T10:02:00Z Ann: look [image: 2024-05-01T10-02-00.000_00_boat.jpg] [file: 2024_plan_[1].pdf]",
            "2024-05-01T10:03:00Z Ann:  [sticker: 👋]",
            "2024-05-01T10:04:00Z Ann:  [sticker: 🎉]",
            "2024-05-01T10:05:00Z Ann:  [media: media]",
            "deleted 2024-05-01T10:06:00/Ann",
            "skipped: service message",
            "skipped: service message",
            "skipped: empty",
            "2024-05-01T10:10:00Z Ann: see [the page](https://x.example/a.html)",
        ],
    );
}

#[test]
fn older_markdown_without_seconds_and_blank_lines_is_read() {
    check(
        "export.txt",
        "[2019-12-24, 12:23] Ann: Hello Bo!\n[2020-01-17, 21:49] Bo: Hello\nAnn!\n[2020-01-17, 21:49] Bo: again\n",
        &[
            "2019-12-24T12:23:00Z Ann: Hello Bo!",
            "2020-01-17T21:49:00Z Bo: Hello\nAnn!",
            "2020-01-17T21:49:00Z Bo: again",
        ],
    );
}

#[test]
fn the_exporters_json_tells_edits_and_milliseconds() {
    let line = |date: &str, rest: &str| {
        format!("{{\"date\":\"{date}\",\"sender\":\"Ann\",\"quote\":\"\",\"sticker\":null,\"reactions\":[],{rest}}}\n")
    };
    let content = line(
        "2024-05-01T10:00:00.123000",
        "\"body\":\"one  \",\"attachments\":[],\"deleted\":false,\"call\":false",
    ) + &line(
        "2024-05-01T10:01:00",
        "\"body\":\"two\",\"attachments\":[{\"name\":\"a.jpg\",\"path\":\"./media/a.jpg\"},{\"name\":\"\",\"path\":\"\",\"missing_kind\":\"attachment\"}],\"edits\":[{\"date\":\"2024-05-01T10:01:00\",\"body\":\"too\"}]",
    ) + &line("2024-05-01T10:02:00", "\"body\":\"Missed voice call\",\"attachments\":[],\"call\":true")
        + &line("2024-05-01T10:03:00", "\"body\":\"\",\"attachments\":[],\"deleted\":true")
        + "{\"date\":\"2024-05-01T10:04:00\",\"sender\":\"Me\",\"body\":\"yes\",\"quote\":\"\\n\\n> one\\n\\n\",\"sticker\":{\"emoji\":\"🎉\"},\"reactions\":[],\"attachments\":[]}\n"
        + "not json\n"
        + &line("yesterday", "\"body\":\"lost\",\"attachments\":[]");
    check(
        "data.json",
        &content,
        &[
            "2024-05-01T10:00:00.123Z Ann: one",
            "2024-05-01T10:01:00Z Ann: two [image: a.jpg] [file: file] (version 1)",
            "skipped: service message",
            "deleted 2024-05-01T10:03:00/Ann",
            "2024-05-01T10:04:00Z Me: yes [sticker: 🎉] (answers 2024-05-01T10:00:00.123/Ann)",
            "rejected data.json:6: expected ident at line 1 column 2; write one JSON object per line",
            "rejected data.json:7: \"yesterday\" is not a date and time; correct it",
        ],
    );
}

#[test]
fn a_folder_of_all_chats_is_private_and_each_chat_is_read_once() {
    let one =
        "{\"date\":\"2024-05-01T10:00:00\",\"sender\":\"Ann\",\"body\":\"one\",\"quote\":\"\",\"reactions\":[]}\n";
    let folder = folder(&[
        ("Ann/data.json", one),
        ("Ann/chat.md", "[2024-05-01 10:00:00] Ann: one  \n\n"),
        ("Ann/media/data.json", one),
        ("Club/chat.md", "[2024-05-02 10:00:00] Bo: two  \n\n"),
        ("exported_stickers/p/data.json", one),
        ("style.css", "x"),
    ]);
    let (found, notice) = items(&open, &SourceSettings::new("signal", folder.path())).unwrap();
    assert_eq!(transcript(&found), ["2024-05-01T10:00:00Z Ann: one", "2024-05-02T10:00:00Z Bo: two"]);
    let conversation = |item: &ChatItem| match item {
        ChatItem::Message(m) => (m.conversation.name.clone(), m.conversation.privacy),
        other => panic!("{other:?}"),
    };
    let conversations: Vec<_> = found.iter().map(conversation).collect();
    assert_eq!(
        conversations,
        [("Ann".to_owned(), ConversationPrivacy::Direct), ("Club".to_owned(), ConversationPrivacy::Direct)]
    );
    assert!(notice.unwrap().contains("its times have no zone and are read as +00:00"));
    // A single chat was chosen by the user.
    let (found, _) = items(&open, &SourceSettings::new("signal", folder.path().join("Ann"))).unwrap();
    assert_eq!(found.iter().map(conversation).collect::<Vec<_>>(), [("Ann".to_owned(), ConversationPrivacy::Open)]);
}

const ANN: &str = "\"source\":\"+1555\",\"sourceNumber\":\"+1555\",\"sourceUuid\":\"u-ann\",\"sourceName\":\"Ann\"";

/// An envelope from Ann.
fn from_ann(sent_ms: i64, rest: &str) -> String {
    format!("{{\"envelope\":{{{ANN},\"timestamp\":{sent_ms},{rest}}},\"account\":\"+1999\"}}\n")
}

#[test]
fn envelopes_tell_edits_deletions_answers_and_mentions() {
    let content = from_ann(1_700_000_000_000, "\"dataMessage\":{\"timestamp\":1700000000000,\"message\":\"one\"}")
        + &from_ann(1_700_000_001_000, "\"editMessage\":{\"targetSentTimestamp\":1700000000000,\"dataMessage\":{\"timestamp\":1700000001000,\"message\":\"two\"}}")
        // An edit of the edit names the previous version.
        + &from_ann(1_700_000_002_000, "\"editMessage\":{\"targetSentTimestamp\":1700000001000,\"dataMessage\":{\"timestamp\":1700000002000,\"message\":\"three\"}}")
        + "{\"envelope\":{\"sourceNumber\":\"+1999\",\"sourceUuid\":\"u-me\",\"sourceName\":\"Me\",\"timestamp\":1700000003000,\"syncMessage\":{\"sentMessage\":{\"destination\":\"+1555\",\"destinationNumber\":\"+1555\",\"destinationUuid\":null,\"timestamp\":1700000003000,\"message\":\"\u{fffc} ok 🎉\",\"mentions\":[{\"name\":\"+1555\",\"number\":\"+1555\",\"uuid\":\"u-ann\",\"start\":0,\"length\":1}],\"quote\":{\"id\":1700000002000,\"authorUuid\":\"u-ann\",\"text\":\"three\"}}}},\"account\":\"+1999\"}\n"
        + &from_ann(1_700_000_004_000, "\"dataMessage\":{\"timestamp\":1700000004000,\"message\":null,\"remoteDelete\":{\"timestamp\":1700000002000}}");
    let found = file_items(&open, "signal.jsonl", &content);
    assert_eq!(
        transcript(&found),
        [
            "2023-11-14T22:13:20Z Ann: one",
            "2023-11-14T22:13:20Z Ann: two (version 1700000001000)",
            "2023-11-14T22:13:20Z Ann: three (version 1700000002000)",
            "2023-11-14T22:13:23Z Me: @Ann ok 🎉 (answers u-ann/1700000000000)",
            "deleted u-ann/1700000000000 at 1700000004000",
        ]
    );
    let id = "u-ann/1700000000000";
    assert_eq!(ids(&found), [id, id, id, "u-me/1700000003000", id]);
    let conversations: Vec<_> = found
        .iter()
        .map(|item| match item {
            ChatItem::Message(m) => &m.conversation,
            ChatItem::Deletion { conversation, .. } => conversation,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(
        conversations.iter().all(|c| c.id == "u-ann" && c.name == "Ann" && c.privacy == ConversationPrivacy::Direct)
    );
    let ChatItem::Message(message) = &found[3] else { panic!() };
    assert_eq!(message.mentions[0].id, "u-ann");
}

#[test]
fn envelopes_tell_groups_files_and_what_is_no_message() {
    let group = "\"groupInfo\":{\"groupId\":\"R3J=\",\"groupName\":\"Club\",\"type\":\"DELIVER\"}";
    let data = |sent_ms: i64, rest: &str| {
        from_ann(sent_ms, &format!("\"dataMessage\":{{\"timestamp\":{sent_ms},{group},{rest}}}"))
    };
    let content = data(
        1_700_000_000_000,
        "\"message\":null,\"attachments\":[{\"contentType\":\"audio/aac\",\"filename\":null,\"id\":\"x\"},{\"contentType\":\"image/jpeg\",\"filename\":\"boat.jpg\",\"caption\":\"our boat\"}]",
    ) + &data(1_700_000_001_000, "\"message\":null,\"sticker\":{\"packId\":\"p\",\"stickerId\":1}")
        + &data(1_700_000_002_000, "\"message\":null,\"reaction\":{\"emoji\":\"👍\",\"targetSentTimestamp\":1}")
        + &data(1_700_000_003_000, "\"message\":null")
        + &data(
            1_700_000_004_000,
            "\"message\":null,\"pollCreate\":{\"question\":\"Where?\",\"options\":[\"Rome\",\"Oslo\"]}",
        )
        + &data(1_700_000_005_000, "\"message\":null,\"contacts\":[{\"name\":{\"display\":\"Bo\"}}]")
        + &data(
            1_700_000_006_000,
            "\"message\":null,\"adminDelete\":{\"targetAuthorUuid\":\"u-bo\",\"targetSentTimestamp\":1699999999999}",
        )
        + &from_ann(1_700_000_007_000, "\"typingMessage\":{\"action\":\"STARTED\"}")
        + "{\"envelope\":{\"source\":null,\"timestamp\":1},\"exception\":{\"type\":\"ProtocolInvalidMessageException\"}}\n"
        + "{\"envelope\":{\"timestamp\":1}}\n"
        + &from_ann(-5, "\"dataMessage\":{\"timestamp\":-5,\"message\":\"when?\"}")
        + "{\"jsonrpc\":\"2.0\",\"result\":{},\"id\":1}\n\n"
        + &format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"receive\",\"params\":{}}}\n",
            data(1_700_000_008_000, "\"message\":\"daemon\"").trim()
        );
    let found = file_items(&open, "signal.json", &content);
    assert_eq!(
        transcript(&found),
        [
            "2023-11-14T22:13:20Z Ann:  [audio: audio] [image: our boat]",
            "2023-11-14T22:13:21Z Ann:  [sticker: sticker]",
            "skipped: unsupported",
            "skipped: service message",
            "2023-11-14T22:13:24Z Ann: Where?\n- Rome\n- Oslo",
            "2023-11-14T22:13:25Z Ann:  [contact: Bo]",
            "deleted u-bo/1699999999999 at 1700000006000",
            "skipped: service message",
            "skipped: encrypted",
            "rejected signal.json:10: the envelope names no source; leave it out",
            "rejected signal.json:11: timestamp: -5 is not a time in milliseconds; correct it",
            "skipped: unsupported",
            "2023-11-14T22:13:28Z Ann: daemon",
        ]
    );
    let ChatItem::Message(message) = &found[0] else { panic!() };
    assert_eq!(
        (message.conversation.name.as_str(), message.conversation.privacy),
        ("Club", ConversationPrivacy::Private)
    );
}

#[test]
fn an_array_of_envelopes_is_read() {
    let one = from_ann(1_700_000_000_000, "\"dataMessage\":{\"timestamp\":1700000000000,\"message\":\"one\"}");
    let content = format!("[\n{},\n{{\"envelope\":7}}\n]", one.trim());
    let found = file_items(&open, "received.json", &content);
    let lines = transcript(&found);
    assert_eq!(lines[0], "2023-11-14T22:13:20Z Ann: one");
    assert!(lines[1].starts_with("rejected received.json:3: "), "{lines:?}");
}

#[test]
fn only_times_without_a_zone_are_said_to_have_none() {
    let received = r#"{"envelope":{"sourceUuid":"a","sourceName":"Ann","timestamp":1700000000000,"dataMessage":{"message":"one"}}}"#;
    let exported = r#"{"date": "2024-05-01T10:00:00", "sender": "Ann", "body": "one", "quote": "", "reactions": []}"#;
    for (name, content, expected) in [("a.json", received, false), ("data.json", exported, true)] {
        let folder = folder(&[(name, content)]);
        let (found, notice) = items(&open, &SourceSettings::new("signal", folder.path().join(name))).unwrap();
        assert_eq!((found.len(), notice.is_some()), (1, expected), "{name}");
    }
}

#[test]
fn an_export_is_recognised_and_others_are_not() {
    for (name, content, expected) in [
        ("chat.md", "[2024-05-01 10:00:00] Ann: hi  \n", true),
        ("test_export.txt", "[2019-12-24, 12:23] Ann: hi\n", true),
        ("_chat.txt", "[2019-12-24 12:23:01] Ann: hi\n", false),
        (
            "data.json",
            "{\"date\": \"2024-05-01T10:00:00\", \"sender\": \"A\", \"body\": \"\", \"quote\": \"\", \"reactions\": []}",
            true,
        ),
        ("a.json", "{\"envelope\":{\"sourceNumber\":\"+1\"}}", true),
        ("a.json", "{\"messages\":[]}", false),
        ("notes.md", "# notes\n", false),
    ] {
        let folder = folder(&[(name, content)]);
        let sample = FileSample::of(&folder.path().join(name)).unwrap();
        assert_eq!((FORMAT.looks_like)(&sample), expected, "{name}: {content}");
    }
    let folder = folder(&[("notes.md", "# notes\n")]);
    let error = SignalReader::open(&SourceSettings::new("signal", folder.path())).err().unwrap().to_string();
    assert!(error.contains("neither a chat of sigexport nor JSON of signal-cli; run `sigexport FOLDER`"), "{error}");
}

proptest! {
    #[test]
    fn no_record_makes_the_reader_panic(
        records in proptest::collection::vec(
            prop_oneof![
                "\\{\"envelope\":\\{\"(source|sourceUuid)\":\"[a+]\",\"timestamp\":-?[0-9]{0,19},\"(dataMessage|editMessage)\":\\{\"(message|targetSentTimestamp)\":(\"[a\u{fffc}🎉]{0,4}\"|[0-9]{1,4}),\"(mentions|dataMessage)\":(\\[\\{\"start\":[0-9],\"length\":[0-9]{1,20},\"uuid\":\"a\"\\}\\]|\\{\\}|null)\\}\\}\\}",
                "\\{\"date\":\"2024-0[0-9]-[0-9]{2}T[0-9]{2}:00:00\",\"sender\":\"A\",\"body\":\".{0,9}\",\"quote\":\"[>\\\\\\\\n ]{0,9}\"\\}",
                "\\[2024-05-[0-9]{2}[, ]{1,2}[0-9]{2}:[0-9]{2}\\] [A:]{0,3}[ >\\(\\)\\[\\]!./a-z]{0,40}",
                ".{0,60}",
            ],
            0..10,
        )
    ) {
        let content = records.join("\n");
        for name in ["chat.md", "data.json"] {
            let folder = folder(&[(name, &content)]);
            if let Ok((found, _)) = items(&open, &SourceSettings::new("signal", folder.path().join(name))) {
                let (again, _) = items(&open, &SourceSettings::new("signal", folder.path().join(name))).unwrap();
                prop_assert_eq!(transcript(&found), transcript(&again));
            }
        }
    }
}

#[test]
fn the_quotations_of_sigexport_are_counted_and_shown() {
    for (name, content) in [
        (
            "chat.md",
            "[2024-05-01 10:00:00] Ann: Six.\n\n[2024-05-01 10:01:00] Me: \n\n> We meet at\n> noon\n\nGood\n\n\
             [2024-05-01 10:02:00] Ann: > no quotation\n",
        ),
        (
            "data.json",
            "{\"date\":\"2024-05-01T10:00:00\",\"sender\":\"Me\",\"body\":\"Good\",\"quote\":\"\\n> We meet at noon\\n\"}\n",
        ),
    ] {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(name), content).unwrap();
        let mut reader = open(&SourceSettings::new("signal", home.path().join(name))).unwrap();
        while reader.next().unwrap().is_some() {}
        assert_eq!(reader.trimmed().counts(), "quotation of 1 messages (4 words)", "{name}");
        assert_eq!(reader.trimmed().examples().next(), Some(("quotation", "We meet at noon")));
    }
}
