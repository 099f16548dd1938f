//! Records of all platforms, changed at random, never make a reader panic or stop for good.
//!
//! In: exports written by hand, whose records are mutated: values are replaced, fields and bytes are removed or added.
//! Seeded; a few thousand records, and as many as `RIPPLEMEM_MUTATED` says. Out: every reader ends, with turns, dead
//! letters or an error that names the file.

use std::{
    collections::BTreeSet,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use ingest::LiveSourceEvent;
use serde_json::{Value, json};
use sources::live::{LiveSource, WebhookDelivery};
use types::{
    config::{LiveSourceSettings, Pipeline, PrivateConversationKind, SourceSettings},
    model::TurnEvent,
};

use super::{
    live::{Home, SOCKET_MODE, envelope},
    live_discord::{greet, ready, send},
    live_platform::Platform,
    oracle::Dice,
};

/// Records of one export.
const RECORDS: u64 = 200;

/// How a format's export is written around its records.
pub(crate) struct Form {
    pub(crate) format: &'static str,
    /// The file with the records.
    pub(crate) file: &'static str,
    /// Other files.
    pub(crate) beside: &'static [(&'static str, &'static str)],
    pub(crate) before: &'static str,
    pub(crate) between: &'static str,
    pub(crate) after: &'static str,
    pub(crate) record: fn(u64) -> String,
    pub(crate) is_json: bool,
}

const SLACK_USERS: &str = r#"[{"id":"U1","name":"ann","profile":{"display_name":"Ann"}}]"#;
const ZULIP_REALM: &str = r#"{"zerver_realm": [{"id": 2, "string_id": "garden", "name": "The Garden"}],
 "zerver_subscription": [{"id": 1, "user_profile": 8, "recipient": 20}],
 "zerver_userprofile": [{"id": 8, "full_name": "Ann Lee", "email": "ann@a.example", "is_bot": false}],
 "zerver_userprofile_crossrealm": [], "zerver_stream": [{"id": 3, "name": "design", "invite_only": false}],
 "zerver_recipient": [{"id": 20, "type": 2, "type_id": 3}]}"#;
const MATTERMOST_HEAD: &str = r#"{"type":"version","version":1}
{"type":"team","team":{"name":"core","display_name":"Core","type":"O"}}
{"type":"channel","channel":{"team":"core","name":"town-square","display_name":"Town Square","type":"O"}}
{"type":"user","user":{"username":"ann","nickname":"","first_name":"Ann","last_name":"Lee"}}
"#;

