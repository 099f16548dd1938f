//! Tests of whole logs, each written by hand in the form of one client.

use std::{io::Write, path::Path};

use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;

use super::FORMAT;
use crate::{
    SourceError,
    chat::{ChatItem, ChatMessage, ConversationPrivacy, FileSample, SkipReason, transcript::tar},
    format::FormatOpener,
};
use types::config::SourceSettings;

/// A log file: its path inside the export, and its bytes.
type File<'a> = (&'a str, &'a [u8]);

fn items_at(path: &Path, zone: &str) -> Result<Vec<ChatItem>, SourceError> {
    let settings = SourceSettings { zone: zone.to_owned(), ..SourceSettings::new("irc", path) };
    let FormatOpener::Chat(open) = FORMAT.open else { panic!("a chat format") };
    let mut reader = open(&settings)?;
    let mut items = Vec::new();
    while let Some(item) = reader.next()? {
        items.push(item);
    }
    assert_eq!(reader.next()?, None, "the end is final");
    let progress = reader.progress();
    assert_eq!(Some(progress.done), progress.total);
    Ok(items)
}

fn items_of(files: &[File<'_>], zone: &str) -> Result<Vec<ChatItem>, SourceError> {
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
    let mut items = items_at(&path, zone)?;
    for item in &mut items {
        if let ChatItem::Reject { letter, .. } = item {
            letter.origin = letter.origin.replace(&format!("{}/", home.path().display()), "");
        }
    }
    Ok(items)
}

fn line(item: &ChatItem) -> String {
    match item {
        ChatItem::Message(m) => format!("{} {} {}: {}", m.time, m.conversation.id, m.author.name, m.text),
        ChatItem::Skip(SkipReason::ServiceMessage) => "service".to_owned(),
        ChatItem::Transcript { .. } => panic!("no transcript"),
        ChatItem::Skip(skip) => format!("{skip:?}"),
        ChatItem::Reject { letter, .. } => format!("reject {} {}", letter.origin, letter.reason),
        ChatItem::Deletion { id, .. } => format!("deletes {id}"),
    }
}

/// Reads files, and compares every item as one line.
fn check(files: &[File<'_>], expected: &[&str]) {
    let items = items_of(files, "+02:00").unwrap();
    let found: Vec<String> = items.iter().map(line).collect();
    assert_eq!(found, expected);
}

fn messages(files: &[File<'_>]) -> Vec<ChatMessage> {
    let items = items_of(files, "Z").unwrap();
    items.into_iter().filter_map(|i| if let ChatItem::Message(m) = i { Some(*m) } else { None }).collect()
}

#[test]
fn irssi_logs_are_read() {
    let log = b"--- Log opened Sat Jan 26 23:58:04 2013
23:58 -!- ann [~ann@host.example] has joined #tea
23:58 -!- Irssi: #tea: Total of 2 nicks [0 ops, 0 halfops, 0 voices, 2 normal]
23:58 < ann> good evening
23:59 <@bob> ann: hello <3 > all
23:59  * ann waves
23:59 -bob:#tea- meeting tomorrow
23:59 -!- ann is now known as ann_away
23:59 -!- mode/#tea [+o ann_away] by ChanServ
--- Day changed Sun Jan 27 2013
00:01 < ann_away> bye
00:02 -!- ann_away [~ann@host.example] has quit [Quit: gone]
00:02 -!- Netsplit a.example <-> b.example quits: cara, dora
00:03 -services.example- this server restarts
00:03 < bob>
00:04 this is no line
--- Log closed Sun Jan 27 00:05:00 2013
";
    check(
        &[("#tea.log", log)],
        &[
            "service",
            "service",
            "2013-01-26T23:58:00+02:00 #tea ann: good evening",
            "2013-01-26T23:59:00+02:00 #tea bob: ann: hello <3 > all",
            "2013-01-26T23:59:00+02:00 #tea ann: ann waves",
            "2013-01-26T23:59:00+02:00 #tea bob: meeting tomorrow",
            "service",
            "service",
            "2013-01-27T00:01:00+02:00 #tea ann: bye",
            "service",
            "service",
            "service",
            "Empty",
            "reject #tea.log:16 no line of an IRC log; a line begins with its time",
        ],
    );
}

#[test]
fn weechat_logs_are_read() {
    let log = "2013-01-26 15:04:08\t-->\tann (~ann@host.example) has joined #tea
2013-01-26 15:04:08\t--\tTopic for #tea is \"tea: and nothing else\"
2013-01-26 15:04:09\t@ann\tgood evening
2013-01-26 15:04:10\t *\tann waves
2013-01-26 15:04:11\t--\tNotice(bob) -> #tea: meeting tomorrow
2013-01-26 15:04:12\t--\tann is now known as ann_
2013-01-26 15:04:13\tann_\tand a\ttab
2013-01-26 15:04:14\t<--\tann_ (~ann@host.example) has left #tea
2025-09-02 21:11:39.812345Z\tbob\tin UTC
";
    check(
        &[("irc.libera.#Tea.weechatlog", log.as_bytes())],
        &[
            "service",
            "service",
            "2013-01-26T15:04:09+02:00 #tea ann: good evening",
            "2013-01-26T15:04:10+02:00 #tea ann: ann waves",
            "2013-01-26T15:04:11+02:00 #tea bob: meeting tomorrow",
            "service",
            "2013-01-26T15:04:13+02:00 #tea ann: and a\ttab",
            "service",
            "2025-09-02T21:11:39Z #tea bob: in UTC",
        ],
    );
}

#[test]
fn znc_and_energymech_logs_are_read_in_the_order_of_their_days() {
    let later = b"[00:00:01] <ann> \x02bold\x0f and \x0304red\x03\r
[00:00:02] *** Parts: ann (~ann@host.example) (bye)\r
";
    let earlier = b"[10:00:00] *** Joins: ann (~ann@host.example)
[10:00:01] *** ChanServ sets mode: +o ann
[10:00:02] *** ann changes topic to 'tea'
[10:00:03] * ann waves
[10:00:04] -bob- meeting tomorrow
[10:00:05] Disconnected from IRC (irc.example +6697)
[10:00:06] *** bob was kicked by ann (no spam)
";
    check(
        &[
            ("libera/#tea/2013-01-27.log", later),
            ("libera/#tea/2013-01-26.log", earlier),
            ("libera/#tea/x.png", b"\x89"),
        ],
        &[
            "service",
            "service",
            "service",
            "2013-01-26T10:00:03+02:00 #tea ann: ann waves",
            "2013-01-26T10:00:04+02:00 #tea bob: meeting tomorrow",
            "service",
            "service",
            "2013-01-27T00:00:01+02:00 #tea ann: bold and red",
            "service",
        ],
    );
}

#[test]
fn other_clients_logs_are_read() {
    let hexchat = "**** BEGIN LOGGING AT Sat Jan 26 15:04:04 2013

Jan 26 15:04:04 *\tNow talking on #tea
Jan 26 15:04:05 <ann>\tgood evening
Jan 26 15:04:06 *\tann waves
Jan 26 15:04:07 *\tann (~ann@host.example) has left #tea
**** ENDING LOGGING AT Sat Jan 26 15:05:00 2013
";
    check(
        &[("libera-#tea.log", hexchat.as_bytes())],
        &[
            "service",
            "2013-01-26T15:04:05+02:00 #tea ann: good evening",
            "2013-01-26T15:04:06+02:00 #tea ann: ann waves",
            "service",
        ],
    );
    let mirc = "Session Start: Sat Jan 26 15:04:04 2013
Session Ident: #tea
[03:04pm] * Now talking in #tea
[03:05pm] <@ann> good evening
[03:05pm] * ann waves
[03:05pm] * bob (~bob@host.example) Quit (Ping timeout)
Session Close: Sat Jan 26 15:06:00 2013
";
    check(
        &[("tea.log", mirc.as_bytes())],
        &[
            "service",
            "2013-01-26T15:05:00+02:00 #tea ann: good evening",
            "2013-01-26T15:05:00+02:00 #tea ann: ann waves",
            "service",
        ],
    );
    let eggdrop = "[00:00] --- Sat Jan 26 2013
[15:04] <ann> good evening
[15:04] Action: ann waves
[15:04] ann (~ann@host.example) left irc: Quit: bye
[15:05] #tea: mode change '+o bob' by ChanServ!ChanServ@services.example
[15:06] Nick change: bob -> bob_
[15:07] <bob_> quiet here
";
    check(
        &[("tea.log.26Jan2013", eggdrop.as_bytes())],
        &[
            "2013-01-26T15:04:00+02:00 #tea ann: good evening",
            "2013-01-26T15:04:00+02:00 #tea ann: ann waves",
            "service",
            "service",
            "service",
            "2013-01-26T15:07:00+02:00 #tea bob_: quiet here",
        ],
    );
}

#[test]
fn the_logs_of_ubuntus_channels_are_read() {
    let log = b"=== cara [~cara@host.example]  has joined #ubuntu
[11:58] <dora> cara: hello
[12:01]  * cara waves
=== dora thinks
=== dora is now known as dora|away
=== mode/#ubuntu [+o cara]  by ChanServ
[01:00] <dora|away> gr\xfc\xdfe
[01:00] <dora|away> gr\xc3\xbc\xc3\x9fe
";
    check(
        &[("2006-06-01_11.raw.txt", log)],
        &[
            "service",
            "2006-06-01T11:58:00+02:00 #ubuntu dora: cara: hello",
            "2006-06-01T12:01:00+02:00 #ubuntu cara: cara waves",
            "2006-06-01T12:01:00+02:00 #ubuntu dora: dora thinks",
            "service",
            "service",
            "2006-06-01T13:00:00+02:00 #ubuntu dora: grüße",
            "2006-06-01T13:00:00+02:00 #ubuntu dora: grüße",
        ],
    );
    let prefixed = "rust 2018-05-29 [21:20:37] <ann> bother \nrust 2018-05-29 === ann is now known as [T] ann_\nrust 2018-05-29 [23:14:44] * ann pines \nrust 2018-05-29 [23:14:45] -eval- [] \n";
    check(
        &[("rust.0.ascii.txt", prefixed.as_bytes())],
        &[
            "2018-05-29T21:20:37+02:00 rust ann: bother",
            "service",
            "2018-05-29T23:14:44+02:00 rust ann: ann pines",
            "2018-05-29T23:14:45+02:00 rust eval: []",
        ],
    );
}

#[test]
fn ids_are_the_same_in_a_later_export_and_in_any_zone() {
    let early = "[10:00] <ann> one\n[10:00] <ann> two\n[10:00] <bob> three\n";
    let late = format!("{early}[10:01] <ann> four\n=== x is now known as y\n=== y laughs\n");
    let ids = |text: &str| -> Vec<String> {
        messages(&[("2013-01-26.txt", text.as_bytes())]).into_iter().map(|m| m.id).collect()
    };
    let early = ids(early);
    assert_eq!(early, ["2013-01-26T10:00/ann", "2013-01-26T10:00/ann/2", "2013-01-26T10:00/bob"]);
    assert_eq!(ids(&late)[..3], early[..]);
    assert_eq!(ids(&late).len(), 5);
}

#[test]
fn mentions_name_accounts_that_spoke() {
    let log =
        "[10:00] <ann> hi\n=== ann is now known as ann|away\n[10:01] <bob> ann|away: tea?\n[10:02] <bob> note: later\n";
    let found = messages(&[("#tea-2013-01-26.log", log.as_bytes())]);
    let [_, question, note] = &found[..] else { panic!("{found:?}") };
    assert_eq!(question.mentions.len(), 1);
    assert_eq!((question.mentions[0].id.as_str(), question.mentions[0].name.as_str()), ("ann", "ann|away"));
    assert_eq!(note.mentions, []);
}

#[test]
fn private_chats_of_a_directory_are_direct_and_files_that_are_no_logs_are_skipped() {
    let log = b"[10:00] <ann> hi\n" as &[u8];
    let found = items_of(
        &[
            ("libera/#tea/2013-01-26.log", log),
            ("libera/ann/2013-01-26.log", log),
            ("libera/notes.txt", b"1000 1002 -\n"),
            ("libera/undated.log", log),
        ],
        "Z",
    )
    .unwrap();
    let shown: Vec<String> = found
        .iter()
        .map(|item| match item {
            ChatItem::Message(m) => {
                format!("{:?} {} {:?}", m.conversation.workspace, m.conversation.name, m.conversation.privacy)
            }
            other => line(other),
        })
        .collect();
    assert_eq!(
        shown,
        [
            format!("{:?} tea {:?}", Some("libera"), ConversationPrivacy::Open),
            format!("{:?} ann {:?}", Some("libera"), ConversationPrivacy::Direct),
            "Unsupported".to_owned(),
            "reject libera/undated.log:1 its lines name no day; put the day of the first line into the file's name, \
             such as #channel-2013-01-26.log"
                .to_owned(),
        ]
    );
}

#[test]
fn a_packed_log_is_read() {
    use std::io::Write as _;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(b"[10:00] <ann> hi\n").unwrap();
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("#tea.2013-01-26.log.gz");
    std::fs::write(&path, packed.finish().unwrap()).unwrap();
    assert_eq!(
        items_at(&path, "Z").unwrap().iter().map(line).collect::<Vec<_>>(),
        ["2013-01-26T10:00:00Z #tea ann: hi"]
    );
}

#[test]
fn an_archive_of_logs_is_read_like_its_folder() {
    let archive = tar(&[
        ("znc/libera/#tea/2013-01-26.log", b"[10:00:00] <ann> hi\n"),
        ("znc/libera/#tea/cup.png", &[7; 3_000]),
        ("znc/libera/#tea/2013-01-27.log", b"[10:00:00] * ann waves\n"),
    ]);
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&archive).unwrap();
    let packed = packed.finish().unwrap();
    for (name, bytes) in [("logs.tar.gz", &packed), ("logs.tgz", &packed), ("logs.tar", &archive), ("logs", &packed)] {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        assert!((FORMAT.looks_like)(&FileSample::of(&path).unwrap()), "{name}");
        let lines: Vec<String> = items_at(&path, "Z").unwrap().iter().map(line).collect();
        assert_eq!(lines, ["2013-01-26T10:00:00Z #tea ann: hi", "2013-01-27T10:00:00Z #tea ann: ann waves"], "{name}");
    }
    // A single compressed log is not an archive.
    let home = tempfile::tempdir().unwrap();
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&b"[10:00:00] <ann> hi\n".repeat(40)).unwrap();
    let path = home.path().join("#tea.2013-01-26.log.gz");
    std::fs::write(&path, packed.finish().unwrap()).unwrap();
    assert!(FileSample::of(&path).unwrap().is_file());
    assert_eq!(items_at(&path, "Z").unwrap().len(), 40);
}

#[test]
fn a_file_of_another_kind_or_without_a_day_is_an_error_that_says_what_to_do() {
    for (name, text, expected) in [
        ("a.txt", "Dear Ann,\nhow are you?\n", "no line of an IRC log; name a log of irssi"),
        ("a.log", "[10:00] <ann> hi\n", "its lines name no day; put the day"),
    ] {
        let error = items_of(&[(name, text.as_bytes())], "Z").unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = items_of(&[("a.log", b"x")], "noon").unwrap_err().to_string();
    assert!(error.starts_with("source.zone"), "{error}");
    assert_eq!(items_of(&[("a-2013-01-26.log", b"")], "Z").unwrap(), []);
}

proptest! {
    #[test]
    fn no_mutated_line_panics_and_each_is_an_item(
        lines in prop::collection::vec(
            (
                prop::sample::select(vec![
                    "[10:00] <ann> hi", "23:59 -!- ann [a@b] has joined #tea", "=== a is now known as b",
                    "2013-01-26 15:04:09\t *\tann waves", "--- Day changed Sun Jan 27 2013", "Jan 26 15:04:05 <ann>\tx",
                    "rust 2018-05-29 [21:20:37] -eval- []", "[Sat Jan 26 2013] [15:04:09] <a> b", "\u{3}04,12ü",
                ]),
                prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            ),
            0..30,
        ),
    ) {
        let mut bytes = b"--- Log opened Sat Jan 26 23:58:04 2013\n[10:00] <ann> hi\n".to_vec();
        let mut expected = 1;
        for (line, changes) in lines {
            let mut line = line.as_bytes().to_vec();
            for (at, byte) in changes {
                let at = at.index(line.len());
                line[at] = if byte == b'\n' { b' ' } else { byte };
            }
            expected += 1;
            bytes.extend(line);
            bytes.push(b'\n');
        }
        let found = items_of(&[("#tea.log", &bytes)], "Z").unwrap();
        prop_assert!(found.len() <= expected);
        prop_assert!(!found.is_empty());
    }
}

#[test]
fn only_times_without_a_zone_are_told() {
    let notice = |files: &[File<'_>], is_folder: bool| {
        let home = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, bytes)| std::fs::write(home.path().join(name), bytes).unwrap());
        let path = if is_folder { home.path().to_owned() } else { home.path().join(files[0].0) };
        let FormatOpener::Chat(open) = FORMAT.open else { panic!("a chat format") };
        open(&SourceSettings::new("irc", path)).unwrap().notice()
    };
    let weechat = ("irc.libera.#sail.weechatlog", &b"2025-09-02 21:11:50.000001Z\tmona\tThe sail is dry\n"[..]);
    let lounge = (
        "#rope.log",
        &b"[2025-09-02T21:11:50.000Z] <mona> The rope is wet\n[2025-09-02T21:12:50.000Z] *** ping joined\n"[..],
    );
    let plain = ("#mast.log", &b"2025-09-02 21:11:50\tmona\tThe mast is up\n"[..]);
    for (files, is_told) in [(&[weechat][..], false), (&[lounge], false), (&[plain], true)] {
        for is_folder in [false, true] {
            assert_eq!(notice(files, is_folder).is_some(), is_told, "{files:?} {is_folder}");
        }
    }
    assert_eq!(notice(&[weechat, lounge], true), None);
    assert!(notice(&[weechat, lounge, plain], true).unwrap().contains("have no zone"));
}
