//! Live sources against scripted platforms: what is said, edited, deleted and said again, connections
//! that break, platforms that ask for a pause, and requests that nobody may send.
//!
//! The platforms speak their protocols on a local port; none of this has met the real ones. Payloads
//! are written by hand in the form that the platforms document.

use std::{
    collections::{BTreeMap, VecDeque},
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use ingest::{LiveSourceEvent, LiveSourceOptions, follow_source};
use logs::{EmbeddedLog, Log, Topic};
use serde_json::{Value, json};
use sources::live::{LiveSource, WebhookDelivery};
use types::{
    config::{LiveSourceSettings, LogSettings, Pipeline},
    model::{DeadLetter, Turn, TurnEvent},
};

use super::live_platform::Platform;

/// A variable that is set wherever cargo runs tests, and its value: the token of every platform here.
const TOKEN_ENV: &str = "CARGO_PKG_NAME";
pub(crate) const TOKEN: &str = "ripplemem";

/// A log in a directory, and a source that is followed again and again.
pub(crate) struct Home {
    directory: tempfile::TempDir,
    pub(crate) settings: LiveSourceSettings,
}

impl Home {
    /// `keys` are more lines of the table `[[source]]`.
    pub(crate) fn new(platform: &str, endpoint: &str, keys: &str) -> Self {
        let text = format!(
            "version = 1\nlog.kind = \"kafka\"\nlog.kafka.brokers = \"x:1\"\nmetrics.listen = \"127.0.0.1:1\"\n\
             [[source]]\nname = \"s\"\nplatform = \"{platform}\"\ntoken_env = \"{TOKEN_ENV}\"\nendpoint = \"{endpoint}\"\n{keys}"
        );
        let settings = Pipeline::parse(&text).unwrap().live.remove(0);
        LiveSource::check(&settings).unwrap();
        Self { directory: tempfile::tempdir().unwrap(), settings }
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// What the log holds while no source is followed.
    pub(crate) fn events(&self) -> Vec<TurnEvent> {
        events(&self.log_settings())
    }

    fn log_settings(&self) -> LogSettings {
        let mut settings = Pipeline::parse("version = 1\nlog.fsync = \"system\"").unwrap().log;
        settings.directory = self.directory.path().join("log");
        settings
    }

    /// Follows the source while `meanwhile` runs; it gets a function that waits for a condition on the
    /// events so far, until none has come for a minute. Returns the events.
    pub(crate) fn follow(
        &self,
        arriving: &crossbeam_channel::Receiver<WebhookDelivery>,
        meanwhile: impl FnOnce(&dyn Fn(&dyn Fn(&Stored) -> bool)),
    ) -> Vec<LiveSourceEvent> {
        let log = EmbeddedLog::open(&self.log_settings()).unwrap();
        let (stop, told) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        let second = Duration::from_secs(1);
        let run =
            LiveSourceOptions { settings: &self.settings, gap: second * 3_600 * 24 * 36_500, fenced_pause: second };
        std::thread::scope(|scope| {
            let following = scope.spawn(|| {
                follow_source(&log, run, arriving, &|| stop.load(Ordering::Relaxed), &mut |event| {
                    told.lock().unwrap().push(event);
                })
            });
            let stops = Stops(&stop);
            let seen = Stored { log: &log, told: &told };
            meanwhile(&|until: &dyn Fn(&Stored) -> bool| {
                let (mut end, mut moved) = (0, Instant::now());
                while !until(&seen) {
                    let reached = log.end(Topic::Turns, 0).unwrap();
                    if reached != end {
                        (end, moved) = (reached, Instant::now());
                    }
                    assert!(moved.elapsed() < Duration::from_secs(60), "{:?} {:?}", seen.lines(), told.lock().unwrap());
                    std::thread::sleep(Duration::from_millis(10));
                }
            });
            drop(stops);
            following.join().unwrap().unwrap();
        });
        told.into_inner().unwrap()
    }

    /// The same for a source without a webhook.
    pub(crate) fn pull(&self, meanwhile: impl FnOnce(&dyn Fn(&dyn Fn(&Stored) -> bool))) -> Vec<LiveSourceEvent> {
        self.follow(&crossbeam_channel::never(), meanwhile)
    }
}

/// What a log holds that nobody else has open.
pub(crate) fn events(settings: &LogSettings) -> Vec<TurnEvent> {
    events_of(&EmbeddedLog::open(settings).unwrap())
}

fn events_of(log: &EmbeddedLog) -> Vec<TurnEvent> {
    let records = log.read(Topic::Turns, 0, 0, usize::MAX).unwrap().records;
    records.into_iter().map(|record| TurnEvent::from_json(&record.value.unwrap()).unwrap()).collect()
}

/// Tells a source to stop, also when the test fails meanwhile: it would run on otherwise.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a log holds, and what was reported so far.
pub(crate) struct Stored<'a> {
    log: &'a EmbeddedLog,
    told: &'a Mutex<Vec<LiveSourceEvent>>,
}

impl Stored<'_> {
    /// Whether anything was reported.
    pub(crate) fn is_told(&self) -> bool {
        !self.told.lock().unwrap().is_empty()
    }

    /// Each event on a line.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |event: TurnEvent| match event {
            TurnEvent::Turn(Turn { bank, turn, version, speaker, text, thread, session, .. }) => {
                let mut line = format!("{bank} {turn} v{version} {speaker}: {text}");
                line.extend(thread.map(|thread| format!(" | thread={thread}")));
                line.extend(session.map(|session| format!(" | session={session}")));
                line
            }
            TurnEvent::Deletion(deletion) => format!("{} {} deleted", deletion.bank, deletion.turn),
            other => format!("{other:?}"),
        };
        events_of(self.log).into_iter().map(line).collect()
    }

    fn dead_letters(&self) -> Vec<DeadLetter> {
        let records = self.log.read(Topic::DeadLetters, 0, 0, usize::MAX).unwrap().records;
        records.into_iter().map(|record| serde_json::from_slice(&record.value.unwrap()).unwrap()).collect()
    }
}

