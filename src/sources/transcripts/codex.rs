//! Codex: one file of JSON lines for each thread, plain or compressed with zstd.
//!
//! In: `~/.codex/sessions/YEAR/MONTH/DAY/rollout-*.jsonl` and `archived_sessions`. Out: what was typed and answered, as
//! the events say: `item_completed` in paginated files, `user_message` and `agent_message` in legacy ones. The
//! `response_item` beside an event is a copy of it. Legacy events have no id: their place is counted from the root of a
//! fork, which copies what was before under new times, and behind that copy from the fork itself. `thread_rolled_back`
//! undoes turns. A file of a subagent is not talk. What an editor puts before a request is left out.

use serde_json::{Value, json};

use super::{
    content_blocks::{add, words},
    file_names::file_name,
    findings::{Findings, kind},
    program::TranscriptProgram,
    transcript_file::{TranscriptFile, TranscriptRecord, filled, text, time},
    transcript_reader::open,
};
use crate::{
    SourceError,
    chat::{LIST, OBJECT, RecordForm, TEXT, TranscriptMessage, TranscriptRole},
    format::{FormatOpener, SourceFormat},
};
use types::model::EventTime;

/// Codex.
pub(in crate::transcripts) const PROGRAM: TranscriptProgram = TranscriptProgram {
    agent: "codex",
    speaker: "Codex",
    has_local_times: false,
    is_database: false,
    is_rewritten: false,
    has_name: |name| {
        let name = name.strip_suffix(".zst").unwrap_or(name);
        name.ends_with(".jsonl") && file_name(name).starts_with("rollout-")
    },
    has_head: |head| {
        let names = |name: &str| head.contains(&format!("\"{name}\":")) || head.contains(&format!("\"{name}\" :"));
        let is_of_codex = ["session_meta", "response_item", "event_msg", "turn_context"];
        names("payload") && names("timestamp") && is_of_codex.iter().any(|kind| head.contains(&format!("\"{kind}\"")))
    },
    read,
};

/// Its format.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "codex",
    about: "Codex: the folder sessions in ~/.codex, or a rollout's file, also .zst",
    standard_input: false,
    only: Some("projects"),
    looks_like: |sample| PROGRAM.is_in(sample),
    open: FormatOpener::Chat(|settings| open(&PROGRAM, settings)),
};

/// The fields of an event with talk.
const FORM: RecordForm = RecordForm {
    needed: &[
        ("type", TEXT),
        ("timestamp", TEXT),
        ("payload", OBJECT),
        ("payload/type", TEXT),
        ("payload/message", TEXT),
        ("payload/item", OBJECT),
        ("payload/item/id", TEXT),
        ("payload/item/content", LIST),
        ("payload/item/content[]/type", TEXT),
        ("payload/item/content[]/text", TEXT),
    ],
    other: &[],
    known: &[
        "payload/images",
        "payload/local_images",
        "payload/text_elements",
        "payload/phase",
        "payload/kind",
        "payload/memory_citation",
        "payload/item/phase",
        "payload/item/memory_citation",
        "payload/item/content[]/text_elements",
        "payload/item/content[]/image_url",
        "payload/item/content[]/path",
        "payload/item/content[]/name",
    ],
    remedy: "write it as Codex does",
};

/// How an editor begins what it puts before a request, and the lines behind which the request stands.
const EDITOR_BEGINNINGS: [&str; 2] = ["# Context from my IDE setup:", "# Files mentioned by the user:"];
const REQUEST_LINES: [&str; 2] = ["## My request for Codex:", "## My request:"];
/// A fork writes the copy of its past at once; nobody types so soon behind it.
const COPY_PAUSE_MS: i64 = 2_000;

/// What is known of a thread so far.
#[derive(Default)]
struct CodexThread {
    id: String,
    /// The thread from which the oldest line came.
    root: String,
    is_begun: bool,
    began_ms: i64,
    /// In a fork, as long as its lines are copies of its past: the time of the last of them.
    copied_ms: Option<i64>,
    branch: Option<String>,
    model: Option<String>,
    directory: Option<String>,
    is_subagent: bool,
    is_paginated: bool,
    /// For each message, whether it stands in an event of paginated files.
    paginated: Vec<bool>,
    /// Whether the file has an event with talk.
    has_events: bool,
    /// Messages of `response_item`, which count only in files without events.
    spare: Vec<(u64, TranscriptMessage)>,
}

