//! LongMemEval's `longmemeval_*.json`: a list of questions, each with its own history.
//!
//! In: the whole file. The reader keeps the file's bytes and parses one question at a time, because the larger files
//! have hundreds of megabytes. Out: each question's history in a bank of its own: the turns of its sessions by date, an
//! end mark after each session, and an idle mark after the last; for each damaged item a dead letter with the origin
//! `FILE: QUESTION/haystack_sessions[3][4]`, counted from 0 in the file's order. A session has one time, to the minute
//! and without a zone, which all its turns share; its weekday is ignored. The anonymous roles become names: `user` is
//! [`USER`], `assistant` is [`ASSISTANT`]; "I" in a question means [`USER`].
//!
//! The id of a turn is `SESSION:INDEX` ([`turn_id`]), where INDEX counts from 0 in the file's session,
//! so that turns marked `has_answer` can be referred to as evidence. The second session of a history
//! with the same id (published files have filler sessions under two dates) is named `SESSION~2`
//! ([`session_names`]). The question, its answer and the marks are never read.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    path::PathBuf,
};

use jiff::civil::DateTime;
use serde::de::IgnoredAny;
use serde_json::{Deserializer, Value};

use sources::{
    SourceBatch, SourceError, SourceFormat, SourceProgress, TurnQueue, TurnSource, Zone, end_mark, text_of, unreadable,
    zone_notice,
};
use types::{
    config::SourceSettings,
    model::{Bank, EventTime, SessionEnd, Turn, TurnEvent},
};

/// LongMemEval.
pub const FORMAT: SourceFormat = SourceFormat::of_turns(
    ("longmemeval", "LongMemEval's longmemeval_*.json"),
    Some("questions"),
    |sample| sample.has_json_keys(&["question_id", "haystack_session_ids"]),
    |settings, bank| Ok(Box::new(LongMemEvalSource::open(settings, bank)?)),
);

/// The name of the role `user`; the paper maps the anonymous roles to these two.
pub const USER: &str = "Alice";
/// The name of the role `assistant`.
pub const ASSISTANT: &str = "Bob";

/// A session's date without the weekday in parentheses, as in `2023/05/20 (Sat) 02:21`.
const DATE_FORMAT: &str = "%Y/%m/%d %H:%M";
const WHOLE_FILE: &str = "fetch the whole LongMemEval file again: a list of questions";

/// The id of a turn: its session's name, and its position in the session, from 0.
#[must_use]
pub fn turn_id(session: &str, index: usize) -> String {
    format!("{session}:{index}")
}

/// The names of a history's sessions: their ids, with `~2`, `~3`, … after a repeated id.
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
pub struct LongMemEvalSource {
    path: PathBuf,
    zone: String,
    times: Zone,
    prefix: String,
    only: Vec<String>,
    bytes: Vec<u8>,
    /// The byte range of each question.
    questions: Vec<Range<usize>>,
    next: usize,
    /// The ids of the questions so far.
    seen: HashSet<String>,
    queue: TurnQueue,
}

