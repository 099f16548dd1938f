//! Tests of exports written by hand, one for each known difficulty of Slack's format.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{SourceBatch, SourceCounts, tests::drain};
use types::{
    config::{PrivateConversationKind, SourceSettings},
    model::{Turn, TurnEvent},
};

type Files<'a> = &'a [(&'a str, Value)];

/// Writes an export into a directory.
fn export(home: &Path, files: Files<'_>) -> PathBuf {
    let root = home.join("export");
    for (name, value) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // A text is written as it is, for files that are not JSON.
        let text = value.as_str().map_or_else(|| serde_json::to_string_pretty(value).unwrap(), str::to_owned);
        fs::write(path, text).unwrap();
    }
    root
}

fn read_path(path: &Path, change: impl Fn(&mut SourceSettings)) -> (SourceBatch, SourceCounts) {
    let mut settings = SourceSettings { bank: "b".to_owned(), ..SourceSettings::new("slack", path) };
    change(&mut settings);
    let mut source = crate::open(&settings).unwrap();
    let batch = drain(&mut *source, 3);
    let progress = source.progress();
    assert_eq!(Some(progress.done), progress.total, "all bytes were read");
    (batch, source.counts())
}

fn read(files: Files<'_>, change: impl Fn(&mut SourceSettings)) -> (SourceBatch, SourceCounts) {
    let home = tempfile::tempdir().unwrap();
    let root = export(home.path(), files);
    let (mut batch, counts) = read_path(&root, change);
    for letter in &mut batch.rejects {
        letter.origin = letter.origin.strip_prefix(&format!("{}/", root.display())).unwrap().to_owned();
    }
    (batch, counts)
}

fn turns(batch: &SourceBatch) -> Vec<&Turn> {
    batch.events.iter().filter_map(|e| if let TurnEvent::Turn(turn) = e { Some(turn) } else { None }).collect()
}

/// `SPEAKER: TEXT` for each turn, followed by what was shared.
fn said(batch: &SourceBatch) -> Vec<String> {
    let shown = |turn: &&Turn| {
        let shared: Vec<String> = turn
            .attachments
            .iter()
            .map(|a| [&a.kind, &a.caption, &a.url].map(|part| part.as_deref().unwrap_or("-").to_owned()).join("|"))
            .collect();
        let shared = if shared.is_empty() { String::new() } else { format!(" {shared:?}") };
        format!("{}: {}{shared}", turn.speaker, turn.text)
    };
    turns(batch).iter().map(shown).collect()
}

/// Checks the turns of one day of the channel `general`, with Ann, Bo and the program Builder.
fn check(day: Value, expected: &[&str], skipped: &[(&'static str, u64)]) {
    let (batch, counts) =
        read(&[("users.json", users()), ("channels.json", channels()), ("general/2024-05-01.json", day)], |_| ());
    assert_eq!(said(&batch), expected, "{:?}", batch.rejects);
    assert_eq!(counts.skipped, skipped.iter().copied().collect());
}

fn users() -> Value {
    json!([
        {"id": "U1", "team_id": "T1", "name": "ann", "profile": {"display_name": "Ann", "real_name": "Ann Bell"}},
        {"id": "U2", "team_id": "T1", "name": "bo", "real_name": "Bo Day", "profile": {"display_name": ""}},
        {"id": "U3", "team_id": "T1", "name": "builder", "is_bot": true, "profile": {"real_name": "Builder"}}
    ])
}

fn channels() -> Value {
    json!([{"id": "C1", "name": "general"}, {"id": "C2", "name": "random"}])
}

fn message(ts: &str, user: &str, text: &str) -> Value {
    json!({"type": "message", "ts": ts, "user": user, "text": text})
}

fn with(mut message: Value, more: Value) -> Value {
    message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    message
}

#[test]
fn a_message_keeps_the_text_of_its_ts_as_its_id() {
    let day = json!([message("1714550400.000100", "U1", "hello"), message("1714550400.000200", "U2", "hi")]);
    let (batch, _) =
        read(&[("users.json", users()), ("channels.json", channels()), ("general/2024-05-01.json", day)], |_| ());
    let [first, second] = turns(&batch)[..] else { panic!("{batch:?}") };
    assert_eq!((first.turn.as_str(), second.turn.as_str()), ("C1/1714550400.000100", "C1/1714550400.000200"));
    assert_eq!(first.time.to_string(), "2024-05-01T08:00:00Z");
    assert_eq!(first.session.as_deref(), Some("general"));
    assert_eq!((first.speaker.as_str(), second.speaker.as_str()), ("Ann", "Bo Day"));
}

#[test]
fn a_reply_in_a_later_days_file_finds_its_root() {
    let root =
        with(message("1714550400.000100", "U1", "root"), json!({"thread_ts": "1714550400.000100", "reply_count": 2}));
    let old_root =
        with(message("1714550500.000100", "U1", "old root"), json!({"replies": [{"user": "U2", "ts": "1"}]}));
    let reply =
        |ts: &str| with(message(ts, "U2", "reply"), json!({"thread_ts": "1714550400.000100", "parent_user_id": "U1"}));
    let broadcast = with(reply("1714640000.000100"), json!({"subtype": "thread_broadcast", "root": {"text": "root"}}));
    let files = [
        ("channels.json", channels()),
        ("general/2024-05-01.json", json!([root, old_root])),
        ("general/2024-05-02.json", json!([reply("1714636800.000100"), broadcast])),
    ];
    let (batch, _) = read(&files, |_| ());
    let threads: Vec<_> = turns(&batch).iter().map(|t| (t.thread.as_deref(), t.reply_to.as_deref())).collect();
    let thread = Some("C1/1714550400.000100");
    assert_eq!(threads, [(thread, None), (Some("C1/1714550500.000100"), None), (thread, thread), (thread, thread)]);
}

#[test]
fn edits_are_versions_and_tombstones_are_deletions() {
    let edited =
        with(message("1714550400.000100", "U1", "now"), json!({"edited": {"user": "U1", "ts": "1714550460.500000"}}));
    let untimed = with(message("1714550401.000100", "U1", "now"), json!({"edited": {}}));
    let tombstone = with(
        message("1714550402.000100", "USLACKBOT", "This message was deleted."),
        json!({"subtype": "tombstone", "hidden": true, "thread_ts": "1714550402.000100", "reply_count": 1}),
    );
    let (batch, _) = read(&[("general/2024-05-01.json", json!([edited, untimed, tombstone]))], |_| ());
    let versions: Vec<u64> = turns(&batch).iter().map(|t| t.version).collect();
    assert_eq!(versions, [1_714_550_460_500, 1]);
    let deletions: Vec<_> = batch
        .events
        .iter()
        .filter_map(|e| if let TurnEvent::Deletion(d) = e { Some((d.turn.as_str(), d.version)) } else { None })
        .collect();
    assert_eq!(deletions, [("general/1714550402.000100", u64::MAX)]);
}

#[test]
fn of_two_copies_the_one_edited_later_counts() {
    let edited = with(message("1.000001", "U1", "new"), json!({"edited": {"ts": "2.000000"}}));
    check(json!([message("1.000001", "U1", "old"), edited.clone(), edited]), &["Ann: old", "Ann: new"], &[("copy", 1)]);
}

#[test]
fn speakers_that_are_on_no_list_have_names() {
    let stranger = with(
        message("1.000001", "U9", "from outside"),
        json!({"user_profile": {"display_name": "Cleo", "name": "cleo"}}),
    );
    let app = with(message("4.000001", "U8", "deployed"), json!({"bot_id": "B2", "bot_profile": {"name": "Deployer"}}));
    let day = json!([
        stranger,
        message("2.000001", "U9", "again, <@U9> and <@U7>"),
        message("3.000001", "USLACKBOT", "reminder"),
        app,
        {"type": "message", "subtype": "bot_message", "ts": "5.000001", "bot_id": "B1", "username": "github", "text": "pushed"},
        {"type": "message", "subtype": "bot_message", "ts": "6.000001", "bot_id": "B1", "text": "pushed"},
        {"type": "message", "ts": "7.000001", "text": "nobody"},
        message("8.000001", "U3", "built")
    ]);
    let files = [("users.json", users()), ("channels.json", channels()), ("general/2024-05-01.json", day)];
    let (batch, counts) = read(&files, |_| ());
    let expected = [
        "Cleo: from outside",
        "Cleo: again, @Cleo and @U7",
        "Slackbot: reminder",
        "Deployer: deployed",
        "github: pushed",
        "B1: pushed",
        "unknown: nobody",
        "Builder: built",
    ];
    assert_eq!(said(&batch), expected);
    let bots: Vec<&str> = counts.bots.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(bots, ["B1", "Builder", "Deployer", "Slackbot", "github", "unknown"]);
}

#[test]
fn an_integration_has_the_name_of_its_notice() {
    let added = json!({"type": "message", "subtype": "bot_add", "ts": "1.000001", "user": "U1", "bot_id": "B1",
        "text": "added an integration to this channel: <https://x.slack.com/services/B1|github>"});
    let pushed =
        json!({"type": "message", "subtype": "bot_message", "ts": "2.000001", "bot_id": "B1", "text": "pushed"});
    check(json!([added, pushed]), &["github: pushed"], &[("service message", 1)]);
}

#[test]
fn texts_are_rendered_with_names_of_people_and_channels() {
    let text = "<@U2>: see <#C2> and <#C9|lost>, <!here> *now* &amp; <https://a.example|this>";
    check(
        json!([message("1.000001", "U1", text)]),
        &["Ann: @Bo Day: see #random and #lost, @here now & this (https://a.example)"],
        &[],
    );
}

#[test]
fn files_with_and_without_addresses_become_attachments() {
    let file = |more: Value| {
        with(json!({"id": "F1", "name": "plan.pdf", "title": "The plan", "mimetype": "application/pdf"}), more)
    };
    let token = "https://files.slack.com/F1/plan.pdf?t=xoxe-1-2";
    let shared = |ts: &str, text: &str, file: Value| {
        with(message(ts, "U1", text), json!({"files": [file, null], "upload": true}))
    };
    let old = with(
        message("6.000001", "U1", "<@U1> uploaded a file: <https://x.slack.com/F1|The plan> and commented: see"),
        json!({"subtype": "file_share", "file": file(json!({"permalink": "https://x.slack.com/F1", "initial_comment": {"comment": "see"}}))}),
    );
    let comment = json!({"type": "message", "subtype": "file_comment", "ts": "7.000001", "text": "<@U2> commented on <@U1>’s file",
        "comment": {"user": "U2", "comment": "good"}, "file": file(json!({}))});
    check(
        json!([
            shared("1.000001", "", file(json!({"url_private": token}))),
            shared(
                "2.000001",
                "look",
                json!({"id": "F2", "mimetype": "image/png", "name": "cat.png", "permalink": "https://x.slack.com/F2"})
            ),
            shared("3.000001", "gone", json!({"id": "F3", "mode": "tombstone"})),
            shared("4.000001", "", json!({"id": "F4", "mode": "tombstone"})),
            shared("5.000001", "", json!({"id": "F5", "mode": "hidden_by_limit"})),
            old,
            comment
        ]),
        &[
            "Ann:  [\"file|The plan|https://files.slack.com/F1/plan.pdf\"]",
            "Ann: look [\"image|cat.png|https://x.slack.com/F2\"]",
            "Ann: gone",
            "Ann: see [\"file|The plan|https://x.slack.com/F1\"]",
            "Bo Day: good [\"file|The plan|-\"]",
        ],
        &[("empty", 2)],
    );
}

#[test]
fn the_body_of_an_integration_is_its_text_and_a_preview_is_shared() {
    let body = json!({"pretext": "1 new commit:", "text": "<https://a.example|ed1acbe>: draft", "fallback": "x", "fields": [{"title": "By", "value": "Bo"}]});
    let preview =
        json!({"from_url": "https://a.example", "title": "A page", "title_link": "https://a.example", "text": "words"});
    let quote = json!({"is_msg_unfurl": true, "author_name": "Bo Day", "text": "said before", "from_url": "https://x.slack.com/1"});
    let blocks = json!([{"type": "section", "text": {"type": "mrkdwn", "text": "*Deployed*"}}]);
    check(
        json!([
            {"type": "message", "subtype": "bot_message", "ts": "1.000001", "user": "U3", "text": "", "attachments": [body]},
            with(message("2.000001", "U1", "see <https://a.example>"), json!({"attachments": [preview]})),
            with(message("3.000001", "U1", "as he said"), json!({"attachments": [quote]})),
            {"type": "message", "subtype": "bot_message", "ts": "4.000001", "user": "U3", "text": "", "blocks": blocks},
            {"type": "message", "subtype": "bot_message", "ts": "5.000001", "user": "U3", "text": "", "attachments": [{"fallback": "plain"}]}
        ]),
        &[
            "Builder: 1 new commit:\ned1acbe (https://a.example): draft\nBy: Bo",
            "Ann: see https://a.example [\"link|A page\\nwords|https://a.example\"]",
            "Ann: as he said [\"message|Bo Day:\\nsaid before|https://x.slack.com/1\"]",
            "Builder: Deployed",
            "Builder: plain",
        ],
        &[],
    );
}

#[test]
fn notices_are_counted_and_said_things_are_kept() {
    let of = |ts: &str, subtype: &str| with(message(ts, "U1", "waves"), json!({"subtype": subtype}));
    let notices =
        ["channel_join", "group_leave", "channel_topic", "channel_convert_to_private", "pinned_item", "huddle_thread"];
    let mut day: Vec<Value> =
        notices.iter().enumerate().map(|(n, subtype)| of(&format!("{n}.000001"), subtype)).collect();
    day.extend([
        of("11.000001", "me_message"),
        of("12.000001", "of_a_later_year"),
        of("13.000001", "ekm_access_denied"),
        of("14.000001", "reply_broadcast"),
        json!({"type": "channel_marked", "ts": "15.000001"}),
        message("16.000001", "U1", "  "),
    ]);
    let skipped = [("copy", 1), ("empty", 1), ("encrypted", 1), ("service message", 6), ("unsupported", 1)];
    check(Value::Array(day), &["Ann: waves", "Ann: waves"], &skipped);
}

#[test]
fn private_and_direct_conversations_are_off_and_have_names() {
    let day = |text: &str| json!([message("1.000001", "U1", text)]);
    let files = [
        ("users.json", users()),
        ("channels.json", channels()),
        ("groups.json", json!([{"id": "G1", "name": "board"}])),
        ("dms.json", json!([{"id": "D1", "members": ["U2", "U1"]}])),
        ("mpims.json", json!([{"id": "G2", "name": "mpdm-ann--bo--builder-1", "members": ["U1", "U2", "U3"]}])),
        ("general/2024-05-01.json", day("open")),
        ("board/2024-05-01.json", day("group")),
        ("D1/2024-05-01.json", day("direct")),
        ("mpdm-ann--bo--builder-1/2024-05-01.json", day("three")),
        ("unlisted/2024-05-01.json", day("on no list")),
    ];
    let sessions = |change: &dyn Fn(&mut SourceSettings)| {
        let (batch, counts) = read(&files, change);
        let sessions: Vec<String> = turns(&batch).iter().map(|t| t.session.clone().unwrap()).collect();
        (sessions, counts.skipped)
    };
    let (open, skipped) = sessions(&|_| ());
    assert_eq!(open, ["general"]);
    assert_eq!(skipped, [("direct message", 2), ("private channel", 2)].into());
    let (all, _) = sessions(&|s| s.include = vec![PrivateConversationKind::Private, PrivateConversationKind::Direct]);
    assert_eq!(all, ["Ann, Bo Day", "board", "general", "Ann, Bo Day, Builder", "unlisted"]);
    let (named, _) = sessions(&|s| s.only = vec!["D1".to_owned(), "board".to_owned()]);
    assert_eq!(named, ["Ann, Bo Day", "board"]);
}

#[test]
fn lists_may_be_missing() {
    let day = json!([message("1.000001", "U1", "hi <@U2>")]);
    let files = [
        ("D024BE91L/2024-05-01.json", day.clone()),
        ("G024BE91L/2024-05-01.json", day.clone()),
        ("general/2024-05-01.json", day),
    ];
    let (batch, counts) = read(&files, |_| ());
    assert_eq!(said(&batch), ["U1: hi @U2"]);
    assert_eq!(counts.skipped, [("direct message", 1), ("private channel", 1)].into());
    let (batch, _) = read(&files, |s| s.only = vec!["D024BE91L".to_owned()]);
    assert_eq!(turns(&batch)[0].turn, "D024BE91L/1.000001");
}

#[test]
fn a_damaged_record_is_a_dead_letter_and_the_rest_goes_on() {
    let day = "\u{feff}[\n{\"type\": \"message\", \"ts\": \"1.000001\", \"user\": \"U1\", \"text\": \"a\\x05\"},\n\
        {\"ts\": 1.5, \"user\": \"U1\", \"text\": \"number\"},\n{\"user\": \"U1\", \"text\": \"no ts\"},\n7,\n\
        {\"ts\": \"soon\", \"user\": \"U1\", \"text\": \"no time\"},\n{\"ts\": \"2.000001\", \"user\": \"U1\", \"text\": \"rest\"}\n]";
    let files = [
        ("users.json", json!([{"name": "no id"}, {"id": "U1", "name": "ann"}])),
        ("general/2024-05-01.json", Value::from(day)),
        (
            "general/2024-05-02.json",
            Value::from("[{\"ts\": \"3.000001\", \"user\": \"U1\", \"text\": \"last\"}, {\"ts\": \"4"),
        ),
        ("integration_logs.json", json!([{"user_id": "U1"}])),
        ("general/canvas.html", Value::from("<p>")),
    ];
    let (batch, _) = read(&files, |_| ());
    assert_eq!(said(&batch), ["ann: rest", "ann: last"]);
    let letters: Vec<(String, &str)> =
        batch.rejects.iter().map(|l| (l.origin.clone(), l.reason.split(['`', ';']).next().unwrap().trim())).collect();
    let day = "general/2024-05-01.json";
    let expected = [
        ("users.json:2".to_owned(), "missing field"),
        (format!("{day}:2"), "invalid escape"),
        (format!("{day}:3"), "ts: a number where a text belongs"),
        (format!("{day}:4"), "ts: missing"),
        (format!("{day}:5"), "not an object, as a message must be"),
        (format!("{day}:6"), "ts: \"soon\" is not a time"),
        ("general/2024-05-02.json:1".to_owned(), "the file ends early, inside this record"),
    ];
    assert_eq!(letters, expected);
}

#[test]
fn an_odd_field_beside_the_words_never_loses_them() {
    let odd = json!({
        "reply_count": "2", "replies": 7, "edited": true, "user_profile": [], "bot_profile": "x", "file": 5,
        "files": [{"name": 2024, "mimetype": 3, "permalink": "https://a.example/f"}, "no file"],
        "attachments": [
            {"title": 42, "text": true, "fields": [{"title": "id", "value": 123}, 5], "is_share": "no", "blocks": {}},
            "no attachment"
        ]
    });
    let day = json!([
        with(message("1.000001", "U1", "words"), odd),
        with(message("2.000001", "U2", ""), json!({"attachments": [{"title": 42, "fallback": {}}], "blocks": "x"})),
        with(message("3.000001", "U2", "more"), json!({"attachments": {"title": "x"}, "files": null, "comment": 1}))
    ]);
    let expected = [
        "Ann: words [\"file|2024|https://a.example/f\", \"attachment|42\\ntrue\\nid: 123|-\"]",
        "Bo Day: 42",
        "Bo Day: more",
    ];
    check(day, &expected, &[]);
}

#[test]
fn an_archive_reads_like_its_folder() {
    let home = tempfile::tempdir().unwrap();
    let day = json!([message("1.000001", "U1", "hello")]);
    let root = export(
        home.path(),
        &[("users.json", users()), ("channels.json", channels()), ("general/2024-05-01.json", day.clone())],
    );
    let path = home.path().join("Acme Slack export.zip");
    let mut archive = zip::ZipWriter::new(fs::File::create(&path).unwrap());
    let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let deflated = stored.compression_method(zip::CompressionMethod::Deflated);
    // Archivers on a Mac also pack the folder itself, and add files of their own.
    for (name, value, options) in [
        ("Acme/users.json", users(), deflated),
        ("Acme/channels.json", channels(), stored),
        ("Acme/general/2024-05-01.json", day, deflated),
        ("__MACOSX/Acme/general/2024-05-01.json", json!("x"), stored),
    ] {
        archive.start_file(name, options).unwrap();
        archive.write_all(value.to_string().as_bytes()).unwrap();
    }
    archive.finish().unwrap();
    let [zipped, folder] = [&path, &root].map(|path| read_path(path, |_| ()).0);
    assert_eq!(zipped, folder);
    assert_eq!(said(&zipped), ["Ann: hello"]);
}

#[test]
fn slackdumps_dump_of_a_conversation_is_read() {
    let root = with(
        message("1.000001", "U1", "root"),
        json!({"thread_ts": "1.000001", "slackdump_thread_replies": [with(message("2.000001", "U2", "reply"), json!({"thread_ts": "1.000001"}))]}),
    );
    let dump =
        json!({"channel_id": "C024BE91L", "name": "general", "messages": [root, message("3.000001", "U1", "next")]});
    let (batch, _) = read(&[("users.json", users()), ("C024BE91L.json", dump)], |_| ());
    assert_eq!(said(&batch), ["Ann: root", "Bo Day: reply", "Ann: next"]);
    assert_eq!(turns(&batch)[1].thread.as_deref(), Some("C024BE91L/1.000001"));
}

#[test]
fn a_grid_export_keeps_its_workspaces_apart() {
    let day = json!([message("1.000001", "U1", "hello")]);
    let files = [
        ("org_users.json", users()),
        ("teams/red/channels.json", json!([{"id": "C1", "name": "general"}])),
        ("teams/red/general/2024-05-01.json", day.clone()),
        ("teams/blue/channels.json", json!([{"id": "C2", "name": "general"}])),
        ("teams/blue/general/2024-05-01.json", day),
    ];
    let (batch, _) = read(&files, |s| s.bank = "acme/{workspace}/{channel}".to_owned());
    let banks: Vec<&str> = turns(&batch).iter().map(|t| t.bank.as_str()).collect();
    assert_eq!(banks, ["acme/blue/general", "acme/red/general"]);
    assert_eq!(turns(&batch)[0].session, None);
}

#[test]
fn a_folder_without_messages_is_refused_with_a_remedy() {
    let home = tempfile::tempdir().unwrap();
    let root = export(home.path(), &[("users.json", users())]);
    let error = crate::open(&SourceSettings::new("slack", root)).err().unwrap().to_string();
    assert!(error.contains("no file of a day") && error.contains("name the zip archive or the folder"), "{error}");
}

#[test]
fn the_words_of_every_block_are_read_and_unknown_blocks_are_told() {
    let raw = |text: &str| json!({"type": "raw_text", "text": text});
    let table = json!({"type": "table", "rows": [[raw("Tree"), raw("Metres")], [raw("Oak"), raw("21")]]});
    let typed = json!({"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": "look"}]}]});
    let blocks = |blocks: Value| json!({"blocks": blocks});
    let unknown = json!({"type": "hologram", "depth": 3});
    let day = json!([
        with(message("1.000001", "U1", "look"), blocks(json!([typed, table]))),
        with(message("2.000001", "U1", ""), blocks(json!([table]))),
        with(
            message("3.000001", "U1", "look"),
            json!({"attachments": [{"id": 1, "fallback": "[no preview available]", "blocks": [table]}]}),
        ),
        with(message("4.000001", "U1", ""), blocks(json!([unknown]))),
        with(message("5.000001", "U1", "look"), blocks(json!([typed, unknown]))),
        with(
            message("6.000001", "U1", "Build failed"),
            json!({"bot_id": "B1", "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "*Build failed*"}},
                {"type": "section", "text": {"type": "mrkdwn", "text": "step 4 of 9"}}]}),
        ),
    ]);
    let (batch, counts) =
        read(&[("users.json", users()), ("channels.json", channels()), ("general/2024-05-01.json", day)], |_| ());
    assert_eq!(
        said(&batch),
        [
            "Ann: look\nTree | Metres\nOak | 21",
            "Ann: Tree | Metres\nOak | 21",
            r#"Ann: look ["attachment|Tree | Metres\nOak | 21|-"]"#,
            "Ann: look",
            "Ann: Build failed\nstep 4 of 9",
        ]
    );
    assert_eq!(counts.skipped_by_kind().into_iter().collect::<Vec<_>>(), [("unsupported: hologram".to_owned(), 1)]);
    assert_eq!(counts.unread.into_iter().collect::<Vec<_>>(), [("block hologram".to_owned(), 1)]);
}