/// Waits until a condition on the log holds.
type Wait<'w> = dyn Fn(&dyn Fn(&Stored) -> bool) + 'w;

/// Waits until the log holds these lines, and nothing else.
pub(crate) fn until_lines(wait: &Wait<'_>, expected: &[&str]) {
    wait(&|log| log.lines().len() >= expected.len());
    wait(&|log| {
        assert_eq!(log.lines(), expected);
        true
    });
}

// ---- Telegram

fn update(id: i64, kind: &str, message: i64, text: &str, more: Value) -> Value {
    let mut update = json!({ "update_id": id, kind: {
        "message_id": message, "date": 1_714_557_600, "text": text,
        "from": {"id": 5, "is_bot": false, "first_name": "Ann"},
        "chat": {"id": -1_000_000_000_077_i64, "type": "supergroup", "title": "Trip", "username": "trip"},
    }});
    update[kind].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    update
}

/// A Bot API with these updates, which confirms as the real one does; the listed polls fail.
fn bot_api(updates: Vec<Value>, failures: &[(usize, u16, &'static str)]) -> Platform {
    let state = Mutex::new((VecDeque::from(updates), 0));
    let failures = failures.to_vec();
    Platform::start(move |_, asked| {
        assert_eq!(asked.path, format!("bot{TOKEN}/getUpdates"));
        let (updates, polls) = &mut *state.lock().unwrap();
        *polls += 1;
        if let Some((_, status, headers)) = failures.iter().find(|(at, ..)| at == polls) {
            let body =
                json!({"ok": false, "error_code": status, "description": "no", "parameters": {"retry_after": 1}});
            return (*status, headers, body);
        }
        let offset = asked.body["offset"].as_i64().unwrap_or_default();
        updates.retain(|update| update["update_id"].as_i64().unwrap() >= offset);
        if updates.is_empty() {
            std::thread::sleep(Duration::from_millis(20));
        }
        // Two at a time, as if more were said between the polls.
        (200, "", json!({"ok": true, "result": updates.iter().take(2).collect::<Vec<_>>()}))
    })
}

#[test]
fn telegram_tells_what_is_said_and_edited() {
    let api = bot_api(
        vec![
            update(1, "message", 9, "hello", json!({})),
            update(2, "message", 10, "yes", json!({"reply_to_message": {"message_id": 9}})),
            update(3, "edited_message", 9, "hello all", json!({"edit_date": 1_714_557_660})),
            update(4, "message", 11, "x", json!({"date": null})),
            update(5, "message", 12, "secret", json!({"chat": {"id": 8, "type": "private", "first_name": "Bo"}})),
            json!({"update_id": 6, "my_chat_member": {}}),
            update(7, "channel_post", 13, "in a topic", json!({"is_topic_message": true, "message_thread_id": 3})),
        ],
        &[],
    );
    let home = Home::new("telegram", &format!("http://{}", api.address), "bank = \"acme\"\n");
    let told = home.pull(|wait| {
        until_lines(
            wait,
            &[
                "acme channel77/9 v0 Ann: hello | session=Trip",
                "acme channel77/10 v0 Ann: yes | session=Trip",
                "acme channel77/9 v1714557660000 Ann: hello all | session=Trip",
                "acme channel77/13 v0 Ann: in a topic | thread=channel77/3 | session=Trip",
            ],
        );
        wait(&|log| log.dead_letters().len() == 1 && log.dead_letters()[0].reason.contains("date"));
        wait(&|_| api.asked().last().is_some_and(|asked| asked.body["offset"] == 8));
    });
    assert_eq!(told[0], LiveSourceEvent::Following);
    assert!(!told.iter().any(|event| matches!(event, LiveSourceEvent::Interrupted { .. })), "{told:?}");
}

#[test]
fn telegram_goes_on_behind_what_is_durable() {
    let all: Vec<Value> = (1..=5).map(|n| update(n, "message", n, &format!("number {n}"), json!({}))).collect();
    let first = bot_api(all[..2].to_vec(), &[]);
    let mut home = Home::new("telegram", &format!("http://{}", first.address), "");
    home.pull(|wait| wait(&|log| log.lines().len() == 2));
    // The next run gets the last update again, as if its confirmation had been lost.
    let second = bot_api(all[1..].to_vec(), &[]);
    home.settings.endpoint = format!("http://{}", second.address);
    home.pull(|wait| {
        wait(&|log| log.lines().len() >= 5);
        wait(&|log| log.lines().len() == 5);
    });
    assert_eq!(second.asked()[0].body["offset"], 3);
    home.pull(|wait| {
        until_lines(
            wait,
            &[
                "telegram/Trip channel77/1 v0 Ann: number 1",
                "telegram/Trip channel77/2 v0 Ann: number 2",
                "telegram/Trip channel77/3 v0 Ann: number 3",
                "telegram/Trip channel77/4 v0 Ann: number 4",
                "telegram/Trip channel77/5 v0 Ann: number 5",
            ],
        );
    });
}

#[test]
fn a_platform_cannot_ask_for_a_pause_without_end() {
    let api = Platform::start(|_, _| (429, "", json!({"ok": false, "parameters": {"retry_after": 1e19}})));
    let home = Home::new("telegram", &format!("http://{}", api.address), "");
    let told = home.pull(|wait| wait(&|seen| seen.is_told()));
    assert!(matches!(&told[..], [LiveSourceEvent::Interrupted { after, .. }] if after.as_secs() == 3_600), "{told:?}");
}

#[test]
fn telegram_is_asked_again_after_failures_and_pauses() {
    let updates = (1..=4).map(|n| update(n, "message", n, "hi", json!({}))).collect();
    let api = bot_api(updates, &[(1, 502, ""), (2, 429, "retry-after: 0\r\n"), (4, 500, "")]);
    let home = Home::new("telegram", &format!("http://{}", api.address), "");
    let told = home.pull(|wait| wait(&|log| log.lines().len() == 4));
    let problems: Vec<&str> = told
        .iter()
        .filter_map(|event| match event {
            LiveSourceEvent::Interrupted { problem, .. } => Some(problem.as_str()),
            _ => None,
        })
        .collect();
    assert!(
        matches!(problems[..], [a, b, c] if a.contains("502") && b.contains("429") && c.contains("500")),
        "{problems:?}"
    );
    assert!(problems.iter().all(|problem| problem.contains("[token]") && !problem.contains("botripplemem")));
}

// ---- Slack

/// What a scripted workspace knows beside its events.
#[derive(Default)]
struct Workspace {
    /// `conversations.history` of C1, newest first, in pages of two.
    history: Vec<Value>,
    replies: Vec<Value>,
    /// Requests for histories that are refused first.
    limited: usize,
}

fn slack(workspace: Workspace) -> Platform {
    let state = Mutex::new(workspace);
    Platform::start(move |own, asked| {
        assert_eq!(asked.authorization, format!("Bearer {TOKEN}"));
        let given = |key: &str| asked.given.get(key).map(String::as_str).unwrap_or_default();
        let ok = |mut body: Value| {
            body["ok"] = true.into();
            (200, "", body)
        };
        let state = &mut *state.lock().unwrap();
        match asked.path.as_str() {
            "auth.test" => ok(json!({"team_id": "T1", "user_id": "UBOT"})),
            "apps.connections.open" => ok(json!({"url": format!("ws://{own}/ws?ticket=1")})),
            "users.info" => match given("user") {
                "U1" => ok(json!({"user": {"id": "U1", "name": "ann", "profile": {"display_name": "Ann"}}})),
                "U2" => ok(json!({"user": {"id": "U2", "name": "bo", "profile": {"real_name": "Bo Day"}}})),
                _ => (200, "", json!({"ok": false, "error": "user_not_found"})),
            },
            "conversations.info" => match given("channel") {
                "C1" => ok(json!({"channel": {"id": "C1", "name": "general"}})),
                "G1" => ok(json!({"channel": {"id": "G1", "name": "board", "is_private": true}})),
                _ => (200, "", json!({"ok": false, "error": "channel_not_found"})),
            },
            "users.conversations" => {
                assert_eq!(given("types"), "public_channel");
                ok(json!({"channels": [{"id": "C1", "name": "general"}]}))
            }
            "conversations.history" if state.limited > 0 => {
                state.limited -= 1;
                (429, "retry-after: 1\r\n", json!({"ok": false, "error": "ratelimited"}))
            }
            "conversations.history" => {
                let newer: Vec<&Value> =
                    state.history.iter().filter(|m| is_within(m["ts"].as_str().unwrap(), &asked.given)).collect();
                let from: usize = given("cursor").parse().unwrap_or_default();
                let page: Vec<&Value> = newer.iter().skip(from).take(2).copied().collect();
                let next = if from + 2 < newer.len() { (from + 2).to_string() } else { String::new() };
                ok(json!({"messages": page, "response_metadata": {"next_cursor": next}}))
            }
            "conversations.replies" => ok(json!({"messages": state.replies})),
            other => panic!("{other}"),
        }
    })
}

/// Whether Slack shows a message to a request with these parameters.
pub(crate) fn is_within(ts: &str, given: &BTreeMap<String, String>) -> bool {
    let is_inclusive = given.get("inclusive").is_some_and(|inclusive| inclusive == "true");
    given.get("oldest").is_none_or(|oldest| ts > oldest.as_str() || (is_inclusive && ts == oldest))
}

fn said(ts: &str, user: &str, text: &str) -> Value {
    json!({"type": "message", "channel": "C1", "channel_type": "channel", "user": user, "text": text, "ts": ts, "event_ts": ts})
}

fn payload(id: &str, event: &Value) -> Value {
    json!({"type": "event_callback", "team_id": "T1", "event_id": id, "event": event})
}

pub(crate) fn envelope(id: &str, event: &Value) -> String {
    json!({"type": "events_api", "envelope_id": format!("env-{id}"), "payload": payload(id, event)}).to_string()
}

pub(crate) const SOCKET_MODE: &str = "app_token_env = \"CARGO_PKG_NAME\"\nbank = \"acme\"\n";

#[test]
fn slack_tells_what_is_said_edited_and_deleted() {
    let platform = slack(Workspace::default());
    let home = Home::new("slack", &format!("http://{}", platform.address), SOCKET_MODE);
    let edited = json!({"type": "message", "subtype": "message_changed", "channel": "C1", "ts": "1714557660.000300",
        "message": {"type": "message", "user": "U1", "text": "hello all", "ts": "1714557600.000100",
            "edited": {"user": "U1", "ts": "1714557660.000000"}}});
    let mut reply = said("1714557700.000400", "U2", "yes <@U1>");
    reply["thread_ts"] = "1714557600.000100".into();
    let deleted = json!({"type": "message", "subtype": "message_deleted", "channel": "C1",
        "deleted_ts": "1714557600.000100", "ts": "1714557800.000500"});
    let mut private = said("1714557900.000600", "U1", "the plan");
    private["channel"] = "G1".into();
    let mut unknown = said("1714557900.000700", "U1", "the plan");
    unknown["channel"] = "C9".into();
    let expected = [
        "acme C1/1714557600.000100 v0 Ann: hello | session=general",
        "acme C1/1714557600.000100 v1714557660000 Ann: hello all | session=general",
        "acme C1/1714557700.000400 v0 Bo Day: yes @Ann | thread=C1/1714557600.000100 | session=general",
        "acme C1/1714557600.000100 deleted",
    ];
    home.pull(|wait| {
        let sends = platform.connected();
        sends.send(json!({"type": "hello"}).to_string()).unwrap();
        let first = envelope("Ev1", &said("1714557600.000100", "U1", "hello"));
        let all = [("Ev2", &edited), ("Ev3", &reply), ("Ev4", &deleted), ("Ev5", &private), ("Ev6", &unknown)];
        sends.send(first.clone()).unwrap();
        for (id, event) in all {
            sends.send(envelope(id, event)).unwrap();
        }
        // The first event again: it is confirmed, and nothing comes of it.
        sends.send(first.replace("env-Ev1", "env-again")).unwrap();
        let mut confirmed = Vec::new();
        while confirmed.last() != Some(&json!({"envelope_id": "env-again"})) {
            confirmed.push(platform.text(|_| true));
        }
        assert_eq!(confirmed.len(), 7, "{confirmed:?}");
        until_lines(wait, &expected);
        // Of a conversation that nobody can look at, only its place becomes a dead letter.
        wait(&|log| {
            let letters = log.dead_letters();
            assert_eq!(letters.len(), 1, "{letters:?}");
            assert!(!letters[0].payload.contains("plan") && letters[0].payload.contains("C9"), "{letters:?}");
            true
        });
    });
    assert_eq!(platform.asked().iter().filter(|asked| asked.path == "users.info").count(), 2);
}

#[test]
fn slack_catches_up_after_a_lost_connection_in_its_own_pace() {
    let mut root = said("1714557700.000200", "U1", "a question");
    root["reply_count"] = 1.into();
    let mut reply = said("1714557750.000250", "U2", "an answer");
    reply["thread_ts"] = "1714557700.000200".into();
    let history = vec![
        said("1714557900.000400", "U2", "three"),
        said("1714557800.000300", "U1", "two"),
        root.clone(),
        said("1714557600.000100", "U1", "one"),
    ];
    let platform = slack(Workspace { history, replies: vec![root, reply], limited: 1 });
    let home = Home::new("slack", &format!("http://{}", platform.address), SOCKET_MODE);
    // A sender that is dropped cuts its connection.
    let mut kept = Vec::new();
    let told = home.pull(|wait| {
        let sends = platform.connected();
        // The first run asks for no history. It learns of one message and loses its connection.
        sends.send(envelope("Ev1", &said("1714557600.000100", "U1", "one"))).unwrap();
        platform.text(|text| text["envelope_id"] == "env-Ev1");
        drop(sends);
        let sends = platform.connected();
        // What comes meanwhile does not wait for the history, which Slack refuses at first.
        sends.send(envelope("Ev9", &said("1714558000.000900", "U1", "live"))).unwrap();
        platform.text(|text| text["envelope_id"] == "env-Ev9");
        kept.push(sends);
        until_lines(
            wait,
            &[
                "acme C1/1714557600.000100 v0 Ann: one | session=general",
                "acme C1/1714558000.000900 v0 Ann: live | session=general",
                "acme C1/1714557700.000200 v0 Ann: a question | thread=C1/1714557700.000200 | session=general",
                "acme C1/1714557750.000250 v0 Bo Day: an answer | thread=C1/1714557700.000200 | session=general",
                "acme C1/1714557800.000300 v0 Ann: two | session=general",
                "acme C1/1714557900.000400 v0 Bo Day: three | session=general",
            ],
        );
    });
    let lost = told.iter().filter(|event| matches!(event, LiveSourceEvent::Interrupted { .. })).count();
    assert_eq!(lost, 1, "{told:?}");
    let oldest: Vec<String> = platform
        .asked()
        .into_iter()
        .filter(|asked| asked.path == "conversations.history")
        .map(|asked| asked.given["oldest"].clone())
        .collect();
    assert_eq!(oldest, ["1714557600.000100"; 3], "refused once, then two pages");
}

/// It needs no event that Slack sends again: here none is.
#[test]
fn slack_tells_after_a_pause_what_was_edited_and_deleted_of_the_last_messages() {
    let messages: Vec<Value> =
        (1..=4).map(|n| said(&format!("17145576{n}0.000100"), "U1", ["one", "two", "three", "four"][n - 1])).collect();
    let mut history: Vec<Value> = messages.iter().rev().cloned().collect();
    history[2]["text"] = "two and a half".into();
    history[2]["edited"] = json!({"user": "U1", "ts": "1714559000.000000"});
    history.remove(1);
    let platform = slack(Workspace { history, ..Workspace::default() });
    let home = Home::new("slack", &format!("http://{}", platform.address), SOCKET_MODE);
    home.pull(|wait| {
        let sends = platform.connected();
        for (n, message) in messages.iter().enumerate() {
            sends.send(envelope(&format!("Ev{n}"), message)).unwrap();
        }
        wait(&|log| log.lines().len() == 4);
        platform.text(|text| text["envelope_id"] == "env-Ev3");
    });
    let told = home.pull(|wait| {
        let _sends = platform.connected();
        wait(&|log| log.lines().len() == 6);
    });
    let log = home.events();
    assert_eq!(log.len(), 6);
    let TurnEvent::Turn(edited) = &log[4] else { panic!("{log:?}") };
    assert_eq!(
        (edited.turn.as_str(), edited.version, edited.text.as_str()),
        ("C1/1714557620.000100", 1_714_559_000_000, "two and a half")
    );
    let TurnEvent::Deletion(deletion) = &log[5] else { panic!("{log:?}") };
    assert_eq!((deletion.turn.as_str(), deletion.version), ("C1/1714557630.000100", u64::MAX));
    let notices: Vec<&String> = told
        .iter()
        .filter_map(|event| match event {
            LiveSourceEvent::Notice(notice) => Some(notice),
            _ => None,
        })
        .collect();
    assert!(notices.len() == 1 && notices[0].contains("for 1 conversation(s)") && notices[0].contains("and 0 of them"));
    assert!(!notices[0].contains("general") && !notices[0].contains("half"), "{notices:?}");
}

#[test]
fn slack_refreshes_a_connection_without_a_gap() {
    let platform = slack(Workspace::default());
    let home = Home::new("slack", &format!("http://{}", platform.address), SOCKET_MODE);
    // A sender that is dropped cuts its connection.
    let mut kept = Vec::new();
    let told = home.pull(|wait| {
        let before = platform.connected();
        before.send(json!({"type": "disconnect", "reason": "refresh_requested"}).to_string()).unwrap();
        let after = platform.connected();
        after.send(envelope("Ev1", &said("1714557600.000100", "U1", "hello"))).unwrap();
        wait(&|log| log.lines().len() == 1);
        platform.text(|text| text["envelope_id"] == "env-Ev1");
        kept.push(after);
    });
    assert!(!told.iter().any(|event| matches!(event, LiveSourceEvent::Interrupted { .. })), "{told:?}");
    assert!(!platform.asked().iter().any(|asked| asked.path == "conversations.history"));
}

// ---- Webhooks

/// Sends bodies to a source; returns for each whether it became durable.
pub(crate) fn deliver(leaving: &crossbeam_channel::Sender<WebhookDelivery>, body: &Value) -> bool {
    let (durable, is_durable) = tokio::sync::oneshot::channel();
    leaving.send(WebhookDelivery { body: body.to_string().into_bytes(), durable }).unwrap();
    is_durable.blocking_recv().is_ok()
}

#[test]
fn requests_are_confirmed_once_they_are_durable_and_repeated_ones_change_nothing() {
    let platform = slack(Workspace::default());
    let webhook = "delivery = \"webhook\"\nsecret_env = \"CARGO_PKG_NAME\"\nbank = \"acme\"\n";
    let turn = json!({"turn": "a", "speaker": "Ann", "text": "hi", "time": "2024-05-01T10:00:00Z"});
    let event = payload("Ev1", &said("1714557600.000100", "U1", "hello"));
    for (name, bodies, expected) in [
        (
            "telegram",
            [update(1, "message", 9, "hello", json!({})), json!("no update")],
            "acme channel77/9 v0 Ann: hello | session=Trip",
        ),
        ("slack", [event, json!(5)], "acme C1/1714557600.000100 v0 Ann: hello | session=general"),
        ("webhook", [json!([turn, {"turn": 5}]), json!([])], "acme a v0 Ann: hi"),
    ] {
        let endpoint = format!("http://{}", platform.address);
        let keys = if name == "webhook" { webhook.replace("delivery = \"webhook\"\n", "") } else { webhook.to_owned() };
        let home = Home::new(name, &endpoint, &keys);
        let (leaving, arriving) = crossbeam_channel::bounded(8);
        home.follow(&arriving, |wait| {
            for body in bodies.iter().chain(&bodies) {
                assert!(deliver(&leaving, body), "{name}");
            }
            wait(&|log| {
                let lines = log.lines();
                // The turns of a signed webhook have no id of their request: the log takes them twice,
                // and the memory once.
                let times = if name == "webhook" { 2 } else { 1 };
                assert_eq!(lines, vec![expected; times], "{name}");
                true
            });
        });
    }
}

#[test]
fn names_and_places_outlive_a_run() {
    let chat = |name: &str| json!({"chat": {"id": -1_000_000_000_077_i64, "type": "supergroup", "title": name, "username": "t"}});
    let by = |id: i64, mut chat: Value| {
        chat["from"] = json!({"id": id, "first_name": "Ann"});
        chat
    };
    let first = bot_api(
        vec![update(1, "message", 1, "a", by(5, chat("Trip"))), update(2, "message", 2, "b", by(6, chat("Trip")))],
        &[],
    );
    let mut home = Home::new("telegram", &format!("http://{}", first.address), "");
    home.pull(|wait| wait(&|log| log.lines().len() == 2));
    // In the next run the second account speaks first, and the chat has another name.
    let second = bot_api(vec![update(3, "message", 3, "c", by(6, chat("Tour")))], &[]);
    home.settings.endpoint = format!("http://{}", second.address);
    home.pull(|wait| {
        until_lines(
            wait,
            &[
                "telegram/Trip channel77/1 v0 Ann: a",
                "telegram/Trip channel77/2 v0 Ann (user6): b",
                "telegram/Trip channel77/3 v0 Ann (user6): c",
            ],
        );
    });
    // With `except`, no more of the chat is read, whatever was read before.
    let third = bot_api(vec![update(4, "message", 4, "d", by(6, chat("Tour")))], &[]);
    home.settings.endpoint = format!("http://{}", third.address);
    home.settings.except = vec!["channel77".to_owned()];
    home.pull(|wait| {
        wait(&|_| third.asked().iter().any(|asked| asked.body["offset"] == 5));
        wait(&|log| log.lines().len() == 3);
    });
}

#[test]
fn settings_that_do_not_fit_are_refused_by_name() {
    let head = "version = 1\nlog.kind = \"kafka\"\nlog.kafka.brokers = \"x:1\"\n";
    let source = |keys: &str| format!("{head}[[source]]\nname = \"s\"\n{keys}\n");
    for (text, words) in [
        (source("platform = \"telegram\""), &["\"s\"", "token_env", "missing"][..]),
        (source("platform = \"slack\"\ntoken_env = \"T\""), &["app_token_env", "missing"]),
        (source("platform = \"telegram\"\ndelivery = \"webhook\""), &["secret_env", "missing"]),
        (source("platform = \"webhook\"\nsecret_env = \"T\""), &["bank", "missing"]),
        (source("platform = \"webhook\"\nsecret_env = \"T\"\nbank = \"b\""), &["http.listen"]),
        (
            source("platform = \"telegram\"\ntoken_env = \"T\"\napp_token_env = \"U\""),
            &["app_token_env", "leave it out"],
        ),
        (source("platform = \"telegram\"\ntoken_env = \"T\"\nendpoint = \"api\""), &["endpoint", "https://"]),
        (source("platform = \"telegram\"\ntokenenv = \"T\""), &["line 7: source \"s\": ", "tokenenv", "token_env"]),
        (source("platform = \"slakc\""), &["line 6: source \"s\": platform: unknown variant", "slakc", "`slack`"]),
        (source("include = [\"privat\"]\nplatform = \"slack\""), &["line 6: source \"s\": include: unknown variant"]),
        (format!("{head}[[source]]\nplatform = \"slack\"\n"), &["line 4: source number 1: missing field `name`"]),
        (
            source("platform = \"telegram\"\ntoken_env = \"T-1\""),
            &["\"s\"", "token_env", "not the name of an environment"],
        ),
        (source("platform = \"telegram\"\ntoken_env = \"T\"").replace("\"s\"", "\"a b\""), &["source.name"]),
        (
            format!(
                "{}[[source]]\nname = \"s\"\nplatform = \"telegram\"\ntoken_env = \"T\"\n",
                source("platform = \"telegram\"\ntoken_env = \"T\"")
            ),
            &["\"s\"", "twice"],
        ),
    ] {
        let problem = Pipeline::parse(&text).unwrap_err();
        for word in words {
            assert!(problem.contains(word), "{word:?} is not in {problem:?} of {text}");
        }
    }
    let unset = source("platform = \"telegram\"\ntoken_env = \"RIPPLEMEM_NOT_SET\"");
    let problem = LiveSource::check(&Pipeline::parse(&unset).unwrap().live[0]).unwrap_err().to_string();
    assert!(problem.contains("RIPPLEMEM_NOT_SET") && problem.contains("token_env"), "{problem}");
    // A value that is not the name of a variable may be the token itself.
    for key in ["token_env", "app_token_env", "secret_env"] {
        let keys = "platform = \"slack\"\ndelivery = \"webhook\"\ntoken_env = \"T\"\napp_token_env = \"T\"\nsecret_env = \"T\"";
        let text = source(keys).replace(&format!("\n{key} = \"T\""), &format!("\n{key} = \"8123456:AAHreal-token\""));
        let problem = Pipeline::parse(&text).unwrap_err();
        assert!(problem.starts_with(&format!("source \"s\": {key}: ")) && !problem.contains("AAH"), "{problem}");
    }
    // What only the platform's reader can check is named with its source, too.
    for (keys, words) in [
        ("zone = \"Mars/X\"", "source \"s\": zone: \"Mars/X\" is not"),
        ("redact = [\"(\"]", "source \"s\": redact: \"(\" is"),
        ("bank = \"a/{team}\"", "source \"s\": bank: the placeholder {team}"),
        ("aliases = \"no/such.toml\"", "source \"s\": "),
    ] {
        let text = source(&format!("platform = \"telegram\"\ntoken_env = \"{TOKEN_ENV}\"\n{keys}"));
        let problem = LiveSource::check(&Pipeline::parse(&text).unwrap().live[0]).unwrap_err().to_string();
        assert!(problem.starts_with(words), "{problem}");
    }
    // With its log in a directory, a service has one address, and webhooks come there.
    let webhook = source("platform = \"webhook\"\nsecret_env = \"T\"\nbank = \"b\"").replace(head, "version = 1\n");
    Pipeline::parse(&webhook).unwrap();
}
