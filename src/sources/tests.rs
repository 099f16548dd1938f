//! Tests of invalid settings, and a function that the formats' tests share.

use std::io::Write as _;

use super::*;
use types::{
    config::{PrivateConversationKind, SourceSettings},
    model::TurnEvent,
};

/// Reads everything in a source, `limit` at a time.
pub(super) fn drain(source: &mut dyn TurnSource, limit: usize) -> SourceBatch {
    let mut all = SourceBatch::default();
    while let Some(batch) = source.next(limit).unwrap() {
        let size = batch.events.len() + batch.rejects.len();
        assert!((1..=limit).contains(&size), "{size} of at most {limit}");
        all.events.extend(batch.events);
        all.rejects.extend(batch.rejects);
    }
    assert_eq!(source.next(limit).unwrap(), None, "the end is final");
    all
}

#[test]
fn invalid_settings_are_named() {
    let settings = |format: &str, path: &str, zone: &str, only: &[&str]| SourceSettings {
        zone: zone.to_owned(),
        only: only.iter().map(|o| (*o).to_owned()).collect(),
        ..SourceSettings::new(format, path)
    };
    for (settings, expected) in [
        (settings("csv", "x", "Z", &[]), "source.format: \"csv\" is not known"),
        (settings("slack", "-", "Z", &[]), "source.path: slack is read from a file"),
        (settings("slack", "none", "noon", &[]), "source.zone: \"noon\" is not an offset or a zone"),
        (settings("slack", "none", "+25:00", &[]), "source.zone: \"+25:00\" is not an offset or a zone"),
        (settings("jsonl", "-", "Z", &["a"]), "source.only: jsonl holds no conversations"),
        (settings("auto", "-", "Z", &[]), "source.format: the format of standard input cannot be recognised"),
        (settings("auto", "none", "Z", &[]), "none: cannot be read after line 0"),
        (settings("jsonl", "none.jsonl", "Z", &[]), "none.jsonl: cannot be read after line 0"),
    ] {
        let message = open(&settings).err().unwrap().to_string();
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn a_file_in_which_nothing_is_of_the_named_format_is_an_error() {
    let folder = tempfile::TempDir::new().unwrap();
    let write = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    write("random", &[0x1b, 0x90, 0x03, 0xfe, b'q', 0x07, b'\n', 0x80]);
    write("array.json", b"[]\n");
    write("object.json", b"{}\n");
    write("nothing", b"");
    write("notes.txt", b"What we said, by nobody and at no time.\n");
    write("texts/notes.txt", b"What we said, by nobody and at no time.\n");
    write("objects/result.json", b"{}\n");
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    for format in FORMATS.iter().filter(|format| matches!(format.open, format::FormatOpener::Chat(_))) {
        for name in ["random", "array.json", "object.json", "nothing", "notes.txt", "texts", "objects", "empty"] {
            let settings =
                SourceSettings { bank: "b".to_owned(), ..SourceSettings::new(format.name, folder.path().join(name)) };
            let read = open(&settings).and_then(|mut source| {
                while let Some(batch) = source.next(10)? {
                    assert!(batch.events.is_empty(), "{} {name}: {batch:?}", format.name);
                    if !batch.rejects.is_empty() {
                        return Ok(false);
                    }
                }
                Ok(true)
            });
            let is_silent = read.as_ref().is_ok_and(|is_silent| *is_silent);
            assert!(!is_silent, "{} {name}", format.name);
            if let Err(error) = read {
                let error = error.to_string();
                assert!(error.starts_with(&folder.path().display().to_string()) && error.contains("; "), "{error}");
            }
        }
    }
    let array = SourceSettings::new("teams", folder.path().join("array.json"));
    let error = open(&array).unwrap().next(1).unwrap_err().to_string();
    let expected = "array.json:1:1: it holds nothing in the format teams (Microsoft Teams: JSON of Microsoft Graph's \
                    messages, a file or a folder); name such an export, or the format that it has";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn an_empty_export_that_shows_its_format_is_empty() {
    let folder = tempfile::TempDir::new().unwrap();
    for (name, content) in [("channels.json", "[]"), ("general/2024-05-01.json", "[]")] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let settings = SourceSettings { bank: "b".to_owned(), ..SourceSettings::new("slack", folder.path()) };
    assert_eq!(drain(&mut *open(&settings).unwrap(), 1), SourceBatch::default());
}

#[test]
fn a_text_in_utf16_is_read_as_in_utf8() {
    let folder = tempfile::TempDir::new().unwrap();
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    let chat = "[01/05/2024, 10:00:00] Zoë: grüß dich 🙂\n[13/05/2024, 10:00:00] Ann: 你好\n";
    let log = "--- Log opened Wed May 01 10:00:00 2024\n10:00 <zoë> grüß dich 🙂\n10:01 <ann> 你好\n";
    let file = |name: &str| std::fs::read_to_string(data.join(name)).unwrap();
    for (format, name, text) in [
        ("teams", "general.json", file("chat/teams.json")),
        ("discord", "general.json", file("chat/discord.json")),
        ("matrix", "room.json", file("chat/element.json")),
        ("mattermost", "export.jsonl", file("chat/mattermost.jsonl")),
        ("mbox", "mail.mbox", file("chat/mail.mbox")),
        ("jsonl", "sample.jsonl", file("sample.jsonl")),
        ("whatsapp", "_chat.txt", chat.to_owned()),
        ("irc", "#rust.log", log.to_owned()),
    ] {
        let path = folder.path().join(name);
        let read = |bytes: &[u8], format: &str| {
            std::fs::write(&path, bytes).unwrap();
            let bank = if format == "jsonl" { "" } else { "b" };
            drain(
                &mut *open(&SourceSettings { bank: bank.to_owned(), ..SourceSettings::new(format, &path) }).unwrap(),
                100,
            )
        };
        let expected = read(text.as_bytes(), format);
        assert!(expected.events.len() > 2 && expected.rejects.is_empty(), "{format}: {expected:?}");
        let marked = "\u{feff}".to_owned() + &text;
        let bytes: Vec<u8> = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(read(&bytes, format), expected, "{format}");
        if format != "jsonl" {
            assert_eq!(read(&bytes, AUTO).events.len(), expected.events.len(), "{format}");
        }
    }
}

#[test]
fn a_long_text_is_whole_or_cut_and_counted() {
    let folder = tempfile::TempDir::new().unwrap();
    let lines = |bytes: usize| "some words of a line\n".repeat(bytes / 21);
    for (format, name, head) in [
        ("whatsapp", "_chat.txt", "[13/06/20, 10:00:00] Ann: "),
        ("imessage", "Ann.txt", "May 17, 2022  5:29:42 PM\nAnn\n"),
        ("signal", "chat.md", "[2024-05-01 10:00:00] Ann: "),
    ] {
        let path = folder.path().join(name);
        for (text, is_cut) in [(lines(300_000), false), (lines(1_500_000), true), ("words ".repeat(600_000), true)] {
            std::fs::write(&path, format!("{head}{text}\nthe end\n")).unwrap();
            let settings = SourceSettings { bank: "b".to_owned(), ..SourceSettings::new(format, &path) };
            let mut source = open(&settings).unwrap();
            let batch = drain(&mut *source, 10);
            let Some(TurnEvent::Turn(turn)) = batch.events.first() else { panic!("{format}: {batch:?}") };
            assert_eq!(source.counts().cut, u64::from(is_cut), "{format}");
            match turn.text.strip_suffix(" […]") {
                Some(kept) => assert!(is_cut && kept.len() > 1_000_000 && text.starts_with(kept), "{format}"),
                None => assert!(!is_cut && turn.text == format!("{text}\nthe end"), "{format}"),
            }
        }
    }
}

#[test]
fn a_text_in_gzip_is_read_as_the_text() {
    let folder = tempfile::TempDir::new().unwrap();
    let packed = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    for (format, name, text) in [
        ("whatsapp", "Trip.txt", "[13/06/20, 10:00:00] Ann: one\n"),
        ("whatsapp", "WhatsApp Chat with Bo.txt", "13/06/20, 10:00 - Bo: one\n"),
        ("imessage", "Ann.txt", "May 17, 2022  5:29:42 PM\nAnn\nHi\n"),
        ("irc", "#tea.2013-01-26.log", "[10:00] <ann> hi\n"),
    ] {
        let read = |path: &std::path::Path, format: &str| {
            let settings = SourceSettings { bank: "b".to_owned(), ..SourceSettings::new(format, path) };
            drain(&mut *open(&settings).unwrap_or_else(|e| panic!("{format} {name}: {e}")), 10)
        };
        let (plain, gzip) = (folder.path().join(name), folder.path().join("packed").join(format!("{name}.gz")));
        std::fs::create_dir_all(gzip.parent().unwrap()).unwrap();
        std::fs::write(&plain, text).unwrap();
        std::fs::write(&gzip, packed(text)).unwrap();
        let expected = read(&plain, format);
        assert_eq!(expected.events.len(), 2, "{name}: {expected:?}");
        assert_eq!(read(&gzip, format), expected, "{name}");
        assert_eq!(read(&gzip, AUTO), expected, "{name}");
        // In a folder, too.
        let in_folder = read(gzip.parent().unwrap(), format);
        let TurnEvent::Turn(turn) = &in_folder.events[0] else { panic!("{in_folder:?}") };
        assert!(matches!(&expected.events[0], TurnEvent::Turn(one) if one.turn == turn.turn), "{turn:?}");
        std::fs::remove_file(gzip).unwrap();
    }
}

#[test]
fn an_archive_inside_an_export_is_named_and_counted() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("outer.zip");
    let inner = "WhatsApp Chat - Trip.zip";
    let write = |chat: Option<&str>| {
        let mut archive = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        for (name, content) in [(inner, "PK"), ("_chat.txt", chat.unwrap_or_default())] {
            if name == inner || chat.is_some() {
                archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
                archive.write_all(content.as_bytes()).unwrap();
            }
        }
        archive.finish().unwrap();
    };
    let settings = |format: &str| SourceSettings {
        bank: "b".to_owned(),
        ..SourceSettings::new(format, folder.path().join("outer.zip"))
    };
    write(Some("[13/06/20, 10:00:00] Ann: one\n"));
    let mut source = open(&settings("whatsapp")).unwrap();
    assert_eq!(drain(&mut *source, 10).events.len(), 2);
    let counts = source.counts();
    assert_eq!(counts.skipped, std::collections::BTreeMap::from([("archive", 1)]));
    assert!(counts.warnings[0].contains(inner) && counts.warnings[0].contains("unpack"), "{:?}", counts.warnings);
    write(None);
    for format in ["whatsapp", AUTO] {
        let error = open(&settings(format)).err().unwrap().to_string();
        assert!(error.contains(inner) && error.contains("unpack"), "{error}");
    }
}

const MATTERMOST: &str = r#"{"type":"version","version":1}
{"type":"post","post":{"team":"t","channel":"priv","user":"a","message":"SECRET1","create_at":"1"}}
{"type":"post","post":{"team":"t","channel":"priv","user":"a","message":"SECRET2"}}
{"type":"direct_post","direct_post":{"channel_members":["a","b"],"user":"a","message":"SECRET3"}}
{"type":"direct_post","direct_post":{"channel_members":"SECRET4","user":"a","message":"hi","create_at":1}}
{"type":"post","post":{"team":"t","channel":"priv","user":"a","message":"SECRET5","create_at":1,"replies":["SECRET6"]}}
{"type":"channel","channel":{"team":"t","name":"priv","display_name":"P","type":"P"}}
{"type":"post","post":{"team":"t","channel":"priv","user":"a","message":"SECRET7"#;
const SIGNAL: &str = r#"{"envelope":{"sourceUuid":"u","sourceName":"Ann","timestamp":1,"dataMessage":{"timestamp":"1","message":"SECRET1"}}}
{"envelope":{"sourceUuid":"u","sourceName":"Ann","timestamp":1,"dataMessage":{"timestamp":-5,"message":"SECRET2"}}}
{"envelope":{"sourceUuid":"u","timestamp":1,"dataMessage":{"message":5,"x":"SECRET3","groupInfo":{"groupId":"g"}}}}
"SECRET4"
{"envelope":{"dataMessage":{"message":"SECRET5"#;
const ZULIP_REALM: &str = r#"{"zerver_realm": [{"id": 1, "string_id": "z"}],
 "zerver_stream": [{"id": 1, "name": "open"}, {"id": 2, "name": "priv", "invite_only": true}],
 "zerver_recipient": [{"id": 20, "type": 2, "type_id": 1}, {"id": 21, "type": 2, "type_id": 2}, {"id": 22, "type": 1, "type_id": 8}]}"#;
const ZULIP: &str = r#"{"zerver_message": [
 {"id": 1, "sender": 8, "recipient": 20, "subject": "t", "date_sent": 1714557601, "content": "open"},
 {"id": 2, "sender": 8, "recipient": 21, "subject": "t", "date_sent": 1714557602, "content": 5, "x": "SECRET1"},
 {"id": 3, "sender": 8, "recipient": 21, "subject": "t", "date_sent": null, "content": "SECRET2"},
 {"id": null, "sender": 8, "recipient": 21, "subject": "t", "date_sent": 1714557603, "content": "SECRET3"},
 {"id": 5, "sender": 9, "recipient": 22, "subject": "", "date_sent": 1714557604, "content": {"x": "SECRET4"}},
 {"id": 6, "sender": null, "recipient": 22, "subject": "", "date_sent": 1714557605, "content": "SECRET5"},
 "SECRET6"]}"#;
const TEAMS_CHANNEL: &str = r#"[{"id": "0", "messageType": "message", "createdDateTime": "2024-05-01T10:00:00Z",
 "channelIdentity": {"teamId": "t", "channelId": "c"}, "body": {"content": "open"}}]"#;
const TEAMS_CHAT: &str = r#"[
 {"id": "1", "createdDateTime": "2024-05-01T10:00:00Z", "chatId": "19:x", "body": {"content": "hi"}, "replies": "SECRET1"},
 {"id": "2", "createdDateTime": "2024-05-01T10:00:00Z", "chatId": "19:x", "body": {"content": 5, "x": "SECRET2"}},
 {"id": "3", "createdDateTime": null, "chatId": "19:x", "body": {"content": "SECRET3"}},
 "SECRET4",
 {"id": "5", "createdDateTime": "2024-05-01T10:00:00Z", "body": {"content": 5, "x": "SECRET5"}},
 {"id": "6", "createdDateTime": null, "chatId": ["19:x"], "body": {"content": "SECRET6"}}]"#;
const MATRIX_OPEN: &str = r#"{"messages": [{"type": "m.room.message", "room_id": "!o:x", "sender": "@ann:x", "event_id": "$0",
 "origin_server_ts": 1714557600000, "content": {"msgtype": "m.text", "body": "open"}}], "room_name": "Open"}"#;
