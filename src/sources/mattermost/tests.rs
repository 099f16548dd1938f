//! Tests of Mattermost's bulk export, on files written by hand according to the exporter's source code.

use std::{fs, io::Write};

use proptest::prelude::*;
use tempfile::TempDir;
use zip::{ZipWriter, write::SimpleFileOptions};

use super::FORMAT;
use crate::{
    SourceError,
    chat::{ChatItem, ChatReader, Conversation, ConversationPrivacy, FileSample, items_of, lines_of},
    format::FormatOpener,
};
use types::config::SourceSettings;

const HEAD: &str = r#"{"type":"version","version":1,"info":{"generator":"mattermost-server","version":"9.5.0"}}
{"type":"team","team":{"name":"core","display_name":"Core","type":"O"}}
{"type":"channel","channel":{"team":"core","name":"town-square","display_name":"Town Square","type":"O"}}
{"type":"channel","channel":{"team":"core","name":"board","display_name":"Board","type":"P"}}
{"type":"user","user":{"username":"ann","email":"ann@a.example","nickname":"","first_name":"Ann","last_name":"Lee"}}
{"type":"user","user":{"username":"bo","nickname":"Bobby","first_name":"","last_name":""}}
{"type":"bot","bot":{"username":"helper","display_name":"The Helper","owner":"ann"}}
"#;

fn open(path: &std::path::Path) -> Result<Box<dyn ChatReader>, SourceError> {
    let FormatOpener::Chat(open) = FORMAT.open else { panic!("a chat's format") };
    open(&SourceSettings::new("mattermost", path))
}

fn items(lines: &str) -> Vec<ChatItem> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("import.jsonl");
    fs::write(&path, format!("{HEAD}{lines}")).unwrap();
    items_of(&mut *open(&path).unwrap())
}

fn check(lines: &str, expected: &[&str]) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("import.jsonl");
    fs::write(&path, format!("{HEAD}{lines}")).unwrap();
    assert_eq!(lines_of(&mut *open(&path).unwrap()), expected, "{lines}");
}

