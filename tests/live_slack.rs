//! A scripted workspace of Slack in which people talk, edit, delete and reply in threads, while
//! connections break, events come again and the source is stopped: its memory is the one that is built
//! from the workspace's final state.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    path::Path,
    sync::{Arc, Mutex, mpsc::Sender},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use memory::index::GraphCensus;
use ring::hmac;
use serde_json::{Value, json};
use types::{
    config::SourceSettings,
    model::{Turn, TurnEvent},
};

use super::{
    http_service::{self, HttpService},
    live::{Home, SOCKET_MODE, Stored, TOKEN, envelope, events, is_within},
    live_platform::Platform,
    oracle::Dice,
    support::{census, ingest, open, pipeline, write},
};

/// 2040-01-01, after every clock on which this runs: what was said before the first run is not asked
/// for.
const BEGIN: u64 = 2_208_988_800;
const CHANNELS: [(&str, &str); 2] = [("C1", "general"), ("C2", "travel")];
const USERS: [(&str, &str); 3] = [("U1", "Ann"), ("U2", "Bo Day"), ("U3", "Carla")];

type Place = (&'static str, String);

/// What the workspace is now.
#[derive(Default)]
struct Workspace {
    /// In order; without what was deleted.
    messages: BTreeMap<Place, Value>,
    /// What was deleted.
    deleted: BTreeMap<Place, Value>,
    /// Roots that had replies when they were first requested: their turns name their thread.
    found_with_replies: BTreeSet<Place>,
    second: u64,
    events: usize,
}

/// An event on its way, by its id.
type Event = (String, Value);

impl Workspace {
    fn ts(&mut self, dice: &mut Dice) -> String {
        // Most follow soon; some only after the window's gap of an hour.
        self.second += if dice.below(15) == 0 { 4_000 } else { 20 + dice.below(200) };
        format!("{}.{:06}", BEGIN + self.second, dice.below(1_000))
    }

    fn event(&mut self, event: Value) -> Event {
        self.events += 1;
        (format!("Ev{}", self.events), event)
    }

    /// Something happens.
    fn step(&mut self, dice: &mut Dice) -> Event {
        let ts = self.ts(dice);
        let pick = |dice: &mut Dice, places: Vec<Place>| {
            let newest = places.len().min(25) as u64;
            (newest > 0).then(|| places[places.len() - 1 - dice.below(newest) as usize].clone())
        };
        let places: Vec<Place> = self.messages.keys().cloned().collect();
        let user = USERS[dice.below(3) as usize].0;
        match (dice.below(20), pick(dice, places)) {
            (0..=2, Some(place)) => {
                let message = self.messages.get_mut(&place).unwrap();
                message["text"] = sentence(dice).into();
                message["edited"] = json!({"user": message["user"], "ts": ts});
                let message = message.clone();
                self.changed(place.0, &ts, &message)
            }
            (3, Some(place)) => {
                // A preview of a link, which is no edit.
                let message = self.messages.get_mut(&place).unwrap();
                message["attachments"] = json!([{"title": sentence(dice), "from_url": "https://a.example/x"}]);
                let message = message.clone();
                self.changed(place.0, &ts, &message)
            }
            (4..=5, Some(place)) if self.messages[&place].get("reply_count").is_none() => {
                let message = self.messages.remove(&place).unwrap();
                let event = json!({"type": "message", "subtype": "message_deleted", "channel": place.0,
                    "deleted_ts": place.1, "ts": ts, "previous_message": message});
                self.deleted.insert(place, message);
                self.event(event)
            }
            (6..=10, Some(place)) => {
                let root =
                    self.messages[&place].get("thread_ts").and_then(Value::as_str).unwrap_or(&place.1).to_owned();
                let text = sentence(dice);
                let reply = json!({"type": "message", "channel": place.0, "user": user, "text": text, "ts": ts, "thread_ts": root});
                if let Some(root) = self.messages.get_mut(&(place.0, root)) {
                    root["reply_count"] = (root["reply_count"].as_u64().unwrap_or_default() + 1).into();
                }
                self.messages.insert((place.0, ts), reply.clone());
                self.event(reply)
            }
            _ => {
                let channel = CHANNELS[dice.below(2) as usize].0;
                let text = sentence(dice);
                let message = json!({"type": "message", "channel": channel, "user": user, "text": text, "ts": ts});
                self.messages.insert((channel, ts), message.clone());
                self.event(message)
            }
        }
    }

    fn changed(&mut self, channel: &str, ts: &str, message: &Value) -> Event {
        let mut message = message.clone();
        message.as_object_mut().unwrap().remove("channel");
        self.event(
            json!({"type": "message", "subtype": "message_changed", "channel": channel, "ts": ts, "message": message}),
        )
    }

    /// What a history returns of the messages since `before`: replies only in threads that began since.
    fn told_since(&self, before: &BTreeSet<Place>) -> Vec<Place> {
        let root = |place: &Place| (place.0, self.messages[place]["thread_ts"].as_str().unwrap_or(&place.1).to_owned());
        self.messages.keys().filter(|place| !before.contains(&root(place))).cloned().collect()
    }

    /// What `conversations.history` and `conversations.replies` find, newest first and oldest first.
    fn found(&self, given: &BTreeMap<String, String>, thread: Option<&str>) -> Vec<Value> {
        let within =
            self.messages.iter().filter(|((channel, ts), _)| *channel == given["channel"] && is_within(ts, given));
        let root = |message: &Value| message.get("thread_ts").and_then(Value::as_str).map(str::to_owned);
        match thread {
            None => within.filter(|(_, m)| root(m).is_none()).map(|(_, m)| m.clone()).rev().collect(),
            Some(ts) => within
                .filter(|((_, own), m)| own == ts || root(m).as_deref() == Some(ts))
                .map(|(_, m)| m.clone())
                .collect(),
        }
    }
}

/// A sentence with people, places and days, so that there is something to link.
fn sentence(dice: &mut Dice) -> String {
    let mut pick = |words: &[&'static str]| words[dice.below(words.len() as u64) as usize];
    let who = pick(&["Ann", "Bo", "Carla", "My sister", "The landlord", "Dr. Lee"]);
    let does = pick(&["booked", "sold", "painted", "lost", "repaired", "talked about"]);
    let what = pick(&["the blue kayak", "two train tickets", "the old piano", "a tent", "the garden fence"]);
    let place = pick(&["in Lisbon", "in Oslo", "near the lake", "at the office", "in Kyoto"]);
    let time = pick(&["yesterday", "last Friday", "on 3 May 2039", "this morning", "two weeks ago"]);
    format!("{who} {does} {what} {place} {time}.")
}

fn slack(state: Arc<Mutex<Workspace>>) -> Platform {
    Platform::start(move |own, asked| {
        assert_eq!(asked.authorization, format!("Bearer {TOKEN}"));
        let given = |key: &str| asked.given.get(key).map(String::as_str).unwrap_or_default();
        let channel = |(id, name): (&str, &str)| json!({"id": id, "name": name});
        let mut body = match asked.path.as_str() {
            "auth.test" => json!({"team_id": "T1", "user_id": "UBOT"}),
            "apps.connections.open" => json!({"url": format!("ws://{own}/ws?ticket=1")}),
            "users.info" => json!({"user": account(*USERS.iter().find(|(id, _)| *id == given("user")).unwrap())}),
            "conversations.info" => {
                json!({"channel": channel(*CHANNELS.iter().find(|(id, _)| *id == given("channel")).unwrap())})
            }
            "users.conversations" => json!({"channels": CHANNELS.map(channel)}),
            method @ ("conversations.history" | "conversations.replies") => {
                let thread = (method == "conversations.replies").then(|| given("ts"));
                let found = state.lock().unwrap().found(&asked.given, thread);
                let from: usize = given("cursor").parse().unwrap_or_default();
                let next = if from + 4 < found.len() { (from + 4).to_string() } else { String::new() };
                let page: Vec<&Value> = found.iter().skip(from).take(4).collect();
                json!({"messages": page, "response_metadata": {"next_cursor": next}})
            }
            other => panic!("{other}"),
        };
        body["ok"] = true.into();
        (200, "", body)
    })
}

fn account((id, name): (&str, &str)) -> Value {
    json!({"id": id, "team_id": "T1", "name": id.to_lowercase(), "profile": {"display_name": name}})
}

/// Sends events, some of them twice, and waits until the last is confirmed.
fn send(platform: &Platform, sends: &Sender<String>, events: &[Event], dice: &mut Dice, retry: usize) {
    for (id, event) in events {
        let text = envelope(id, event);
        let again = text.replace(&format!("env-{id}\""), &format!("env-{id}-again-{retry}\""));
        sends.send(again.clone()).unwrap();
        if dice.below(5) == 0 {
            sends.send(text.clone()).unwrap();
        }
    }
    let end = format!("end-{retry}");
    sends.send(json!({"type": "slash_commands", "envelope_id": end}).to_string()).unwrap();
    platform.text(|text| text["envelope_id"] == end.as_str());
}

/// The workspace as an export of its final state.
fn export(workspace: &Workspace, directory: &Path) {
    let json = |name: &str, value: Value| {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value.to_string()).unwrap();
    };
    json("users.json", USERS.map(account).to_vec().into());
    json("channels.json", CHANNELS.map(|(id, name)| json!({"id": id, "name": name})).to_vec().into());
    for (id, name) in CHANNELS {
        let of = |messages: &BTreeMap<Place, Value>| -> Vec<(String, Value)> {
            messages
                .iter()
                .filter(|((channel, _), _)| *channel == id)
                .map(|((_, ts), m)| (ts.clone(), m.clone()))
                .collect()
        };
        // Deleted messages are here as they were: the test deletes them afterwards.
        let all: BTreeMap<String, Value> = of(&workspace.messages).into_iter().chain(of(&workspace.deleted)).collect();
        json(&format!("{name}/2040-01-01.json"), all.into_values().collect::<Vec<_>>().into());
    }
}

/// What an export holds, as events by turn.
fn exported(directory: &Path) -> BTreeMap<String, TurnEvent> {
    let mut settings = SourceSettings::new("slack", directory);
    settings.bank = "acme".to_owned();
    let mut source = sources::open(&settings).unwrap();
    let mut found = BTreeMap::new();
    while let Some(batch) = source.next(64).unwrap() {
        assert_eq!(batch.rejects, []);
        for event in batch.events {
            if let TurnEvent::Turn(turn) = &event {
                found.insert(turn.turn.clone(), event);
            }
        }
    }
    found
}

#[test]
fn the_memory_of_a_slack_that_is_followed_is_that_of_its_final_state() {
    let mut dice = Dice(20);
    let state = Arc::new(Mutex::new(Workspace::default()));
    let platform = slack(Arc::clone(&state));
    let home = Home::new("slack", &format!("http://{}", platform.address), SOCKET_MODE);
    let live = pipeline(home.directory(), "");
    let has = |log: &Stored, places: &[Place]| {
        let lines = log.lines().join("\n");
        places.iter().all(|(channel, ts)| lines.contains(&format!(" {channel}/{ts} ")))
    };
    let (mut missed, mut unheard): (Vec<Event>, Vec<Place>) = Default::default();
    for run in 0..4 {
        // Two connections a run, then the source is stopped; meanwhile people talk on.
        home.pull(|wait| {
            for connection in 0..2 {
                let sends = platform.connected();
                wait(&|log| has(log, &unheard));
                // What Slack could not deliver comes again.
                let retry = run * 2 + connection;
                send(&platform, &sends, &missed, &mut dice, retry);
                let events: Vec<Event> = (0..45).map(|_| state.lock().unwrap().step(&mut dice)).collect();
                send(&platform, &sends, &events, &mut dice, retry + 100);
                let workspace = &mut *state.lock().unwrap();
                let before: BTreeSet<Place> = workspace.messages.keys().cloned().collect();
                let is_last = (run, connection) == (3, 1);
                missed = (0..if is_last { 0 } else { 12 }).map(|_| workspace.step(&mut dice)).collect();
                unheard = workspace.told_since(&before);
                let with_replies =
                    unheard.iter().filter(|place| workspace.messages[place].get("reply_count").is_some());
                workspace.found_with_replies.extend(with_replies.cloned());
            }
        });
        // The memory takes what came, before more comes.
        open(&live).catch_up().unwrap();
    }
    // The end mark that a file has, too.
    let silence = json!({"type": "idle", "bank": "acme", "time": "2041-01-01T00:00:00Z"}).to_string();
    let mut service = open(&live);
    ingest(&mut service, &write(&home.directory().join("silence.jsonl"), silence));
    let found = census(&service);
    drop(service);

    let workspace = state.lock().unwrap();
    let expected = of_final_state(&workspace, home.directory(), &home.events(), &workspace.found_with_replies);
    assert_eq!(found, expected);
}

/// The memory that is built from the final state of all that was received: of the workspace in the bank `acme`, of
/// other banks as it was received last. `found_with_replies` are the roots whose turns name their thread.
fn of_final_state(
    workspace: &Workspace,
    directory: &Path,
    heard: &[TurnEvent],
    found_with_replies: &BTreeSet<Place>,
) -> GraphCensus {
    export(workspace, &directory.join("export"));
    let mut exported = exported(&directory.join("export"));
    let mut others: Vec<&Turn> = Vec::new();
    let mut lines = String::new();
    let mut seen = BTreeSet::new();
    for event in heard {
        let TurnEvent::Turn(heard) = event else { continue };
        if heard.bank.as_str() != "acme" {
            match others.iter_mut().find(|other| other.turn == heard.turn) {
                Some(other) => *other = heard,
                None => others.push(heard),
            }
            continue;
        }
        if !seen.insert(heard.turn.clone()) {
            continue;
        }
        let Some(TurnEvent::Turn(turn)) = exported.get_mut(&heard.turn) else { panic!("{heard:?}") };
        let place = place(&heard.turn);
        // Nobody had replied to it yet when it was received.
        if turn.thread.as_ref() == Some(&turn.turn) && !found_with_replies.contains(&place) {
            turn.thread = None;
        }
        lines.push_str(&format!("{}\n", serde_json::to_string(&TurnEvent::Turn(turn.clone())).unwrap()));
        if workspace.deleted.contains_key(&place) {
            lines.push_str(&format!(
                "{}\n",
                json!({"type": "deletion", "bank": "acme", "turn": heard.turn, "version": u64::MAX})
            ));
        }
    }
    let unheard: Vec<&String> = exported.keys().filter(|turn| !seen.contains(*turn)).collect();
    // What was said and deleted while nobody listened was never received.
    let is_deleted =
        |turn: &&&String| workspace.deleted.keys().any(|(channel, ts)| **turn == &format!("{channel}/{ts}"));
    assert_eq!(unheard.iter().filter(|turn| !is_deleted(turn)).count(), 0, "{unheard:?}");
    for turn in others {
        lines.push_str(&format!("{}\n", serde_json::to_string(&TurnEvent::Turn(turn.clone())).unwrap()));
    }

    let final_state = pipeline(&directory.join("final"), "");
    let mut service = open(&final_state);
    ingest(&mut service, &write(&directory.join("final.jsonl"), lines));
    let expected = census(&service);
    assert!(expected.units > 100 && expected.semantic_edges > 50, "{expected:?}");
    expected
}

/// The place of a turn.
fn place(turn: &str) -> Place {
    let (channel, ts) = turn.split_once('/').unwrap();
    (CHANNELS.into_iter().find(|(id, _)| *id == channel).unwrap().0, ts.to_owned())
}

/// Waits until nothing is asked for any more: what was missed is known.
fn caught_up(platform: &Platform, sends: &Sender<String>) {
    for probe in 0.. {
        let asked = platform.asked().len();
        let id = format!("probe-{probe}");
        sends.send(json!({"type": "slash_commands", "envelope_id": id}).to_string()).unwrap();
        platform.text(|text| text["envelope_id"] == id.as_str());
        if platform.asked().len() == asked {
            return;
        }
    }
}

/// A message to a bot of Telegram, or its edit; in the year of the scripted workspace.
fn update(id: u64, kind: &str, message: u64, text: &str) -> Value {
    let date = BEGIN + 30 * message;
    json!({ "update_id": id, kind: {"message_id": message, "date": date, "edit_date": date + id, "text": text,
        "from": {"id": 5, "first_name": "Ann"},
        "chat": {"id": -1_000_000_000_077_i64, "type": "supergroup", "title": "Trip", "username": "trip"}}})
}

/// Signs a request as the source `desk` wants it, and sends it.
pub(crate) fn post_signed(service: &HttpService, body: &str, secret: &str) -> u16 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let digest = hmac::sign(&key, format!("{now}.{body}").as_bytes());
    let digits: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    // A proxy hands it on under the name by which the platform knows this service.
    let headers =
        format!("Host: memory.example.org\r\nX-RippleMem-Timestamp: {now}\r\nX-RippleMem-Signature: v1={digits}\r\n");
    // Until the source is followed it is 503, and the platform sends again.
    let begun = Instant::now();
    loop {
        let status = service.send("POST", "/sources/desk", &headers, body.as_bytes()).0;
        if status != 503 || begun.elapsed() > Duration::from_secs(60) {
            return status;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn sources_on_the_embedded_log_are_killed_again_and_again_and_the_memory_is_that_of_the_final_state() {
    let mut dice = Dice(21);
    let state = Arc::new(Mutex::new(Workspace::default()));
    let platform = slack(Arc::clone(&state));
    let updates: Arc<Mutex<VecDeque<Value>>> = Arc::default();
    let waiting = Arc::clone(&updates);
    let telegram = Platform::start(move |_, asked| {
        let offset = asked.body["offset"].as_u64().unwrap_or_default();
        let mut waiting = waiting.lock().unwrap();
        waiting.retain(|update| update["update_id"].as_u64().unwrap() >= offset);
        let some: Vec<Value> = waiting.iter().take(3).cloned().collect();
        drop(waiting);
        if some.is_empty() {
            std::thread::sleep(Duration::from_millis(10));
        }
        (200, "", json!({"ok": true, "result": some}))
    });
    let home = tempfile::tempdir().unwrap();
    let source = |name: &str, endpoint: &str, more: &str| {
        format!(
            "[[source]]\nname = \"{name}\"\nplatform = \"{name}\"\nendpoint = \"http://{endpoint}\"\ntoken_env = \"CARGO_PKG_NAME\"\n{more}"
        )
    };
    let file = http_service::pipeline_file(
        home.path(),
        &format!(
            "http.listen = \"127.0.0.1:0\"\n{}{}[[source]]\nname = \"desk\"\nplatform = \"webhook\"\nbank = \"desk\"\nsecret_env = \"CARGO_PKG_NAME\"\n",
            source("slack", &platform.address, SOCKET_MODE),
            source("telegram", &telegram.address, "bank = \"trip\"\n"),
        ),
    );
    let signed = |n: u64| {
        let time = format!("2040-01-01T02:00:{n:02}Z");
        json!({"turn": format!("d{n}"), "speaker": "Bo", "text": format!("Ticket {n} is open."), "time": time})
            .to_string()
    };
    let mut missed: Vec<Event> = Vec::new();
    let mut updated = 0;
    for run in 0..5 {
        let service = HttpService::start(home.path(), &["run", file.to_str().unwrap()]);
        let sends = platform.connected();
        caught_up(&platform, &sends);
        send(&platform, &sends, &missed, &mut dice, run);
        // A platform that asks twice gets what it stored; nobody else gets in.
        let body = signed(run as u64);
        assert_eq!(post_signed(&service, &body, TOKEN), 200);
        assert_eq!(post_signed(&service, &signed(run as u64 / 2), TOKEN), 200);
        assert_eq!(post_signed(&service, &body, "a guess"), 401);
        assert_eq!(service.send("POST", "/sources/nobody", "", b"{}").0, 404);
        let events: Vec<Event> = (0..60).map(|_| state.lock().unwrap().step(&mut dice)).collect();
        send(&platform, &sends, &events, &mut dice, run + 100);
        // Now everything comes at once, and the process is killed meanwhile.
        for _ in 0..12 {
            updated += 1;
            let edits = updated % 4 == 0;
            let text = format!("{} Number {updated}.", sentence(&mut dice));
            let kind = if edits { "edited_message" } else { "message" };
            let message = if edits { updated - 2 } else { updated };
            updates.lock().unwrap().push_back(update(updated, kind, message, &text));
        }
        missed = (0..40).map(|_| state.lock().unwrap().step(&mut dice)).collect();
        if run == 4 {
            send(&platform, &sends, &missed, &mut dice, run + 200);
            caught_up(&platform, &sends);
            while !updates.lock().unwrap().is_empty() {
                std::thread::sleep(Duration::from_millis(5));
            }
            assert!(service.stop());
            break;
        }
        for (id, event) in &missed {
            sends.send(envelope(id, event)).unwrap();
        }
        std::thread::sleep(Duration::from_millis(dice.below(60)));
        service.kill();
    }

    let live = pipeline(home.path(), "");
    let marks = ["acme", "trip", "desk"]
        .map(|bank| json!({"type": "idle", "bank": bank, "time": "2041-01-01T00:00:00Z"}).to_string() + "\n");
    let mut service = open(&live);
    let marks = write(&home.path().join("silence.jsonl"), marks.concat());
    ingest(&mut service, &marks);
    let found = census(&service);
    drop(service);
    let heard = events(&live.log);
    let mut first: BTreeMap<&str, &Turn> = BTreeMap::new();
    for event in &heard {
        if let TurnEvent::Turn(turn) = event {
            first.entry(&turn.turn).or_insert(turn);
        }
    }
    let with_replies =
        first.values().filter(|turn| turn.bank.as_str() == "acme" && turn.thread.as_ref() == Some(&turn.turn));
    let with_replies = with_replies.map(|turn| place(&turn.turn)).collect();
    assert_eq!(first.keys().filter(|turn| turn.starts_with('d')).count(), 5);
    assert_eq!(first.keys().filter(|turn| turn.starts_with("channel77/")).count(), 45);
    // A message that was stored is not stored again, whatever was killed when.
    let versions: Vec<(&str, u64)> = heard
        .iter()
        .filter_map(|event| match event {
            TurnEvent::Turn(turn) if turn.turn.starts_with("channel77/") => Some((turn.turn.as_str(), turn.version)),
            _ => None,
        })
        .collect();
    assert_eq!(versions.iter().collect::<BTreeSet<_>>().len(), versions.len(), "{versions:?}");
    let state = state.lock().unwrap();
    let directory = home.path().join("expected");
    std::fs::create_dir(&directory).unwrap();
    let expected = of_final_state(&state, &directory, &heard, &with_replies);
    assert_eq!(found, expected);
}
