//! Tests of invalid settings, and a function that the formats' tests share.

use super::*;
use nouns::config::SourceSettings;

/// Reads everything in a source, `limit` at a time.
pub(super) fn drain(source: &mut dyn Source, limit: usize) -> SourceBatch {
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
    for format in FORMATS.iter().filter(|format| matches!(format.open, format::Opener::Chat(_))) {
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
