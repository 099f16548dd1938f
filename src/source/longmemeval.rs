//! LongMemEval's `longmemeval_*.json`: a list of questions, each with a history of its own.
//!
//! In: the whole file; its bytes are held, one question at a time is parsed, since the
//! larger files have hundreds of megabytes. Out: for each question, in a bank of its own,
//! the turns of its sessions in the order of their dates, an end mark after each session
//! and an idle mark after the last; for every damaged item a dead letter whose origin is
//! `FILE: QUESTION/haystack_sessions[3][4]`, counted from 0 in the file's order.
//! A session has one time, to the minute and without a zone: all its turns get it; its
//! weekday is not read. The roles are anonymous and become names: `user` is [`USER`],
//! `assistant` is [`ASSISTANT`]; a question that says "I" means [`USER`].
//!
//! The id of a turn is `SESSION:INDEX` ([`turn_id`]), INDEX from 0 in the session as the
//! file has it, so that the turns marked `has_answer` can be named as evidence. Where a
//! history has one session id twice (published files do: one filler session under two
//! dates), the second is `SESSION~2` ([`session_names`]). The question, its answer and
//! the marks are never read.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    path::PathBuf,
};

use jiff::civil::DateTime;
use serde::de::IgnoredAny;
use serde_json::{Deserializer, Value};

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

/// LongMemEval.
pub(super) const FORMAT: SourceFormat = SourceFormat {
    name: "longmemeval",
    about: "LongMemEval's longmemeval_*.json",
    standard_input: false,
    only: Some("questions"),
    open: |settings, bank| Ok(Box::new(LongMemEval::open(settings, bank)?)),
};

/// The name of the role `user`; the paper maps the anonymous roles to these two.
pub const USER: &str = "Alice";
/// The name of the role `assistant`.
pub const ASSISTANT: &str = "Bob";

/// A session's date without the weekday in parentheses, as in `2023/05/20 (Sat) 02:21`.
const DATE_FORMAT: &str = "%Y/%m/%d %H:%M";
const WHOLE_FILE: &str = "fetch the whole LongMemEval file again: a list of questions";

/// The id of a turn: its session's name and its place in it, from 0.
#[must_use]
pub fn turn_id(session: &str, index: usize) -> String {
    format!("{session}:{index}")
}

/// The names of a history's sessions: their ids, with `~2`, `~3`, … behind an id that came before.
#[must_use]
pub fn session_names<'a>(ids: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut seen: HashMap<&str, u32> = HashMap::new();
    ids.into_iter()
        .map(|id| {
            let times = seen.entry(id).and_modify(|n| *n += 1).or_insert(1);
            if *times == 1 { id.to_owned() } else { format!("{id}~{times}") }
        })
        .collect()
}

/// A source of LongMemEval histories.
pub struct LongMemEval {
    path: PathBuf,
    zone: String,
    offset_seconds: i32,
    prefix: String,
    only: Vec<String>,
    bytes: Vec<u8>,
    /// Where each question lies in the bytes.
    questions: Vec<Range<usize>>,
    next: usize,
    /// The questions so far.
    seen: HashSet<String>,
    queue: Queue,
}

impl LongMemEval {
    /// Reads a file. The bank of a question's history is `BANK/QUESTION_ID`, or
    /// `longmemeval/QUESTION_ID` when no bank is given.
    ///
    /// # Errors
    /// [`SourceError`] when the file cannot be read, is not such a list or ends before its
    /// end, the zone is not an offset, or `only` names a question that is not in the file.
    pub fn open(settings: &SourceSettings, bank: Option<&Bank>) -> Result<Self, SourceError> {
        let path = &settings.path;
        let offset_seconds = zone_offset(&settings.zone)?;
        let bytes = std::fs::read(path).map_err(|e| unreadable(path, 0, e))?;
        let questions = elements(&bytes).map_err(|(line, column, problem)| SourceError::Format {
            path: path.clone(),
            line,
            column,
            problem,
            remedy: WHOLE_FILE,
        })?;
        let source = Self {
            path: path.clone(),
            zone: settings.zone.clone(),
            offset_seconds,
            prefix: bank.map_or(FORMAT.name, Bank::as_str).to_owned(),
            only: settings.only.clone(),
            bytes,
            questions,
            next: 0,
            seen: HashSet::new(),
            queue: Queue::default(),
        };
        source.check_only()?;
        Ok(source)
    }

    fn check_only(&self) -> Result<(), SourceError> {
        if self.only.is_empty() {
            return Ok(());
        }
        let known: HashSet<String> = (0..self.questions.len())
            .filter_map(|index| Some(self.question(index).ok()?.get("question_id")?.as_str()?.to_owned()))
            .collect();
        match self.only.iter().find(|name| !known.contains(*name)) {
            None => Ok(()),
            Some(name) => Err(SourceError::Settings {
                key: "only",
                problem: format!("{name:?} is not in the file, which holds {} questions; write their ids", known.len()),
            }),
        }
    }

