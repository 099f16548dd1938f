//! EverMemBench-Dynamic's `dialogue.json`: the days of several chat groups on one topic.
//!
//! In: the whole file (a few megabytes), as `{"dialogues": {DATE: {GROUP: [message]}}}` or
//! as a list of `{"topic_id", "date", "dialogues": {GROUP: [message]}}`; a group that was
//! silent on a day is null. Out: all groups of a topic in one bank, since its questions
//! cut across them; one session a group and day, named `DATE/GROUP`, in the order of the
//! dates, then of the groups' names; an end mark after each session and an idle mark after
//! the last of a topic; for every damaged item a dead letter whose origin is
//! `FILE: DATE/GROUP[4]`, counted from 0 in the file's order.
//!
//! The bank is `evermembench/TOPIC`: the entry's `topic_id`, else the folder of a file
//! named `dialogue*.json` (`dataset/004/dialogue_en.json` is topic 004, whose questions
//! are `qa_004.json`), else the file's name without its ending. The id of a turn is
//! `DATE/GROUP:INDEX` ([`turn_id`]), INDEX being the message's `message_index`, else its
//! place from 0, so that references by date, group and index can be named as evidence.
//! Times name no zone. Questions and profiles lie in other files and are never read.

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
};

use jiff::civil::DateTime;
use serde_json::{Map, Value};

use super::{
    end_mark::end_mark,
    error::{SourceError, unreadable},
    format::SourceFormat,
    queue::{Queue, text_of},
    turn_source::{Batch, Progress, Source},
    zone::{moment, zone_notice, zone_offset},
};
use crate::{
    config::SourceSettings,
    model::{Bank, EventTime, SessionEnd, Turn, TurnEvent},
};

/// EverMemBench-Dynamic.
pub(super) const FORMAT: SourceFormat = SourceFormat {
    name: "evermembench",
    about: "EverMemBench-Dynamic's dialogue.json",
    standard_input: false,
    only: Some("groups"),
    open: |settings, bank| Ok(Box::new(EverMemBench::open(settings, bank)?)),
};

const WHOLE_FILE: &str = "fetch the whole dialogue.json again: an object with \"dialogues\"";

/// The name of a group's session on a day.
#[must_use]
pub fn session_name(date: &str, group: &str) -> String {
    format!("{date}/{group}")
}

/// The id of a message: its session and its `message_index`, else its place from 0.
#[must_use]
pub fn turn_id(date: &str, group: &str, index: u64) -> String {
    format!("{date}/{group}:{index}")
}

/// The topic of a file that names none: its folder when it is called `dialogue*.json`,
/// else its own name without the ending.
#[must_use]
pub fn topic(path: &Path) -> String {
    let text = |name: Option<&std::ffi::OsStr>| name.map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let stem = text(path.file_stem());
    let folder = text(whole.parent().and_then(Path::file_name));
    if stem.starts_with("dialogue") && !folder.is_empty() { folder } else { stem }
}

/// A source of EverMemBench dialogues.
pub struct EverMemBench {
    path: PathBuf,
    zone: String,
    queue: Queue,
}

impl EverMemBench {
    /// Reads a file. The bank of a topic is `BANK/TOPIC`, or `evermembench/TOPIC` when no
    /// bank is given. `only` chooses groups.
    ///
    /// # Errors
    /// [`SourceError`] when the file cannot be read or is not of this form, the zone is not
    /// an offset, the topic cannot name a bank, or `only` names a group that is not in it.
    pub fn open(settings: &SourceSettings, bank: Option<&Bank>) -> Result<Self, SourceError> {
        let path = &settings.path;
        let offset_seconds = zone_offset(&settings.zone)?;
        let bytes = std::fs::read(path).map_err(|e| unreadable(path, 0, e))?;
        let format = |line, column, problem: String| SourceError::Format {
            path: path.clone(),
            line,
            column,
            problem,
            remedy: WHOLE_FILE,
        };
        let mut reader = Reader {
            file: path.display().to_string(),
            prefix: bank.map_or(FORMAT.name, Bank::as_str).to_owned(),
            offset_seconds,
            only: &settings.only,
            queue: Queue::default(),
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
        let mut topics: BTreeMap<String, Days<'_>> = BTreeMap::new();
        for (topic, date, groups) in days {
            topics.entry(topic).or_default().entry(date).or_default().push(groups);
        }
        for (topic, days) in &topics {
            reader.topic(topic, days)?;
        }
        Ok(Self { path: path.clone(), zone: settings.zone.clone(), queue: reader.queue })
    }
}

impl Source for EverMemBench {
    fn next(&mut self, limit: usize) -> Result<Option<Batch>, SourceError> {
        Ok(self.queue.next(limit))
    }

