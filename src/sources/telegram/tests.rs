//! Tests of Telegram Desktop's export, on files written by hand according to its source code.

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

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

fn open(path: &Path, zone: &str) -> Result<Box<dyn ChatReader>, SourceError> {
    let FormatOpener::Chat(open) = FORMAT.open else { panic!("a chat's format") };
    open(&SourceSettings { zone: zone.to_owned(), ..SourceSettings::new("telegram", path) })
}

/// A supergroup's export with these messages.
fn chat(messages: &str) -> String {
    format!(r#"{{"name": "Trip", "type": "private_supergroup", "id": 77, "messages": [{messages}]}}"#)
}

fn lines(json: &str) -> Vec<String> {
    let folder = folder(&[("result.json", json)]);
    lines_of(&mut *open(&folder.path().join("result.json"), "Z").unwrap())
}

/// Checks the items of a supergroup's messages.
fn check(messages: &str, expected: &[&str]) {
    assert_eq!(lines(&chat(messages)), expected, "{messages}");
}

/// A message from Ann at 10:00 UTC on 1 May 2024, on a computer two hours east, with these additional fields.
fn said(id: i64, fields: &str) -> String {
    format!(
        r#"{{"id": {id}, "type": "message", "date": "2024-05-01T12:00:00", "date_unixtime": "1714557600",
            "from": "Ann", "from_id": "user5", {fields}}}"#
    )
}

const ANN: &str = "2024-05-01T12:00:00+02:00 Ann:";