    /// A question's value. Finding it did not look into its strings and numbers.
    fn question(&self, index: usize) -> Result<Value, String> {
        serde_json::from_slice(self.element(index))
            .map_err(|e| format!("not JSON: {e}; fetch the file again, or leave the question out"))
    }

    fn element(&self, index: usize) -> &[u8] {
        self.questions.get(index).and_then(|range| self.bytes.get(range.clone())).unwrap_or_default()
    }

    /// Puts a question's history into the queue.
    fn take(&mut self, index: usize) {
        let at = format!("[{index}]");
        let value = match self.question(index) {
            Ok(value) => value,
            Err(reason) => {
                let head: String = String::from_utf8_lossy(self.element(index)).chars().take(4_096).collect();
                return self.reject(&at, reason, &Value::String(head));
            }
        };
        let name = match text_of(&value, "question_id") {
            Ok(name) => name,
            Err(_) if !self.only.is_empty() => return,
            Err(reason) => return self.reject(&at, reason, &value),
        };
        if !self.only.is_empty() && !self.only.iter().any(|o| o == name) {
            return;
        }
        let bank = match Bank::parse(&format!("{}/{name}", self.prefix)) {
            Ok(bank) => bank,
            Err(e) => return self.reject(&at, format!("question_id: {e}"), &value),
        };
        if !self.seen.insert(name.to_owned()) {
            let reason = format!("question_id: {name:?} comes twice; give each question its own");
            return self.reject(&at, reason, &value);
        }
        let list = |key: &'static str| {
            value.get(key).and_then(Value::as_array).ok_or_else(|| format!("{key}: missing or not a list; write one"))
        };
        let (sessions, ids, dates) =
            match (list("haystack_sessions"), list("haystack_session_ids"), list("haystack_dates")) {
                (Ok(sessions), Ok(ids), Ok(dates)) => (sessions, ids, dates),
                (Err(reason), ..) | (_, Err(reason), _) | (.., Err(reason)) => {
                    return self.reject(name, reason, &value);
                }
            };
        let names = session_names(ids.iter().map(|id| id.as_str().unwrap_or_default()));
        let mut ordered: Vec<Session<'_>> = sessions
            .iter()
            .enumerate()
            .map(|(place, turns)| Session {
                place,
                turns,
                name: match ids.get(place).map(Value::as_str) {
                    None => Err(format!(
                        "haystack_session_ids: only {} for {} sessions; add its id",
                        ids.len(),
                        sessions.len()
                    )),
                    Some(None) => Err(format!("haystack_session_ids[{place}]: not a string; write it as one")),
                    Some(Some(_)) => Ok(names.get(place).map_or("", String::as_str)),
                },
                time: self.time(place, dates.get(place)),
            })
            .collect();
        ordered.sort_by_key(|s| s.time.as_ref().map_or((true, None), |t| (false, Some(*t))));
        let mut last = None;
        for session in &ordered {
            last = self.session(&bank, name, session).max(last);
        }
        if let Some(last) = last {
            self.queue.event(end_mark(&bank, last));
        }
    }

    /// Gives a session's turns; its time, when there was one.
    fn session(&mut self, bank: &Bank, question: &str, session: &Session<'_>) -> Option<EventTime> {
        let place = format!("{question}/haystack_sessions[{}]", session.place);
        let Some(turns) = session.turns.as_array() else {
            let reason = "not a list; write the session's turns as one".to_owned();
            self.reject(&place, reason, session.turns);
            return None;
        };
        let mut said = None;
        for (index, value) in turns.iter().enumerate() {
            let turn = match (&session.name, &session.time) {
                (Ok(name), Ok(time)) => turn_of(bank, name, *time, index, value),
                (Err(reason), _) | (_, Err(reason)) => Err(reason.clone()),
            };
            match turn {
                Ok(turn) => {
                    said = Some(turn.time);
                    self.queue.event(TurnEvent::Turn(turn));
                }
                Err(reason) => self.reject(&format!("{place}[{index}]"), reason, value),
            }
        }
        if let (Some(_), Ok(name)) = (said, session.name.as_ref()) {
            let end = SessionEnd { bank: bank.clone(), session: (*name).to_owned() };
            self.queue.event(TurnEvent::SessionEnd(end));
        }
        said
    }

    fn time(&self, place: usize, date: Option<&Value>) -> Result<EventTime, String> {
        const REMEDY: &str = "write a date such as \"2023/05/20 (Sat) 02:21\"";
        let key = format!("haystack_dates[{place}]");
        let text = match date {
            None | Some(Value::Null) => return Err(format!("{key}: missing; {REMEDY}")),
            Some(Value::String(text)) => text,
            Some(_) => return Err(format!("{key}: not a string; {REMEDY}")),
        };
        let words: Vec<&str> = text.split_whitespace().filter(|w| !w.starts_with('(')).collect();
        let local = DateTime::strptime(DATE_FORMAT, words.join(" "))
            .map_err(|_| format!("{key}: {text:?} is not a date; {REMEDY}"))?;
        moment(local, self.offset_seconds)
            .ok_or_else(|| format!("{key}: {text:?} is out of range; write a year from 1900 to 2199"))
    }

    fn reject(&mut self, place: &str, reason: String, value: &Value) {
        self.queue.reject(&self.path.display().to_string(), place, reason, value);
    }
}