impl LongMemEvalSource {
    /// Reads a file. The bank of a question's history is `BANK/QUESTION_ID`, or
    /// `longmemeval/QUESTION_ID` without `bank`.
    ///
    /// # Errors
    /// [`SourceError`] when the file cannot be read, is not such a list or is truncated, the zone is not
    /// an offset, or `only` names a question that is not in the file.
    pub fn open(settings: &SourceSettings, bank: Option<&Bank>) -> Result<Self, SourceError> {
        let path = &settings.path;
        let times = Zone::parse(&settings.zone)?;
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
            times,
            prefix: bank.map_or(FORMAT.name, Bank::as_str).to_owned(),
            only: settings.only.clone(),
            bytes,
            questions,
            next: 0,
            seen: HashSet::new(),
            queue: TurnQueue::default(),
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

    /// Parses a question. Finding its range did not check its strings and numbers.
    fn question(&self, index: usize) -> Result<Value, String> {
        serde_json::from_slice(self.element(index))
            .map_err(|e| format!("not JSON: {e}; fetch the file again, or leave the question out"))
    }

    fn element(&self, index: usize) -> &[u8] {
        self.questions.get(index).and_then(|range| self.bytes.get(range.clone())).unwrap_or_default()
    }

    /// Queues a question's history.
    fn enqueue(&mut self, index: usize) {
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
            let reason = format!("question_id: {name:?} appears twice; give each question its own");
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
        let mut ordered: Vec<LongMemEvalSession<'_>> = sessions
            .iter()
            .enumerate()
            .map(|(place, turns)| LongMemEvalSession {
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

    /// Queues a session's turns; returns their time, unless all were rejected.
    fn session(&mut self, bank: &Bank, question: &str, session: &LongMemEvalSession<'_>) -> Option<EventTime> {
        let origin = format!("{question}/haystack_sessions[{}]", session.place);
        let Some(turns) = session.turns.as_array() else {
            let reason = "not a list; write the session's turns as one".to_owned();
            self.reject(&origin, reason, session.turns);
            return None;
        };
        let mut time = None;
        for (index, value) in turns.iter().enumerate() {
            let turn = match (&session.name, &session.time) {
                (Ok(name), Ok(time)) => turn_of(bank, name, *time, index, value),
                (Err(reason), _) | (_, Err(reason)) => Err(reason.clone()),
            };
            match turn {
                Ok(turn) => {
                    time = Some(turn.time);
                    self.queue.event(TurnEvent::Turn(turn));
                }
                Err(reason) => self.reject(&format!("{origin}[{index}]"), reason, value),
            }
        }
        if let (Some(_), Ok(name)) = (time, session.name.as_ref()) {
            let end = SessionEnd { bank: bank.clone(), session: (*name).to_owned() };
            self.queue.event(TurnEvent::SessionEnd(end));
        }
        time
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
        self.times
            .moment(local)
            .ok_or_else(|| format!("{key}: {text:?} is out of range; write a year from 1900 to 2199"))
    }

    fn reject(&mut self, place: &str, reason: String, value: &Value) {
        self.queue.reject(&self.path.display().to_string(), place, reason, value);
    }
}

/// A session of a history; its name and its time, or why they are invalid.
struct LongMemEvalSession<'a> {
    place: usize,
    turns: &'a Value,
    name: Result<&'a str, String>,
    time: Result<EventTime, String>,
}

impl TurnSource for LongMemEvalSource {
    fn next(&mut self, limit: usize) -> Result<Option<SourceBatch>, SourceError> {
        while self.queue.is_empty() && self.next < self.questions.len() {
            self.next += 1;
            self.enqueue(self.next - 1);
        }
        Ok(self.queue.next(limit))
    }

    fn describe(&self) -> String {
        format!("LongMemEval from {}", self.path.display())
    }

    fn progress(&self) -> SourceProgress {
        // A question counts as done once its history is queued.
        let done = self.questions.get(self.next).map_or(self.bytes.len(), |q| q.start);
        SourceProgress {
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
        kind: None,
        text: text_of(value, "content")?.to_owned(),
        time,
        session: Some(session.to_owned()),
        thread: None,
        reply_to: None,
        attachments: Vec::new(),
        metadata: None,
        recall: true,
    };
    turn.check().map_err(|e| e.to_string())?;
    Ok(turn)
}

/// The byte range of each element of a JSON list; or line, column and problem.
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
                Some(Err(e)) if e.is_eof() => return Err(failed(bytes.len(), TRUNCATED)),
                Some(Err(e)) => {
                    let (line, column, _) = failed(at, "");
                    let column = if e.line() == 1 { column + e.column().saturating_sub(1) } else { e.column() };
                    return Err((line + e.line() - 1, column, e.to_string()));
                }
                None => return Err(failed(bytes.len(), TRUNCATED)),
            }
            found.push(at..at + values.byte_offset());
            at = blank(at + values.byte_offset());
            match bytes.get(at) {
                Some(b',') => at = blank(at + 1),
                Some(b']') => break,
                Some(_) => return Err(failed(at, "neither a comma nor the end of the list")),
                None => return Err(failed(at, TRUNCATED)),
            }
        }
        at += 1;
    }
    match blank(at) {
        end if end == bytes.len() => Ok(found),
        more => Err(failed(more, "more after the end of the list")),
    }
}

