//! LoCoMo's `locomo10.json`: a list of conversations, each a list of dated sessions.
//!
//! In: the whole file (a few megabytes). Out: each conversation in a bank of its own: the turns of its sessions in
//! numeric order, an end mark after each session, and an idle mark after the last; for each damaged item a dead letter
//! with the origin `FILE: conv-26/session_3[4]`, counted from 0. Captions of images become attachments. A session has
//! one time, to the minute and without a zone, which all its turns share. The questions and annotations in the file are
//! never read.

use std::{
    collections::{BTreeMap, HashSet},
    path::PathBuf,
};

use jiff::civil::DateTime;
use serde_json::{Map, Value};

use sources::{
    SourceBatch, SourceError, SourceFormat, SourceProgress, TurnQueue, TurnSource, Zone, end_mark, text_of, unreadable,
    zone_notice,
};
use types::{
    config::SourceSettings,
    model::{Attachment, Bank, EventTime, SessionEnd, Turn, TurnEvent},
};

/// LoCoMo.
pub const FORMAT: SourceFormat = SourceFormat::of_turns(
    ("locomo", "LoCoMo's locomo10.json"),
    Some("conversations"),
    |sample| sample.has_json_keys(&["sample_id", "conversation"]),
    |settings, bank| Ok(Box::new(LocomoSource::open(settings, bank)?)),
);

/// How a session's date is written, such as `1:56 pm on 8 May, 2023`.
const DATE_FORMAT: &str = "%I:%M %p on %d %B, %Y";
const WHOLE_FILE: &str = "fetch the whole locomo10.json again: a list of conversations";

/// A source of LoCoMo conversations.
pub struct LocomoSource {
    path: PathBuf,
    zone: String,
    queue: TurnQueue,
}

impl LocomoSource {
    /// Reads a file. The bank of a conversation is `BANK/SAMPLE_ID`, or
    /// `locomo/SAMPLE_ID` when no bank is given.
    ///
    /// # Errors
    /// [`SourceError`] when the file cannot be read or is not such a list, the zone is not an offset, or
    /// `only` names a conversation that is not in the file.
    pub fn open(settings: &SourceSettings, bank: Option<&Bank>) -> Result<Self, SourceError> {
        let path = &settings.path;
        let zone = Zone::parse(&settings.zone)?;
        let bytes = std::fs::read(path).map_err(|e| unreadable(path, 0, e))?;
        let format = |line, column, problem: String| SourceError::Format {
            path: path.clone(),
            line,
            column,
            problem,
            remedy: WHOLE_FILE,
        };
        let conversations = match serde_json::from_slice(&bytes) {
            Ok(Value::Array(conversations)) => conversations,
            Ok(_) => return Err(format(1, 1, "not a list".to_owned())),
            Err(e) => return Err(format(e.line(), e.column(), e.to_string())),
        };
        check_only(&settings.only, &conversations)?;
        let mut reader = LocomoReader {
            file: path.display().to_string(),
            prefix: bank.map_or(FORMAT.name, Bank::as_str),
            zone,
            only: &settings.only,
            seen: HashSet::new(),
            queue: TurnQueue::default(),
        };
        for (index, conversation) in conversations.iter().enumerate() {
            reader.conversation(index, conversation);
        }
        Ok(Self { path: path.clone(), zone: settings.zone.clone(), queue: reader.queue })
    }
}

impl TurnSource for LocomoSource {
    fn next(&mut self, limit: usize) -> Result<Option<SourceBatch>, SourceError> {
        Ok(self.queue.next(limit))
    }

    fn describe(&self) -> String {
        format!("LoCoMo from {}", self.path.display())
    }

    fn progress(&self) -> SourceProgress {
        self.queue.progress()
    }

    fn notice(&self) -> Option<String> {
        Some(zone_notice(&self.path, &self.zone))
    }
}

fn check_only(only: &[String], conversations: &[Value]) -> Result<(), SourceError> {
    let known: Vec<&str> = conversations.iter().filter_map(|c| c.get("sample_id")?.as_str()).collect();
    match only.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(SourceError::Settings {
            key: "only",
            problem: format!("{name:?} is not in the file; it holds {}", known.join(", ")),
        }),
    }
}