/// A session of a history, with what is wrong with its name or its time.
struct Session<'a> {
    place: usize,
    turns: &'a Value,
    name: Result<&'a str, String>,
    time: Result<EventTime, String>,
}

impl Source for LongMemEval {
    fn next(&mut self, limit: usize) -> Result<Option<Batch>, SourceError> {
        while self.queue.is_empty() && self.next < self.questions.len() {
            self.next += 1;
            self.take(self.next - 1);
        }
        Ok(self.queue.next(limit))
    }

    fn describe(&self) -> String {
        format!("LongMemEval from {}", self.path.display())
    }

    fn progress(&self) -> Progress {
        // A question counts as done once its history is on its way.
        let done = self.questions.get(self.next).map_or(self.bytes.len(), |q| q.start);
        Progress {
            done: if self.next == 0 { 0 } else { done as u64 },
            total: Some(self.bytes.len() as u64),
            unit: "bytes",
        }
    }

    fn notice(&self) -> Option<String> {
        Some(zone_notice(&self.path, &self.zone))
    }
}

fn turn_of(bank: &Bank, session: &str, time: EventTime, index: usize, value: &Value) -> Result<Turn, String> {
    let speaker = match text_of(value, "role")? {
        "user" => USER,
        "assistant" => ASSISTANT,
        other => return Err(format!("role: {other:?} is not known; write \"user\" or \"assistant\"")),
    };
    let turn = Turn {
        bank: bank.clone(),
        turn: turn_id(session, index),
        version: 0,
        speaker: speaker.to_owned(),
        text: text_of(value, "content")?.to_owned(),
        time,
        session: Some(session.to_owned()),
        thread: None,
        reply_to: None,
        attachments: Vec::new(),
    };
    turn.check().map_err(|e| e.to_string())?;
    Ok(turn)
}

/// Where each element of a JSON list lies; or line, column and what is wrong with it.
fn elements(bytes: &[u8]) -> Result<Vec<Range<usize>>, (usize, usize, String)> {
    let blank = |from: usize| {
        from + bytes.get(from..).map_or(0, |rest| rest.iter().take_while(|b| b.is_ascii_whitespace()).count())
    };
    let failed = |at: usize, problem: &str| {
        let before = bytes.get(..at).unwrap_or(bytes);
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|b| **b != b'\n').count() + 1;
        (line, column, problem.to_owned())
    };
    let mut at = blank(0);
    if bytes.get(at) != Some(&b'[') {
        return Err(failed(at, if at == bytes.len() { "the file is empty" } else { "not a list" }));
    }
    if let Err(e) = std::str::from_utf8(bytes) {
        return Err(failed(e.valid_up_to(), "not UTF-8"));
    }
    let mut found = Vec::new();
    at = blank(at + 1);
    if bytes.get(at) == Some(&b']') {
        at += 1;
    } else {
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let mut values = Deserializer::from_slice(rest).into_iter::<IgnoredAny>();
            match values.next() {
                Some(Ok(_)) => {}
                Some(Err(e)) if e.is_eof() => return Err(failed(bytes.len(), CUT)),
                Some(Err(e)) => {
                    let (line, column, _) = failed(at, "");
                    let column = if e.line() == 1 { column + e.column().saturating_sub(1) } else { e.column() };
                    return Err((line + e.line() - 1, column, e.to_string()));
                }
                None => return Err(failed(bytes.len(), CUT)),
            }
            found.push(at..at + values.byte_offset());
            at = blank(at + values.byte_offset());
            match bytes.get(at) {
                Some(b',') => at = blank(at + 1),
                Some(b']') => break,
                Some(_) => return Err(failed(at, "neither a comma nor the end of the list")),
                None => return Err(failed(at, CUT)),
            }
        }
        at += 1;
    }
    match blank(at) {
        end if end == bytes.len() => Ok(found),
        more => Err(failed(more, "more after the end of the list")),
    }
}

const CUT: &str = "the file ends before the list does";

#[cfg(test)]
mod tests;