fn read(file: &TranscriptFile<'_>, found: &mut Findings) -> Result<(), SourceError> {
    let mut thread = CodexThread { id: file.stem().to_owned(), ..CodexThread::default() };
    file.each_line(found, |found, record| take(file, &mut thread, found, record))?;
    let CodexThread { is_paginated, paginated, has_events, spare, .. } = thread;
    let spare_count = spare.len();
    // A paginated file that is read while Codex writes it may have the copy and not yet the event, whose id counts.
    if has_events || is_paginated {
        (0..spare_count).for_each(|_| found.not_talk(kind::COPY));
    } else {
        found.messages = spare;
    }
    let all = std::mem::take(&mut found.messages);
    for (at, (line, mut message)) in all.into_iter().enumerate() {
        if is_paginated && paginated.get(at) == Some(&false) {
            found.not_talk(kind::COPY);
            continue;
        }
        message.place = format!("{}/{at}", message.place);
        found.messages.push((line, message));
    }
    Ok(())
}

fn take(
    file: &TranscriptFile<'_>,
    thread: &mut CodexThread,
    found: &mut Findings,
    record: TranscriptRecord,
) -> Result<(), String> {
    let TranscriptRecord { line, value } = record;
    let payload = value.get("payload").unwrap_or(&Value::Null);
    let name = text(payload, "type").unwrap_or_default().to_owned();
    thread.pass(&value);
    match text(&value, "type").unwrap_or_default() {
        "session_meta" => {
            thread.begin(payload, time(&value, "timestamp").ok());
            found.begins_in(text(payload, "cwd"));
            found.not_talk(kind::RECORD);
        }
        "turn_context" => {
            thread.model = filled(payload, "model").or(thread.model.take());
            thread.directory = filled(payload, "cwd").or(thread.directory.take());
            found.not_talk(kind::RECORD);
        }
        "compacted" => found.not_talk(kind::SUMMARY),
        "world_state" | "token_usage_record" | "state" | "git_info" => found.not_talk(kind::RECORD),
        "event_msg" => return event(file, thread, found, line, value, &name),
        "response_item" => response(file, thread, found, line, &value, &name),
        name => found.unsupported(name),
    }
    Ok(())
}

/// An event of the interface.
fn event(
    file: &TranscriptFile<'_>,
    thread: &mut CodexThread,
    found: &mut Findings,
    line: u64,
    value: Value,
    name: &str,
) -> Result<(), String> {
    let payload = value.get("payload").unwrap_or(&Value::Null);
    let item = payload.get("item").unwrap_or(&Value::Null);
    let role = match (name, text(item, "type").unwrap_or_default()) {
        ("user_message", _) | ("item_completed", "UserMessage") => TranscriptRole::Person,
        ("agent_message", _) | ("item_completed", "AgentMessage") => TranscriptRole::Assistant,
        ("item_completed", "Reasoning") | ("agent_reasoning" | "agent_reasoning_raw_content", _) => {
            found.not_talk(kind::THINKING);
            return Ok(());
        }
        ("item_completed", _) => {
            found.not_talk(kind::TOOL_CALL);
            return Ok(());
        }
        ("thread_rolled_back", _) => {
            let turns = payload.get("num_turns").and_then(Value::as_u64).unwrap_or(0);
            roll_back(&mut found.messages, turns);
            found.not_talk(kind::RECORD);
            return Ok(());
        }
        ("turn_aborted", _) => {
            found.not_talk(kind::INTERRUPT);
            return Ok(());
        }
        _ => {
            found.not_talk(kind::RECORD);
            return Ok(());
        }
    };
    thread.has_events = true;
    if thread.is_subagent {
        found.not_talk(kind::SUBAGENT);
        return Ok(());
    }
    let (value, odd) = FORM.read::<Value>(value)?;
    let is_paginated = name == "item_completed";
    thread.is_paginated |= is_paginated;
    let payload = value.get("payload").unwrap_or(&Value::Null);
    let item = payload.get("item").unwrap_or(&Value::Null);
    let before = found.skipped.len();
    let mut said = String::new();
    if is_paginated {
        said = words(&requested(item.get("content"), role, found), role, found);
    } else {
        let message = requested(payload.get("message"), role, found);
        add(&mut said, message.as_str().unwrap_or_default(), role, found);
    }
    if said.is_empty() && found.skipped.len() > before {
        odd.tell_beside("", &mut found.unread);
        return Ok(());
    }
    let message = TranscriptMessage { id: filled(item, "id"), ..thread.message(file, &value, role, said)? };
    let count = found.messages.len();
    found.said(line, message, &odd)?;
    if found.messages.len() > count {
        thread.paginated.push(is_paginated);
    }
    Ok(())
}

