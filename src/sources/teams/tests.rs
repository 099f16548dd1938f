//! Tests of Microsoft Teams' messages, on files written by hand according to Microsoft Graph's documentation.

use std::{fs, path::Path};

use proptest::prelude::*;
use tempfile::TempDir;

use super::FORMAT;
use crate::{
    SourceError,
    chat::{ChatItem, ChatReader, ConversationPrivacy, FileSample, items_of, lines_of},
    format::FormatOpener,
};
use types::config::SourceSettings;

fn open(path: &Path) -> Result<Box<dyn ChatReader>, SourceError> {
    let FormatOpener::Chat(open) = FORMAT.open else { panic!("a chat's format") };
    open(&SourceSettings::new("teams", path))
}

fn file(json: &str) -> (TempDir, std::path::PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("general.json");
    fs::write(&path, json).unwrap();
    (folder, path)
}

fn items(json: &str) -> Vec<ChatItem> {
    let (_folder, path) = file(json);
    items_of(&mut *open(&path).unwrap())
}

fn check(json: &str, expected: &[&str]) {
    let (_folder, path) = file(json);
    assert_eq!(lines_of(&mut *open(&path).unwrap()), expected, "{json}");
}

/// A message from Ann in a channel, this many seconds after ten.
fn said(second: u32, fields: &str) -> String {
    format!(
        r#"{{"id": "{}", "replyToId": null, "messageType": "message", "createdDateTime": "2024-05-01T10:00:{second:02}.5Z",
            "lastModifiedDateTime": "2024-05-02T10:00:00Z", "lastEditedDateTime": null, "deletedDateTime": null,
            "chatId": null, "eventDetail": null, "subject": null,
            "from": {{"application": null, "device": null, "user": {{"id": "u1", "displayName": "Ann Lee"}}}},
            "channelIdentity": {{"teamId": "t1", "channelId": "19:c1@thread.tacv2"}}, {fields}}}"#,
        1_000 + second
    )
}

