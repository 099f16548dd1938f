//! REALTALK: dialogues between two people in a messaging app, one file each.
//!
//! In: a directory of `Chat_N_NAME_NAME.json` as published, or one of these files. Out: each
//! dialogue in a bank of its own, `realtalk/FILE` without the extension: the turns of its sessions in
//! numeric order, each with the time of its message; an end mark after each session, and an idle mark
//! after the last; for each damaged item a dead letter with the origin `FILE: session_3[4]`, counted
//! from 0. A photo becomes an attachment with its caption. Times have no zone. The questions and
//! annotations in the files are never read.

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
};

use jiff::civil::DateTime;
use serde_json::{Map, Value};

use super::locomo::session_number;
use sources::{
    FileSample, SourceBatch, SourceError, SourceFormat, SourceProgress, TurnQueue, TurnSource, Zone, end_mark,
    has_json_keys, text_of, unreadable, zone_notice,
};
use types::{
    config::SourceSettings,
    model::{Attachment, Bank, EventTime, SessionEnd, Turn, TurnEvent},
};

/// REALTALK.
pub const FORMAT: SourceFormat = SourceFormat::of_turns(
    ("realtalk", "REALTALK's directory of Chat_N_NAME_NAME.json, or one of them"),
    Some("dialogues"),
    looks_like,
    |settings, bank| Ok(Box::new(RealTalkSource::open(settings, bank)?)),
);

/// How a message's time is written, such as `29.12.2023, 22:42:04`.
const TIME_FORMAT: &str = "%d.%m.%Y, %H:%M:%S";
const WHOLE_FILE: &str = "fetch the whole Chat_N_NAME_NAME.json again: an object with \"name\" and \"session_1\"";
/// The keys that every file has.
const KEYS: [&str; 2] = ["name", "session_1"];

fn looks_like(sample: &FileSample) -> bool {
    let is_dialogue = |name: &&str| name.starts_with("Chat_") && name.ends_with(".json");
    sample.has_json_keys(&KEYS)
        || sample.entries().find(is_dialogue).is_some_and(|name| has_json_keys(&sample.head_of(name), &KEYS))
}

/// The dialogues of a path with their names, in the order of their numbers: the JSON files of a
/// directory, or the file itself.
///
/// # Errors
/// The operating system's error, when the directory cannot be read.
pub fn dialogues(path: &Path) -> std::io::Result<Vec<(String, PathBuf)>> {
    let mut files = if path.is_dir() {
        let entries: Result<Vec<_>, _> = path.read_dir()?.map(|entry| entry.map(|e| e.path())).collect();
        entries?.into_iter().filter(|file| file.extension().is_some_and(|e| e == "json")).collect()
    } else {
        vec![path.to_owned()]
    };
    let name = |file: &Path| file.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let number = |name: &str| name.split('_').nth(1).and_then(|n| n.parse::<u64>().ok());
    files.sort_by_cached_key(|file| {
        let name = name(file);
        (number(&name), name)
    });
    Ok(files.into_iter().map(|file| (name(&file), file)).collect())
}

/// A source of REALTALK's dialogues.
pub struct RealTalkSource {
    path: PathBuf,
    zone: String,
    queue: TurnQueue,
}

impl RealTalkSource {
    /// Reads a directory or a file. The bank of a dialogue is `BANK/NAME`, or `realtalk/NAME` when no
    /// bank is given.
    ///
    /// # Errors
    /// [`SourceError`] when a file cannot be read or is not such an object, the zone is invalid, a file's name cannot
    /// name a bank, or `only` names a dialogue that is not there.
    pub fn open(settings: &SourceSettings, bank: Option<&Bank>) -> Result<Self, SourceError> {
        let path = &settings.path;
        let zone = Zone::parse(&settings.zone)?;
        let dialogues = dialogues(path).map_err(|e| unreadable(path, 0, e))?;
        check_only(&settings.only, &dialogues)?;
        let mut queue = TurnQueue::default();
        for (name, file) in &dialogues {
            if !settings.only.is_empty() && !settings.only.contains(name) {
                continue;
            }
            let prefix = bank.map_or(FORMAT.name, Bank::as_str);
            let bank = Bank::parse(&format!("{prefix}/{name}")).map_err(|e| SourceError::Settings {
                key: "path",
                problem: format!("{name:?} cannot name a bank: {e}; rename the file"),
            })?;
            let dialogue = read(file)?;
            RealTalkReader {
                file: file.display().to_string(),
                bank,
                zone: &zone,
                turns: HashSet::new(),
                queue: &mut queue,
            }
            .dialogue(&dialogue);
        }
        Ok(Self { path: path.clone(), zone: settings.zone.clone(), queue })
    }
}