/// Turns the file's values into queued events, and damaged ones into dead letters.
struct LocomoReader<'a> {
    file: String,
    prefix: &'a str,
    zone: Zone,
    only: &'a [String],
    /// The names of the conversations so far.
    seen: HashSet<&'a str>,
    queue: TurnQueue,
}

impl<'a> LocomoReader<'a> {
    fn conversation(&mut self, index: usize, value: &'a Value) {
        let name = match text_of(value, "sample_id") {
            Ok(name) => name,
            Err(_) if !self.only.is_empty() => return,
            Err(reason) => return self.reject(format!("[{index}]"), reason, value),
        };
        if !self.only.is_empty() && !self.only.iter().any(|o| o == name) {
            return;
        }
        let bank = match Bank::parse(&format!("{}/{name}", self.prefix)) {
            Ok(bank) => bank,
            Err(e) => return self.reject(format!("[{index}]"), format!("sample_id: {e}"), value),
        };
        if !self.seen.insert(name) {
            let reason = format!("sample_id: {name:?} appears twice; give each conversation its own");
            return self.reject(format!("[{index}]"), reason, value);
        }
        let Some(conversation) = value.get("conversation").and_then(Value::as_object) else {
            let reason = "conversation: missing or not an object; add its sessions".to_owned();
            return self.reject(name.to_owned(), reason, value);
        };
        let sessions: BTreeMap<u64, &'a str> =
            conversation.keys().filter_map(|key| Some((session_number(key)?, key.as_str()))).collect();
        let mut turns = HashSet::new();
        let mut last = None;
        for session in sessions.values() {
            last = self.session(&bank, name, conversation, session, &mut turns).max(last);
        }
        if let Some(last) = last {
            self.queue.event(end_mark(&bank, last));
        }
    }

    /// Queues a session's turns; returns their time, unless all were rejected.
    fn session(
        &mut self,
        bank: &Bank,
        name: &str,
        conversation: &'a Map<String, Value>,
        session: &str,
        turns: &mut HashSet<&'a str>,
    ) -> Option<EventTime> {
        let values = match conversation.get(session)? {
            Value::Null => return None,
            Value::Array(values) => values,
            other => {
                let reason = format!("{session}: not a list; write the session's turns as one");
                self.reject(format!("{name}/{session}"), reason, other);
                return None;
            }
        };
        let time = self.time(conversation, session);
        let mut latest = None;
        for (index, value) in values.iter().enumerate() {
            let turn = match &time {
                Ok(time) => turn_of(bank, session, *time, value, turns),
                Err(reason) => Err(reason.clone()),
            };
            match turn {
                Ok(turn) => {
                    latest = Some(turn.time);
                    self.queue.event(TurnEvent::Turn(turn));
                }
                Err(reason) => self.reject(format!("{name}/{session}[{index}]"), reason, value),
            }
        }
        if latest.is_some() {
            let end = SessionEnd { bank: bank.clone(), session: session.to_owned() };
            self.queue.event(TurnEvent::SessionEnd(end));
        }
        latest
    }

    fn time(&self, conversation: &Map<String, Value>, session: &str) -> Result<EventTime, String> {
        const REMEDY: &str = "write a date such as \"1:56 pm on 8 May, 2023\"";
        let key = format!("{session}_date_time");
        let text = match conversation.get(&key) {
            None | Some(Value::Null) => return Err(format!("{key}: missing; {REMEDY}")),
            Some(Value::String(text)) => text,
            Some(_) => return Err(format!("{key}: not a string; {REMEDY}")),
        };
        let local = DateTime::strptime(DATE_FORMAT, text.trim())
            .map_err(|_| format!("{key}: {text:?} is not a date; {REMEDY}"))?;
        self.zone
            .moment(local)
            .ok_or_else(|| format!("{key}: {text:?} is out of range; write a year from 1900 to 2199"))
    }

    fn reject(&mut self, place: String, reason: String, value: &Value) {
        self.queue.reject(&self.file, &place, reason, value);
    }
}