/// What is sent to the model and comes from it.
fn response(
    file: &TranscriptFile<'_>,
    thread: &mut CodexThread,
    found: &mut Findings,
    line: u64,
    value: &Value,
    name: &str,
) {
    let payload = value.get("payload").unwrap_or(&Value::Null);
    let role = match (name, text(payload, "role").unwrap_or_default()) {
        ("message", "user") => TranscriptRole::Person,
        ("message", "assistant") => TranscriptRole::Assistant,
        ("message", _) => return found.not_talk(kind::SYSTEM),
        ("reasoning", _) => return found.not_talk(kind::THINKING),
        ("compaction" | "compaction_summary" | "context_compaction", _) => return found.not_talk(kind::SUMMARY),
        ("local_shell_call", _) => {
            let input = payload.get("action").unwrap_or(&Value::Null);
            return found.call(&json!({ "name": "shell", "input": input }));
        }
        (name, _) if name.ends_with("_call") => return found.call(payload),
        (name, _) if name.ends_with("_output") => return found.not_talk(kind::TOOL_OUTPUT),
        ("ghost_snapshot", _) => return found.not_talk(kind::RECORD),
        (name, _) => return found.unsupported(name),
    };
    let mut parts = Findings::default();
    let said = words(&requested(payload.get("content"), role, &mut parts), role, &mut parts);
    // The copy of a message in the form in which the model is sent it is no part of its own.
    match thread.message(file, value, role, said) {
        Ok(message) if !message.text.is_empty() && !thread.is_subagent => thread.spare.push((line, message)),
        _ if thread.is_subagent => found.not_talk(kind::SUBAGENT),
        _ => match parts.skipped.pop() {
            Some(part) => found.skipped.push(part),
            None => found.not_talk(kind::COPY),
        },
    }
}

/// A content without what an editor put before a person's request.
fn requested(content: Option<&Value>, role: TranscriptRole, found: &mut Findings) -> Value {
    let mut content = content.cloned().unwrap_or_default();
    if role == TranscriptRole::Person {
        let texts: Vec<&mut Value> = match &mut content {
            Value::Array(blocks) => blocks.iter_mut().filter_map(|block| block.get_mut("text")).collect(),
            whole => vec![whole],
        };
        for text in texts {
            if let Some(request) = text.as_str().and_then(request) {
                found.not_talk(kind::ENVIRONMENT);
                *text = Value::String(request);
            }
        }
    }
    content
}

/// What a person typed in an editor; `None` if no editor put anything before it.
fn request(text: &str) -> Option<String> {
    if !EDITOR_BEGINNINGS.iter().any(|beginning| text.trim_start().starts_with(beginning)) {
        return None;
    }
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().rposition(|line| REQUEST_LINES.iter().any(|heading| line.trim() == *heading))?;
    Some(lines.get(at + 1..).unwrap_or_default().join("\n"))
}

/// Gives up the last turns of a person, with everything after them.
fn roll_back(messages: &mut [(u64, TranscriptMessage)], turns: u64) {
    let mut left = turns;
    for (_, message) in messages.iter_mut().rev() {
        if left == 0 {
            return;
        }
        let was_kept = std::mem::replace(&mut message.is_on_kept_branch, false);
        if was_kept && message.role == TranscriptRole::Person {
            left -= 1;
        }
    }
}

impl CodexThread {
    /// Takes the first line of a thread, or of one from which it was forked.
    fn begin(&mut self, payload: &Value, time: Option<EventTime>) {
        let id = filled(payload, "id");
        if std::mem::replace(&mut self.is_begun, true) {
            if let Some(root) = id.filter(|root| *root != self.id) {
                self.root = root;
                self.copied_ms = Some(self.began_ms);
            }
            return;
        }
        self.began_ms = time.map_or(0, |time| time.unix_ms);
        self.id = id.unwrap_or_else(|| std::mem::take(&mut self.id));
        self.directory = filled(payload, "cwd");
        self.branch = payload.get("git").and_then(|git| filled(git, "branch"));
        let is_of_user = matches!(text(payload, "thread_source"), None | Some("user" | "root"));
        let is_of_agent = payload.get("source").is_some_and(|source| source.get("subagent").is_some());
        self.is_subagent = is_of_agent || !is_of_user;
        self.is_paginated = text(payload, "history_mode") == Some("paginated");
    }

    /// Takes the time of a line: the copy of a fork's past ends with a pause.
    fn pass(&mut self, value: &Value) {
        if let (Some(copied), Ok(time)) = (self.copied_ms, time(value, "timestamp")) {
            let is_over = time.unix_ms > copied.saturating_add(COPY_PAUSE_MS);
            self.copied_ms = (!is_over).then_some(copied.max(time.unix_ms));
        }
    }

    fn message(
        &self,
        file: &TranscriptFile<'_>,
        value: &Value,
        role: TranscriptRole,
        words: String,
    ) -> Result<TranscriptMessage, String> {
        Ok(TranscriptMessage {
            place: if self.copied_ms.is_some() { self.root.clone() } else { self.id.clone() },
            directory: self.directory.clone(),
            branch: self.branch.clone(),
            model: self.model.clone().filter(|_| role == TranscriptRole::Assistant),
            ..file.message(&self.id, role, time(value, "timestamp")?, words)
        })
    }
}