const TRUNCATED: &str = "the file ends before the list does";

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        path::{Path, PathBuf},
    };

    use serde_json::json;

    use super::*;
    use crate::readers::tests::drain;

    fn settings(path: &Path) -> SourceSettings {
        SourceSettings::new("longmemeval", path)
    }

    /// Everything in a file with these bytes; origins do not include the file's path.
    fn read(
        bytes: &[u8],
        change: impl Fn(&mut SourceSettings),
        bank: Option<&str>,
    ) -> Result<SourceBatch, SourceError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let mut settings = settings(file.path());
        change(&mut settings);
        let bank = bank.map(|b| Bank::parse(b).unwrap());
        let mut batch = drain(&mut LongMemEvalSource::open(&settings, bank.as_ref())?, 2);
        for letter in &mut batch.rejects {
            letter.origin = letter.origin.strip_prefix(&format!("{}: ", file.path().display())).unwrap().to_owned();
        }
        Ok(batch)
    }

    fn said(role: &str, content: &str) -> Value {
        json!({"role": role, "content": content, "has_answer": true})
    }

    fn sample() -> Value {
        json!([
            {
                "question_id": "q1", "question_type": "multi-session", "question": "Where is my kayak?",
                "answer": "In the shed.", "question_date": "2024/03/02 (Sat) 08:00",
                "haystack_session_ids": ["later", "first", "filler", "filler"],
                "haystack_dates": [
                    "2024/03/01 (Fri) 21:15", "2024/02/29 (Thu) 00:05", "2024/02/29 (Thu) 10:00", "2024/03/01 (Fri) 10:00"
                ],
                "haystack_sessions": [
                    [said("user", "My kayak is in the shed."), said("assistant", "Noted.")],
                    [said("user", "I bought a kayak.")],
                    [said("user", "Name a river.")],
                    [said("user", "Name a river.")]
                ],
                "answer_session_ids": ["later"]
            },
            {
                "question_id": "q2_abs", "haystack_session_ids": ["only", "none"],
                "haystack_dates": ["2024/05/05 (Sun) 12:00", "2024/05/06 (Mon) 12:00"],
                "haystack_sessions": [[said("assistant", "Welcome.")], []]
            }
        ])
    }

    fn lines(batch: &SourceBatch) -> Vec<String> {
        batch
            .events
            .iter()
            .map(|e| match e {
                TurnEvent::Turn(t) => {
                    format!("{} {} {} {} {}", t.bank, t.session.as_deref().unwrap_or("-"), t.turn, t.speaker, t.time)
                }
                TurnEvent::SessionEnd(s) => format!("{} end {}", s.bank, s.session),
                TurnEvent::Idle(i) => format!("{} idle {}", i.bank, i.time),
                TurnEvent::Deletion(d) => format!("{} deletes {}", d.bank, d.turn),
                other => format!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn histories_are_in_time_order_each_in_its_own_bank_with_names_for_the_roles() {
        let batch = read(sample().to_string().as_bytes(), |_| (), None).unwrap();
        assert_eq!(batch.rejects, []);
        assert_eq!(
            lines(&batch),
            [
                "longmemeval/q1 first first:0 Alice 2024-02-29T00:05:00Z",
                "longmemeval/q1 end first",
                "longmemeval/q1 filler filler:0 Alice 2024-02-29T10:00:00Z",
                "longmemeval/q1 end filler",
                "longmemeval/q1 filler~2 filler~2:0 Alice 2024-03-01T10:00:00Z",
                "longmemeval/q1 end filler~2",
                "longmemeval/q1 later later:0 Alice 2024-03-01T21:15:00Z",
                "longmemeval/q1 later later:1 Bob 2024-03-01T21:15:00Z",
                "longmemeval/q1 end later",
                "longmemeval/q1 idle 2025-03-02T21:15:00Z",
                "longmemeval/q2_abs only only:0 Bob 2024-05-05T12:00:00Z",
                "longmemeval/q2_abs end only",
                "longmemeval/q2_abs idle 2025-05-06T12:00:00Z",
            ]
        );
    }

    #[test]
    fn bank_zone_and_choice_are_taken_from_the_settings() {
        let choose = |s: &mut SourceSettings| {
            s.zone = "-08:00".to_owned();
            s.only = vec!["q2_abs".to_owned()];
        };
        let bytes = sample().to_string();
        let batch = read(bytes.as_bytes(), choose, Some("team/a")).unwrap();
        assert_eq!(lines(&batch)[0], "team/a/q2_abs only only:0 Bob 2024-05-05T12:00:00-08:00");
        assert_eq!(batch.events.len(), 3);
        let error = read(bytes.as_bytes(), |s| s.only = vec!["q9".to_owned()], None).unwrap_err().to_string();
        assert_eq!(error, "source.only: \"q9\" is not in the file, which holds 2 questions; write their ids");
    }

    #[test]
    fn the_assumed_zone_and_the_progress_are_reported() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let bytes = sample().to_string();
        std::fs::write(file.path(), &bytes).unwrap();
        let mut source = LongMemEvalSource::open(&settings(file.path()), None).unwrap();
        assert!(source.notice().unwrap().contains("no zone and are read as +00:00"));
        let total = Some(bytes.len() as u64);
        assert_eq!(source.progress(), SourceProgress { done: 0, total, unit: "bytes" });
        source.next(1).unwrap();
        let half = source.progress().done;
        assert!(half > 0 && half < bytes.len() as u64, "{half}");
        drain(&mut source, 9);
        assert_eq!(source.progress(), SourceProgress { done: bytes.len() as u64, total, unit: "bytes" });
    }

    #[test]
    fn a_damaged_item_becomes_a_dead_letter_with_its_position_and_the_rest_is_read() {
        let changed = |change: &dyn Fn(&mut Value)| {
            let mut value = sample();
            change(&mut value);
            value.to_string()
        };
        let turn =
            |key: &'static str, with: Value| changed(&move |v| v[0]["haystack_sessions"][0][1][key] = with.clone());
        let dated = |with: Value| changed(&move |v| v[0]["haystack_dates"][1] = with.clone());
        let long = "x".repeat(1_100_000);
        for (text, place, reason, turns) in [
            (turn("role", json!("system")), "q1/haystack_sessions[0][1]", "role: \"system\" is not known; write", 5),
            (turn("role", Value::Null), "q1/haystack_sessions[0][1]", "role: missing; add", 5),
            (turn("content", json!(7)), "q1/haystack_sessions[0][1]", "content: not a string; write", 5),
            (turn("content", json!("  ")), "q1/haystack_sessions[0][1]", "text: empty; write what was said", 5),
            (turn("content", json!(long)), "q1/haystack_sessions[0][1]", "text: 1100000 bytes", 5),
            (
                changed(&|v| v[0]["haystack_sessions"][0][1] = json!(3)),
                "q1/haystack_sessions[0][1]",
                "role: missing",
                5,
            ),
            (dated(Value::Null), "q1/haystack_sessions[1][0]", "haystack_dates[1]: missing; write a date", 5),
            (
                dated(json!("May 2024")),
                "q1/haystack_sessions[1][0]",
                "haystack_dates[1]: \"May 2024\" is not a date",
                5,
            ),
            (
                dated(json!("2024/02/30 (Fri) 10:00")),
                "q1/haystack_sessions[1][0]",
                "haystack_dates[1]: \"2024/02/30",
                5,
            ),
            (
                dated(json!("1500/02/01 (Thu) 10:00")),
                "q1/haystack_sessions[1][0]",
                "haystack_dates[1]: \"1500/02/01 (Thu) 10:00\" is out of range",
                5,
            ),
            (
                changed(&|v| v[1]["haystack_dates"] = json!([])),
                "q2_abs/haystack_sessions[0][0]",
                "haystack_dates[0]: missing",
                5,
            ),
            (
                changed(&|v| v[1]["haystack_session_ids"] = json!([])),
                "q2_abs/haystack_sessions[0][0]",
                "haystack_session_ids: only 0 for 2 sessions; add",
                5,
            ),
            (
                changed(&|v| v[1]["haystack_session_ids"][0] = json!(4)),
                "q2_abs/haystack_sessions[0][0]",
                "haystack_session_ids[0]: not a string",
                5,
            ),
            (
                changed(&|v| v[1]["haystack_session_ids"][0] = json!("")),
                "q2_abs/haystack_sessions[0][0]",
                "session: empty; give it a name",
                5,
            ),
            (
                changed(&|v| v[1]["haystack_sessions"][0] = json!("x")),
                "q2_abs/haystack_sessions[0]",
                "not a list; write",
                5,
            ),
            (
                changed(&|v| v[1]["haystack_sessions"] = json!({})),
                "q2_abs",
                "haystack_sessions: missing or not a list; write",
                5,
            ),
            (changed(&|v| v[1]["question_id"] = Value::Null), "[1]", "question_id: missing; add", 5),
            (changed(&|v| v[1]["question_id"] = json!("a b")), "[1]", "question_id: bank: segment \"a b\"", 5),
            (changed(&|v| v[1]["question_id"] = json!("q1")), "[1]", "question_id: \"q1\" appears twice; give", 5),
            (changed(&|v| v[1] = json!([1])), "[1]", "question_id: missing", 5),
            (sample().to_string().replace("Welcome.", "\\ud800"), "[1]", "not JSON: ", 5),
        ] {
            let batch = read(text.as_bytes(), |_| (), None).unwrap();
            assert_eq!(batch.rejects.len(), 1, "{reason}");
            assert_eq!(batch.rejects[0].origin, place, "{reason}");
            assert!(batch.rejects[0].reason.starts_with(reason), "{} is not {reason}", batch.rejects[0].reason);
            assert!(batch.rejects[0].reason.contains("; "), "{}", batch.rejects[0].reason);
            let kept = batch.events.iter().filter(|e| matches!(e, TurnEvent::Turn(_))).count();
            assert_eq!(kept, turns, "{reason}");
        }
    }

    #[test]
    fn a_truncated_file_and_one_that_is_no_list_are_errors_with_the_position() {
        let whole = serde_json::to_string_pretty(&sample()).unwrap();
        let half: String = whole.lines().take(12).collect::<Vec<_>>().join("\n");
        let last = half.lines().last().unwrap().len() + 1;
        let first_question: &str = &whole[..whole.rfind("  },\n  {").unwrap() + 4];
        let lines = first_question.lines().count();
        for (bytes, place) in [
            (half.as_bytes(), format!(":12:{last}: {TRUNCATED}")),
            (first_question.as_bytes(), format!(":{lines}:5: {TRUNCATED}")),
            (b"", ":1:1: the file is empty; fetch".to_owned()),
            (b" {}", ":1:2: not a list; fetch the whole".to_owned()),
            (b"[\n{\"a\": nul}]", ":2:10: expected ident".to_owned()),
            (b"[{}\n{}]", ":2:1: neither a comma nor".to_owned()),
            (b"[{}] x", ":1:6: more after".to_owned()),
            (b"[\n\"\xff\"]", ":2:2: not UTF-8".to_owned()),
            (b"version https://git-lfs.example/spec", ":1:1: not a list".to_owned()),
        ] {
            let message = read(bytes, |_| (), None).unwrap_err().to_string();
            assert!(message.contains(&place), "{message} is not {place}");
            assert!(message.ends_with(WHOLE_FILE), "{message}");
        }
        assert_eq!(read(b" [ ] \n", |_| (), None).unwrap(), SourceBatch::default());
    }

    #[test]
    fn the_published_samples_are_read_whole() {
        let data = std::env::var_os("RIPPLEMEM_DATA")
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
        for (name, questions, sessions, turns, evidence) in
            [("longmemeval_single.json", 1, 53, 550, 2), ("sample2.json", 2, 4, 48, 3)]
        {
            let path = data.join("longmemeval").join(name);
            if !path.exists() {
                testing::skipped(&format!(
                    "source::longmemeval::the_published_samples_are_read_whole: no {}; set RIPPLEMEM_DATA",
                    path.display()
                ));
                return;
            }
            let batch = drain(&mut LongMemEvalSource::open(&settings(&path), None).unwrap(), 100);
            assert_eq!(batch.rejects, []);
            let said: Vec<&Turn> =
                batch.events.iter().filter_map(|e| if let TurnEvent::Turn(t) = e { Some(t) } else { None }).collect();
            let banks: BTreeSet<_> = said.iter().map(|t| t.bank.as_str()).collect();
            let ids: BTreeSet<_> = said.iter().map(|t| (t.bank.as_str(), t.turn.as_str())).collect();
            let ends = batch.events.iter().filter(|e| matches!(e, TurnEvent::SessionEnd(_))).count();
            assert_eq!((banks.len(), ends, said.len(), ids.len()), (questions, sessions, turns, turns));
            // Every turn marked as evidence can be found by its id.
            let file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            let mut marked = 0;
            for question in file.as_array().unwrap() {
                let bank = format!("longmemeval/{}", question["question_id"].as_str().unwrap());
                let names = session_names(
                    question["haystack_session_ids"].as_array().unwrap().iter().filter_map(Value::as_str),
                );
                for (name, session) in names.iter().zip(question["haystack_sessions"].as_array().unwrap()) {
                    for (index, turn) in session.as_array().unwrap().iter().enumerate() {
                        if turn["has_answer"] == json!(true) {
                            marked += 1;
                            let id = turn_id(name, index);
                            let held = said.iter().find(|t| t.bank.as_str() == bank && t.turn == id).unwrap();
                            assert_eq!(held.text, turn["content"].as_str().unwrap());
                        }
                    }
                }
            }
            assert_eq!(marked, evidence, "{name}");
        }
    }
}