#[test]
fn words_are_a_string_or_a_list_of_pieces() {
    for (text, expected) in [
        (r#""text": "hi""#, "hi"),
        (r#""text": ["see ", {"type": "bold", "text": "this"}, " now"]"#, "see this now"),
        (r#""text": [{"type": "mention_name", "text": "Bo B", "user_id": 6}, " come"]"#, "Bo B come"),
        (
            r#""text": ["the ", {"type": "text_link", "text": "plan", "href": "https://a.example/p"}]"#,
            "the plan (https://a.example/p)",
        ),
        (r#""text": [{"type": "link", "text": "https://a.example"}]"#, "https://a.example"),
        (r#""text_entities": [{"type": "plain", "text": "only entities"}]"#, "only entities"),
        (r#""text": "", "forwarded_from": "Bo", "text_entities": []"#, ""),
        (r#""text": "look", "forwarded_from": "Bo""#, "Forwarded from Bo: look"),
        (r#""text": "look", "forwarded_from": null, "forwarded_from_id": "user7""#, "Forwarded from user7: look"),
        (r#""text": "look", "forwarded_from": null"#, "Forwarded: look"),
        (r#""text": "", "forwarded_from": null"#, ""),
    ] {
        let line = format!("1 {ANN} {expected}");
        check(&said(1, text), &[if expected.is_empty() { "skip empty" } else { &line }]);
    }
}

#[test]
fn an_edit_has_its_time_and_an_edit_in_1970_is_none() {
    let edited = r#""text": "a", "edited": "2024-05-01T12:01:00", "edited_unixtime": "1714557660""#;
    let never = r#""text": "b", "edited": "1970-01-01T03:00:00""#;
    check(
        &format!("{},{}", said(1, edited), said(2, never)),
        &[&format!("1 {ANN} a | v=1714557660000"), &format!("2 {ANN} b")],
    );
}

#[test]
fn notices_and_unknown_kinds_are_skipped() {
    check(
        r#"{"id": 1, "type": "service", "date": "2024-05-01T12:00:00", "actor": "Ann", "actor_id": "user5", "action": "pin_message", "message_id": 3, "text": ""},
           {"id": 2, "type": "unsupported"}"#,
        &["skip service message", "skip unsupported"],
    );
}

#[test]
fn what_is_shared_without_words_is_an_attachment_with_a_caption() {
    for (fields, expected) in [
        (r#""photo": "photos/photo_1.jpg", "width": 9"#, "image: image <photos/photo_1.jpg>"),
        (r#""photo": "photos/a.jpg", "forwarded_from": "Bo""#, "image: Forwarded from Bo: image <photos/a.jpg>"),
        (r#""photo": "(File not included. Change data exporting settings to download.)""#, "image: image"),
        (
            r#""file": "files/plan.pdf", "file_name": "plan.pdf", "mime_type": "application/pdf""#,
            "file: plan.pdf <files/plan.pdf>",
        ),
        (
            r#""file": "stickers/a.webp", "media_type": "sticker", "sticker_emoji": "👍""#,
            "sticker: sticker 👍 <stickers/a.webp>",
        ),
        (
            r#""file": "voice_messages/audio_1.ogg", "media_type": "voice_message""#,
            "voice message: voice message <voice_messages/audio_1.ogg>",
        ),
        (
            r#""file": "files/s.mp3", "media_type": "audio_file", "performer": "Ida", "title": "Sea""#,
            "audio: Ida – Sea <files/s.mp3>",
        ),
        (
            r#""contact_information": {"first_name": "Bo", "last_name": "", "phone_number": "+1 555"}"#,
            "contact: Bo, +1 555",
        ),
        (r#""location_information": {"latitude": 52.5, "longitude": 13.4}"#, "location: 52.5, 13.4"),
        (r#""place_name": "Bar", "address": "Main St 1""#, "location: Bar, Main St 1"),
        (
            r#""poll": {"question": "Where?", "answers": [{"text": "Rome"}, {"text": ["Par", {"type": "bold", "text": "is"}]}]}"#,
            "poll: Where? (Rome / Paris)",
        ),
        (
            r#""todo_list": {"title": [{"type": "plain", "text": "Pack"}], "answers": [{"text": "tent", "id": 1}]}"#,
            "checklist: Pack (tent)",
        ),
        (r#""invoice_information": "{\n \"title\": \"Hat\",\n \"description\": \"red\"\n}""#, "invoice: Hat: red"),
        (r#""game_title": "Chess", "game_link": "https://t.me/g""#, "game: Chess <https://t.me/g>"),
        (r#""paid_stars_amount": 5"#, "paid media: paid media"),
    ] {
        check(&said(1, &format!(r#"{fields}, "text": """#)), &[&format!("1 {ANN}  | {expected}")]);
    }
}

#[test]
fn deleted_accounts_have_no_name_and_bots_are_told_from_people() {
    let nameless = said(1, r#""text": "a""#).replace(r#""from": "Ann""#, r#""from": null"#);
    check(&nameless, &["1 2024-05-01T12:00:00+02:00 user5: a"]);
    let with_bot = chat(&said(1, r#""text": "a""#)).replace("private_supergroup", "bot_chat").replace("77", "5");
    assert_eq!(lines(&with_bot), ["1 2024-05-01T12:00:00+02:00 Ann (bot): a"]);
}

#[test]
fn a_message_belongs_to_the_topic_of_the_message_that_it_answers() {
    let topic =
        |id| format!(r#"{{"id": {id}, "type": "service", "action": "topic_created", "title": "T", "text": ""}}"#);
    let messages = [
        topic(10),
        topic(11),
        said(20, r#""reply_to_message_id": 10, "text": "in ten""#),
        said(21, r#""reply_to_message_id": 11, "text": "in eleven""#),
        said(22, r#""reply_to_message_id": 20, "text": "answers in ten""#),
        said(23, r#""reply_to_message_id": 22, "text": "and again""#),
        said(24, r#""text": "general""#),
        said(25, r#""reply_to_message_id": 24, "text": "answers in general""#),
    ];
    check(
        &messages.join(","),
        &[
            "skip service message",
            "skip service message",
            &format!("20 {ANN} in ten | thread=10"),
            &format!("21 {ANN} in eleven | thread=11"),
            &format!("22 {ANN} answers in ten | thread=10 | reply=20"),
            &format!("23 {ANN} and again | thread=10 | reply=22"),
            &format!("24 {ANN} general"),
            &format!("25 {ANN} answers in general | reply=24"),
        ],
    );
}

#[test]
fn a_message_keeps_its_id_when_its_group_becomes_a_supergroup() {
    let group = |kind: &str, messages: &str| chat(messages).replace("private_supergroup", kind);
    let before = format!("{},{}", said(5, r#""text": "a""#), said(6, r#""reply_to_message_id": 5, "text": "b""#));
    let after = [
        said(-999_999_995, r#""text": "a""#),
        said(-999_999_994, r#""reply_to_message_id": -999999995, "text": "b""#),
        said(5, r#""text": "another message with the number 5""#),
        said(6, r#""reply_to_message_id": 5, "reply_to_peer_id": "chat77", "text": "answers the old one""#),
        said(7, r#""reply_to_message_id": 5, "reply_to_peer_id": "channel9", "text": "answers elsewhere""#),
    ];
    let old = [format!("group5 {ANN} a"), format!("group6 {ANN} b | reply=group5")];
    assert_eq!(lines(&group("private_group", &before)), old);
    let all = lines(&group("private_supergroup", &after.join(",")));
    assert_eq!(all[..2], old);
    assert_eq!(
        all[2..],
        [
            format!("5 {ANN} another message with the number 5"),
            format!("6 {ANN} answers the old one | reply=group5"),
            format!("7 {ANN} answers elsewhere"),
        ]
    );
}

#[test]
fn control_characters_and_unquoted_paths_are_mended() {
    let text = said(
        1,
        r#""text": ["tab \x0B and \\x0B, \"q\" ", {"type": "custom_emoji", "text": "😮", "document_id": video_files/sticker (2).webm
        }, "!"]"#,
    );
    check(
        &format!("{text},{}", said(2, r#""text": [{"type": "custom_emoji", "text": "😮", "document_id": "5"}]"#)),
        &[&format!("1 {ANN} tab \u{b} and \\x0B, \"q\" 😮!"), &format!("2 {ANN} 😮")],
    );
}

#[test]
fn a_record_that_cannot_be_read_is_rejected_with_its_line_and_the_rest_goes_on() {
    let messages = format!(
        "\n{},\n5,\n{{\"id\": 2, \"type\": \"message\", \"text\": \"no time\"}},\n{{\"id\": 3, \"text\": nothing}},\n{}",
        r#"{"id": 1, "type": "message", "date_unixtime": "1714557600", "from": "Ann", "text": "a"}"#,
        r#"{"id": 4, "type": "message", "date_unixtime": 1714557600, "from": "Ann", "text": "b"}"#,
    );
    let all = lines(&chat(&messages));
    let starts = [
        "1 2024-05-01T10:00:00Z Ann: a",
        "reject result.json:3: not an object",
        "reject result.json:4: date_unixtime",
        "reject result.json:5: ",
        "4 2024-05-01T10:00:00Z Ann: b",
    ];
    assert_eq!(all.len(), starts.len(), "{all:?}");
    for (line, start) in all.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
}

#[test]
fn a_file_that_ends_early_gives_what_it_holds() {
    let json = chat(&format!("{},{}", said(1, r#""text": "a""#), said(2, r#""text": "b""#)));
    let all = lines(&json[..json.len() - 20]);
    assert_eq!(all[0], format!("1 {ANN} a"));
    assert!(all.len() == 2 && all[1].starts_with("reject result.json:"), "{all:?}");
}

#[test]
fn an_account_holds_chats_of_every_kind() {
    let one = said(1, r#""text": "a""#);
    let json = format!(
        r#"{{"about": "Here is the data", "personal_information": {{"user_id": 5}},
            "contacts": {{"about": "", "list": [{{"first_name": "No", "id": 3}}]}},
            "chats": {{"about": "", "list": [
                {{"name": "Bo", "type": "personal_chat", "id": 8, "messages": [{one}]}},
                {{"type": "saved_messages", "id": 5, "messages": [{one}]}},
                {{"name": null, "type": "personal_chat", "id": 9, "messages": [{one}]}},
                {{"name": "Nobody wrote here", "type": "private_group", "id": 10, "messages": []}},
                {{"name": "Family", "type": "private_group", "id": 11, "messages": [{one}]}},
                {{"name": "News", "type": "public_channel", "id": 12, "messages": [{one}]}}
            ]}},
            "left_chats": {{"about": "", "list": [
                {{"name": "Old", "type": "private_supergroup", "id": 13, "messages": [{one}]}}
            ]}}}}"#
    );
    let folder = folder(&[("DataExport/result.json", &json)]);
    let items = items_of(&mut *open(folder.path(), "Z").unwrap());
    let conversations: Vec<(String, String, ConversationPrivacy)> = items
        .into_iter()
        .map(|item| match item {
            ChatItem::Message(m) => (m.conversation.id.clone(), m.conversation.name.clone(), m.conversation.privacy),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        ("user8", "Bo", ConversationPrivacy::Direct),
        ("user5", "Saved Messages", ConversationPrivacy::Direct),
        ("user9", "user9", ConversationPrivacy::Direct),
        ("chat11", "Family", ConversationPrivacy::Private),
        ("channel12", "News", ConversationPrivacy::Open),
        ("channel13", "Old", ConversationPrivacy::Private),
    ];
    assert_eq!(conversations, expected.map(|(id, name, privacy)| (id.to_owned(), name.to_owned(), privacy)));
}

#[test]
fn a_single_chat_is_the_users_own_choice() {
    let folder =
        folder(&[("result.json", &chat(&said(1, r#""text": "a""#)).replace("private_supergroup", "personal_chat"))]);
    let items = items_of(&mut *open(folder.path(), "Z").unwrap());
    let [ChatItem::Message(message)] = &items[..] else { panic!("{items:?}") };
    assert_eq!((message.conversation.id.as_str(), message.conversation.privacy), ("user77", ConversationPrivacy::Open));
}

#[test]
fn exports_of_2019_name_accounts_by_numbers_and_times_without_a_zone() {
    let json = r#"{"name": "Bo", "type": "personal_chat", "id": 4294967304, "messages": [
        {"id": 1, "type": "message", "date": "2019-07-01T12:00:00", "edited": "1970-01-01T01:00:00", "from": "Bo", "from_id": 4294967304, "text": "a"},
        {"id": 2, "type": "message", "date": "2019-07-01T12:00:00", "from": "G", "from_id": 8589934600, "text": "b"}]}"#;
    let folder = folder(&[("result.json", json)]);
    let path = folder.path().join("result.json");
    let mut reader = open(&path, "Europe/Berlin").unwrap();
    let notice = reader.notice().unwrap();
    assert!(notice.contains("no zone") && notice.contains("Europe/Berlin"), "{notice}");
    let items = items_of(&mut *reader);
    let [ChatItem::Message(a), ChatItem::Message(b)] = &items[..] else { panic!("{items:?}") };
    assert_eq!((a.time.to_string().as_str(), a.version), ("2019-07-01T12:00:00+02:00", 0));
    assert_eq!(
        (a.author.id.as_str(), a.conversation.id.as_str(), b.author.id.as_str()),
        ("user8", "user8", "channel8")
    );
    assert_eq!(open(&path, "Z").unwrap().notice().map(|n| n.contains("read as Z")), Some(true));
}

#[test]
fn times_with_their_moment_need_no_zone() {
    let folder = folder(&[("result.json", &chat(&said(1, r#""text": "a""#)))]);
    assert_eq!(open(&folder.path().join("result.json"), "Z").unwrap().notice(), None);
}

#[test]
fn messages_without_ids_get_the_same_ids_again() {
    let one = r#"{"type": "message", "date_unixtime": "1714557600", "from": "Ann", "text": "a"}"#;
    let all = lines(&format!(r#"{{"messages": [{one}, {one}]}}"#));
    assert_ne!(all[0], all[1]);
    assert_eq!(lines(&format!(r#"{{"messages": [{one}]}}"#)), all[..1]);
}

const PAGE: &str = r##"<!DOCTYPE html><html><body><div class="page_wrap"><div class="page_header"><div class="content">
<div class="text bold">
Trip &amp; Co
</div></div></div><div class="page_body chat_page"><div class="history">
<div class="message service" id="message-1"><div class="body details">
1 May 2024
</div></div>
<div class="message service" id="message3"><div class="body details">
Ann pinned this message
</div></div>
<div class="message default clearfix" id="message4"><div class="pull_left userpic_wrap"></div><div class="body">
<div class="pull_right date details" title="01.05.2024 12:00:00 UTC+02:00">
12:00
</div>
<div class="from_name">
Ann
</div>
<div class="text">
Is 1 &lt; 2?<br>See <a href="https://a.example/p">the plan</a>
</div></div></div>
<div class="message default clearfix joined" id="message5"><div class="body">
<div class="pull_right date details" title="01.05.2024 12:01:00 UTC+02:00">
12:01
</div>
<div class="reply_to details">
In reply to <a href="#go_to_message4" onclick="return GoToMessage(4)">this message</a>
</div>
<div class="media_wrap clearfix"><a class="photo_wrap clearfix pull_left" href="photos/photo_1.jpg"><img class="photo" src="x"/></a></div>
</div></div>
<div class="message default clearfix" id="message6"><div class="body">
<div class="pull_right date details" title="01.05.2024 12:02:00 UTC+02:00">
12:02
</div>
<div class="from_name">
Bo via @gif
</div>
<div class="forwarded body"><div class="from_name">
Cy <span class="date details" title="30.04.2024 09:00:00"> 30.04.2024 09:00:00</span>
</div>
<div class="text">
look
</div></div></div></div>
<div class="message default clearfix joined" id="message16"><div class="body">
<div class="pull_right date details" title="01.05.2024 12:02:00 UTC+02:00">
12:02
</div>
<div class="forwarded body"><div class="from_name">
Cy
</div>
<div class="media_wrap clearfix"><a class="photo_wrap clearfix pull_left" href="photos/photo_2.jpg"><img class="photo" src="x"/></a></div>
</div></div></div>
<div class="message default clearfix" id="message7"><div class="body">
<div class="pull_right date details" title="soon">
</div>
<div class="text">
when?
</div></div></div>
</div></div></div></body></html>"##;

#[test]
fn pages_give_what_they_say() {
    let second = PAGE.replace("message4\"", "message14\"").replace("UTC+02:00", "UTC");
    let folder = folder(&[("messages2.html", &second), ("messages10.html", ""), ("messages.html", PAGE)]);
    let mut reader = open(folder.path(), "Z").unwrap();
    assert_eq!(reader.notice(), None);
    let all = lines_of(&mut *reader);
    assert_eq!(
        all[..6],
        [
            "skip service message".to_owned(),
            format!("4 {ANN} Is 1 < 2?\nSee the plan (https://a.example/p)"),
            "5 2024-05-01T12:01:00+02:00 Ann:  | reply=4 | image: image <photos/photo_1.jpg>".to_owned(),
            "6 2024-05-01T12:02:00+02:00 Bo: Forwarded from Cy: look".to_owned(),
            "16 2024-05-01T12:02:00+02:00 Bo:  | image: Forwarded from Cy: image <photos/photo_2.jpg>".to_owned(),
            "reject messages.html:52: date: \"soon\" is not a time".to_owned(),
        ]
    );
    assert!(all[7].starts_with("14 2024-05-01T12:00:00Z Ann:"), "{all:?}");
    let Some(ChatItem::Message(message)) = items_of(&mut *open(folder.path(), "Z").unwrap()).into_iter().nth(1) else {
        panic!("a message")
    };
    assert_eq!((message.conversation.name.as_str(), message.author.id.as_str()), ("Trip & Co", "Ann"));
}

#[test]
fn an_export_of_something_else_names_the_export_that_is_needed() {
    let folder = folder(&[("list.json", "[1]"), ("some/photo.jpg", "")]);
    for path in [folder.path().join("list.json"), folder.path().join("some")] {
        let message = open(&path, "Z").err().unwrap().to_string();
        assert!(message.contains("Machine-readable JSON"), "{message}");
    }
}

#[test]
fn exports_are_recognised() {
    let account = r#"{"about": "x", "personal_information": {}, "chats": {"list": []}}"#;
    let chat = chat(&said(1, r#""text": "a""#));
    for (name, content, expected) in [
        ("result.json", chat.as_str(), true),
        ("renamed.json", &chat, true),
        ("Export/result.json", &chat, true),
        ("result.json", account, true),
        ("chats/chat_1/messages.html", PAGE, true),
        ("messages.json", r#"[{"ID": 5, "Timestamp": "", "Contents": ""}]"#, false),
        ("c.json", r#"{"guild": {}, "channel": {"type": "GuildTextChat"}, "messages": [{"timestamp": ""}]}"#, false),
        ("a.html", "<html><body>hi</body></html>", false),
    ] {
        let folder = folder(&[(name, content)]);
        let path = if name.contains('/') { folder.path().to_owned() } else { folder.path().join(name) };
        assert_eq!((FORMAT.looks_like)(&FileSample::of(&path).unwrap()), expected, "{name}");
    }
}

proptest! {
    /// A byte is changed, removed or doubled: the reader still comes to an end and never panics.
    #[test]
    fn damaged_exports_never_panic(at: prop::sample::Index, byte: u8, how in 0..3u8, page: bool) {
        let json = chat(&format!(
            "{},{},{}",
            said(1, r#""text": ["a \x0B", {"type": "custom_emoji", "text": "b", "document_id": a/b.webm
            }], "edited_unixtime": "1714557660""#),
            said(-5, r#""reply_to_message_id": 1, "photo": "p.jpg", "poll": {"question": "q", "answers": [{"text": "r"}]}"#),
            r#"{"id": 3, "type": "service", "action": "topic_created"}"#,
        ));
        let mut bytes = if page { PAGE.as_bytes().to_vec() } else { json.into_bytes() };
        let at = at.index(bytes.len());
        match how {
            0 => bytes[at] = byte,
            1 => drop(bytes.remove(at)),
            _ => bytes.insert(at, byte),
        }
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(if page { "messages.html" } else { "result.json" });
        fs::write(&path, bytes).unwrap();
        if let Ok(mut reader) = open(&path, "Z") {
            while let Ok(Some(_)) = reader.next() {}
        }
    }
}

#[test]
fn an_object_where_a_text_belongs_is_named_and_half_a_character_is_replaced() {
    check(
        &said(1, r#""text": {"type": "plain"}"#),
        &["reject result.json:1: text: an object where a text or a list belongs; export the chat again"],
    );
    check(
        &said(1, r#""text": ["a", {"type": "bold", "text": 5}]"#),
        &["reject result.json:1: text[].text: a number where a text belongs; export the chat again"],
    );
    check(
        &said(1, r#""text": "", "poll": "[object]""#),
        &[
            "reject result.json:1: poll: a text where an object belongs, and the message has no other words; export it again",
        ],
    );
    check(&said(1, r#""text": "The oar \ud83d""#), &["1 2024-05-01T12:00:00+02:00 Ann: The oar \u{fffd}"]);
}