const MATRIX: &str = r#"{"messages": ["SECRET1",
 {"type": "m.room.message", "room_id": "!p:x", "sender": "@ann:x", "event_id": "$1", "origin_server_ts": 1714557600001,
  "content": {"msgtype": "m.text", "body": 5, "x": "SECRET2"}},
 {"type": "m.room.message", "room_id": "!p:x", "sender": "@ann:x", "event_id": "$2", "origin_server_ts": null,
  "content": {"msgtype": "m.text", "body": "SECRET3"}},
 {"type": "m.room.message", "room_id": "!p:x", "sender": "@ann:x", "event_id": "$3", "origin_server_ts": 1714557600003,
  "content": {"msgtype": "m.text", "body": "SECRET4"}}], "room_name": "Priv"}"#;

/// Reads a folder of these files with `only` alone, and then whole. Checks the number of dead letters and of items left
/// out, and that none of the secret words gets out.
fn check_left_out(
    format: &str,
    files: &[(&str, &str)],
    only: &[&str],
    letters: usize,
    skipped: &[(&'static str, u64)],
) {
    let folder = tempfile::TempDir::new().unwrap();
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    let read = |settings: &SourceSettings| {
        let mut source = open(settings).unwrap();
        (drain(&mut *source, 3), source.counts())
    };
    let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
    let settings = SourceSettings { bank: "b".to_owned(), only, ..SourceSettings::new(format, folder.path()) };
    let (batch, counts) = read(&settings);
    let shown = format!("{batch:?}");
    assert!(!shown.contains("SECRET"), "{format}: {shown}");
    assert_eq!(batch.rejects.len(), letters, "{format}: {shown}");
    assert_eq!(counts.skipped, skipped.iter().copied().collect(), "{format}: {shown}");
    // If everything is read, each of these records is reported with its words.
    let include = vec![PrivateConversationKind::Private, PrivateConversationKind::Direct];
    let (batch, _) = read(&SourceSettings { only: Vec::new(), include, ..settings });
    let shown = format!("{batch:?}");
    for (_, content) in files {
        let words = content.split(|c: char| !c.is_ascii_alphanumeric());
        for word in words.filter(|word| word.starts_with("SECRET")) {
            assert!(shown.contains(word), "{format} {word}: {shown}");
        }
    }
}

#[test]
fn nothing_of_a_conversation_that_is_left_out_gets_into_the_dead_letters() {
    let (private, direct) = ("private channel", "direct message");
    check_left_out("mattermost", &[("import.jsonl", MATTERMOST)], &[], 2, &[(private, 4), (direct, 1)]);
    check_left_out("signal", &[("signal.jsonl", SIGNAL)], &[], 2, &[(private, 1), (direct, 2)]);
    let zulip = [("realm.json", ZULIP_REALM), ("messages-000001.json", ZULIP)];
    check_left_out("zulip", &zulip, &[], 2, &[(private, 3), (direct, 1)]);
    check_left_out("teams", &[("a.json", TEAMS_CHANNEL), ("b.json", TEAMS_CHAT)], &[], 3, &[(direct, 4)]);
    let matrix = [("a.json", MATRIX_OPEN), ("b.json", MATRIX)];
    check_left_out("matrix", &matrix, &["Open"], 0, &[("conversation not chosen", 4)]);
}
