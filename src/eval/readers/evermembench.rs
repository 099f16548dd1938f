//! EverMemBench-Dynamic's `dialogue.json`: the chats of several groups on one topic, day by day.
//!
//! In: the whole file (a few megabytes), as `{"dialogues": {DATE: {GROUP: [message]}}}` or as a list of `{"topic_id",
//! "date", "dialogues": {GROUP: [message]}}`; a silent group is null. Out: all groups of a topic in one bank, because
//! its questions span them; one session for each group and day, named `DATE/GROUP`, ordered by date and then by group;
//! an end mark after each session, and an idle mark after the last session of a topic; for each damaged item a dead
//! letter with the origin `FILE: DATE/GROUP[4]`, counted from 0 in the file's order.
//!
//! The bank is `evermembench/TOPIC`. The topic is the entry's `topic_id`, else the folder of a file named
//! `dialogue*.json` (`dataset/004/dialogue_en.json` is topic 004, whose questions are `qa_004.json`), else the file's
//! name without its extension. The id of a turn is `DATE/GROUP:INDEX` ([`turn_id`]), where INDEX is the message's
//! `message_index`, else its position from 0, so that evidence can be referred to by date, group and index. Times have
//! no zone. Questions and profiles are in other files, which this source never reads.

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
};

use jiff::civil::DateTime;
use serde_json::{Map, Value};

use sources::{
    SourceBatch, SourceError, SourceFormat, SourceProgress, TurnQueue, TurnSource, Zone, end_mark, text_of, unreadable,
    zone_notice,
};
use types::{
    config::SourceSettings,
    model::{Bank, EventTime, SessionEnd, Turn, TurnEvent},
};

/// EverMemBench-Dynamic.
pub const FORMAT: SourceFormat = SourceFormat::of_turns(
    ("evermembench", "EverMemBench-Dynamic's dialogue.json"),
    Some("groups"),
    |sample| sample.has_json_keys(&["dialogues"]),
    |settings, bank| Ok(Box::new(EverMemBenchSource::open(settings, bank)?)),
);

const WHOLE_FILE: &str = "fetch the whole dialogue.json again: an object with \"dialogues\"";

/// The name of a group's session on a day.
#[must_use]
pub fn session_name(date: &str, group: &str) -> String {
    format!("{date}/{group}")
}

/// The id of a message: its session, and its `message_index` or else its position from 0.
#[must_use]
pub fn turn_id(date: &str, group: &str, index: u64) -> String {
    format!("{date}/{group}:{index}")
}

/// The topic of a file without a `topic_id`: the folder of a file named `dialogue*.json`, else the
/// file's name without its extension.
#[must_use]
pub fn topic(path: &Path) -> String {
    let text = |name: Option<&std::ffi::OsStr>| name.map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let stem = text(path.file_stem());
    let folder = text(whole.parent().and_then(Path::file_name));
    if stem.starts_with("dialogue") && !folder.is_empty() { folder } else { stem }
}

/// A source of EverMemBench dialogues.
pub struct EverMemBenchSource {
    path: PathBuf,
    zone: String,
    queue: TurnQueue,
}

impl EverMemBenchSource {
    /// Reads a file. The bank of a topic is `BANK/TOPIC`, or `evermembench/TOPIC` without `bank`.
    /// `only` chooses groups.
    ///
    /// # Errors
    /// [`SourceError`] when the file cannot be read or has another format, the zone is not an offset,
    /// the topic is not a valid bank name, or `only` names a group that is not in the file.
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
        let mut reader = EverMemBenchReader {
            file: path.display().to_string(),
            prefix: bank.map_or(FORMAT.name, Bank::as_str).to_owned(),
            zone,
            only: &settings.only,
            queue: TurnQueue::default(),
        };
        let whole: Value = serde_json::from_slice(&bytes).map_err(|e| format(e.line(), e.column(), e.to_string()))?;
        let topic = topic(path);
        let days = match &whole {
            Value::Object(object) => match object.get("dialogues") {
                Some(Value::Object(dates)) => {
                    dates.iter().map(|(date, groups)| (topic.clone(), date.as_str(), groups)).collect()
                }
                _ => return Err(format(1, 1, "no \"dialogues\" with a day for each date".to_owned())),
            },
            Value::Array(entries) => reader.entries(entries, &topic),
            _ => return Err(format(1, 1, "neither an object nor a list of days".to_owned())),
        };
        check_only(&settings.only, &days)?;
        let mut topics: BTreeMap<String, EverMemBenchDays<'_>> = BTreeMap::new();
        for (topic, date, groups) in days {
            topics.entry(topic).or_default().entry(date).or_default().push(groups);
        }
        for (topic, days) in &topics {
            reader.topic(topic, days)?;
        }
        Ok(Self { path: path.clone(), zone: settings.zone.clone(), queue: reader.queue })
    }
}