fn turn_of<'a>(
    bank: &Bank,
    session: &str,
    time: EventTime,
    value: &'a Value,
    turns: &mut HashSet<&'a str>,
) -> Result<Turn, String> {
    let id = text_of(value, "dia_id")?;
    let caption = match value.get("blip_caption") {
        None | Some(Value::Null) => None,
        Some(Value::String(caption)) => Some(caption.clone()).filter(|c| !c.trim().is_empty()),
        Some(_) => return Err("blip_caption: not a string; write what the image shows".to_owned()),
    };
    let image = caption.map(|caption| Attachment { kind: Some("image".to_owned()), caption: Some(caption), url: None });
    let turn = Turn {
        bank: bank.clone(),
        turn: id.to_owned(),
        version: 0,
        speaker: text_of(value, "speaker")?.to_owned(),
        kind: None,
        text: text_of(value, "text")?.to_owned(),
        time,
        session: Some(session.to_owned()),
        thread: None,
        reply_to: None,
        attachments: image.into_iter().collect(),
        metadata: None,
        recall: true,
    };
    turn.check().map_err(|e| e.to_string())?;
    if !turns.insert(id) {
        return Err(format!("dia_id: {id:?} appears twice in the conversation; give each turn its own"));
    }
    Ok(turn)
}