impl TurnSource for RealTalkSource {
    fn next(&mut self, limit: usize) -> Result<Option<SourceBatch>, SourceError> {
        Ok(self.queue.next(limit))
    }

    fn describe(&self) -> String {
        format!("REALTALK from {}", self.path.display())
    }

    fn progress(&self) -> SourceProgress {
        self.queue.progress()
    }

    fn notice(&self) -> Option<String> {
        Some(zone_notice(&self.path, &self.zone))
    }
}

fn check_only(only: &[String], dialogues: &[(String, PathBuf)]) -> Result<(), SourceError> {
    let known: Vec<&str> = dialogues.iter().map(|(name, _)| name.as_str()).collect();
    match only.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(SourceError::Settings {
            key: "only",
            problem: format!("{name:?} is not there; the dialogues are {}", known.join(", ")),
        }),
    }
}

fn read(file: &Path) -> Result<Map<String, Value>, SourceError> {
    let format = |line, column, problem: String| SourceError::Format {
        path: file.to_owned(),
        line,
        column,
        problem,
        remedy: WHOLE_FILE,
    };
    let bytes = std::fs::read(file).map_err(|e| unreadable(file, 0, e))?;
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(dialogue)) if KEYS.iter().all(|key| dialogue.contains_key(*key)) => Ok(dialogue),
        Ok(_) => Err(format(1, 1, "not a dialogue".to_owned())),
        Err(e) => Err(format(e.line(), e.column(), e.to_string())),
    }
}

/// Turns a file's values into queued events, and damaged ones into dead letters.
struct RealTalkReader<'a> {
    file: String,
    bank: Bank,
    zone: &'a Zone,
    /// The ids of the turns so far.
    turns: HashSet<String>,
    queue: &'a mut TurnQueue,
}

impl RealTalkReader<'_> {
    fn dialogue(&mut self, dialogue: &Map<String, Value>) {
        let sessions: BTreeMap<u64, (&str, &Value)> =
            dialogue.iter().filter_map(|(key, value)| Some((session_number(key)?, (key.as_str(), value)))).collect();
        let mut last = None;
        for (name, messages) in sessions.values() {
            last = self.session(name, messages).max(last);
        }
        if let Some(last) = last {
            self.queue.event(end_mark(&self.bank, last));
        }
    }

    /// Queues a session's turns; returns the time of the latest, unless all were rejected.
    fn session(&mut self, name: &str, messages: &Value) -> Option<EventTime> {
        let messages = match messages {
            Value::Null => return None,
            Value::Array(messages) => messages,
            other => {
                self.reject(name, format!("{name}: not a list; write the session's messages as one"), other);
                return None;
            }
        };
        let mut last = None;
        for (index, value) in messages.iter().enumerate() {
            match self.turn(name, value) {
                Ok(turn) => {
                    last = Some(turn.time).max(last);
                    self.queue.event(TurnEvent::Turn(turn));
                }
                Err(reason) => self.reject(&format!("{name}[{index}]"), reason, value),
            }
        }
        if last.is_some() {
            let end = SessionEnd { bank: self.bank.clone(), session: name.to_owned() };
            self.queue.event(TurnEvent::SessionEnd(end));
        }
        last
    }

    fn turn(&mut self, session: &str, value: &Value) -> Result<Turn, String> {
        let id = text_of(value, "dia_id")?;
        let turn = Turn {
            bank: self.bank.clone(),
            turn: id.to_owned(),
            version: 0,
            speaker: text_of(value, "speaker")?.to_owned(),
            kind: None,
            text: text_of(value, "clean_text")?.to_owned(),
            time: self.time(value)?,
            session: Some(session.to_owned()),
            thread: None,
            reply_to: None,
            attachments: photo(value)?.into_iter().collect(),
            metadata: None,
            recall: true,
        };
        turn.check().map_err(|e| e.to_string())?;
        if !self.turns.insert(id.to_owned()) {
            return Err(format!("dia_id: {id:?} appears twice in the dialogue; give each message its own"));
        }
        Ok(turn)
    }

    fn time(&self, value: &Value) -> Result<EventTime, String> {
        let text = text_of(value, "date_time")?;
        let local = DateTime::strptime(TIME_FORMAT, text.trim())
            .map_err(|_| format!("date_time: {text:?} is not a time; write one such as \"29.12.2023, 22:42:04\""))?;
        self.zone
            .moment(local)
            .ok_or_else(|| format!("date_time: {text:?} is out of range; write a year from 1900 to 2199"))
    }

    fn reject(&mut self, place: &str, reason: String, value: &Value) {
        self.queue.reject(&self.file, place, reason, value);
    }
}

