//! Tests of Discord's exports, on files written by hand according to the source code of DiscordChatExporter and the
//! descriptions of the data package.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use proptest::prelude::*;
use tempfile::TempDir;

use super::{FORMAT, markdown, mentions};
use crate::{
    SourceError,
    chat::{ChatItem, ChatMessage, ChatReader, ConversationPrivacy, FileSample, items_of, lines_of},
    format::FormatOpener,
};
use types::config::SourceSettings;

/// Ids assigned at 10:00, 10:01 and 10:02 UTC on 1 May 2024.
const AT_10_00: u64 = 1_235_168_840_908_800_000;
const AT_10_01: u64 = AT_10_00 + (60_000 << 22);
const AT_10_02: u64 = AT_10_00 + (120_000 << 22);

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

fn open(path: &Path) -> Result<Box<dyn ChatReader>, SourceError> {
    let FormatOpener::Chat(open) = FORMAT.open else { panic!("a chat's format") };
    open(&SourceSettings::new("discord", path))
}

fn lines(path: &Path) -> Vec<String> {
    lines_of(&mut *open(path).unwrap())
}

fn messages(path: &Path) -> Vec<ChatMessage> {
    let items = items_of(&mut *open(path).unwrap()).into_iter();
    items.filter_map(|item| if let ChatItem::Message(m) = item { Some(*m) } else { None }).collect()
}

/// A channel's file, as DiscordChatExporter indents it.
fn channel(about: &str, messages: &str) -> String {
    format!(
        "{{\n\"guild\": {{\"id\": \"1\", \"name\": \"Team\", \"iconUrl\": \"x\"}},\n\"channel\": {{{about}}},\n\"dateRange\": \
         {{\"after\": null}},\n\"exportedAt\": \"2024-06-01T00:00:00+00:00\",\n\"messages\": [\n{messages}\n],\n\"messageCount\": 1\n}}"
    )
}

const GENERAL: &str =
    r#""id": "20", "type": "GuildTextChat", "categoryId": "2", "category": "Texts", "name": "general""#;
const ANN: &str = r#"{"id": "5", "name": "ann", "discriminator": "0000", "nickname": "Ann A", "isBot": false, "roles": [{"id": "7", "name": "admins"}]}"#;
const SAID: &str = "2024-05-01T12:00:00+02:00 Ann A:";

/// A message from Ann with these additional fields.
fn said(id: u64, fields: &str) -> String {
    format!(
        r#"{{"id": "{id}", "type": "Default", "timestamp": "2024-05-01T12:00:00+02:00", "author": {ANN}, {fields}}}"#
    )
}

/// Checks the items of a channel's messages.
fn check(messages: &str, expected: &[&str]) {
    let folder = folder(&[("general.json", &channel(GENERAL, messages))]);
    assert_eq!(lines(&folder.path().join("general.json")), expected, "{messages}");
}