    fn describe(&self) -> String {
        format!("EverMemBench from {}", self.path.display())
    }

    fn progress(&self) -> Progress {
        self.queue.progress()
    }

    fn notice(&self) -> Option<String> {
        Some(zone_notice(&self.path, &self.zone))
    }
}

/// What was said on each date; a list of days may name one twice.
type Days<'a> = BTreeMap<&'a str, Vec<&'a Value>>;

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

/// Turns the file's values into items; keeps what is damaged as dead letters.
struct Reader<'a> {
    file: String,
    prefix: String,
    offset_seconds: i32,
    only: &'a [String],
    queue: Queue,
}

impl Reader<'_> {
    /// The days of a list: topic, date and groups.
    fn entries<'v>(&mut self, entries: &'v [Value], topic: &str) -> Vec<(String, &'v str, &'v Value)> {
        let mut days = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let named = match entry.get("topic_id") {
                None | Some(Value::Null) => Ok(topic.to_owned()),
                Some(_) => text_of(entry, "topic_id").map(str::to_owned),
            };
            match (named, text_of(entry, "date"), entry.get("dialogues")) {
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

    fn topic(&mut self, topic: &str, days: &Days<'_>) -> Result<(), SourceError> {
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

    /// Gives a group's turns of one day; the time of the latest.
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
        for (place, value) in messages.iter().enumerate() {
            match self.turn(bank, (date, group), place, value, turns) {
                Ok(turn) => {
                    last = Some(turn.time).max(last);
                    self.queue.event(TurnEvent::Turn(turn));
                }
                Err(reason) => self.reject(&format!("{name}[{place}]"), reason, value),
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
        place: usize,
        value: &Value,
        turns: &mut HashSet<String>,
    ) -> Result<Turn, String> {
        let index = match value.get("message_index") {
            None | Some(Value::Null) => place as u64,
            Some(Value::Number(number)) if number.is_u64() => number.as_u64().unwrap_or_default(),
            Some(_) => return Err("message_index: not a whole number; write the message's place".to_owned()),
        };
        let turn = Turn {
            bank: bank.clone(),
            turn: turn_id(date, group, index),
            version: 0,
            speaker: text_of(value, "speaker")?.to_owned(),
            text: text_of(value, "dialogue")?.to_owned(),
            time: self.time(text_of(value, "time")?)?,
            session: Some(session_name(date, group)),
            thread: None,
            reply_to: None,
            attachments: Vec::new(),
        };
        turn.check().map_err(|e| e.to_string())?;
        if !turns.insert(turn.turn.clone()) {
            return Err(format!("message_index: {index} comes twice on this day; give each message its own"));
        }
        Ok(turn)
    }

    fn time(&self, text: &str) -> Result<EventTime, String> {
        let local: DateTime = text
            .trim()
            .parse()
            .map_err(|_| format!("time: {text:?} is not a time; write one such as \"2025-01-09 09:32:15\""))?;
        moment(local, self.offset_seconds)
            .ok_or_else(|| format!("time: {text:?} is out of range; write a year from 1900 to 2199"))
    }

    fn reject(&mut self, place: &str, reason: String, value: &Value) {
        self.queue.reject(&self.file, place, reason, value);
    }
}

#[cfg(test)]
mod tests;