fn text(words: &str) -> String {
    format!(r#""body": {{"contentType": "text", "content": "{words}"}}, "attachments": [], "mentions": []"#)
}

/// Replaces a field that `said` writes.
fn with(message: &str, old: &str, new: &str) -> String {
    assert!(message.contains(old), "{old}");
    message.replace(old, new)
}

#[test]
fn a_list_is_read_oldest_first_however_it_is_wrapped() {
    let list = format!("[{}, {}]", said(2, &text("second")), said(1, &text("first")));
    let expected = ["1001 2024-05-01T10:00:01.5Z Ann Lee: first", "1002 2024-05-01T10:00:02.5Z Ann Lee: second"];
    check(&list, &expected);
    check(&format!("\u{feff}{{\"@odata.context\": \"x\", \"value\": {list}}}"), &expected);
    check(&format!(r#"{{"messages": {list}, "topic": "Plans"}}"#), &expected);
    check(&said(1, &text("first")), &expected[..1]);
    check("[]", &[]);
}

#[test]
fn only_an_edit_is_a_version_and_a_deletion_has_no_words() {
    let edited = with(
        &said(1, &text("new")),
        r#""lastEditedDateTime": null"#,
        r#""lastEditedDateTime": "2024-05-01T11:00:00.25Z""#,
    );
    let deleted =
        with(&said(2, &text("")), r#""deletedDateTime": null"#, r#""deletedDateTime": "2024-05-01T12:00:00Z""#);
    check(
        &format!("[{edited}, {deleted}, {}]", said(3, &text("liked"))),
        &[
            "1001 2024-05-01T10:00:01.5Z Ann Lee: new | v=1714561200250",
            "deletion 1002 Some(1714564800000)",
            "1003 2024-05-01T10:00:03.5Z Ann Lee: liked",
        ],
    );
}

#[test]
fn replies_beside_their_post_and_inside_it_are_one_thread() {
    let reply = |second| with(&said(second, &text("re")), r#""replyToId": null"#, r#""replyToId": "1001""#);
    let inside = with(&reply(3), r#""replyToId": "1001""#, r#""replyToId": null"#);
    let post = said(1, &format!(r#"{}, "replies": [{inside}]"#, text("post")));
    check(
        &format!("[{}, {post}, {}]", reply(2), said(4, &text("other"))),
        &[
            "1001 2024-05-01T10:00:01.5Z Ann Lee: post | thread=1001",
            "1002 2024-05-01T10:00:02.5Z Ann Lee: re | thread=1001 | reply=1001",
            "1003 2024-05-01T10:00:03.5Z Ann Lee: re | thread=1001 | reply=1001",
            "1004 2024-05-01T10:00:04.5Z Ann Lee: other",
        ],
    );
}

#[test]
fn replies_are_read_in_every_form_and_what_is_none_is_told() {
    let channel = r#""channelIdentity": {"teamId": "t1", "channelId": "19:c1@thread.tacv2"}, "#;
    let reply = |second, fields: &str| with(&said(second, &format!("{}{fields}", text("re"))), channel, "");
    let post = |replies: &str| format!("[{}]", said(1, &format!(r#"{}, "replies": {replies}"#, text("post"))));
    let nested = reply(2, &format!(r#", "replies": [{}]"#, reply(3, "")));
    for replies in [
        format!("[{nested}]"),
        format!(r#"{{"value": [{nested}]}}"#),
        format!(r#"{{"Value": {nested}, "Count": 1}}"#),
        nested.clone(),
    ] {
        check(
            &post(&replies),
            &[
                "1001 2024-05-01T10:00:01.5Z Ann Lee: post | thread=1001",
                "1002 2024-05-01T10:00:02.5Z Ann Lee: re | thread=1001 | reply=1001",
                "1003 2024-05-01T10:00:03.5Z Ann Lee: re | thread=1001 | reply=1001",
            ],
        );
    }
    let alone = "1001 2024-05-01T10:00:01.5Z Ann Lee: post";
    for none in ["null", r#""""#, "[]", "{}", r#"{"value": []}"#] {
        check(&post(none), &[alone]);
    }
    let remedy = "export it again; in PowerShell, give ConvertTo-Json a -Depth of 10 or more";
    for (replies, problem) in [
        (r#""@{id=2; body=}""#, "replies: a text where an object or a list belongs"),
        (r#""System.Object[]""#, "replies: a text where an object or a list belongs"),
        ("5", "replies: a number where an object or a list belongs"),
        (r#"["@{id=2; body=}"]"#, "replies[]: a text where an object belongs"),
        (r#"{"value": "@{id=2}"}"#, "replies.value: a text where an object or a list belongs"),
    ] {
        let told = format!("reject general.json:1: {problem}; {remedy}");
        check(&post(replies), &[&told, alone]);
        check(&post(replies).replace(r#""replies""#, r#""Replies""#), &[&told, alone]);
    }
}

#[test]
fn only_a_date_deletes() {
    for (deleted, expected) in [
        (r#""0001-01-01T00:00:00Z""#, "1001 2024-05-01T10:00:01.5Z Ann Lee: hi"),
        (r#""\/Date(-62135596800000)\/""#, "1001 2024-05-01T10:00:01.5Z Ann Lee: hi"),
        (r#"{"value": "0001-01-01T00:00:00"}"#, "1001 2024-05-01T10:00:01.5Z Ann Lee: hi"),
        (r#""""#, "1001 2024-05-01T10:00:01.5Z Ann Lee: hi"),
        (r#""\/Date(1714557660000)\/""#, "deletion 1001 Some(1714557660000)"),
        (r#""soon""#, "reject general.json:1: deletedDateTime: not a time; write it as Microsoft Graph does"),
    ] {
        let deleted = format!(r#""deletedDateTime": {deleted}"#);
        let message = with(&said(1, &text("hi")), r#""deletedDateTime": null"#, &deleted);
        check(&format!("[{message}]"), &[expected]);
    }
}

#[test]
fn html_mentions_emoji_and_pictures_are_read_as_a_person_reads_them() {
    let html = r#"<div><at id=\"0\">Bo</at>&nbsp;look <emoji id=\"x\" alt=\"🙂\" title=\"Smile\"></emoji><attachment id=\"f1\"></attachment><img alt=\"image\" src=\"https://graph.example/hosted/$value\" itemid=\"i\"></div>"#;
    let mention = r#"[{"id": 0, "mentionText": "Bo", "mentioned": {"user": {"id": "u2", "displayName": "Bo Berg"}, "application": null}}]"#;
    let files = r#"[{"id": "f1", "contentType": "reference", "contentUrl": "https://files.example/a%20b.docx", "name": "a b.docx", "content": null}]"#;
    let fields = format!(
        r#""body": {{"contentType": "html", "content": "{html}"}}, "mentions": {mention}, "attachments": {files}"#
    );
    let found = items(&format!("[{}]", said(1, &fields)));
    let ChatItem::Message(message) = &found[0] else { panic!("{found:?}") };
    assert_eq!(message.text, "@Bo look 🙂");
    assert_eq!(message.mentions.iter().map(|m| (m.id.as_str(), m.name.as_str())).collect::<Vec<_>>(), [("u2", "Bo")]);
    let shared: Vec<_> =
        message.attachments.iter().map(|a| (a.kind.as_deref().unwrap(), a.caption.as_deref().unwrap())).collect();
    assert_eq!(shared, [("image", "image"), ("file", "a b.docx")]);
}

#[test]
fn cards_quotes_and_forwarded_messages_keep_their_words() {
    let card = r#"{\"type\": \"AdaptiveCard\", \"body\": [{\"type\": \"TextBlock\", \"text\": \"Deploy\"}, {\"type\": \"FactSet\", \"facts\": [{\"title\": \"Branch\", \"value\": \"main\"}]}]}"#;
    let attachment = |kind: &str, content: &str| {
        let body = r#""body": {"contentType": "html", "content": "<p>ok</p>"}, "mentions": []"#;
        format!(r#"{body}, "attachments": [{{"id": "a", "contentType": "{kind}", "content": "{content}"}}]"#)
    };
    let quote = r#"{\"messageId\": \"900\", \"messagePreview\": \"hello\"}"#;
    let forward = r#"{\"originalMessageId\": \"9\", \"originalMessageContent\": \"<p>the plan</p>\"}"#;
    let list = [
        said(1, &attachment("application/vnd.microsoft.card.adaptive", card)),
        said(2, &attachment("messageReference", quote)),
        said(3, &attachment("forwardedMessageReference", forward)),
    ];
    check(
        &format!("[{}]", list.join(",")),
        &[
            "1001 2024-05-01T10:00:01.5Z Ann Lee: ok | card: Deploy\nBranch\nmain",
            "1002 2024-05-01T10:00:02.5Z Ann Lee: ok | reply=900",
            "1003 2024-05-01T10:00:03.5Z Ann Lee: ok\nthe plan",
        ],
    );
}

#[test]
fn notices_bots_and_empty_messages_are_told_apart() {
    let event = with(
        &with(
            &said(1, &text("<systemEventMessage/>")),
            r#""messageType": "message""#,
            r#""messageType": "systemEventMessage""#,
        ),
        r#""eventDetail": null"#,
        r##""eventDetail": {"@odata.type": "#microsoft.graph.membersAddedEventMessageDetail"}"##,
    );
    let unknown = with(
        &said(2, &text("<systemEventMessage/>")),
        r#""messageType": "message""#,
        r#""messageType": "unknownFutureValue""#,
    );
    let user = r#""application": null, "device": null, "user": {"id": "u1", "displayName": "Ann Lee"}"#;
    let bot =
        with(&said(3, &text("done")), user, r#""user": null, "application": {"id": "b1", "displayName": "Builder"}"#);
    let nobody = with(&said(4, &text("hm")), &format!(r#"{{{user}}}"#), "null");
    let nameless = with(&said(5, &text("hm")), r#""displayName": "Ann Lee""#, r#""displayName": null"#);
    let subject = with(&said(6, &text("words")), r#""subject": null"#, r#""subject": "Title""#);
    check(
        &format!("[{}]", [event, unknown, bot, nobody, nameless, subject, said(7, &text(" "))].join(",")),
        &[
            "skip service message",
            "skip service message",
            "1003 2024-05-01T10:00:03.5Z Builder (bot): done",
            "1004 2024-05-01T10:00:04.5Z Unknown: hm",
            "1005 2024-05-01T10:00:05.5Z u1: hm",
            "1006 2024-05-01T10:00:06.5Z Ann Lee: Title\nwords",
            "skip empty",
        ],
    );
}

#[test]
fn pascal_case_and_the_times_of_powershell_are_read() {
    let message = |created: &str, edited: &str| {
        format!(
            r#"{{"Id": "1", "MessageType": "message", "CreatedDateTime": {created}, "LastEditedDateTime": {edited},
                "From": {{"User": {{"Id": "u1", "DisplayName": "Ann Lee"}}}}, "ChatId": "19:x@thread.v2",
                "Body": {{"ContentType": "html", "Content": "<p>hi</p>"}}, "Attachments": [],
                "Mentions": {{"Id": 0, "MentionText": "hi", "Mentioned": {{"User": {{"Id": "u3", "DisplayName": "Hi"}}}}}}}}"#
        )
    };
    let expected = "1 2024-05-01T10:00:00Z Ann Lee: hi | v=1714557660000";
    for (created, edited) in [
        (r#""2024-05-01T10:00:00Z""#, r#""2024-05-01T12:01:00+02:00""#),
        (r#""\/Date(1714557600000)\/""#, r#""\/Date(1714557660000)\/""#),
        (r#"{"value": "\/Date(1714557600000)\/", "DateTime": "x"}"#, r#"{"value": "\/Date(1714557660000)\/"}"#),
        (r#""2024-05-01T10:00:00""#, r#""2024-05-01T10:01:00.0000000Z""#),
    ] {
        check(&format!("[{}]", message(created, edited)), &[expected]);
        check(&format!("{{\"Value\": [{}]}}", message(created, edited)), &[expected]);
    }
}

#[test]
fn one_chat_in_a_file_is_open_and_several_are_direct() {
    let channel = r#""channelIdentity": {"teamId": "t1", "channelId": "19:c1@thread.tacv2"}"#;
    let chat = |second, id: &str| {
        let message = with(&said(second, &text("x")), r#""chatId": null"#, &format!(r#""chatId": "{id}""#));
        with(&message, channel, r#""channelIdentity": null"#)
    };
    let conversations = |json: &str| -> Vec<_> {
        let of = |item| match item {
            ChatItem::Message(m) => {
                let c = &m.conversation;
                (c.workspace.clone(), c.id.clone(), c.name.clone(), c.privacy)
            }
            other => panic!("{other:?}"),
        };
        items(json).into_iter().map(of).collect()
    };
    let found = |team: Option<&str>, id: &str, name: &str, privacy| {
        (team.map(str::to_owned), id.to_owned(), name.to_owned(), privacy)
    };
    assert_eq!(
        conversations(&format!("[{}]", said(1, &text("x")))),
        [found(Some("t1"), "19:c1@thread.tacv2", "general", ConversationPrivacy::Open),]
    );
    assert_eq!(
        conversations(&format!("[{}]", chat(1, "19:a"))),
        [found(None, "19:a", "Ann Lee", ConversationPrivacy::Open)]
    );
    assert_eq!(
        conversations(&format!(r#"{{"topic": "Plans", "messages": [{}]}}"#, chat(1, "19:a"))),
        [found(None, "19:a", "Plans", ConversationPrivacy::Open),]
    );
    assert_eq!(
        conversations(&format!("[{}, {}, {}]", chat(1, "19:a"), chat(2, "19:b"), said(3, &text("x")))),
        [
            found(None, "19:a", "Ann Lee", ConversationPrivacy::Direct),
            found(None, "19:b", "Ann Lee", ConversationPrivacy::Direct),
            found(Some("t1"), "19:c1@thread.tacv2", "general", ConversationPrivacy::Open),
        ]
    );
}

#[test]
fn a_folder_holds_one_conversation_a_file() {
    let folder = TempDir::new().unwrap();
    let bare = |second| {
        let message = said(second, &text("x"));
        with(
            &message,
            r#""channelIdentity": {"teamId": "t1", "channelId": "19:c1@thread.tacv2"}"#,
            r#""importance": "normal""#,
        )
    };
    fs::write(folder.path().join("a.json"), format!("[{}]", bare(1))).unwrap();
    fs::write(folder.path().join("b.json"), format!("[{}]", bare(2))).unwrap();
    fs::write(folder.path().join("about.txt"), "no messages").unwrap();
    assert!((FORMAT.looks_like)(&FileSample::of(folder.path()).unwrap()));
    let names: Vec<_> = items_of(&mut *open(folder.path()).unwrap())
        .into_iter()
        .map(|item| match item {
            ChatItem::Message(message) => message.conversation.name.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn a_damaged_record_is_rejected_and_the_rest_is_read() {
    for (bad, line) in [
        (r#"{"id": "1"}"#, "reject general.json:2: createdDateTime: missing or not a time"),
        (r#"{"id": "1", "createdDateTime": "soon"}"#, "reject general.json:2: createdDateTime: missing or not a time"),
        (
            r#"{"createdDateTime": "2024-05-01T09:00:00Z", "body": {"content": "x"}}"#,
            "reject general.json:2: id: missing",
        ),
        ("7", "reject general.json:2: createdDateTime: missing"),
        (r#"{"id": x}"#, "reject general.json:2: expected value"),
    ] {
        let (_folder, path) = file(&format!("[\n{bad},\n{}]", said(1, &text("good"))));
        let lines = lines_of(&mut *open(&path).unwrap());
        assert_eq!(lines.len(), 2, "{bad}: {lines:#?}");
        assert!(lines[0].starts_with(line), "{bad}: {lines:#?}");
        assert!(lines[1].ends_with("Ann Lee: good"), "{lines:#?}");
    }
    check("no JSON at all", &["reject general.json:1: expected ident at line 1 column 2; export the file again"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn mutated_files_are_read_or_rejected(at in 0usize..2_000, with in "[\\PC\"{}\\[\\]:,0-9<>\\\\]{0,6}", cut in 0usize..20) {
        let html = r#""body": {"contentType": "html", "content": "<at id=\"0\">Bo</at><img alt=\"a\" src=\"b\">"}, "mentions": [{"mentionText": "Bo", "mentioned": {"user": {"id": "u"}}}], "attachments": [{"contentType": "x.card", "content": "{\"body\": [{\"text\": \"t\"}]}"}]"#;
        let mut json = format!("{{\"value\": [{}, {}]}}", said(1, html), said(2, &text("x")));
        let at = json.floor_char_boundary(at % json.len());
        let end = json.floor_char_boundary((at + cut).min(json.len()));
        json.replace_range(at..end, &with);
        items(&json);
    }
}

#[test]
fn what_powershell_cut_names_its_field_and_the_depth() {
    let body = r#""body": {"contentType": "text", "content": "hi"}"#;
    let remedy = "export it again; in PowerShell, give ConvertTo-Json a -Depth of 10 or more";
    for (old, new, expected) in [
        (body, r#""body": "@{contentType=text; content=hi}""#, "body: a text where an object belongs"),
        (
            body,
            r#""body": {"contentType": "text", "content": {"x": 1}}"#,
            "body.content: an object where a text belongs",
        ),
        (
            r#""user": {"id": "u1", "displayName": "Ann Lee"}"#,
            r#""user": "@{displayName=Ann Lee; id=u1}""#,
            "from.user: a text where an object belongs",
        ),
        (
            r#"{"application": null, "device": null, "user": {"id": "u1", "displayName": "Ann Lee"}}"#,
            r#""@{application=; device=; user=}""#,
            "from: a text where an object belongs",
        ),
        (
            r#"{"application": null, "device": null, "user": {"id": "u1", "displayName": "Ann Lee"}}"#,
            r#""Microsoft.Graph.PowerShell.Models.MicrosoftGraphChatMessageFromIdentitySet""#,
            "from: a text where an object belongs",
        ),
        (
            r#"{"teamId": "t1", "channelId": "19:c1@thread.tacv2"}"#,
            r#""@{teamId=t1; channelId=19:c1}""#,
            "channelIdentity: a text where an object belongs",
        ),
    ] {
        let cut = with(&said(1, &text("hi")), old, new);
        check(&format!("[{cut}]"), &[&format!("reject general.json:1: {expected}; {remedy}")]);
    }
    // If the message has words, the odd field is reported; if not, the message is a dead letter rather than an empty
    // one.
    let list = r#""attachments": []"#;
    let with_words = with(&said(1, &text("hi")), list, r#""attachments": "System.Object[]""#);
    let (_folder, path) = file(&format!("[{with_words}]"));
    let mut reader = open(&path).unwrap();
    assert_eq!(lines_of(&mut *reader), ["1001 2024-05-01T10:00:01.5Z Ann Lee: hi"]);
    assert_eq!(reader.unread().into_iter().collect::<Vec<_>>(), [("attachments".to_owned(), 1)]);
    let without = with(&said(1, &text(" ")), list, r#""attachments": "System.Object[]""#);
    check(
        &format!("[{without}]"),
        &[
            "reject general.json:1: attachments: a text where an object or a list belongs, and the message has no other words; export it again",
        ],
    );
}

#[test]
fn a_post_whose_words_were_taken_back_is_a_deletion() {
    let subject = |message: &str| with(message, r#""subject": null"#, r#""subject": "Regatta""#);
    let html = |content: &str| {
        format!(r#""body": {{"contentType": "html", "content": {content}}}, "attachments": [], "mentions": []"#)
    };
    let modified = "Some(1714644000000)";
    for (message, expected) in [
        (subject(&said(1, &html(r#""""#))), format!("deletion 1001 {modified}")),
        (subject(&said(1, &html("null"))), format!("deletion 1001 {modified}")),
        (subject(&said(1, &html(r#""<div>&nbsp;</div>""#))), format!("deletion 1001 {modified}")),
        (said(1, &html(r#""""#)), format!("deletion 1001 {modified}")),
        (said(1, &html(r#""<div>&nbsp;</div>""#)), "skip empty".to_owned()),
        (
            subject(&said(1, &html(r#""<p>on Sunday</p>""#))),
            "1001 2024-05-01T10:00:01.5Z Ann Lee: Regatta\non Sunday".to_owned(),
        ),
        (
            with(
                &subject(&said(1, &html(r#""""#))),
                r#""attachments": []"#,
                r#""attachments": [{"id": null, "contentType": "reference", "name": "a.mp4"}]"#,
            ),
            "1001 2024-05-01T10:00:01.5Z Ann Lee: Regatta | video: a.mp4".to_owned(),
        ),
    ] {
        check(&format!("[{message}]"), &[&expected]);
    }
}
