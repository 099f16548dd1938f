//! Payloads that were recorded on Slack and on Discord, fed to the live sources.
//!
//! In: the files below `chat/exports/live` of the folder that `RIPPLEMEM_DATA` names; skipped by name
//! without it. What must come of a payload is read from its own JSON here.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};
use types::model::{Turn, TurnEvent};

use super::{
    live::{Home, deliver},
    live_discord::{discord_with, greet, ready, send},
    live_platform::Platform,
    skipped::skip,
};

/// The payloads of all files in which `is_one` finds them, by file; `None` if there is no folder.
fn recorded(test: &str, is_one: impl Fn(&Value) -> bool) -> Option<Vec<Value>> {
    let folder = std::env::var_os("RIPPLEMEM_DATA").map(|data| PathBuf::from(data).join("chat/exports/live"));
    let Some(folder) = folder.filter(|folder| folder.is_dir()) else {
        skip(test, "RIPPLEMEM_DATA names no folder with chat/exports/live");
        return None;
    };
    let below = |folder: PathBuf| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = below(folder).flat_map(below).collect();
    files.retain(|file| file.extension().is_some_and(|ext| ext == "json"));
    files.sort();
    let mut found = Vec::new();
    for file in files {
        collect(&serde_json::from_slice(&fs::read(file).unwrap()).unwrap(), &is_one, &mut found);
    }
    Some(found)
}

fn collect(value: &Value, is_one: &impl Fn(&Value) -> bool, found: &mut Vec<Value>) {
    match value {
        value if is_one(value) => found.push(value.clone()),
        Value::Object(fields) => fields.values().for_each(|value| collect(value, is_one, found)),
        Value::Array(list) => list.iter().for_each(|value| collect(value, is_one, found)),
        _ => {}
    }
}

fn turns(home: &Home) -> Vec<Turn> {
    let turn = |event| if let TurnEvent::Turn(turn) = event { Some(turn) } else { None };
    home.events().into_iter().filter_map(turn).collect()
}

/// A text without marks of mentions and styles, which the sources render.
fn plain(text: &str) -> String {
    let mut rest = text.to_owned();
    while let Some((before, from)) = rest.split_once('<') {
        let (_, after) = from.split_once('>').unwrap_or(("", ""));
        rest = format!("{before}{after}");
    }
    rest.chars().filter(|c| c.is_alphanumeric()).collect()
}

#[test]
fn recorded_events_of_slack_become_turns_and_edits() {
    let test = "live_recorded::recorded_events_of_slack_become_turns_and_edits";
    let Some(mut payloads) = recorded(test, |value| value["type"] == "event_callback") else { return };
    assert!(payloads.len() > 15, "{}", payloads.len());
    // Their publisher gave several the same id, and they are of several workspaces.
    for (n, payload) in payloads.iter_mut().enumerate() {
        payload["event_id"] = format!("Ev{n}").into();
        payload["team_id"] = "T1".into();
    }
    let platform = Platform::start(|_, asked| {
        let channel = asked.given.get("channel").cloned().unwrap_or_default();
        let is = |letter| channel.starts_with(letter);
        let mut body = match asked.path.as_str() {
            "auth.test" => json!({"team_id": "T1"}),
            "conversations.info" if is('D') => json!({"channel": {"id": channel, "is_im": true}}),
            "conversations.info" => json!({"channel": {"id": channel, "name": channel.to_lowercase()}}),
            "conversations.members" => json!({"members": ["U1"]}),
            "users.info" => json!({"user": {"id": asked.given["user"], "name": asked.given["user"]}}),
            other => panic!("{other}"),
        };
        body["ok"] = true.into();
        (200, "", body)
    });
    let keys = "delivery = \"webhook\"\nsecret_env = \"CARGO_PKG_NAME\"\nbank = \"acme\"\ninclude = [\"direct\"]\n";
    let home = Home::new("slack", &format!("http://{}", platform.address), keys);
    let (leaving, arriving) = crossbeam_channel::bounded(8);
    home.follow(&arriving, |_| {
        for payload in &payloads {
            assert!(deliver(&leaving, payload), "{payload}");
        }
        // None was recorded; this is the documented form.
        let gone = json!({"type": "message", "subtype": "message_deleted", "channel": "C00FAKECHAN1",
            "deleted_ts": "1767224888.280449", "ts": "1767224999.000100"});
        assert!(deliver(&leaving, &json!({"type": "event_callback", "event_id": "EvDeleted", "event": gone})));
    });
    let mut expected = Vec::new();
    for payload in &payloads {
        let event = &payload["event"];
        if event["type"] != "message" {
            continue;
        }
        let said = if event["subtype"] == "message_changed" { &event["message"] } else { event };
        let edited = said["edited"]["ts"].as_str().map_or(0.0, |ts| ts.parse::<f64>().unwrap() * 1_000.0);
        let place = |ts: &str| format!("{}/{ts}", event["channel"].as_str().unwrap());
        let id = place(said["ts"].as_str().unwrap());
        let speaker = said["user"].as_str().map(str::to_owned);
        expected.push((
            id,
            edited as u64,
            speaker,
            plain(said["text"].as_str().unwrap()),
            said["thread_ts"].as_str().map(place),
        ));
    }
    let found: Vec<Turn> = turns(&home);
    assert_eq!(found.len(), expected.len(), "{found:?}");
    let last = home.events().pop();
    assert!(
        matches!(&last, Some(TurnEvent::Deletion(gone)) if gone.turn == "C00FAKECHAN1/1767224888.280449"),
        "{last:?}"
    );
    assert_eq!(expected.iter().filter(|(_, edited, ..)| *edited > 0).count(), 2);
    for (turn, (id, version, speaker, text, thread)) in found.iter().zip(expected) {
        assert_eq!((&turn.turn, turn.version, &turn.thread), (&id, version, &thread));
        assert!(speaker.is_none_or(|speaker| speaker == turn.speaker), "{turn:?}");
        assert!(plain(&turn.text).contains(&text), "{text} is not in {turn:?}");
        assert!(!turn.text.contains("<@"), "{turn:?}");
    }
}