#[test]
fn a_day_without_a_list_of_messages_is_told() {
    let said_at = |second: u32| message(&format!("171455040{second}.000100"), "U1", "hi");
    let (batch, counts) = read(
        &[
            ("channels.json", channels()),
            ("groups.json", json!([{"id": "G1", "name": "board"}])),
            ("board/2024-05-01.json", json!("")),
            ("general/2024-05-01.json", said_at(1)),
            ("general/2024-05-02.json", json!("")),
            ("general/2024-05-03.json", json!(null)),
            ("general/2024-05-04.json", json!({"ok": true, "data": [said_at(4)]})),
            ("general/2024-05-05.json", json!(format!("{}\n{}", said_at(5), said_at(6)))),
            ("general/2024-05-06.json", json!([])),
            ("general/2024-05-07.json", json!([said_at(7)])),
        ],
        |_| (),
    );
    assert_eq!(turns(&batch).len(), 1, "{batch:?}");
    let found: Vec<_> = batch.rejects.iter().map(|l| format!("{}: {}", l.origin, l.reason)).collect();
    let told = |day| format!("general/2024-05-0{day}.json:1: holds no list of messages; export it again");
    assert_eq!(found, [1, 2, 3, 4, 5].map(told));
    assert_eq!(counts.skipped, [("private channel", 1)].into_iter().collect());
}