impl TurnSource for EverMemBenchSource {
    fn next(&mut self, limit: usize) -> Result<Option<SourceBatch>, SourceError> {
        Ok(self.queue.next(limit))
    }

    fn describe(&self) -> String {
        format!("EverMemBench from {}", self.path.display())
    }

    fn progress(&self) -> SourceProgress {
        self.queue.progress()
    }

    fn notice(&self) -> Option<String> {
        Some(zone_notice(&self.path, &self.zone))
    }
}

/// The groups of each date; a file that is a list may contain a date twice.
type EverMemBenchDays<'a> = BTreeMap<&'a str, Vec<&'a Value>>;

fn check_only(only: &[String], days: &[(String, &str, &Value)]) -> Result<(), SourceError> {
    let known: std::collections::BTreeSet<&str> =
        days.iter().filter_map(|(_, _, groups)| groups.as_object()).flat_map(Map::keys).map(String::as_str).collect();
    match only.iter().find(|name| !known.contains(name.as_str())) {
        None => Ok(()),
        Some(name) => Err(SourceError::Settings {
            key: "only",
            problem: format!(
                "{name:?} is not a group of the file; it holds {}",
                known.into_iter().collect::<Vec<_>>().join(", ")
            ),
        }),
    }
}

/// Turns the file's values into queued events, and damaged ones into dead letters.
struct EverMemBenchReader<'a> {
    file: String,
    prefix: String,
    zone: Zone,
    only: &'a [String],
    queue: TurnQueue,
}