/// A post in the town square with these fields.
fn post(fields: &str) -> String {
    format!(r#"{{"type":"post","post":{{"team":"core","channel":"town-square",{fields}}}}}"#)
}

fn conversation(item: &ChatItem) -> &Conversation {
    match item {
        ChatItem::Message(message) => &message.conversation,
        ChatItem::Deletion { conversation, .. } | ChatItem::Reject { conversation: Some(conversation), .. } => {
            conversation
        }
        other => panic!("{other:?} has no conversation"),
    }
}

#[test]
fn posts_come_oldest_first_with_names_and_edits() {
    let later = post(r#""user":"bo","type":"","message":"second","create_at":2000,"edit_at":2500"#);
    let earlier = post(r#""user":"ann","type":null,"message":"first","props":null,"create_at":1000,"edit_at":0"#);
    check(
        &format!("{later}\n{earlier}\n\n"),
        &["1000/ann 1970-01-01T00:00:01Z Ann Lee: first", "2000/bo 1970-01-01T00:00:02Z Bobby: second | v=2500"],
    );
}

#[test]
fn a_reply_that_is_older_than_its_post_still_belongs_to_its_thread() {
    let reply = r#"{"user":"bo","message":"moved here","create_at":1000}"#;
    let thread = post(&format!(r#""user":"ann","message":"root","create_at":2000,"replies":[{reply}]"#));
    check(
        &thread,
        &[
            "1000/bo 1970-01-01T00:00:01Z Bobby: moved here | thread=2000/ann | reply=2000/ann",
            "2000/ann 1970-01-01T00:00:02Z Ann Lee: root | thread=2000/ann",
        ],
    );
}

#[test]
fn two_posts_of_one_author_and_moment_are_two_messages() {
    let one = post(r#""user":"ann","message":"one","create_at":1000"#);
    let two = post(r#""user":"ann","message":"two","create_at":1000"#);
    check(
        &format!("{one}\n{two}"),
        &["1000/ann 1970-01-01T00:00:01Z Ann Lee: one", "1000/ann/2 1970-01-01T00:00:01Z Ann Lee: two"],
    );
}

#[test]
fn mentions_become_names_and_the_full_stop_behind_them_stays() {
    let text =
        post(r#""user":"ann","message":"@bo, ask @helper. Or mail a@bo.example, @nobody @Bo!","create_at":1000"#);
    let items = items(&text);
    let ChatItem::Message(message) = &items[0] else { panic!("{items:?}") };
    assert_eq!(message.text, "@Bobby, ask @The Helper. Or mail a@bo.example, @nobody @Bobby!");
    let mentions: Vec<_> = message.mentions.iter().map(|m| (m.id.as_str(), m.name.as_str(), m.bot)).collect();
    assert_eq!(mentions, [("bo", "Bobby", false), ("helper", "The Helper", true)]);
}

#[test]
fn notices_are_skipped_and_deleted_posts_are_deletions() {
    let joined = post(r#""user":"ann","type":"system_join_channel","message":"ann joined","create_at":1000"#);
    let call = post(r#""user":"ann","type":"custom_calls","message":"Call started","create_at":1100"#);
    let empty = post(r#""user":"ann","message":"","create_at":1200"#);
    let deleted = post(r#""user":"ann","message":"oh","create_at":1300,"delete_at":9000"#);
    let me = post(r#""user":"bo","type":"me","message":"*waves*","create_at":1400"#);
    check(
        &[joined, call, empty, deleted, me].join("\n"),
        &[
            "skip service message",
            "skip service message",
            "skip empty",
            "deletion 1300/ann Some(9000)",
            "1400/bo 1970-01-01T00:00:01.4Z Bobby: Bobby waves",
        ],
    );
}

#[test]
fn files_and_cards_are_attachments_and_webhooks_are_bots() {
    let files = r#"[{"path":"data/20240501/teams/x/plan.pdf"},{"path":null}]"#;
    let file = post(&format!(r#""user":"ann","message":"","create_at":1000,"attachments":{files}"#));
    let card = r##"{"fallback":"f","pretext":"Build","title":"#7","text":"failed","fields":[{"title":"Branch","value":"main"}]}"##;
    let props = format!(r#"{{"from_webhook":"true","override_username":"CI","attachments":[{card}]}}"#);
    let hook =
        post(&format!(r#""user":"ann","type":"slack_attachment","message":"","create_at":2000,"props":{props}"#));
    let bot = post(r#""user":"helper","message":"hi","create_at":3000,"props":{"from_bot":"true"}"#);
    check(
        &[file, hook, bot].join("\n"),
        &[
            "1000/ann 1970-01-01T00:00:01Z Ann Lee:  | file: plan.pdf <data/20240501/teams/x/plan.pdf>",
            "2000/ann 1970-01-01T00:00:02Z CI (bot):  | card: Build\n#7\nfailed\nBranch: main",
            "3000/helper 1970-01-01T00:00:03Z The Helper (bot): hi",
        ],
    );
}

#[test]
fn who_can_read_a_conversation_follows_from_its_channel_or_its_members() {
    let direct = |members: &str, at: u32| {
        format!(
            r#"{{"type":"direct_post","direct_post":{{"channel_members":{members},"user":"bo","message":"x","create_at":{at}}}}}"#
        )
    };
    let board =
        r#"{"type":"post","post":{"team":"core","channel":"board","user":"bo","message":"x","create_at":3000}}"#;
    let unknown =
        r#"{"type":"post","post":{"team":"core","channel":"gone","user":"bo","message":"x","create_at":4000}}"#;
    let lines = [
        &direct(r#"["bo","ann"]"#, 1000),
        &direct(r#"["ann","bo"]"#, 2000),
        board,
        unknown,
        &post(r#""user":"bo","message":"x","create_at":5000"#),
    ];
    let items = items(&lines.map(str::to_owned).join("\n"));
    let found: Vec<_> = items
        .iter()
        .map(|item| {
            let c = conversation(item);
            (c.workspace.as_deref(), c.id.as_str(), c.name.as_str(), c.privacy)
        })
        .collect();
    assert_eq!(
        found,
        [
            (None, "ann,bo", "Ann Lee, Bobby", ConversationPrivacy::Direct),
            (None, "ann,bo", "Ann Lee, Bobby", ConversationPrivacy::Direct),
            (Some("core"), "board", "Board", ConversationPrivacy::Private),
            (Some("core"), "gone", "gone", ConversationPrivacy::Private),
            (Some("core"), "town-square", "Town Square", ConversationPrivacy::Open),
        ]
    );
}

#[test]
fn empty_channel_members_are_rejected_as_direct_messages() {
    let line =
        r#"{"type":"direct_post","direct_post":{"channel_members":[],"user":"bo","message":"secret","create_at":1}}"#;
    check(
        line,
        &[
            "reject import.jsonl:8: channel_members: empty, so it is not known who could read it; write the members' names",
        ],
    );
    assert_eq!(
        conversation(&items(line)[0]).privacy,
        ConversationPrivacy::Direct,
        "it is a dead letter only if direct messages are read"
    );
}

#[test]
fn a_damaged_post_has_its_channel_also_where_its_line_follows() {
    let lines = r#"{"type":"post","post":{"team":"core","channel":"late","user":"bo","message":5,"create_at":1}}
{"type":"channel","channel":{"team":"core","name":"late","display_name":"Late","type":"O"}}"#;
    let items = items(lines);
    let late = conversation(&items[0]);
    assert_eq!((items.len(), late.name.as_str(), late.privacy), (1, "Late", ConversationPrivacy::Open));
}

#[test]
fn a_damaged_record_is_rejected_and_the_rest_is_read() {
    let replies = r#"[{"user":"bo","message":7,"create_at":1},{"user":"bo","message":"ok","create_at":2000}]"#;
    let good = post(&format!(r#""user":"ann","message":"good","create_at":1000,"replies":{replies}"#));
    for (bad, reason) in [
        ("{\"type\":\"post\"", "EOF while parsing an object"),
        ("[]", "invalid length 0, expected struct"),
        ("{}", "missing field `type`"),
        (r#"{"type":"post"}"#, "post: missing; write it next to its type"),
        (r#"{"type":"post","post":[]}"#, "post: "),
        (r#"{"type":"user","user":{}}"#, "user: missing field `username`"),
        (&post(r#""message":"x","create_at":1"#), "user: missing; write the author"),
        (&post(r#""user":"ann","message":"x""#), "create_at: missing; write milliseconds"),
        (&post(r#""user":"ann","message":"x","create_at":9e99"#), "post: "),
        (
            &post(r#""user":"ann","message":"x","create_at":99999999999999"#),
            "create_at: 99999999999999 is out of range",
        ),
        (r#"{"type":"post","post":{"user":"a","message":"x","create_at":1}}"#, "channel: missing"),
    ] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("import.jsonl");
        fs::write(&path, format!("{HEAD}{bad}\n{good}\n")).unwrap();
        let mut lines = lines_of(&mut *open(&path).unwrap());
        lines.sort();
        let of_bad = format!("reject import.jsonl:8: {reason}");
        assert!(lines.iter().any(|line| line.starts_with(&of_bad)), "{of_bad} is not in {lines:#?}");
        assert!(
            lines
                .iter()
                .any(|line| line.starts_with("reject import.jsonl:9: replies: message: a number where a text belongs")),
            "{lines:#?}"
        );
        assert_eq!(lines.iter().filter(|line| line.contains("Z Ann Lee: good") || line.contains(": ok")).count(), 2);
        assert_eq!(lines.len(), 4, "{lines:#?}");
    }
}

#[test]
fn a_line_of_many_replies_is_read_whole() {
    let text = "x".repeat(2_000);
    let reply = |at: u32| format!(r#"{{"user":"bo","message":"{text}","create_at":{at}}}"#);
    let replies = (0..1_000).map(|n| reply(2_000 + n)).collect::<Vec<_>>().join(",");
    let line = post(&format!(r#""user":"ann","message":"root","create_at":1000,"replies":[{replies}]"#));
    assert!(line.len() > 1 << 20, "other formats read no longer line");
    assert_eq!(items(&line).len(), 1_001);
}

#[test]
fn an_archive_is_read_and_what_was_attached_is_not() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("export.zip");
    let mut archive = ZipWriter::new(fs::File::create(&path).unwrap());
    for (name, content) in [
        ("import.jsonl", format!("{HEAD}{}", post(r#""user":"ann","message":"hello","create_at":1000"#))),
        ("data/20240501/log.jsonl", "no export".to_owned()),
    ] {
        archive.start_file(name, SimpleFileOptions::default()).unwrap();
        archive.write_all(content.as_bytes()).unwrap();
    }
    archive.finish().unwrap();
    assert!((FORMAT.looks_like)(&FileSample::of(&path).unwrap()));
    let mut reader = open(&path).unwrap();
    assert_eq!(lines_of(&mut *reader), ["1000/ann 1970-01-01T00:00:01Z Ann Lee: hello"]);
    let progress = reader.progress();
    assert_eq!(Some(progress.done), progress.total);
}

#[test]
fn other_files_do_not_look_like_it() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("x.jsonl");
    for (content, expected) in [
        (HEAD, true),
        (r#"{"type":"post","post":{"team":"a","channel":"b","user":"c","message":"d","create_at":1}}"#, true),
        (r#"{"type":"turn","bank":"b","turn":"1","speaker":"A","text":"x","time":"2024-05-01T10:00:00Z"}"#, false),
        (r#"{"type":"message","text":"x"}"#, false),
        ("", false),
    ] {
        fs::write(&path, content).unwrap();
        assert_eq!((FORMAT.looks_like)(&FileSample::of(&path).unwrap()), expected, "{content}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn mutated_records_are_read_or_rejected(at in 0usize..2_000, with in "[\\PC\"{}\\[\\]:,0-9\\\\]{0,6}", cut in 0usize..20) {
        let reply = r#"{"user":"bo","message":"re","create_at":1500,"edit_at":3,"attachments":[{"path":"a.png"}]}"#;
        let post = post(&format!(r#""user":"ann","message":"hi @bo","create_at":1000,"props":{{"attachments":[{{"text":"t"}}]}},"replies":[{reply}]"#));
        let mut text = format!("{HEAD}{post}\n");
        let at = text.floor_char_boundary(at % text.len());
        let end = text.floor_char_boundary((at + cut).min(text.len()));
        text.replace_range(at..end, &with);
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("import.jsonl");
        fs::write(&path, text).unwrap();
        items_of(&mut *open(&path).unwrap());
    }
}