/// N of the key `session_N`; `None` for other keys, such as those of dates.
pub(super) fn session_number(key: &str) -> Option<u64> {
    let digits = key.strip_prefix("session_")?;
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::readers::tests::drain;

    fn settings(path: &Path) -> SourceSettings {
        SourceSettings::new("locomo", path)
    }

    /// Everything in a file with this value; origins do not include the file's path.
    fn read(
        value: &Value,
        change: impl Fn(&mut SourceSettings),
        bank: Option<&str>,
    ) -> Result<SourceBatch, SourceError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), value.to_string()).unwrap();
        let mut settings = settings(file.path());
        change(&mut settings);
        let bank = bank.map(|b| Bank::parse(b).unwrap());
        let mut batch = drain(&mut LocomoSource::open(&settings, bank.as_ref())?, 2);
        for letter in &mut batch.rejects {
            letter.origin = letter.origin.strip_prefix(&format!("{}: ", file.path().display())).unwrap().to_owned();
        }
        Ok(batch)
    }

    fn said(id: &str, text: &str) -> Value {
        json!({"speaker": "Ada", "dia_id": id, "text": text})
    }

    fn sample() -> Value {
        json!([
            {"sample_id": "conv-1", "qa": [], "conversation": {
                "speaker_a": "Ada", "speaker_b": "Bo",
                "session_10_date_time": "12:05 am on 1 January, 2024", "session_10": [said("D10:1", "Happy new year!")],
                "session_2_date_time": "1:56 pm on 8 May, 2023",
                "session_2": [
                    said("D2:1", "Look at this."),
                    {"speaker": "Bo", "dia_id": "D2:2", "text": "Mine.", "blip_caption": "a photo of a boat", "img_url": ["x"]}
                ],
                "session_3_date_time": "9:00 am on 9 May, 2023"
            }},
            {"sample_id": "conv-2", "conversation": {
                "session_1_date_time": "12:30 pm on 29 February, 2024", "session_1": [said("D1:1", "Hi.")]
            }}
        ])
    }

    fn lines(batch: &SourceBatch) -> Vec<String> {
        batch
            .events
            .iter()
            .map(|e| match e {
                TurnEvent::Turn(t) => {
                    let captions: Vec<_> = t.captions().collect();
                    format!("{} {} {} {} {captions:?}", t.bank, t.session.as_deref().unwrap_or("-"), t.turn, t.time)
                }
                TurnEvent::SessionEnd(s) => format!("{} end {}", s.bank, s.session),
                TurnEvent::Idle(i) => format!("{} idle {}", i.bank, i.time),
                TurnEvent::Deletion(d) => format!("{} deletes {}", d.bank, d.turn),
                other => format!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn sessions_are_in_numeric_order_with_their_times_captions_and_ends() {
        let batch = read(&sample(), |_| (), None).unwrap();
        assert_eq!(batch.rejects, []);
        assert_eq!(
            lines(&batch),
            [
                "locomo/conv-1 session_2 D2:1 2023-05-08T13:56:00Z []",
                "locomo/conv-1 session_2 D2:2 2023-05-08T13:56:00Z [\"a photo of a boat\"]",
                "locomo/conv-1 end session_2",
                "locomo/conv-1 session_10 D10:1 2024-01-01T00:05:00Z []",
                "locomo/conv-1 end session_10",
                "locomo/conv-1 idle 2025-01-01T00:05:00Z",
                "locomo/conv-2 session_1 D1:1 2024-02-29T12:30:00Z []",
                "locomo/conv-2 end session_1",
                "locomo/conv-2 idle 2025-03-01T12:30:00Z",
            ]
        );
    }

    #[test]
    fn bank_zone_and_choice_are_taken_from_the_settings() {
        let choose = |s: &mut SourceSettings| {
            s.zone = "+05:30".to_owned();
            s.only = vec!["conv-2".to_owned()];
        };
        let batch = read(&sample(), choose, Some("team/a")).unwrap();
        assert_eq!(lines(&batch)[0], "team/a/conv-2 session_1 D1:1 2024-02-29T12:30:00+05:30 []");
        assert_eq!(batch.events.len(), 3);
        let error = read(&sample(), |s| s.only = vec!["conv-9".to_owned()], None).unwrap_err().to_string();
        assert_eq!(error, "source.only: \"conv-9\" is not in the file; it holds conv-1, conv-2");
    }

    #[test]
    fn the_assumed_zone_and_the_progress_are_reported() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), sample().to_string()).unwrap();
        let mut source = LocomoSource::open(&settings(file.path()), None).unwrap();
        assert!(source.notice().unwrap().contains("no zone and are read as +00:00"));
        assert_eq!(source.progress(), SourceProgress { done: 0, total: Some(4), unit: "turns" });
        source.next(3).unwrap();
        assert_eq!(source.progress().done, 2, "an end mark is not a turn");
        drain(&mut source, 9);
        assert_eq!(source.progress().done, 4);
    }

    #[test]
    fn a_damaged_item_becomes_a_dead_letter_with_its_position_and_the_rest_is_read() {
        let turn = |change: &dyn Fn(&mut Map<String, Value>)| {
            let mut value = sample();
            change(value[0]["conversation"]["session_2"][1].as_object_mut().unwrap());
            value
        };
        let conversation = |change: &dyn Fn(&mut Value)| {
            let mut value = sample();
            change(&mut value[0]);
            value
        };
        let set = |key: &'static str, value: Value| {
            turn(&move |t: &mut Map<String, Value>| {
                t.insert(key.to_owned(), value.clone());
            })
        };
        let dated = |date: Value| conversation(&move |c| c["conversation"]["session_10_date_time"] = date.clone());
        let long = "x".repeat(1_100_000);
        for (value, place, reason, turns) in [
            (set("speaker", Value::Null), "conv-1/session_2[1]", "speaker: missing; add it", 3),
            (
                turn(&|t| {
                    t.remove("speaker");
                }),
                "conv-1/session_2[1]",
                "speaker: missing; add it",
                3,
            ),
            (
                turn(&|t| {
                    t.remove("dia_id");
                }),
                "conv-1/session_2[1]",
                "dia_id: missing; add it",
                3,
            ),
            (set("text", json!(7)), "conv-1/session_2[1]", "text: not a string; write", 3),
            (set("text", json!(long)), "conv-1/session_2[1]", "text: 1100017 bytes with captions", 3),
            (set("blip_caption", json!([1])), "conv-1/session_2[1]", "blip_caption: not a string; write", 3),
            (set("dia_id", json!("D2:1")), "conv-1/session_2[1]", "dia_id: \"D2:1\" appears twice in", 3),
            (
                conversation(&|c| c["conversation"]["session_2"][1] = json!("text")),
                "conv-1/session_2[1]",
                "dia_id: missing",
                3,
            ),
            (dated(Value::Null), "conv-1/session_10[0]", "session_10_date_time: missing; write a date", 3),
            (dated(json!("8 May")), "conv-1/session_10[0]", "session_10_date_time: \"8 May\" is not a date; write", 3),
            (dated(json!(5)), "conv-1/session_10[0]", "session_10_date_time: not a string; write", 3),
            (
                dated(json!("1:00 pm on 1 May, 1500")),
                "conv-1/session_10[0]",
                "session_10_date_time: \"1:00 pm on 1 May, 1500\" is out of range",
                3,
            ),
            (
                dated(json!("1:00 pm on 31 June, 2023")),
                "conv-1/session_10[0]",
                "session_10_date_time: \"1:00 pm on 31 June, 2023\" is not",
                3,
            ),
            (
                conversation(&|c| c["conversation"]["session_2"] = json!({})),
                "conv-1/session_2",
                "session_2: not a list; write",
                2,
            ),
            (conversation(&|c| c["conversation"] = json!([])), "conv-1", "conversation: missing or not an object", 1),
            (conversation(&|c| c["sample_id"] = json!("conv-2")), "[1]", "sample_id: \"conv-2\" appears twice", 3),
            (conversation(&|c| c["sample_id"] = json!("a b")), "[0]", "sample_id: bank: segment \"a b\"", 1),
            (conversation(&|c| *c = json!(3)), "[0]", "sample_id: missing; add it", 1),
        ] {
            let batch = read(&value, |_| (), None).unwrap();
            assert_eq!(batch.rejects.len(), 1, "{reason}");
            assert_eq!(batch.rejects[0].origin, place, "{reason}");
            assert!(batch.rejects[0].reason.starts_with(reason), "{}", batch.rejects[0].reason);
            assert!(batch.rejects[0].reason.contains("; "), "{}", batch.rejects[0].reason);
            let kept = batch.events.iter().filter(|e| matches!(e, TurnEvent::Turn(_))).count();
            assert_eq!(kept, turns, "{reason}");
        }
    }

    #[test]
    fn a_truncated_file_and_one_that_is_no_list_are_errors_with_the_position() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let whole = serde_json::to_string_pretty(&sample()).unwrap();
        let half: String = whole.lines().take(5).collect::<Vec<_>>().join("\n");
        let last = half.lines().last().unwrap().len();
        for (bytes, place) in [
            (half.as_bytes(), format!(":5:{last}: EOF while parsing")),
            (b"", ":1:0: EOF while parsing".to_owned()),
            (b"{}", ":1:1: not a list; fetch the whole".to_owned()),
            (b"[\n\xff]", ":2:1: ".to_owned()),
            (b"version https://git-lfs.example/spec", ":1:1: expected value".to_owned()),
        ] {
            std::fs::write(file.path(), bytes).unwrap();
            let message = LocomoSource::open(&settings(file.path()), None).err().unwrap().to_string();
            let expected = format!("{}{place}", file.path().display());
            assert!(message.starts_with(&expected), "{message} is not {expected}");
            assert!(message.ends_with(WHOLE_FILE), "{message}");
        }
    }

    #[test]
    fn the_development_conversations_are_read_whole() {
        let data = std::env::var_os("RIPPLEMEM_DATA")
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
        let path = data.join("locomo/locomo-dev5.json");
        if !path.exists() {
            testing::skipped(&format!(
                "source::locomo::the_development_conversations_are_read_whole: no {}; set RIPPLEMEM_DATA",
                path.display()
            ));
            return;
        }
        let batch = drain(&mut LocomoSource::open(&settings(&path), None).unwrap(), 100);
        assert_eq!(batch.rejects, []);
        let turns: Vec<&Turn> =
            batch.events.iter().filter_map(|e| if let TurnEvent::Turn(t) = e { Some(t) } else { None }).collect();
        assert_eq!(turns.len(), 2_760);
        let banks: HashSet<_> = turns.iter().map(|t| t.bank.as_str()).collect();
        assert_eq!(banks.len(), 5);
        assert!(banks.contains("locomo/conv-26"), "{banks:?}");
        let ids: HashSet<_> = turns.iter().map(|t| (&t.bank, &t.turn)).collect();
        assert_eq!(ids.len(), turns.len());
        let ends = batch.events.iter().filter(|e| matches!(e, TurnEvent::SessionEnd(_))).count();
        let sessions: HashSet<_> = turns.iter().map(|t| (&t.bank, &t.session)).collect();
        assert_eq!(ends, sessions.len());
    }
}