#[test]
fn recorded_events_of_discord_become_turns() {
    let test = "live_recorded::recorded_events_of_discord_become_turns";
    let is_event = |value: &Value| value["type"].as_str().is_some_and(|kind| kind.starts_with("GATEWAY_"));
    let Some(events) = recorded(test, is_event) else { return };
    assert!(events.len() > 10, "{}", events.len());
    let channels: Vec<Value> = events.iter().map(|event| event["data"]["channel_id"].clone()).collect();
    let guild = events.iter().find_map(|event| event["data"]["guild_id"].as_str()).unwrap().to_owned();
    let thread = events.iter().find(|event| event["type"] == "GATEWAY_THREAD_CREATE").unwrap()["data"].clone();
    let of_platform = guild.clone();
    let platform = discord_with(move |path| {
        let id = path.rsplit('/').next().unwrap();
        if path.starts_with("guilds/") {
            json!({"id": of_platform, "name": "Makers"})
        } else if thread["id"] == id {
            thread.clone()
        } else {
            assert!(channels.iter().any(|channel| channel == id) || thread["parent_id"] == id, "{path}");
            json!({"id": id, "type": 0, "name": id, "guild_id": of_platform})
        }
    });
    let home = Home::new("discord", &format!("http://{}", platform.address), "bank = \"acme\"\n");
    let messages: Vec<&Value> =
        events.iter().filter(|event| event["type"] == "GATEWAY_MESSAGE_CREATE").map(|event| &event["data"]).collect();
    home.pull(|wait| {
        let (to, _) = greet(&platform, 60_000);
        ready(&to, &platform, 5);
        for (n, event) in (3..).zip(&events) {
            let kind = event["type"].as_str().unwrap().trim_start_matches("GATEWAY_");
            send(&to, n, kind, event["data"].clone());
        }
        // As Discord reports it: only ids.
        let gone = &messages[0];
        send(
            &to,
            999,
            "MESSAGE_DELETE",
            json!({"id": gone["id"], "channel_id": gone["channel_id"], "guild_id": guild}),
        );
        wait(&|log| log.lines().last().is_some_and(|line| line.ends_with("deleted")));
    });
    let found = turns(&home);
    assert_eq!(found.len(), messages.len(), "{found:?}");
    for (turn, message) in found.iter().zip(messages) {
        let channel = message["channel_id"].as_str().unwrap();
        assert!(turn.turn.ends_with(&format!("/{}", message["id"].as_str().unwrap())), "{turn:?}");
        let is_in_thread = message["channel_type"] == 11;
        assert_eq!(turn.thread.as_ref().is_some_and(|thread| thread.ends_with(channel)), is_in_thread, "{turn:?}");
        let author = &message["author"];
        let name = author["global_name"].as_str().or(author["username"].as_str()).unwrap();
        assert_eq!(turn.speaker, name);
        assert!(plain(&turn.text).contains(&plain(message["content"].as_str().unwrap())), "{turn:?}");
    }
}