#[test]
fn messages_have_edits_replies_and_what_is_shared() {
    for (fields, expected) in [
        (r#""content": "hi", "timestampEdited": "2024-05-01T12:00:01+02:00""#, "hi | v=1714557601000"),
        (
            r#""content": "@Bo come to #plans", "mentions": [{"id": "6", "name": "bo", "nickname": "Bo"}]"#,
            "@Bo come to #plans",
        ),
        (
            r#""content": "<@6> and <@&7> <#20> <#21> <:wave:99>", "mentions": [{"id": "6", "name": "bo", "nickname": "Bo"}]"#,
            "@Bo and @admins #general #21 :wave:",
        ),
        (
            r#""content": "", "attachments": [{"id": "1", "url": "https://cdn.example/a/plan.pdf?ex=1", "fileName": "plan.pdf"}]"#,
            " | file: plan.pdf <https://cdn.example/a/plan.pdf?ex=1>",
        ),
        (r#""content": "", "attachments": [{"id": "1", "url": "media/cat.PNG"}]"#, " | image: cat.PNG <media/cat.PNG>"),
        (
            r#""content": "", "stickers": [{"id": "1", "name": "Wave", "format": "Lottie", "sourceUrl": "s.json"}]"#,
            " | sticker: sticker Wave <s.json>",
        ),
        (
            r#""content": "", "embeds": [{"title": "Build", "url": "https://ci.example", "description": "**failed**", "fields": [{"name": "step", "value": "test"}], "footer": {"text": "CI"}}]"#,
            " | embed: Build\nfailed\nstep: test\nCI <https://ci.example>",
        ),
        (
            r#""content": "", "reactions": [{"emoji": {"name": "👍"}, "count": 2}], "attachments": [{"fileName": "a.txt"}]"#,
            " | file: a.txt",
        ),
        (
            r#""content": "", "reference": {"type": "Forward", "messageId": "3", "channelId": "9"}, "forwardedMessage": {"content": "read this", "attachments": [{"fileName": "b.txt"}]}"#,
            "Forwarded: read this | file: b.txt",
        ),
        (r#""content": "see", "forwardedMessage": {"content": "this"}"#, "see\nForwarded: this"),
    ] {
        check(&said(AT_10_00, fields), &[&format!("{AT_10_00} {SAID} {expected}")]);
    }
    let reply = said(
        AT_10_01,
        r#""content": "yes", "reference": {"type": "Default", "messageId": "3", "channelId": "20", "guildId": "1"}"#,
    );
    check(
        &reply.replace("\"Default\", \"timestamp", "\"Reply\", \"timestamp"),
        &[&format!("{AT_10_01} {SAID} yes | reply=3")],
    );
    check(&reply, &[&format!("{AT_10_01} {SAID} yes")]);
}

#[test]
fn kinds_are_words_notices_copies_or_unknown() {
    for (kind, content, expected) in [
        ("\"Default\"", "a", None),
        ("\"20\"", "a", None),
        ("23", "a", None),
        ("\"RecipientAdd\"", "a", Some("skip service message")),
        ("\"7\"", "a", Some("skip service message")),
        ("\"24\"", "a", Some("skip service message")),
        ("\"46\"", "", Some("skip service message")),
        ("\"21\"", "", Some("skip copy")),
        ("\"99\"", "", Some("skip unsupported")),
        ("\"99\"", "a", None),
        ("\"Default\"", "", Some("skip empty")),
    ] {
        let message = said(AT_10_00, &format!(r#""content": "{content}""#)).replace("\"Default\"", kind);
        let words = format!("{AT_10_00} {SAID} a");
        check(&message, &[expected.unwrap_or(&words)]);
    }
}

#[test]
fn accounts_have_nicknames_and_handles_and_webhooks_speak_under_many_names() {
    let by = |author: &str| said(AT_10_00, r#""content": "a""#).replace(ANN, author);
    let all = [
        by(ANN),
        by(r#"{"id": "6", "name": "bo", "discriminator": "0042", "nickname": "", "isBot": false}"#),
        by(r#"{"id": "8", "name": "helper", "discriminator": "1234", "isBot": true}"#),
        by(r#"{"id": "9", "name": "Cy", "discriminator": "0000", "isBot": true}"#),
        by(r#"{"id": "9", "name": "Di", "discriminator": "0000", "isBot": true}"#),
    ];
    let folder = folder(&[("general.json", &channel(GENERAL, &all.join(",")))]);
    let accounts =
        messages(folder.path()).into_iter().map(|m| (m.author.id, m.author.name, m.author.handle, m.author.bot));
    let expected = [
        ("5", "Ann A", Some("ann"), false),
        ("6", "bo", Some("bo#0042"), false),
        ("8", "helper", Some("helper#1234"), true),
        ("9/Cy", "Cy", None, true),
        ("9/Di", "Di", None, true),
    ];
    let expected =
        expected.map(|(id, name, handle, bot)| (id.to_owned(), name.to_owned(), handle.map(str::to_owned), bot));
    assert_eq!(accounts.collect::<Vec<_>>(), expected);
}

#[test]
fn a_thread_belongs_to_the_channel_above_it() {
    let thread =
        r#""id": "30", "type": "GuildPublicThread", "categoryId": "20", "category": "general", "name": "Lunch""#;
    let private = thread.replace("Public", "Private").replace("30", "31");
    let direct = r#""id": "40", "type": "DirectTextChat", "name": "Bo""#;
    let one = |id| said(id, r#""content": "a""#);
    let folder = folder(&[
        ("a.json", &channel(GENERAL, &one(AT_10_00))),
        ("b/c.json", &channel(thread, &one(AT_10_01))),
        ("d.json", &channel(&private, &one(AT_10_02))),
        ("e.json", &channel(direct, &one(AT_10_02 + 1))),
        ("a.json_Files/notes.json", r#"{"messages": [1]}"#),
    ]);
    let found = messages(folder.path()).into_iter().map(|m| {
        let c = &m.conversation;
        (c.workspace.clone(), c.id.clone(), c.name.clone(), c.privacy, m.thread)
    });
    let expected = [
        (Some("Team"), "20", "general", ConversationPrivacy::Open, None),
        (Some("Team"), "20", "general", ConversationPrivacy::Open, Some("30")),
        (Some("Team"), "31", "Lunch", ConversationPrivacy::Private, None),
        (Some("Team"), "40", "Bo", ConversationPrivacy::Direct, None),
    ];
    let expected = expected.map(|(team, id, name, privacy, thread)| {
        (team.map(str::to_owned), id.to_owned(), name.to_owned(), privacy, thread.map(str::to_owned))
    });
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert_eq!(messages(&folder.path().join("e.json"))[0].conversation.privacy, ConversationPrivacy::Open);
}

#[test]
fn parts_and_reversed_files_come_oldest_first() {
    let one = |id: u64| said(id, r#""content": "a""#);
    let parts = folder(&[
        ("general [part 2].json", &channel(GENERAL, &one(AT_10_02))),
        ("general.json", &channel(GENERAL, &format!("{},{}", one(AT_10_00), one(AT_10_01)))),
    ]);
    let reversed =
        folder(&[("general.json", &channel(GENERAL, &[one(AT_10_02), one(AT_10_01), one(AT_10_00)].join(",")))]);
    for folder in [parts, reversed] {
        let ids: Vec<String> = messages(folder.path()).into_iter().map(|m| m.id).collect();
        assert_eq!(ids, [AT_10_00, AT_10_01, AT_10_02].map(|id| id.to_string()));
    }
}

#[test]
fn a_damaged_message_is_rejected_with_its_line_and_the_rest_goes_on() {
    for reversed in [false, true] {
        let (first, last) = if reversed { (AT_10_01, AT_10_00) } else { (AT_10_00, AT_10_01) };
        let all = [
            said(first, r#""content": "a""#),
            said(last, r#""content": "b""#),
            "7".to_owned(),
            r#"{"type": "Default", "content": "no id"}"#.to_owned(),
            r#"{"id": "8", "content": what}"#.to_owned(),
            r#"{"id": "12", "type": "Default", "content": "early", "timestamp": "soon"}"#.to_owned(),
        ];
        let folder = folder(&[("general.json", &channel(GENERAL, &all.join(",\n")))]);
        let mut lines = lines(folder.path());
        lines.sort();
        let starts = [
            "12351",
            "12351",
            "reject general.json:10: id",
            "reject general.json:11: expected value",
            "reject general.json:12: timestamp",
            "reject general.json:9: not an object",
        ];
        assert_eq!(lines.len(), starts.len(), "{lines:?}");
        for (line, start) in lines.iter().zip(starts) {
            assert!(line.starts_with(start), "{line} {start}");
        }
    }
}

#[test]
fn a_time_that_is_missing_is_in_the_id() {
    let message = said(AT_10_01, r#""content": "a""#).replace("2024-05-01T12:00:00+02:00", "01.05.2024");
    check(&message, &[&format!("{AT_10_01} 2024-05-01T10:01:00Z Ann A: a")]);
}

/// The files of a data package, with these names for the folders of messages and of the account.
fn package(messages: &str, account: &str) -> Vec<(String, String)> {
    let rows = format!(
        r#"[{{"ID": {AT_10_01}, "Timestamp": "2024-05-01 10:01:00", "Contents": "later", "Attachments": ""}},
            {{"ID": {AT_10_00}, "Timestamp": "2024-05-01 10:00:00", "Contents": "**first** for <@5>", "Attachments": ""}}]"#
    );
    let table = format!(
        "\u{feff}ID,Timestamp,Contents,Attachments\r\n{AT_10_02},2024-05-01 10:02:00.123000+00:00,\"one, \"\"two\"\"\nthree\",\r\n\
         {},,,https://cdn.example/1/cat.png https://cdn.example/2/dog.png\r\nnone,x,no id,\r\n",
        AT_10_02 + 1
    );
    let file = |name: String, content: &str| (name, content.to_owned());
    vec![
        file(
            format!("{account}/user.json"),
            r#"{"id": "5", "username": "ann", "discriminator": 0, "global_name": "Ann A"}"#,
        ),
        file(
            format!("{messages}/index.json"),
            r#"{"20": "general in Team", "40": "Direct Message with bo#0", "50": null}"#,
        ),
        file(
            format!("{messages}/c20/channel.json"),
            r#"{"id": "20", "type": "GUILD_TEXT", "name": "general", "guild": {"id": "1", "name": "Team"}}"#,
        ),
        file(format!("{messages}/c20/messages.json"), &rows),
        file(format!("{messages}/40/channel.json"), r#"{"id": "40", "type": 1, "recipients": ["5", "6"]}"#),
        file(format!("{messages}/40/messages.csv"), &table),
    ]
}

fn package_folder(messages: &str, account: &str) -> TempDir {
    let files = package(messages, account);
    folder(&files.iter().map(|(name, content)| (name.as_str(), content.as_str())).collect::<Vec<_>>())
}

const PACKAGE: [&str; 5] = [
    "reject messages.csv:5: ID: not an id of Discord; request the package again",
    "1235168840908800000 2024-05-01T10:00:00Z Ann A: first for @Ann A",
    "1235169092567040000 2024-05-01T10:01:00Z Ann A: later",
    "1235169344225280000 2024-05-01T10:02:00.123Z Ann A: one, \"two\"\nthree",
    "1235169344225280001 2024-05-01T10:02:00Z Ann A:  | image: cat.png <https://cdn.example/1/cat.png> | image: dog.png <https://cdn.example/2/dog.png>",
];

#[test]
fn a_data_package_is_read_whatever_its_language() {
    for (messages_folder, account) in
        [("messages", "account"), ("package/Nachrichten", "package/Konto"), ("Wiadomości", "Konto")]
    {
        let folder = package_folder(messages_folder, account);
        let mut found = lines(folder.path());
        found.sort();
        let mut expected = PACKAGE.map(str::to_owned);
        expected.sort();
        assert_eq!(found, expected);
        let conversations =
            messages(folder.path()).into_iter().map(|m| (m.conversation.name.clone(), m.conversation.privacy));
        let mut conversations: Vec<_> = conversations.collect();
        conversations.dedup();
        assert!(conversations.contains(&("bo".to_owned(), ConversationPrivacy::Direct)), "{conversations:?}");
        assert!(conversations.contains(&("general".to_owned(), ConversationPrivacy::Open)), "{conversations:?}");
    }
}

#[test]
fn a_packed_package_equals_the_unpacked_one() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("package.zip");
    let mut archive = zip::ZipWriter::new(fs::File::create(&path).unwrap());
    for (name, content) in package("Messages", "Account") {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(content.as_bytes()).unwrap();
    }
    archive.finish().unwrap();
    assert_eq!(lines(&path), lines(package_folder("Messages", "Account").path()));
}

#[test]
fn one_table_of_a_package_finds_its_channel_and_its_account() {
    let folder = package_folder("Messages", "Account");
    let table: PathBuf = folder.path().join("Messages/c20/messages.json");
    let all = messages(&table);
    let [first, later] = &all[..] else { panic!("{all:?}") };
    assert_eq!(
        (first.text.as_str(), later.text.as_str(), first.author.name.as_str()),
        ("first for @Ann A", "later", "Ann A")
    );
    assert_eq!((first.conversation.name.as_str(), first.conversation.privacy), ("general", ConversationPrivacy::Open));
    fs::remove_dir_all(folder.path().join("Account")).unwrap();
    let notice = open(&table).unwrap().notice().unwrap();
    assert!(notice.contains("\"me\""), "{notice}");
}

#[test]
fn marks_of_markdown_disappear_and_words_stay() {
    for (text, expected) in [
        ("**bold** and *it* and __under__ ~~gone~~ ||secret||", "bold and it and under gone secret"),
        ("***both*** **a *b* c**", "both a b c"),
        ("snake_case_name and 2 * 3 * 4 and 2*3*4", "snake_case_name and 2 * 3 * 4 and 2*3*4"),
        ("_it_ a_b", "it a_b"),
        ("`**code**` and ``a ` b``", "**code** and a ` b"),
        ("```rust\nlet a = *b;\n```\ndone", "let a = *b;\ndone"),
        ("# Title\ntext\n-# small", "Title\ntext\nsmall"),
        ("> quoted\n- item", "> quoted\n- item"),
        (
            "[the plan](https://a.example/p) <https://b.example/x_y_z>",
            "the plan (https://a.example/p) https://b.example/x_y_z",
        ),
        ("https://a.example/some_file_name*x*", "https://a.example/some_file_name*x*"),
        (r"\*not bold\* ¯\_(ツ)_/¯ C:\dir", r"*not bold* ¯_(ツ)_/¯ C:\dir"),
        ("**open and *open", "**open and *open"),
        ("a < b > c", "a < b > c"),
        ("", ""),
    ] {
        assert_eq!(markdown::plain(text), expected, "{text}");
    }
}

struct KnownDiscordNames;

impl mentions::DiscordNames for KnownDiscordNames {
    fn account(&self, id: &str) -> Option<String> {
        (id == "1").then(|| "Ann".to_owned())
    }
    fn role(&self, id: &str) -> Option<String> {
        (id == "2").then(|| "admins".to_owned())
    }
    fn channel(&self, id: &str) -> Option<String> {
        (id == "3").then(|| "general".to_owned())
    }
}

#[test]
fn mentions_emojis_and_times_are_written_as_people_read_them() {
    for (text, expected) in [
        ("<@1> <@!1> <@9>", "@Ann @Ann @9"),
        ("<@&2> <@&9> <#3> <#9>", "@admins @9 #general #9"),
        ("<:ok:5><a:dance_1:6> </play song:7>", ":ok::dance_1: /play song"),
        ("<t:1714557600> <t:1714557600:t> <t:1714557600:D>", "2024-05-01 10:00 UTC 10:00 UTC 2024-05-01"),
        ("a < b, <@x>, <t:now>, <>, <", "a < b, <@x>, <t:now>, <>, <"),
    ] {
        assert_eq!(mentions::with_names(text, &KnownDiscordNames), expected, "{text}");
    }
}

#[test]
fn an_export_of_something_else_names_the_export_that_is_needed() {
    let folder =
        folder(&[("general.html", "<html>"), ("general.csv", "AuthorID,Author,Date,Content\n"), ("a/b.json", "{}")]);
    for name in ["general.html", "general.csv", "a"] {
        let message = open(&folder.path().join(name)).err().unwrap().to_string();
        assert!(message.contains("--format Json"), "{message}");
    }
}

#[test]
fn exports_are_recognised() {
    let general = channel(GENERAL, &said(AT_10_00, r#""content": "a""#));
    let one = folder(&[
        ("x.json", &general),
        ("y.json", r#"[{"ts": "1.2"}]"#),
        ("messages.csv", "ID,Timestamp,Contents,Attachments\n"),
    ]);
    let package = package_folder("Nachrichten", "Konto");
    for (path, expected) in [
        (one.path().join("x.json"), true),
        (one.path().to_owned(), true),
        (one.path().join("y.json"), false),
        (one.path().join("messages.csv"), true),
        (package.path().to_owned(), true),
        (package.path().join("Nachrichten/c20/messages.json"), true),
    ] {
        assert_eq!((FORMAT.looks_like)(&FileSample::of(&path).unwrap()), expected, "{}", path.display());
    }
}

proptest! {
    /// A byte is changed, removed or doubled: the reader still comes to an end and never panics.
    #[test]
    fn damaged_exports_never_panic(at: prop::sample::Index, byte: u8, how in 0..3u8, form in 0..3usize) {
        let exported = channel(GENERAL, &[
            said(AT_10_01, r#""content": "**a** <@6> <t:1:R>", "mentions": [{"id": "6", "name": "bo"}], "embeds": [{"title": "t"}]"#),
            said(AT_10_00, r#""content": "b", "reference": {"messageId": "3"}, "forwardedMessage": {"content": "c"}"#),
        ].join(","));
        let files = package("messages", "account");
        let (name, content) = match form {
            0 => ("general.json", exported.as_str()),
            1 => ("messages.json", files[3].1.as_str()),
            _ => ("messages.csv", files[5].1.as_str()),
        };
        let mut bytes = content.as_bytes().to_vec();
        let at = at.index(bytes.len());
        match how {
            0 => bytes[at] = byte,
            1 => drop(bytes.remove(at)),
            _ => bytes.insert(at, byte),
        }
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        if let Ok(mut reader) = open(&path) {
            while let Ok(Some(_)) = reader.next() {}
        }
    }

    /// Any text goes through both renderings without a panic.
    #[test]
    fn any_text_can_be_rendered(text in r"[*_~|`<>@#:t0-9\[\]()\\ a-cä\n]{0,80}") {
        let _ = markdown::plain(&mentions::with_names(&text, &KnownDiscordNames));
    }
}

#[test]
fn the_message_that_began_a_thread_belongs_to_it_whichever_file_comes_first() {
    let thread =
        r#""id": "30", "type": "GuildPublicThread", "categoryId": "20", "category": "general", "name": "oars""#;
    let thread = thread.replace("30", &AT_10_00.to_string());
    let question = said(AT_10_00, r#""content": "Who has the oars?""#);
    let answer = said(AT_10_01, r#""content": "They lie in the boat""#);
    let other = said(AT_10_02, r#""content": "We row on Friday""#);
    let line = |id: u64, text: &str| format!("{id} {SAID} {text}");
    let of_thread = format!(" | thread={AT_10_00}");
    for names in [["a.json", "b.json"], ["b.json", "a.json"]] {
        let [of_channel, of_answers] = names;
        let folder = folder(&[
            (of_channel, &channel(GENERAL, &format!("{question},{other}"))),
            (of_answers, &channel(&thread, &format!("{question},{answer}"))),
        ]);
        let mut found = lines(folder.path());
        found.sort();
        assert_eq!(
            found,
            [
                line(AT_10_00, "Who has the oars?") + &of_thread,
                line(AT_10_01, "They lie in the boat") + &of_thread,
                line(AT_10_02, "We row on Friday"),
                "skip copy".to_owned(),
            ]
        );
    }
    // Without the thread's file, it is a message of the channel. A version that was edited since is not a copy.
    let alone = folder(&[("general.json", &channel(GENERAL, &question))]);
    assert_eq!(lines(&alone.path().join("general.json")), [line(AT_10_00, "Who has the oars?")]);
    let edited = said(AT_10_00, r#""content": "Who has both oars?", "timestampEdited": "2024-05-01T12:00:01+02:00""#);
    let folder = folder(&[("a.json", &channel(GENERAL, &edited)), ("b.json", &channel(&thread, &question))]);
    let found = lines(folder.path());
    assert!(found.len() == 2 && found.iter().all(|line| line.ends_with(&of_thread)), "{found:?}");
}

#[test]
fn an_object_where_a_text_belongs_is_named_and_half_a_character_is_replaced() {
    check(
        &said(AT_10_00, r#""content": {"parts": ["hi"]}"#),
        &["reject general.json:7: content: an object where a text belongs; export the channel again"],
    );
    check(&said(AT_10_00, r#""content": "The oar \ud83d""#), &[&format!("{AT_10_00} {SAID} The oar \u{fffd}")]);
}

#[test]
fn a_file_that_is_blank_or_cut_before_its_messages_is_told() {
    let folder = folder(&[
        ("a.json", &channel(GENERAL, &said(AT_10_00, r#""content": "hi""#))),
        ("blank.json", ""),
        ("cut.json", r#"{"guild": {"id": "1", "na"#),
        ("header.json", &format!(r#"{{"guild": {{"name": "Team"}}, "channel": {{{GENERAL}}}, "mess"#)),
        ("a.json_Files/blank.json", ""),
        ("other.json", "{}"),
    ]);
    let mut found = lines(folder.path());
    found.sort();
    let cut = "holds no list of messages, and names no channel; export the channel again";
    assert_eq!(
        found,
        [
            format!("{AT_10_00} {SAID} hi"),
            format!("reject blank.json:1: {cut}"),
            format!("reject cut.json:1: {cut}"),
            "reject header.json:1: holds no list of messages; export it again".to_owned(),
        ]
    );
}
