//! Tests of Zulip's export, on files written by hand according to the exporter's source code and the API's
//! documentation.

use std::{fs, io::Write, path::Path};

use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use tempfile::TempDir;

use super::FORMAT;
use crate::{
    SourceError,
    chat::{ChatItem, ChatReader, ConversationPrivacy, FileSample, items_of, lines_of, transcript::tar},
    format::FormatOpener,
    tests::drain,
};
use types::{config::SourceSettings, model::TurnEvent};

const REALM: &str = r#"{
 "zerver_realm": [{"id": 2, "string_id": "garden", "name": "The Garden"}],
 "zerver_subscription": [
  {"id": 1, "user_profile": 8, "recipient": 30}, {"id": 2, "user_profile": 9, "recipient": 30},
  {"id": 3, "user_profile": 10, "recipient": 30}, {"id": 4, "user_profile": 8, "recipient": 20}
 ],
 "zerver_userprofile": [
  {"id": 8, "full_name": "Ann Lee", "email": "ann@a.example", "is_bot": false},
  {"id": 9, "full_name": "Bo", "email": "bo@a.example", "is_bot": false},
  {"id": 10, "full_name": "Builder", "email": "builder-bot@a.example", "is_bot": true},
  {"id": 11, "full_name": "Dee", "email": "dee@a.example"}, {"id": 12, "full_name": "Dee", "email": "dee@b.example"}
 ],
 "zerver_userprofile_crossrealm": [{"id": 5, "email": "notification-bot@zulip.com", "realm_id": 1}],
 "zerver_stream": [
  {"id": 3, "name": "design", "invite_only": false}, {"id": 4, "name": "board", "invite_only": true}
 ],
 "zerver_recipient": [
  {"id": 20, "type": 2, "type_id": 3}, {"id": 21, "type": 2, "type_id": 4}, {"id": 28, "type": 1, "type_id": 8},
  {"id": 29, "type": 1, "type_id": 9}, {"id": 30, "type": 3, "type_id": 1}
 ]
}"#;

fn open(path: &Path) -> Result<Box<dyn ChatReader>, SourceError> {
    let FormatOpener::Chat(open) = FORMAT.open else { panic!("a chat's format") };
    open(&SourceSettings::new("zulip", path))
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

fn table(messages: &str) -> String {
    format!(r#"{{"zerver_message": [{messages}], "zerver_usermessage": [{{"id": 1}}]}}"#)
}

fn items(messages: &str) -> Vec<ChatItem> {
    let folder = folder(&[("realm.json", REALM), ("messages-000001.json", &table(messages))]);
    items_of(&mut *open(folder.path()).unwrap())
}

fn check(messages: &str, expected: &[&str]) {
    let folder = folder(&[("realm.json", REALM), ("messages-000001.json", &table(messages))]);
    assert_eq!(lines_of(&mut *open(folder.path()).unwrap()), expected, "{messages}");
}

/// A message from Ann in the channel design, under the topic logo.
fn said(id: i64, fields: &str) -> String {
    format!(
        r#"{{"id": {id}, "sender": 8, "recipient": 20, "type": 1, "subject": "logo", "date_sent": {}.5, "edit_history": null,
            "last_edit_time": null, {fields}}}"#,
        1_714_557_600 + id
    )
}

fn conversations(items: &[ChatItem]) -> Vec<(Option<&str>, &str, &str, ConversationPrivacy)> {
    items
        .iter()
        .filter_map(|item| match item {
            ChatItem::Message(message) => Some(&message.conversation),
            _ => None,
        })
        .map(|c| (c.workspace.as_deref(), c.id.as_str(), c.name.as_str(), c.privacy))
        .collect()
}