/// The photo of a message: its caption, and its address if the file names one.
fn photo(value: &Value) -> Result<Option<Attachment>, String> {
    let caption = match value.get("blip_caption") {
        None | Some(Value::Null) => None,
        Some(Value::String(caption)) => Some(caption.clone()).filter(|c| !c.trim().is_empty()),
        Some(_) => return Err("blip_caption: not a string; write what the photo shows".to_owned()),
    };
    Ok(caption.map(|caption| Attachment { kind: Some("image".to_owned()), caption: Some(caption), url: None }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::readers::tests::drain;

    fn said(id: &str, at: &str, text: &str) -> Value {
        json!({"clean_text": text, "speaker": "Ada", "date_time": at, "img_file": [], "img_url": [], "dia_id": id})
    }

    fn sample() -> Value {
        let mut photo = said("D2:2", "30.12.2023, 09:00:05", "Mine.");
        photo["blip_caption"] = json!("a boat on a lake");
        json!({
            "name": {"speaker_1": "Ada", "speaker_2": "Bo"},
            "session_1": [said("D1:1", "29.12.2023, 22:42:04", "Hi.")],
            "session_10": [said("D10:1", "07.01.2024, 00:00:00", "Late.")],
            "session_2": [said("D2:1", "30.12.2023, 09:00:00", "Look."), photo],
            "events_session_1": {"agent_a": []},
            "session_1_date_time": "29.12.2023, 22:42:04",
            "qa": [{"question": "never read"}]
        })
    }

    /// Everything in a directory with these files; origins do not include the directory.
    fn read(files: &[(&str, Value)], change: impl Fn(&mut SourceSettings)) -> Result<SourceBatch, SourceError> {
        let directory = tempfile::tempdir().unwrap();
        for (name, value) in files {
            std::fs::write(directory.path().join(name), value.to_string()).unwrap();
        }
        let mut settings = SourceSettings::new("realtalk", directory.path());
        change(&mut settings);
        let mut batch = drain(&mut RealTalkSource::open(&settings, None)?, 2);
        for letter in &mut batch.rejects {
            letter.origin = letter.origin.rsplit('/').next().unwrap().to_owned();
        }
        Ok(batch)
    }

    fn lines(batch: &SourceBatch) -> Vec<String> {
        let line = |event: &TurnEvent| match event {
            TurnEvent::Turn(t) => format!("{} {} {} {:?}", t.bank, t.turn, t.time, t.captions().collect::<Vec<_>>()),
            TurnEvent::SessionEnd(s) => format!("{} end {}", s.bank, s.session),
            TurnEvent::Idle(i) => format!("{} idle {}", i.bank, i.time),
            TurnEvent::Deletion(d) => format!("{} deletes {}", d.bank, d.turn),
            other => format!("{other:?}"),
        };
        batch.events.iter().map(line).collect()
    }

    #[test]
    fn dialogues_and_sessions_are_in_numeric_order_and_each_message_has_its_own_time() {
        let files = [("Chat_10_Cy_Di.json", sample()), ("Chat_2_Ada_Bo.json", sample())];
        let batch = read(&files, |_| ()).unwrap();
        assert_eq!(batch.rejects, []);
        let bank = "realtalk/Chat_2_Ada_Bo";
        let expected = [
            "D1:1 2023-12-29T22:42:04Z []",
            "end session_1",
            "D2:1 2023-12-30T09:00:00Z []",
            "D2:2 2023-12-30T09:00:05Z [\"a boat on a lake\"]",
            "end session_2",
            "D10:1 2024-01-07T00:00:00Z []",
            "end session_10",
            "idle 2025-01-07T00:00:00Z",
        ];
        assert_eq!(lines(&batch)[..8], expected.map(|line| format!("{bank} {line}")));
        assert!(lines(&batch)[8].starts_with("realtalk/Chat_10_Cy_Di D1:1"));
    }

    #[test]
    fn dialogues_are_chosen_by_the_names_of_their_files() {
        let files = [("Chat_1_A_B.json", sample()), ("Chat_2_C_D.json", sample())];
        let batch = read(&files, |s| s.only = vec!["Chat_2_C_D".to_owned()]).unwrap();
        assert!(lines(&batch).iter().all(|line| line.starts_with("realtalk/Chat_2_C_D ")));
        let error = read(&files, |s| s.only = vec!["Chat_3".to_owned()]).unwrap_err().to_string();
        assert_eq!(error, "source.only: \"Chat_3\" is not there; the dialogues are Chat_1_A_B, Chat_2_C_D");
    }

    #[test]
    fn damaged_messages_become_dead_letters_with_their_position_and_the_rest_is_read() {
        let mut value = sample();
        value["session_1"] = json!([
            said("D1:1", "29.12.2023, 22:42:04", "Hi."),
            said("D1:1", "29.12.2023, 22:42:05", "Twice."),
            said("D1:2", "2023-12-29", "No time."),
            said("D1:3", "29.12.2023, 22:42:06", " "),
            {"speaker": "Ada"},
            said("D1:5", "29.12.2023, 22:42:07", "Here.")
        ]);
        value["session_2"] = json!("gone");
        let batch = read(&[("Chat_1_A_B.json", value)], |_| ()).unwrap();
        let rejects: Vec<_> =
            batch.rejects.iter().map(|l| format!("{} {}", l.origin, l.reason.split(':').next().unwrap())).collect();
        let expected =
            ["[1] dia_id", "[2] date_time", "[3] text", "[4] dia_id"].map(|r| format!("Chat_1_A_B.json: session_1{r}"));
        assert_eq!(rejects[..4], expected);
        assert_eq!(rejects[4], "Chat_1_A_B.json: session_2 session_2");
        assert_eq!(lines(&batch).iter().filter(|l| l.contains(" D1:")).count(), 2);
    }

    #[test]
    fn a_file_that_is_no_dialogue_is_an_error() {
        let error = read(&[("Chat_1_A_B.json", json!({"name": 1}))], |_| ()).unwrap_err().to_string();
        assert!(error.contains("Chat_1_A_B.json:1:1: not a dialogue; fetch the whole"), "{error}");
    }

    #[test]
    fn a_directory_and_a_file_of_the_format_are_recognised() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("Chat_1_A_B.json");
        std::fs::write(&file, sample().to_string()).unwrap();
        assert!(looks_like(&FileSample::of(directory.path()).unwrap()));
        assert!(looks_like(&FileSample::of(&file).unwrap()));
        std::fs::write(&file, "[]").unwrap();
        assert!(!looks_like(&FileSample::of(directory.path()).unwrap()));
    }
}