impl EverMemBenchReader<'_> {
    /// The days of a file that is a list, each with topic, date and groups.
    fn entries<'v>(&mut self, entries: &'v [Value], topic: &str) -> Vec<(String, &'v str, &'v Value)> {
        let mut days = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let topic = match entry.get("topic_id") {
                None | Some(Value::Null) => Ok(topic.to_owned()),
                Some(_) => text_of(entry, "topic_id").map(str::to_owned),
            };
            match (topic, text_of(entry, "date"), entry.get("dialogues")) {
                (Ok(topic), Ok(date), Some(groups)) => days.push((topic, date, groups)),
                (Err(reason), ..) | (_, Err(reason), _) => self.reject(&format!("[{index}]"), reason, entry),
                (_, _, None) => {
                    let reason = "dialogues: missing; add the day's groups".to_owned();
                    self.reject(&format!("[{index}]"), reason, entry);
                }
            }
        }
        days
    }

    fn topic(&mut self, topic: &str, days: &EverMemBenchDays<'_>) -> Result<(), SourceError> {
        let bank = Bank::parse(&format!("{}/{topic}", self.prefix)).map_err(|e| SourceError::Settings {
            key: "path",
            problem: format!("the topic {topic:?} cannot name a bank: {e}; rename the file's folder"),
        })?;
        let mut turns = HashSet::new();
        let mut last = None;
        for (date, groups) in days.iter().flat_map(|(date, entries)| entries.iter().map(move |groups| (*date, *groups)))
        {
            let Some(groups) = groups.as_object() else {
                let reason = "not an object; write the day's groups as one".to_owned();
                self.reject(date, reason, groups);
                continue;
            };
            for (group, messages) in groups {
                if self.only.is_empty() || self.only.contains(group) {
                    last = self.session(&bank, (date, group), messages, &mut turns).max(last);
                }
            }
        }
        if let Some(last) = last {
            self.queue.event(end_mark(&bank, last));
        }
        Ok(())
    }

    /// Queues a group's turns of one day; returns the time of the latest.
    fn session(
        &mut self,
        bank: &Bank,
        (date, group): (&str, &str),
        messages: &Value,
        turns: &mut HashSet<String>,
    ) -> Option<EventTime> {
        let name = session_name(date, group);
        let messages = match messages {
            Value::Null => return None,
            Value::Array(messages) => messages,
            other => {
                let reason = "not a list; write the group's messages as one".to_owned();
                self.reject(&name, reason, other);
                return None;
            }
        };
        let mut last = None;
        for (position, value) in messages.iter().enumerate() {
            match self.turn(bank, (date, group), position, value, turns) {
                Ok(turn) => {
                    last = Some(turn.time).max(last);
                    self.queue.event(TurnEvent::Turn(turn));
                }
                Err(reason) => self.reject(&format!("{name}[{position}]"), reason, value),
            }
        }
        if last.is_some() {
            self.queue.event(TurnEvent::SessionEnd(SessionEnd { bank: bank.clone(), session: name }));
        }
        last
    }

    fn turn(
        &self,
        bank: &Bank,
        (date, group): (&str, &str),
        position: usize,
        value: &Value,
        turns: &mut HashSet<String>,
    ) -> Result<Turn, String> {
        let index = match value.get("message_index") {
            None | Some(Value::Null) => position as u64,
            Some(Value::Number(number)) if number.is_u64() => number.as_u64().unwrap_or_default(),
            Some(_) => return Err("message_index: not a whole number; write the message's position".to_owned()),
        };
        let turn = Turn {
            bank: bank.clone(),
            turn: turn_id(date, group, index),
            version: 0,
            speaker: text_of(value, "speaker")?.to_owned(),
            kind: None,
            text: text_of(value, "dialogue")?.to_owned(),
            time: self.time(text_of(value, "time")?)?,
            session: Some(session_name(date, group)),
            thread: None,
            reply_to: None,
            attachments: Vec::new(),
            metadata: None,
            recall: true,
        };
        turn.check().map_err(|e| e.to_string())?;
        if !turns.insert(turn.turn.clone()) {
            return Err(format!("message_index: {index} appears twice on this day; give each message its own"));
        }
        Ok(turn)
    }

    fn time(&self, text: &str) -> Result<EventTime, String> {
        let local: DateTime = text
            .trim()
            .parse()
            .map_err(|_| format!("time: {text:?} is not a time; write one such as \"2025-01-09 09:32:15\""))?;
        self.zone.moment(local).ok_or_else(|| format!("time: {text:?} is out of range; write a year from 1900 to 2199"))
    }

    fn reject(&mut self, place: &str, reason: String, value: &Value) {
        self.queue.reject(&self.file, place, reason, value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::readers::tests::drain;

    /// Everything in a file with this name and these bytes; origins do not include the file's path.
    fn read(
        name: &str,
        bytes: &[u8],
        change: impl Fn(&mut SourceSettings),
        bank: Option<&str>,
    ) -> Result<SourceBatch, SourceError> {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let mut settings = SourceSettings::new("evermembench", &path);
        change(&mut settings);
        let bank = bank.map(|b| Bank::parse(b).unwrap());
        let mut batch = drain(&mut EverMemBenchSource::open(&settings, bank.as_ref())?, 2);
        for letter in &mut batch.rejects {
            letter.origin = letter.origin.strip_prefix(&format!("{}: ", path.display())).unwrap().to_owned();
        }
        Ok(batch)
    }

    fn message(speaker: &str, time: &str, text: &str) -> Value {
        json!({"speaker": speaker, "time": time, "dialogue": text})
    }

    fn sample() -> Value {
        json!({"dialogues": {
            "2025-01-10": {"Group 1": [message("Ines", "2025-01-10 08:00:00", "The draft is up.")], "Group 2": null},
            "2025-01-09": {
                "Group 2": [message("Jo", "2025-01-09T17:45:30", "Who has the keys?")],
                "Group 1": [
                    message("Ines", "2025-01-09 09:32:15", "We start on Monday."),
                    message("Kit", "2025-01-09 09:33:00", "With the survey?")
                ]
            }
        }})
    }

    fn lines(batch: &SourceBatch) -> Vec<String> {
        batch
            .events
            .iter()
            .map(|e| match e {
                TurnEvent::Turn(t) => {
                    format!("{} [{}] {} {} {}", t.bank, t.session.as_deref().unwrap_or("-"), t.turn, t.speaker, t.time)
                }
                TurnEvent::SessionEnd(s) => format!("{} end {}", s.bank, s.session),
                TurnEvent::Idle(i) => format!("{} idle {}", i.bank, i.time),
                TurnEvent::Deletion(d) => format!("{} deletes {}", d.bank, d.turn),
                other => format!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn days_are_in_order_and_all_groups_of_a_topic_share_a_bank() {
        let batch = read("dataset/004/dialogue_en.json", sample().to_string().as_bytes(), |_| (), None).unwrap();
        assert_eq!(batch.rejects, []);
        assert_eq!(
            lines(&batch),
            [
                "evermembench/004 [2025-01-09/Group 1] 2025-01-09/Group 1:0 Ines 2025-01-09T09:32:15Z",
                "evermembench/004 [2025-01-09/Group 1] 2025-01-09/Group 1:1 Kit 2025-01-09T09:33:00Z",
                "evermembench/004 end 2025-01-09/Group 1",
                "evermembench/004 [2025-01-09/Group 2] 2025-01-09/Group 2:0 Jo 2025-01-09T17:45:30Z",
                "evermembench/004 end 2025-01-09/Group 2",
                "evermembench/004 [2025-01-10/Group 1] 2025-01-10/Group 1:0 Ines 2025-01-10T08:00:00Z",
                "evermembench/004 end 2025-01-10/Group 1",
                "evermembench/004 idle 2026-01-11T08:00:00Z",
            ]
        );
    }

    #[test]
    fn a_list_of_days_names_its_topics_and_messages_their_indexes() {
        let day = |topic: Value, date: &str, index: Value| {
            let mut said = message("Ines", &format!("{date} 08:00:00"), "The draft is up.");
            said["message_index"] = index;
            json!({"topic_id": topic, "date": date, "dialogues": {"Group 1": [said]}})
        };
        let list = json!([day(json!("02"), "2025-01-10", json!(7)), day(json!("01"), "2025-01-10", Value::Null)]);
        let batch = read("days.json", list.to_string().as_bytes(), |_| (), None).unwrap();
        assert_eq!(batch.rejects, []);
        assert_eq!(
            lines(&batch),
            [
                "evermembench/01 [2025-01-10/Group 1] 2025-01-10/Group 1:0 Ines 2025-01-10T08:00:00Z",
                "evermembench/01 end 2025-01-10/Group 1",
                "evermembench/01 idle 2026-01-11T08:00:00Z",
                "evermembench/02 [2025-01-10/Group 1] 2025-01-10/Group 1:7 Ines 2025-01-10T08:00:00Z",
                "evermembench/02 end 2025-01-10/Group 1",
                "evermembench/02 idle 2026-01-11T08:00:00Z",
            ]
        );
        let twice = json!([day(Value::Null, "2025-01-10", json!(7)), day(Value::Null, "2025-01-10", json!(7))]);
        let batch = read("days.json", twice.to_string().as_bytes(), |_| (), None).unwrap();
        assert_eq!(batch.events[0].bank().as_str(), "evermembench/days");
        assert_eq!(batch.rejects[0].reason, "message_index: 7 appears twice on this day; give each message its own");
    }

    #[test]
    fn bank_zone_and_choice_are_taken_from_the_settings() {
        let choose = |s: &mut SourceSettings| {
            s.zone = "+08:00".to_owned();
            s.only = vec!["Group 2".to_owned()];
        };
        let bytes = sample().to_string();
        let batch = read("01/dialogue.json", bytes.as_bytes(), choose, Some("team")).unwrap();
        assert_eq!(
            lines(&batch),
            [
                "team/01 [2025-01-09/Group 2] 2025-01-09/Group 2:0 Jo 2025-01-09T17:45:30+08:00",
                "team/01 end 2025-01-09/Group 2",
                "team/01 idle 2026-01-10T17:45:30+08:00",
            ]
        );
        let message = |name: &str, only: &[&str]| {
            let only: Vec<String> = only.iter().map(|o| (*o).to_owned()).collect();
            read(name, bytes.as_bytes(), |s| s.only.clone_from(&only), None).unwrap_err().to_string()
        };
        assert_eq!(
            message("01/dialogue.json", &["Group 9"]),
            "source.only: \"Group 9\" is not a group of the file; it holds Group 1, Group 2"
        );
        assert!(
            message("my topic/dialogue.json", &[])
                .starts_with("source.path: the topic \"my topic\" cannot name a bank")
        );
    }

    #[test]
    fn a_damaged_item_becomes_a_dead_letter_with_its_position_and_the_rest_is_read() {
        let changed = |change: &dyn Fn(&mut Value)| {
            let mut value = sample();
            change(&mut value["dialogues"]);
            value
        };
        let turn =
            |key: &'static str, with: Value| changed(&move |days| days["2025-01-09"]["Group 1"][1][key] = with.clone());
        let place = "2025-01-09/Group 1[1]";
        for (value, place, reason, turns) in [
            (turn("speaker", Value::Null), place, "speaker: missing; add it", 3),
            (turn("dialogue", json!("")), place, "text: empty; write what was said", 3),
            (turn("dialogue", json!(["x"])), place, "dialogue: not a string; write", 3),
            (turn("time", Value::Null), place, "time: missing; add it", 3),
            (turn("time", json!("at nine")), place, "time: \"at nine\" is not a time; write one", 3),
            (turn("time", json!("1400-01-09 09:00:00")), place, "time: \"1400-01-09 09:00:00\" is out of range", 3),
            (turn("message_index", json!(-1)), place, "message_index: not a whole number; write", 3),
            (turn("message_index", json!(0)), place, "message_index: 0 appears twice on this day; give", 3),
            (changed(&|days| days["2025-01-09"]["Group 1"][1] = json!(5)), place, "speaker: missing", 3),
            (changed(&|days| days["2025-01-09"]["Group 2"] = json!("x")), "2025-01-09/Group 2", "not a list; write", 3),
            (changed(&|days| days["2025-01-10"] = json!([])), "2025-01-10", "not an object; write", 3),
            (json!([{"date": "2025-01-09"}]), "[0]", "dialogues: missing; add", 0),
            (json!([{"dialogues": {}}]), "[0]", "date: missing; add", 0),
            (
                json!([{"topic_id": 4, "date": "2025-01-09", "dialogues": {}}]),
                "[0]",
                "topic_id: not a string; write",
                0,
            ),
        ] {
            let batch = read("01/dialogue.json", value.to_string().as_bytes(), |_| (), None).unwrap();
            assert_eq!(batch.rejects.len(), 1, "{reason}");
            assert_eq!(batch.rejects[0].origin, place, "{reason}");
            assert!(batch.rejects[0].reason.starts_with(reason), "{} is not {reason}", batch.rejects[0].reason);
            assert!(batch.rejects[0].reason.contains("; "), "{}", batch.rejects[0].reason);
            let kept = batch.events.iter().filter(|e| matches!(e, TurnEvent::Turn(_))).count();
            assert_eq!(kept, turns, "{reason}");
        }
    }

    #[test]
    fn a_truncated_file_and_one_of_another_format_are_errors_with_the_position() {
        let whole = serde_json::to_string_pretty(&sample()).unwrap();
        let half: String = whole.lines().take(5).collect::<Vec<_>>().join("\n");
        let last = half.lines().last().unwrap().len();
        for (bytes, place) in [
            (half.as_bytes(), format!(":5:{last}: EOF while parsing")),
            (b"", ":1:0: EOF while parsing".to_owned()),
            (b"{\"qars\": []}", ":1:1: no \"dialogues\"".to_owned()),
            (b"7", ":1:1: neither an object nor a list".to_owned()),
        ] {
            let message = read("01/dialogue.json", bytes, |_| (), None).unwrap_err().to_string();
            assert!(message.contains(&place), "{message} is not {place}");
            assert!(message.ends_with(WHOLE_FILE), "{message}");
        }
    }
}