/// All formats of chat platforms.
pub(crate) fn forms() -> Vec<Form> {
    let json = |format, file, before, between, after, record| Form {
        format,
        file,
        beside: &[],
        before,
        between,
        after,
        record,
        is_json: true,
    };
    let text = |format, file, record| Form { is_json: false, ..json(format, file, "", "", "", record) };
    vec![
        Form {
            beside: &[("users.json", SLACK_USERS), ("channels.json", r#"[{"id":"C1","name":"general"}]"#)],
            ..json("slack", "general/2024-05-01.json", "[", ",\n", "]", |n| {
                json!({"type": "message", "ts": format!("{}.000100", 1_714_557_600 + n), "user": "U1", "text": "see <@U1> & <https://a.example|this>",
                    "thread_ts": "1714557600.000100", "edited": {"user": "U1", "ts": "1714557700.000000"}, "reply_count": 2,
                    "files": [{"name": "a.png", "mimetype": "image/png", "permalink": "https://a.example/a.png"}],
                    "attachments": [{"title": "x", "from_url": "https://a.example", "fields": [{"title": "a", "value": "b"}]}],
                    "blocks": [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": "x"}]}]}]})
                .to_string()
            })
        },
        json(
            "discord",
            "chat.json",
            r#"{"guild":{"id":"1","name":"Makers"},"channel":{"id":"10","type":"GuildTextChat","categoryId":"11","category":"x","name":"general"},"messages":["#,
            ",\n",
            "]}",
            |n| {
                json!({"id": (1_234_567_890_123_456_789_u64 + n).to_string(), "type": "Default", "timestamp": "2024-05-01T10:00:00.123+00:00", "timestampEdited": "2024-05-01T10:01:00+00:00",
                "content": "hello **you** <@5> <:smile:7>", "author": {"id": "5", "name": "ann", "discriminator": "0000", "nickname": "Ann", "isBot": false},
                "attachments": [{"url": "a.png", "fileName": "a.png"}], "embeds": [{"title": "t", "description": "d", "fields": [{"name": "a", "value": "b"}]}],
                "stickers": [{"name": "s"}], "mentions": [{"id": "5", "name": "ann"}], "reference": {"messageId": "5", "channelId": "10"}})
            .to_string()
            },
        ),
        json(
            "telegram",
            "result.json",
            r#"{"name":"Trip","type":"private_supergroup","id":77,"messages":["#,
            ",\n",
            "]}",
            |n| {
                json!({"id": n, "type": "message", "date": "2024-05-01T10:00:00", "date_unixtime": (1_714_557_600 + n).to_string(), "from": "Ann", "from_id": "user5",
                "edited_unixtime": "1714557700", "reply_to_message_id": 1, "text": ["see ", {"type": "link", "text": "https://a.example"}, {"type": "mention", "text": "@ann"}],
                "file": "a.jpg", "media_type": "video_file", "poll": {"question": "q", "answers": [{"text": "a"}]}, "contact_information": {"first_name": "x"}})
            .to_string()
            },
        ),
        json(
            "matrix",
            "export.json",
            r#"{"room_name":"Tea","room_creator":"Ann","topic":"","export_date":"1/1/2024","exported_by":"Ann","messages":["#,
            ",\n",
            "]}",
            |n| {
                json!({"type": "m.room.message", "event_id": format!("${n}"), "room_id": "!tea:example.org", "sender": "@ann:example.org", "origin_server_ts": 1_700_000_000_000_u64 + n,
                "content": {"msgtype": "m.text", "body": "> <@ann:example.org> x\n\nhi", "m.relates_to": {"rel_type": "m.thread", "event_id": "$1", "m.in_reply_to": {"event_id": "$2"}}},
                "unsigned": {"m.relations": {"m.replace": {"event_id": "$e", "origin_server_ts": 5, "sender": "@ann:example.org"}}}})
            .to_string()
            },
        ),
        Form {
            ..json("mattermost", "import.jsonl", MATTERMOST_HEAD, "\n", "\n", |n| {
                json!({"type": "post", "post": {"team": "core", "channel": "town-square", "user": "ann", "type": "", "message": "hi @ann", "create_at": 1_000 + n, "edit_at": 2_500,
                    "props": {"attachments": [{"text": "x"}]}, "attachments": [{"path": "a.png"}], "replies": [{"user": "ann", "message": "yes", "create_at": 900}]}})
                .to_string()
            })
        },
        Form {
            beside: &[("realm.json", ZULIP_REALM)],
            ..json(
                "zulip",
                "messages-000001.json",
                r#"{"zerver_message":["#,
                ",\n",
                r#"],"zerver_usermessage":[{"id":1}]}"#,
                |n| {
                    json!({"id": n, "sender": 8, "recipient": 20, "subject": "logo", "date_sent": 1_714_557_600.5 + n as f64, "edit_history": "[{\"timestamp\": 1714557650}]",
                    "last_edit_time": null, "content": "**x**", "rendered_content": "<p><strong>x</strong> <a href=\"/user_uploads/2/ab/plan.pdf\">the plan</a></p>"})
                .to_string()
                },
            )
        },
        json("teams", "general.json", "[", ",\n", "]", |n| {
            json!({"id": (1_000 + n).to_string(), "replyToId": "1001", "messageType": "message", "createdDateTime": "2024-05-01T10:00:00.5Z", "lastModifiedDateTime": "2024-05-02T10:00:00Z",
                "lastEditedDateTime": "2024-05-01T11:00:00.25Z", "deletedDateTime": null, "chatId": null, "subject": "s", "from": {"user": {"id": "u1", "displayName": "Ann Lee"}},
                "channelIdentity": {"teamId": "t1", "channelId": "19:c1@thread.tacv2"}, "body": {"contentType": "html", "content": "<div><at id=\"0\">Bo</at>&nbsp;look <attachment id=\"f1\"></attachment></div>"},
                "mentions": [{"id": 0, "mentionText": "Bo", "mentioned": {"user": {"id": "u2", "displayName": "Bo Berg"}}}],
                "attachments": [{"id": "f1", "contentType": "reference", "contentUrl": "https://a.example/a.docx", "name": "a.docx", "content": "{}"}]})
            .to_string()
        }),
        json(
            "messenger",
            "message_1.json",
            r#"{"participants":[{"name":"Ann"},{"name":"Bob"}],"title":"Bob","thread_path":"inbox/bob_1","messages":["#,
            ",\n",
            "]}",
            |n| {
                json!({"sender_name": "Ann", "timestamp_ms": 1_714_557_600_000_u64 + n, "content": "h\u{c3}\u{a9}", "type": "Generic", "is_unsent": false,
                "photos": [{"uri": "a.jpg", "creation_timestamp": 5}], "share": {"link": "https://a.example"}, "reactions": [{"reaction": "x", "actor": "Bob"}]})
            .to_string()
            },
        ),
        json("gitter", "room.json", "[", ",\n", "]", |n| {
            json!({"id": format!("{n:024x}"), "text": "hi @ann `x`", "html": "hi", "sent": "2024-05-01T10:00:00.000Z", "editedAt": "2024-05-01T10:01:00.000Z", "parentId": "5",
                "fromUser": {"id": "u1", "username": "ann", "displayName": "Ann"}, "mentions": [{"screenName": "ann", "userId": "u1"}]})
            .to_string()
        }),
        json("signal", "received.jsonl", "", "\n", "\n", |n| {
            json!({"envelope": {"source": "+15550100", "sourceNumber": "+15550100", "sourceUuid": "u-1", "sourceName": "Ann", "timestamp": 1_714_557_600_000_u64 + n,
                "dataMessage": {"timestamp": 1_714_557_600_000_u64 + n, "message": "hi \u{fffc}", "mentions": [{"name": "+15550101", "uuid": "u-2", "start": 3, "length": 1}],
                    "quote": {"id": 5, "author": "+15550101", "text": "x"}, "attachments": [{"contentType": "image/png", "filename": "a.png"}], "groupInfo": {"groupId": "g="}}},
                "account": "+15550102"})
            .to_string()
        }),
        text("signal", "chat.md", |n| {
            format!(
                "[2024-05-01 10:{:02}:{:02}] Ann: We meet at six  ![x](./media/a.jpg)\n(- Bo: x -)\n\n",
                n / 60 % 60,
                n % 60
            )
        }),
        text("whatsapp", "_chat.txt", |n| {
            format!(
                "[01.05.24, 10:{:02}:{:02}] Ann: hi\u{200e} <This message was edited>\nmore words\n",
                n / 60 % 60,
                n % 60
            )
        }),
        text("irc", "#rust.log", |n| {
            format!("2024-05-01 10:{:02}:{:02}\t<@ann>\tbo: \u{3}4hi\u{f}\n", n / 60 % 60, n % 60)
        }),
        json("claude-code", "kite.jsonl", "", "\n", "\n", |n| {
            json!({"type": if n % 2 == 0 { "user" } else { "assistant" }, "uuid": format!("u{n}"), "parentUuid": format!("u{}", n.wrapping_sub(1)), "isSidechain": false,
                "timestamp": format!("2024-05-01T10:{:02}:{:02}.000Z", n / 60, n % 60), "cwd": "/home/ann/kite", "sessionId": "s", "version": "2.1.0", "gitBranch": "main",
                "message": {"id": format!("m{n}"), "role": "user", "model": "m", "content": [{"type": "text", "text": "hi, see the kite"}]}})
            .to_string()
        }),
        json("codex", "rollout-kite.jsonl", "", "\n", "\n", |n| {
            json!({"timestamp": format!("2024-05-01T10:{:02}:{:02}.000Z", n / 60, n % 60), "type": "event_msg", "ordinal": n,
                "payload": {"type": "item_completed", "thread_id": "t", "turn_id": "u", "started_at_ms": 5, "completed_at_ms": 6, "item": {"type": "UserMessage", "id": format!("i{n}"), "content": [{"type": "text", "text": "hi, see the kite"}]}}})
            .to_string()
        }),
        json(
            "gemini-cli",
            "session-kite.jsonl",
            "{\"sessionId\":\"s\",\"projectHash\":\"h\",\"kind\":\"main\"}\n",
            "\n",
            "\n",
            |n| {
                json!({"id": format!("g{n}"), "timestamp": format!("2024-05-01T10:{:02}:{:02}.000Z", n / 60, n % 60), "type": "gemini", "content": [{"text": "hi, see the kite"}], "model": "m"})
                .to_string()
            },
        ),
        json("copilot-cli", "events.jsonl", "", "\n", "\n", |n| {
            json!({"type": "user.message", "id": format!("e{n}"), "timestamp": format!("2024-05-01T10:{:02}:{:02}.000Z", n / 60, n % 60), "parentId": null,
                "data": {"content": "hi, see the kite", "messageId": format!("m{n}"), "delivery": "idle", "interactionId": "i", "agentMode": "x", "transformedContent": "hi"}})
            .to_string()
        }),
        json("qwen-code", "kite.jsonl", "", "\n", "\n", |n| {
            json!({"uuid": format!("u{n}"), "parentUuid": format!("u{}", n.wrapping_sub(1)), "sessionId": "s", "timestamp": format!("2024-05-01T10:{:02}:{:02}.000Z", n / 60, n % 60),
                "type": "user", "cwd": "/home/ann/kite", "version": "0.15", "gitBranch": "main", "model": "m", "message": {"role": "user", "parts": [{"text": "hi, see the kite"}]}})
            .to_string()
        }),
        json(
            "pi",
            "kite.jsonl",
            "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/home/ann/kite\"}\n",
            "\n",
            "\n",
            |n| {
                json!({"type": "message", "id": format!("p{n}"), "parentId": format!("p{}", n.wrapping_sub(1)), "timestamp": format!("2024-05-01T10:{:02}:{:02}.000Z", n / 60, n % 60),
                "message": {"role": "user", "api": "a", "provider": "p", "model": "m", "stopReason": "stop", "content": [{"type": "text", "text": "hi, see the kite"}]}})
            .to_string()
            },
        ),
        json("sillytavern", "kite.jsonl", "", "\n", "\n", |n| {
            json!({"name": "Ann", "is_user": true, "is_system": false, "send_date": format!("2024-05-01T10:{:02}:{:02}.000Z", n / 60, n % 60), "mes": "hi, see the kite", "swipe_id": 0, "swipes": ["hi, see the kite"], "extra": {}})
                .to_string()
        }),
        text("imessage", "Ann.txt", |n| {
            format!(
                "May 17, 2022  5:{:02}:{:02} PM (Read by you after 1 hour)\nAnn\nHello\nEdited 30 seconds later: Hi\nTapbacks:\n    Loved by Me\n\n",
                n / 60 % 60,
                n % 60
            )
        }),
        text("mbox", "list.mbox", |n| {
            format!(
                "From ann@a.example Wed May  1 10:00:00 2024\nFrom: =?utf-8?q?Ann?= <ann@a.example>\nDate: Wed, 1 May 2024 10:{:02}:{:02} +0200\nMessage-ID: <{n}@a.example>\nIn-Reply-To: <1@a.example>\nSubject: Re: Plan\nContent-Type: text/plain; charset=iso-8859-1\n\n>From here\n> quoted\nGood.\n\n",
                n / 60 % 60,
                n % 60
            )
        }),
    ]
}

/// Invalid and rare forms of times, and zones.
const ODD_TIMES: [&str; 16] = [
    "2024-02-30T10:00:00Z",
    "2024-05-06T24:00:00Z",
    "2016-12-31T23:59:60Z",
    "2024-05-06T09:00:00+25:00",
    "2024-05-06T09:00:00-00:00",
    "2024-05-06T09:00:00+01:00[Europe/Berlin]",
    "2024-05-06T09:00:00[Europe/Nowhere]",
    "2024-03-31T02:30:00 Europe/Berlin",
    "-009999-01-01T00:00:00Z",
    "+275760-09-13T00:00:00.001Z",
    "0000-00-00T00:00:00Z",
    "9999-12-31T23:59:59.999999999-23:59",
    "2024-05-06 09:00",
    "America/Argentina/Buenos_Aires",
    "UTC+99",
    "+05:45:30",
];
/// Moments as numbers: the year 10000, the year 1, before 1970, nearly now in nanoseconds.
const ODD_MOMENTS: [f64; 4] = [253_402_300_800_000.0, -62_135_596_800.5, -1.0, 1.795e18];

/// Another value, of any kind.
fn odd(dice: &mut Dice) -> Value {
    match dice.below(15) {
        12 | 13 => json!(ODD_TIMES[dice.below(ODD_TIMES.len() as u64) as usize]),
        14 => json!(ODD_MOMENTS[dice.below(ODD_MOMENTS.len() as u64) as usize]),
        0 => Value::Null,
        1 => json!(-1),
        2 => json!(u64::MAX),
        3 => json!(1e300),
        4 => json!(""),
        5 => json!("\u{0}\u{1b}\u{202e}é\u{10ffff}"),
        6 => json!([[[]]]),
        7 => json!({"id": {}, "type": 5}),
        8 => json!("9".repeat(40)),
        9 => json!(true),
        10 => json!("<@U1|<!here> [](())\\ <b"),
        _ => json!(i64::MIN),
    }
}

/// Changes one value of a record, or leaves out a field.
pub(crate) fn mutate(value: &mut Value, dice: &mut Dice) {
    let leaves_here = dice.below(4) == 0;
    match value {
        Value::Object(fields) if !fields.is_empty() && !leaves_here => {
            let key = fields.keys().nth(dice.below(fields.len() as u64) as usize).unwrap().clone();
            if dice.below(8) == 0 {
                fields.remove(&key);
            } else {
                mutate(&mut fields[&key], dice);
            }
        }
        Value::Array(list) if !list.is_empty() && !leaves_here => {
            let at = dice.below(list.len() as u64) as usize;
            mutate(&mut list[at], dice);
        }
        // A piece of the text is removed, or doubled.
        Value::String(text) if !text.is_empty() && dice.below(2) == 0 => {
            let cut = text.floor_char_boundary(dice.below(text.len() as u64) as usize);
            *text = if dice.below(2) == 0 { text[..cut].to_owned() } else { format!("{text}{}", &text[cut..]) };
        }
        other => *other = odd(dice),
    }
}

/// Changes some bytes.
pub(crate) fn scramble(bytes: &mut Vec<u8>, dice: &mut Dice) {
    for _ in 0..=dice.below(3) {
        let at = dice.below(bytes.len().max(1) as u64) as usize;
        match dice.below(4) {
            0 if at < bytes.len() => drop(bytes.remove(at)),
            1 => bytes.insert(at.min(bytes.len()), dice.next() as u8),
            2 if at < bytes.len() => bytes[at] = *b"\n\r\0[]<>:\xff\xe2\" ,{".get(dice.below(14) as usize).unwrap(),
            _ => bytes.truncate(at.max(1)),
        }
    }
}

/// Writes an export with mutated records.
fn export(form: &Form, directory: &Path, dice: &mut Dice) {
    for (name, text) in form.beside {
        fs::write(directory.join(name), text).unwrap();
    }
    let mut bytes = form.before.as_bytes().to_vec();
    // Now and then the file itself is damaged, too.
    let is_damaged = dice.below(10) == 0;
    for n in 0..RECORDS {
        let mut record = (form.record)(n).into_bytes();
        if form.is_json {
            let mut value: Value = serde_json::from_slice(&record).unwrap();
            for _ in 0..=dice.below(3) {
                mutate(&mut value, dice);
            }
            record = value.to_string().into_bytes();
        }
        if (!form.is_json && dice.below(3) == 0) || (is_damaged && dice.below(50) == 0) {
            scramble(&mut record, dice);
        }
        if n > 0 {
            bytes.extend_from_slice(form.between.as_bytes());
        }
        bytes.extend_from_slice(&record);
    }
    bytes.extend_from_slice(form.after.as_bytes());
    let path = directory.join(form.file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Reads an export to its end; returns how many turns and rejects came.
fn read(form: &Form, directory: &Path) -> (usize, usize) {
    let is_folder = !form.beside.is_empty();
    let path = if is_folder { directory.to_owned() } else { directory.join(form.file) };
    let mut settings = SourceSettings::new(form.format, path);
    settings.bank = "b".to_owned();
    settings.include = vec![PrivateConversationKind::Private, PrivateConversationKind::Direct];
    let (mut turns, mut rejects) = (0, 0);
    let mut source = match sources::open(&settings) {
        Ok(source) => source,
        // A file that is no export any more is refused by its name.
        Err(problem) => {
            assert!(problem.to_string().contains(form.file.rsplit('/').next().unwrap()), "{problem}");
            return (0, 0);
        }
    };
    while let Ok(Some(batch)) = source.next(64) {
        turns += batch.events.len();
        rejects += batch.rejects.len();
    }
    (turns, rejects)
}

pub(crate) fn wanted() -> u64 {
    std::env::var("RIPPLEMEM_MUTATED").ok().and_then(|wanted| wanted.parse().ok()).unwrap_or(6_000)
}

#[test]
fn no_export_makes_a_reader_panic() {
    let forms = forms();
    let exports = wanted().div_ceil(RECORDS).max(2 * forms.len() as u64);
    let mut read_of = vec![(0, 0); forms.len()];
    for seed in 0..exports {
        let at = seed as usize % forms.len();
        let form = &forms[at];
        let home = tempfile::tempdir().unwrap();
        export(form, home.path(), &mut Dice(seed));
        let found = catch_unwind(AssertUnwindSafe(|| read(form, home.path())));
        let Ok((turns, rejects)) = found else { panic!("{} {} panics at seed {seed}", form.format, form.file) };
        read_of[at].0 += turns;
        read_of[at].1 += rejects;
    }
    for (form, (turns, rejects)) in forms.iter().zip(read_of) {
        println!("{:10} {:28} {turns} turns, {rejects} rejects", form.format, form.file);
        assert!(turns > 20, "{} {} was hardly read: {turns} turns, {rejects} rejects", form.format, form.file);
    }
}

/// Whatever a record of JSON holds, it is stored, left out by name, or a dead letter: none disappears.
#[test]
fn every_record_is_stored_or_told() {
    let forms: Vec<Form> = forms().into_iter().filter(|form| form.is_json).collect();
    let exports = wanted().div_ceil(RECORDS).max(2 * forms.len() as u64);
    for seed in 0..exports {
        let form = &forms[seed as usize % forms.len()];
        let home = tempfile::tempdir().unwrap();
        let mut dice = Dice(seed ^ 0x5eed);
        for (name, text) in form.beside {
            fs::write(home.path().join(name), text).unwrap();
        }
        let records = (0..RECORDS).map(|n| {
            let mut value: Value = serde_json::from_str(&(form.record)(n)).unwrap();
            // The first one shows what the export is.
            for _ in 0..if n == 0 { 0 } else { 1 + dice.below(3) } {
                mutate(&mut value, &mut dice);
            }
            // Now and then half a character, which no library writes.
            let text = value.to_string();
            if dice.below(4) == 0 {
                text.replacen("\"hi", "\"\\ud83dhi", 1).replacen("\"see", "\"see\\udc4d", 1)
            } else {
                text
            }
        });
        let records = records.collect::<Vec<_>>().join(form.between);
        let path = home.path().join(form.file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("{}{records}{}", form.before, form.after)).unwrap();
        let mut settings = SourceSettings::new(form.format, if form.beside.is_empty() { &path } else { home.path() });
        (settings.bank, settings.include) =
            ("b".to_owned(), vec![PrivateConversationKind::Private, PrivateConversationKind::Direct]);
        let mut source = sources::open(&settings).unwrap();
        let (mut stored, mut rejected) = (0, 0);
        while let Some(batch) = source.next(64).unwrap() {
            let marks = batch.events.iter().filter(|event| matches!(event, TurnEvent::Idle(_))).count();
            stored += (batch.events.len() - marks) as u64;
            rejected += batch.rejects.len() as u64;
        }
        let skipped: u64 = source.counts().skipped_by_kind().values().sum();
        let (told, what) = (stored + skipped + rejected, format!("{} {} at seed {seed}", form.format, form.file));
        let counts = format!("{stored} stored, {skipped} skipped, {rejected} rejected: {what}");
        // A post of Mattermost holds its replies, and the parts of a transcript's message are counted one by one.
        let has_parts = ["claude-code", "codex", "gemini-cli", "copilot-cli", "qwen-code", "pi", "sillytavern"];
        match form.format {
            "mattermost" => assert!(told >= RECORDS, "{counts}"),
            format if has_parts.contains(&format) => assert!(told >= RECORDS, "{counts}"),
            _ => assert_eq!(told, RECORDS, "{counts}"),
        }
    }
}

/// Whatever is around them, the words of a text record are stored or in a dead letter, or the record, or a field of its
/// head, was left out by name.
#[test]
fn no_words_of_a_text_disappear() {
    let forms: Vec<Form> = forms().into_iter().filter(|form| !form.is_json).collect();
    let mut lost = Vec::new();
    let exports = wanted().div_ceil(RECORDS).max(2 * forms.len() as u64);
    for seed in 0..exports {
        let form = &forms[seed as usize % forms.len()];
        let (home, mut dice) = (tempfile::tempdir().unwrap(), Dice(seed ^ 0x7ecf));
        let word = |n: u64| format!("zq{n:03}qz");
        let mut bytes = Vec::new();
        for n in 0..RECORDS {
            // An edit replaces words, and a reader leaves out what a mail quotes.
            let whole =
                (form.record)(n).replace("Edited 30 seconds later: Hi\n", "").replace(">From here\n> quoted\n", "");
            let said = ["We meet", "hi", "Hello", "Good."].into_iter().find(|said| whole.contains(said)).unwrap();
            let (before, after) = whole.split_once(said).unwrap();
            let mut parts = [before.as_bytes().to_vec(), format!(" {}", after).into_bytes()];
            // The first one shows what the export is. Of two neighbours one stays whole: a line without either of its
            // ends may be anything.
            if n % 2 == 1 {
                let at = dice.below(2) as usize;
                let whole = parts[at].clone();
                scramble(&mut parts[at], &mut dice);
                // Words behind `>` are another mail's.
                if form.format == "mbox" && parts[0].rsplit(|byte| *byte == b'\n').next().unwrap().starts_with(b">") {
                    parts[at] = whole;
                }
            }
            let [before, after] = parts;
            bytes.extend([before, format!("{said} {}", word(n)).into_bytes(), after].concat());
        }
        let (path, text) = (home.path().join(form.file), String::from_utf8_lossy(&bytes).into_owned());
        fs::write(&path, bytes).unwrap();
        let mut settings = SourceSettings::new(form.format, &path);
        (settings.bank, settings.include) =
            ("b".to_owned(), vec![PrivateConversationKind::Private, PrivateConversationKind::Direct]);
        let mut source = sources::open(&settings).unwrap();
        let mut held = String::new();
        while let Some(batch) = source.next(64).unwrap() {
            batch.events.iter().for_each(|event| held.push_str(&serde_json::to_string(event).unwrap()));
            batch.rejects.iter().for_each(|letter| held.push_str(&letter.payload));
        }
        let missing: Vec<u64> = (0..RECORDS).filter(|n| !held.contains(&word(*n))).collect();
        let skipped = source.counts().skipped_by_kind();
        // Words in the head of a mail that still has a subject, which is stored, are in a type that cannot be read.
        let types = source.counts().unread.get("Content-Type").copied().unwrap_or_default();
        if missing.len() as u64 > skipped.values().sum::<u64>() + types {
            // The text around the first of them.
            let at = text.find(&word(missing[0])).unwrap();
            let around = text[text.floor_char_boundary(at.saturating_sub(200))..].chars().take(400).collect::<String>();
            lost.push(format!(
                "{} at seed {seed}: {missing:?} are nowhere, beside {skipped:?}: {around:?}",
                form.format
            ));
        }
    }
    assert!(lost.is_empty(), "{} exports:\n{}", lost.len(), lost.join("\n"));
}

/// Makes the payload of a number.
type MakePayload = fn(u64) -> Value;

/// A source that takes requests, and a request as its platform sends it.
fn live() -> Vec<(LiveSourceSettings, MakePayload)> {
    let settings = |platform: &str| {
        let text = format!(
            "version = 1\nlog.kind = \"kafka\"\nlog.kafka.brokers = \"x:1\"\nmetrics.listen = \"127.0.0.1:1\"\n\
             [[source]]\nname = \"s\"\nplatform = \"{platform}\"\nsecret_env = \"CARGO_PKG_NAME\"\nbank = \"b\"\n{}",
            if platform == "webhook" { "" } else { "delivery = \"webhook\"\ninclude = [\"direct\", \"private\"]\n" }
        );
        Pipeline::parse(&text).unwrap().live.remove(0)
    };
    vec![
        (settings("webhook"), |n| {
            json!([{"turn": n.to_string(), "speaker": "Ann", "text": "hi", "time": "2024-05-01T10:00:00Z", "reply_to": "1",
                "attachments": [{"kind": "image", "caption": "x", "url": "https://a.example"}]},
                {"type": "deletion", "turn": "1", "version": 5}])
        }),
        (settings("telegram"), |n| {
            json!({"update_id": n, "edited_message": {"message_id": n, "date": 1_714_557_600, "edit_date": 1_714_557_700, "text": "hi @ann",
                "entities": [{"type": "text_mention", "offset": 3, "length": 4, "user": {"id": 6, "first_name": "Bo"}}],
                "from": {"id": 5, "first_name": "Ann", "username": "ann"}, "reply_to_message": {"message_id": 1},
                "chat": {"id": -1_000_000_000_077_i64, "type": "supergroup", "title": "Trip", "username": "trip"},
                "photo": [{"file_id": "x"}], "caption": "c", "is_topic_message": true, "message_thread_id": 3}})
        }),
    ]
}

/// Nothing panics, and each record of a request is stored, left out by name, or a dead letter.
#[test]
fn every_request_of_a_platform_is_stored_or_told() {
    for (settings, request) in live() {
        let (leaving, arriving) = crossbeam_channel::bounded(1);
        let mut source = LiveSource::open(&settings, None, None, arriving).unwrap();
        let (mut turns, mut updates) = (0, BTreeSet::new());
        for seed in 0..wanted() / 4 {
            let mut dice = Dice(seed);
            let mut value = request(seed);
            mutate(&mut value, &mut dice);
            let mut body = value.to_string().into_bytes();
            let records = value.as_array().map_or(1, Vec::len);
            let is_scrambled = dice.below(10) == 0;
            if is_scrambled {
                scramble(&mut body, &mut dice);
            }
            let sent = String::from_utf8_lossy(&body).into_owned();
            // A recent update that Telegram sends again gives nothing.
            let update = serde_json::from_str(&sent).ok().and_then(|sent: Value| sent["update_id"].as_i64());
            let is_again = update.is_some_and(|id| !updates.insert(id));
            let (durable, is_durable) = tokio::sync::oneshot::channel();
            leaving.send(WebhookDelivery { body, durable }).unwrap();
            let taken = catch_unwind(AssertUnwindSafe(|| {
                let batch = source.next(std::time::Duration::ZERO);
                (batch, source.committed())
            }));
            let Ok((batch, committed)) = taken else { panic!("{} panics at seed {seed}", settings.platform.name()) };
            let batch = batch.unwrap().unwrap_or_default();
            committed.unwrap();
            assert!(
                is_durable.blocking_recv().is_ok(),
                "whatever came is confirmed, or it comes for ever: seed {seed}"
            );
            turns += batch.events.len();
            // None disappears: it is stored, a dead letter, or left out by name.
            let told = batch.events.len() + batch.rejects.len() + batch.skipped.values().sum::<u64>() as usize;
            if is_again {
                continue;
            }
            if is_scrambled {
                let holds_none =
                    sent.trim().is_empty() || serde_json::from_str(&sent).is_ok_and(|v: Value| v == json!([]));
                assert!(
                    told > 0 || holds_none,
                    "{} at seed {seed}: nothing came of {sent:?}",
                    settings.platform.name()
                );
            } else {
                assert_eq!(told, records, "{} at seed {seed}: {value} became {batch:?}", settings.platform.name());
            }
        }
        assert!(turns > 100, "{} was hardly read: {turns}", settings.platform.name());
    }
}

/// Mutated records, the last of which is whole.
fn records(count: u64, seed: u64, record: impl Fn(u64) -> Value, last: Value) -> Vec<Value> {
    let mut dice = Dice(seed);
    let mutated = (0..count).map(|n| {
        let mut value = record(n);
        (0..=dice.below(2)).for_each(|_| mutate(&mut value, &mut dice));
        value
    });
    mutated.chain([last]).collect()
}

/// Follows a source until it has stored the turn that `last` names, and asserts that nothing interrupted it. What
/// `meanwhile` returns, such as a connection, is kept until the source has stopped.
fn goes_on<T>(home: &Home, last: &str, meanwhile: impl FnOnce() -> T) {
    let mut kept = None;
    let told = home.pull(|wait| {
        kept = Some(meanwhile());
        wait(&|log| log.lines().iter().any(|line| line.contains(last)));
        wait(&|log| log.lines().len() > 20);
    });
    let interrupted: Vec<&LiveSourceEvent> =
        told.iter().filter(|event| matches!(event, LiveSourceEvent::Interrupted { .. })).collect();
    assert!(interrupted.is_empty(), "a record that comes again would stop the source for ever: {interrupted:?}");
}

#[test]
fn no_event_of_slack_stops_its_source() {
    let platform = Platform::start(|own, asked| {
        let given = |key: &str| asked.given.get(key).cloned().unwrap_or_default();
        let mut body = match asked.path.as_str() {
            "auth.test" => json!({"team_id": "T1", "user_id": "UBOT"}),
            "apps.connections.open" => json!({"url": format!("ws://{own}/ws?ticket=1")}),
            "users.info" if given("user") == "U1" => json!({"user": {"id": "U1", "name": "ann"}}),
            "conversations.info" if given("channel") == "C1" => json!({"channel": {"id": "C1", "name": "general"}}),
            "users.info" => return (200, "", json!({"ok": false, "error": "user_not_found"})),
            _ => return (200, "", json!({"ok": false, "error": "channel_not_found"})),
        };
        body["ok"] = true.into();
        (200, "", body)
    });
    let home = Home::new("slack", &format!("http://{}", platform.address), SOCKET_MODE);
    let event = |n: u64| {
        let said = json!({"type": "message", "channel": "C1", "user": "U1", "text": "hi <@U1> &amp; <#C1|general>",
            "ts": format!("{}.000100", 1_714_557_600 + n), "thread_ts": "1714557600.000100", "files": [{"id": "F1", "name": "a.png"}],
            "edited": {"user": "U1", "ts": "1714557700.000000"}, "attachments": [{"title": "x", "from_url": "https://a.example"}],
            "blocks": [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": "hi"}]}]}]});
        match n % 4 {
            0 => {
                json!({"type": "message", "subtype": "message_changed", "channel": "C1", "ts": "1714557800.000500", "message": said})
            }
            1 => json!({"type": "message", "subtype": "message_deleted", "channel": "C1", "ts": "1714557800.000500",
                "deleted_ts": format!("{}.000100", 1_714_557_600 + n), "previous_message": said}),
            _ => said,
        }
    };
    let last = json!({"type": "message", "channel": "C1", "user": "U1", "text": "the last", "ts": "1814557600.000100"});
    goes_on(&home, "C1/1814557600.000100", || {
        let sends = platform.connected();
        for (n, event) in records(wanted() / 10, 31, event, last).iter().enumerate() {
            sends.send(envelope(&n.to_string(), event)).unwrap();
        }
        // Every one is confirmed, or Slack would send it for ever.
        let end = format!("env-{}", wanted() / 10);
        platform.text(|text| text["envelope_id"] == end.as_str());
        sends
    });
}

#[test]
fn no_event_of_discord_stops_its_source() {
    let platform = Platform::start(|own, asked| match asked.path.as_str() {
        "gateway/bot" => (200, "", json!({"url": format!("ws://{own}/ws")})),
        _ => (404, "", json!({"message": "Unknown Channel", "code": 10_003})),
    });
    let home = Home::new("discord", &format!("http://{}", platform.address), "bank = \"acme\"\n");
    let message = |id: u64| {
        json!({"id": id.to_string(), "channel_id": "10", "guild_id": "1", "type": 0, "content": "hi <@5> <#10> <:a:1>",
            "timestamp": "2024-05-01T10:00:00+00:00", "edited_timestamp": "2024-05-01T10:01:00+00:00",
            "author": {"id": "5", "username": "ann", "global_name": "Ann"}, "member": {"nick": "Annie"},
            "mentions": [{"id": "5", "username": "ann"}], "mention_roles": ["7"], "attachments": [{"id": "8", "filename": "a.png"}],
            "embeds": [{"title": "x", "url": "https://a.example", "fields": [{"name": "n", "value": "v"}]}],
            "message_reference": {"message_id": "99", "channel_id": "10"}, "sticker_items": [{"id": "3", "name": "s"}],
            "message_snapshots": [{"message": {"content": "fwd"}}], "poll": {"question": {"text": "q"}, "answers": []}})
    };
    let event = |n: u64| match n % 8 {
        0 => json!({"t": "MESSAGE_UPDATE", "d": message(1_000 + n)}),
        1 => json!({"t": "MESSAGE_DELETE", "d": {"id": (1_000 + n).to_string(), "channel_id": "10"}}),
        2 => json!({"t": "MESSAGE_DELETE_BULK", "d": {"ids": ["1", "2"], "channel_id": "10"}}),
        3 => {
            json!({"t": "THREAD_CREATE", "d": {"id": "20", "type": 11, "name": "a thread", "parent_id": "10", "guild_id": "1"}})
        }
        4 => json!({"t": "CHANNEL_UPDATE", "d": {"id": "30", "type": 0, "name": "more", "guild_id": "1"}}),
        _ => json!({"t": "MESSAGE_CREATE", "d": message(1_000 + n)}),
    };
    let last = json!({"t": "MESSAGE_CREATE", "d": message(9_000_000)});
    goes_on(&home, "/9000000 ", || {
        let (to, _) = greet(&platform, u64::MAX);
        ready(&to, &platform, 5);
        for (n, event) in records(wanted() / 10, 32, event, last).into_iter().enumerate() {
            let kind = event["t"].as_str().unwrap_or_default().to_owned();
            send(&to, n as u64 + 3, &kind, event["d"].clone());
        }
        to
    });
}

#[test]
fn no_event_of_matrix_stops_its_source() {
    let room = "!trip:example.org";
    let state = json!([{"type": "m.room.name", "state_key": "", "content": {"name": "Trip"}},
        {"type": "m.room.join_rules", "state_key": "", "content": {"join_rule": "public"}}]);
    let event = |n: u64| {
        let said = json!({"type": "m.room.message", "event_id": format!("${n}"), "sender": "@ann:example.org",
            "origin_server_ts": 1_714_557_600_000_i64 + n as i64, "unsigned": {"m.relations": {"m.thread": {"count": 1}}},
            "content": {"msgtype": "m.text", "body": "hi", "format": "org.matrix.custom.html", "formatted_body": "<b>hi</b> <a href=\"https://matrix.to/#/@bo:x\">Bo</a>",
                "m.relates_to": {"rel_type": "m.thread", "event_id": "$0", "m.in_reply_to": {"event_id": "$0"}}}});
        match n % 6 {
            0 => {
                json!({"type": "m.room.message", "event_id": format!("$e{n}"), "sender": "@ann:example.org", "origin_server_ts": 1_714_557_660_000_i64,
                "content": {"body": "* hello", "m.new_content": {"msgtype": "m.text", "body": "hello"}, "m.relates_to": {"rel_type": "m.replace", "event_id": "$1"}}})
            }
            1 => {
                json!({"type": "m.room.redaction", "event_id": format!("$r{n}"), "origin_server_ts": 1_714_557_660_000_i64, "redacts": "$2", "content": {"redacts": "$2"}})
            }
            2 => {
                json!({"type": "m.room.member", "state_key": "@ann:example.org", "event_id": format!("$m{n}"), "content": {"membership": "join", "displayname": "Ann"}})
            }
            _ => said,
        }
    };
    let last = json!({"type": "m.room.message", "event_id": "$last", "sender": "@ann:example.org",
        "origin_server_ts": 1_714_557_600_000_i64, "content": {"msgtype": "m.text", "body": "the last"}});
    let events = records(wanted() / 10, 33, event, last);
    let platform = Platform::start(move |_, asked| {
        let since = asked.given.get("since").cloned().unwrap_or_default();
        let at: usize = since.trim_start_matches('s').parse().unwrap_or_default();
        match asked.path.as_str() {
            "_matrix/client/v3/sync" if since.is_empty() => {
                (200, "", json!({"next_batch": "s0", "rooms": {"join": {room: {"state": {"events": state}}}}}))
            }
            "_matrix/client/v3/sync" => {
                let next = (at + 50).min(events.len());
                if at == next {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                let timeline = json!({"timeline": {"events": events[at..next]}});
                (200, "", json!({"next_batch": format!("s{next}"), "rooms": {"join": {room: timeline}}}))
            }
            _ => (404, "", json!({"errcode": "M_NOT_FOUND", "error": "no such thing"})),
        }
    });
    let home = Home::new("matrix", &format!("http://{}", platform.address), "bank = \"acme\"\n");
    goes_on(&home, "$last", || {});
}