#[test]
fn html_comes_before_markdown_and_a_topic_is_a_thread() {
    let html = r#""content": "**see** :cat:", "rendered_content": "<p><strong>see</strong> <span class=\"emoji\">:cat:</span></p>""#;
    check(&said(1, html), &["1 2024-05-01T10:00:01.5Z Ann Lee: see :cat: | thread=logo"]);
    check(
        &said(2, r#""content": "just *this*", "rendered_content": null"#),
        &["2 2024-05-01T10:00:02.5Z Ann Lee: just *this* | thread=logo"],
    );
}

#[test]
fn messages_come_oldest_first_whatever_their_files() {
    let folder = folder(&[
        ("export/realm.json", REALM),
        (
            "export/messages-000001.json",
            &table(&format!("{},{}", said(9, r#""content": "third""#), said(1, r#""content": "first""#))),
        ),
        ("export/messages-000002.json", &table(&said(5, r#""content": "second""#))),
        ("export/uploads/messages-x.json", "no messages"),
        ("export/attachment.json", "{}"),
    ]);
    let lines = lines_of(&mut *open(folder.path()).unwrap());
    let words: Vec<_> = lines.iter().map(|line| line.split(' ').nth(4).unwrap()).collect();
    assert_eq!(words, ["first", "second", "third"]);
    assert!((FORMAT.looks_like)(&FileSample::of(folder.path()).unwrap()));
}

#[test]
fn edits_have_their_time_from_whichever_field_there_is() {
    let edit = |fields: &str| {
        let message =
            r#"{"id": 1, "sender": 8, "recipient": 20, "subject": "t", "date_sent": 1714557600, "content": "x", F}"#;
        let items = items(&message.replace('F', fields));
        let ChatItem::Message(message) = &items[0] else { panic!("{items:?}") };
        message.version
    };
    for (fields, version) in [
        (r#""last_edit_time": null"#, 0),
        (r#""last_edit_time": 1714557700.25"#, 1_714_557_700_250),
        (
            r#""last_edit_time": null, "edit_history": "[{\"timestamp\": 1714557650}, {\"timestamp\": 1714557640}]""#,
            1_714_557_650_000,
        ),
        (r#""edit_history": "nonsense""#, 0),
    ] {
        assert_eq!(edit(fields), version, "{fields}");
    }
}

#[test]
fn mentions_and_uploads_are_told_apart_from_words() {
    let upload = r#"<a href=\"/user_uploads/2/ab/plan.pdf\">the plan</a>"#;
    let picture = r#"<a href=\"/user_uploads/2/cd/cat.png\">cat.png</a></p><div class=\"message_inline_image\"><a href=\"/user_uploads/2/cd/cat.png\"><img src=\"/user_uploads/2/cd/cat.png\"></a></div>"#;
    let mention = r#"<span class=\"user-mention\" data-user-id=\"9\">@Bo</span>"#;
    let html = format!(r#""content": "m", "rendered_content": "<p>{mention} see {upload} {picture}""#);
    check(
        &said(1, &html),
        &[
            "1 2024-05-01T10:00:01.5Z Ann Lee: @Bo see | thread=logo | file: the plan </user_uploads/2/ab/plan.pdf> | image: cat.png </user_uploads/2/cd/cat.png>",
        ],
    );
    let markdown = r#""content": "@**Bo|9**, @**Ann Lee**, @**Dee** and @_**Cy**: [plan](/user_uploads/2/ab/plan.pdf) in #**design>logo**""#;
    let items = items(&said(2, markdown));
    let ChatItem::Message(message) = &items[0] else { panic!("{items:?}") };
    assert_eq!(message.text, "@Bo, @Ann Lee, @Dee and @Cy:  in #design>logo");
    let mentions: Vec<_> = message.mentions.iter().map(|m| (m.id.as_str(), m.name.as_str())).collect();
    assert_eq!(mentions, [("9", "Bo"), ("8", "Ann Lee")], "of two Dees neither, and nobody is Cy");
    assert_eq!(message.attachments[0].caption.as_deref(), Some("plan"));
}

#[test]
fn who_was_mentioned_before_speaks_under_the_same_name() {
    let first = said(1, r#""content": "@**Bo** and @**Cy**, look""#);
    let second = said(2, r#""content": "yes""#).replace("\"sender\": 8", "\"sender\": 9");
    let folder = folder(&[("realm.json", REALM), ("messages-000001.json", &table(&format!("{first},{second}")))]);
    let settings = SourceSettings { bank: "b".to_owned(), ..SourceSettings::new("zulip", folder.path()) };
    let batch = drain(&mut *crate::open(&settings).unwrap(), 10);
    let turns = batch.events.iter().filter_map(|e| if let TurnEvent::Turn(turn) = e { Some(turn) } else { None });
    let said: Vec<String> = turns.map(|turn| format!("{}: {}", turn.speaker, turn.text)).collect();
    assert_eq!(said, ["Ann Lee: @Bo and @Cy, look", "Bo: yes"]);
}

#[test]
fn notices_emptied_messages_and_bots_are_told_apart() {
    let notice = r#"{"id": 1, "sender": 5, "recipient": 20, "subject": "t", "date_sent": 1, "content": "resolved"}"#;
    let deleted = r#"{"id": 2, "sender": 8, "recipient": 20, "subject": "t", "date_sent": 2, "content": "(deleted)", "last_edit_time": 9}"#;
    let bot = r#"{"id": 3, "sender": 10, "recipient": 20, "subject": "", "date_sent": 3, "content": "done"}"#;
    let me = r#"{"id": 4, "sender": 8, "recipient": 20, "subject": "t", "date_sent": 4, "content": "/me waves"}"#;
    let resolved =
        r#"{"id": 6, "sender": 8, "recipient": 20, "type": 2, "subject": "t", "date_sent": 6, "content": "resolved"}"#;
    let empty = r#"{"id": 5, "sender": 8, "recipient": 20, "subject": "t", "date_sent": 5, "content": " "}"#;
    check(
        &[notice, deleted, bot, me, empty, resolved].join(","),
        &[
            "skip service message",
            "deletion 2 Some(9000)",
            "3 1970-01-01T00:00:03Z Builder (bot): done",
            "4 1970-01-01T00:00:04Z Ann Lee: Ann Lee waves | thread=t",
            "skip empty",
            "skip service message",
        ],
    );
}

#[test]
fn direct_messages_of_the_same_people_are_one_conversation() {
    let message = |id: i64, sender: i64, recipient: i64| {
        format!(
            r#"{{"id": {id}, "sender": {sender}, "recipient": {recipient}, "subject": "\u0007", "date_sent": {id}, "content": "x"}}"#
        )
    };
    let all = [message(1, 8, 29), message(2, 9, 28), message(3, 8, 30), message(4, 8, 20), message(5, 8, 21)];
    let items = items(&all.join(","));
    assert!(matches!(&items[0], ChatItem::Message(m) if m.thread.is_none()), "a direct message has no topic");
    assert_eq!(
        conversations(&items),
        [
            (Some("garden"), "direct-8-9", "Ann Lee, Bo", ConversationPrivacy::Direct),
            (Some("garden"), "direct-8-9", "Ann Lee, Bo", ConversationPrivacy::Direct),
            (Some("garden"), "direct-8-9-10", "Ann Lee, Bo, Builder", ConversationPrivacy::Direct),
            (Some("garden"), "3", "design", ConversationPrivacy::Open),
            (Some("garden"), "4", "board", ConversationPrivacy::Private),
        ]
    );
}

#[test]
fn without_a_realm_numbers_are_names_and_only_a_file_of_its_own_is_open() {
    let messages = table(
        r#"{"id": 1, "sender": 8, "recipient": 20, "subject": "t", "date_sent": 1, "content": "x"},
           {"id": 2, "sender": 8, "recipient": 28, "subject": "", "date_sent": 2, "content": "y"}"#,
    );
    let folder = folder(&[("messages-000001.json", &messages)]);
    for (path, privacy) in [
        (folder.path().to_owned(), ConversationPrivacy::Private),
        (folder.path().join("messages-000001.json"), ConversationPrivacy::Open),
    ] {
        let mut reader = open(&path).unwrap();
        assert!(reader.notice().unwrap().contains("no realm.json"));
        let items = items_of(&mut *reader);
        assert_eq!(
            conversations(&items),
            [
                (None, "recipient-20", "recipient-20", privacy),
                (None, "recipient-28", "recipient-28", ConversationPrivacy::Direct),
            ]
        );
        assert!(matches!(&items[0], ChatItem::Message(m) if m.author.name == "user 8"));
    }
}

#[test]
fn what_the_api_returns_is_read_too() {
    let messages = r#"{"result": "success", "messages": [
        {"id": 7, "sender_id": 9, "sender_full_name": "Bo", "sender_email": "bo@a.example", "type": "stream",
         "stream_id": 3, "display_recipient": "design", "subject": "logo", "timestamp": 1714557600,
         "content": "<p>yes &amp; no</p>", "content_type": "text/html", "last_edit_timestamp": 1714557601, "reactions": []},
        {"id": 8, "sender_id": 9, "sender_full_name": "Bo", "type": "private", "recipient_id": 4, "subject": "",
         "display_recipient": [{"id": 9, "full_name": "Bo"}, {"id": 8, "full_name": "Ann Lee"}],
         "timestamp": 1714557602, "content": "<p>psst</p>", "content_type": "text/html"}]}"#;
    let folder = folder(&[("page.json", messages)]);
    let path = folder.path().join("page.json");
    assert!((FORMAT.looks_like)(&FileSample::of(&path).unwrap()));
    let items = items_of(&mut *open(&path).unwrap());
    assert_eq!(
        conversations(&items),
        [
            (None, "3", "design", ConversationPrivacy::Open),
            (None, "direct-8-9", "Ann Lee, Bo", ConversationPrivacy::Direct),
        ]
    );
    assert_eq!(
        lines_of(&mut *open(&path).unwrap()),
        ["7 2024-05-01T10:00:00Z Bo: yes & no | v=1714557601000 | thread=logo", "8 2024-05-01T10:00:02Z Bo: psst",]
    );
}

#[test]
fn deleted_words_of_the_api_are_a_deletion() {
    for (fields, expected) in [
        (r#""last_edit_timestamp": 1714557601"#, "deletion 7 Some(1714557601000)"),
        (r#""edit_history": [{"timestamp": 1714557602}]"#, "deletion 7 Some(1714557602000)"),
        (r#""edit_history": []"#, "7 2024-05-01T10:00:00Z Bo: (deleted) | thread=logo"),
    ] {
        let page = format!(
            r#"{{"messages": [{{"id": 7, "sender_id": 9, "sender_full_name": "Bo", "type": "stream", "stream_id": 3,
                "display_recipient": "design", "subject": "logo", "timestamp": 1714557600,
                "content": "<p>(deleted)</p>", "content_type": "text/html", {fields}}}]}}"#
        );
        let folder = folder(&[("page.json", &page)]);
        assert_eq!(lines_of(&mut *open(&folder.path().join("page.json")).unwrap()), [expected], "{fields}");
    }
}

#[test]
fn a_damaged_record_is_rejected_and_the_rest_is_read() {
    for (bad, line) in [
        (r#"{"id": 1, "date_sent": 1}"#, "reject messages-000001.json:2: sender: missing; write its number"),
        (r#"{"id": 1, "sender": 8, "date_sent": 1}"#, "reject messages-000001.json:2: recipient: missing or not"),
        (r#"{"id": 1, "sender": 8, "recipient": 20}"#, "reject messages-000001.json:2: date_sent: missing"),
        (
            r#"{"id": 1, "sender": 8, "recipient": 20, "date_sent": 1}"#,
            "reject messages-000001.json:2: content: missing",
        ),
        (
            r#"{"id": 1, "sender": 8, "recipient": 20, "date_sent": 1e300, "content": "x"}"#,
            "reject messages-000001.json:2: date_sent",
        ),
        (
            r#"{"id": 1, "sender": 8, "recipient": 20, "date_sent": 99999999999, "content": "x"}"#,
            "reject messages-000001.json:2: date_sent",
        ),
        (
            r#"{"id": "x", "sender": 8, "recipient": 20, "date_sent": 1, "content": "x"}"#,
            "reject messages-000001.json:2: id: a text where a number belongs",
        ),
        ("7", "reject messages-000001.json:2: invalid type"),
    ] {
        let messages = format!("\n{bad},\n{}", said(3, r#""content": "good""#));
        let folder = folder(&[("realm.json", REALM), ("messages-000001.json", &table(&messages))]);
        let lines = lines_of(&mut *open(folder.path()).unwrap());
        assert_eq!(lines.len(), 2, "{bad}: {lines:#?}");
        assert!(lines.iter().any(|found| found.starts_with(line)), "{bad}: {lines:#?}");
        assert!(lines.iter().any(|found| found.contains(": good")), "{lines:#?}");
    }
}

#[test]
fn a_tar_archive_is_read_compressed_or_not_and_never_writes_outside() {
    let messages = table(&said(1, r#""content": "hello""#));
    let long = format!("zulip-export/{}/messages-000002.json", "x".repeat(120));
    let second = table(&said(2, r#""content": "again""#));
    let archive = tar(&[
        ("zulip-export/uploads/2/ab/cat.png", &[7; 3_000]),
        ("zulip-export/messages-000001.json", messages.as_bytes()),
        ("../../../realm.json", REALM.as_bytes()),
        (&long, second.as_bytes()),
    ]);
    let folder = TempDir::new().unwrap();
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&archive).unwrap();
    for (name, bytes) in [("zulip-export-x.tar.gz", packed.finish().unwrap()), ("zulip-export-y.tar", archive.clone())]
    {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let lines = lines_of(&mut *open(&path).unwrap());
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(lines[0], "1 2024-05-01T10:00:01.5Z Ann Lee: hello | thread=logo");
        assert!((FORMAT.looks_like)(&FileSample::of(&path).unwrap()), "{name}");
    }
    let path = folder.path().join("cut.tar");
    fs::write(&path, &archive[..archive.len() - 1_600]).unwrap();
    let error = open(&path).err().unwrap().to_string();
    assert!(error.ends_with("cut.tar: cannot be read after line 0; check the path and its permissions"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn mutated_files_are_read_or_rejected(at in 0usize..3_000, with in "[\\PC\"{}\\[\\]:,0-9<>\\\\]{0,6}", cut in 0usize..20, in_realm: bool) {
        let mut realm = REALM.to_owned();
        let mut messages = table(&[said(1, r#""content": "x", "rendered_content": "<p>a <span class=\"user-mention\" data-user-id=\"9\">@Bo</span></p>""#),
                                   said(2, r#""content": "[a](/user_uploads/1) @**Bo**", "last_edit_time": 3.5"#)].join(","));
        let text = if in_realm { &mut realm } else { &mut messages };
        let at = text.floor_char_boundary(at % text.len());
        let end = text.floor_char_boundary((at + cut).min(text.len()));
        text.replace_range(at..end, &with);
        let folder = folder(&[("realm.json", &realm), ("messages-000001.json", &messages)]);
        items_of(&mut *open(folder.path()).unwrap());
    }

    #[test]
    fn no_bytes_in_a_tar_archive_make_it_panic(
        at in 0usize..1_600, with in any::<u8>(), length in 0usize..2_100, is_summed: bool,
    ) {
        let mut archive = tar(&[("a/messages-000001.json", table("").as_bytes())]);
        archive[at] = with;
        let block = &mut archive[at / 512 * 512..][..512];
        if is_summed {
            let mut header = tar::Header::from_byte_slice(block).clone();
            header.set_cksum();
            block.copy_from_slice(header.as_bytes());
        }
        archive.truncate(length.max(600));
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("x.tar");
        fs::write(&path, archive).unwrap();
        let _ = open(&path);
    }
}

#[test]
fn what_export_search_writes_has_the_names_of_a_whole_export() {
    let messages = table(
        r##"{"id": 1, "sender": 8, "recipient": 20, "subject": "logo", "date_sent": 1714557600.0, "content": "blue",
             "recipient_name": "#design", "sender_name": "Ann Lee <ann@a.example>", "date_sent_utc": "2024-05-01 10:00:00"},
            {"id": 2, "sender": 9, "recipient": 30, "subject": "", "date_sent": 1714557601.0, "content": "psst",
             "recipient_name": "Ann Lee <ann@a.example>, \"Day, Bo\" <bo@a.example>", "sender_name": "\"Day, Bo\" <bo@a.example>"},
            {"id": 3, "sender": 5, "recipient": 20, "subject": "logo", "date_sent": 1714557602.0, "content": "joined",
             "recipient_name": "#design", "sender_name": "Notification Bot <notification-bot@zulip.com>"}"##,
    );
    let folder = folder(&[("found.json", &messages)]);
    let mut reader = open(&folder.path().join("found.json")).unwrap();
    let notice = reader.notice().unwrap();
    assert!(notice.contains("not known which channels are private") && !notice.contains("numbers"), "{notice}");
    let items = items_of(&mut *reader);
    assert_eq!(
        conversations(&items),
        [
            (None, "recipient-20", "design", ConversationPrivacy::Open),
            (None, "recipient-30", "Ann Lee, Day, Bo", ConversationPrivacy::Direct),
        ]
    );
    let lines = lines_of(&mut *open(&folder.path().join("found.json")).unwrap());
    assert_eq!(
        lines,
        [
            "1 2024-05-01T10:00:00Z Ann Lee: blue | thread=logo",
            "2 2024-05-01T10:00:01Z Day, Bo: psst",
            "skip service message",
        ]
    );
}
