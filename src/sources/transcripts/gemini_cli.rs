//! Gemini CLI: one file of JSON lines for each session since 0.39, one JSON object before.
//!
//! In: `~/.gemini/tmp/PROJECT/chats/session-*.jsonl` or `.json`. Out: what was typed and answered, by the message's own
//! id; a message that comes again, as it does with its tool calls and in the list that a resume writes, counts once
//! with its last words. `$rewindTo` gives up a message and all after it; a list that lacks earlier messages, as after
//! `/compress`, gives up nothing. The project's directory stands in files beside the chats.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    content_blocks::{add, words_before_files},
    file_names::file_name,
    findings::{Findings, kind},
    program::{TranscriptProgram, names},
    transcript_file::{TranscriptFile, TranscriptRecord, filled, text, time},
    transcript_reader::open,
};
use crate::{
    SourceError,
    chat::{LIST, RecordForm, TEXT, TranscriptMessage, TranscriptRole},
    format::{FormatOpener, SourceFormat},
};

/// Gemini CLI.
pub(in crate::transcripts) const PROGRAM: TranscriptProgram = TranscriptProgram {
    agent: "gemini-cli",
    speaker: "Gemini CLI",
    has_local_times: false,
    is_database: false,
    is_rewritten: false,
    has_name: |name| (name.ends_with(".jsonl") || name.ends_with(".json")) && !BESIDE.contains(&file_name(name)),
    has_head: |head| head.trim_start().starts_with('{') && names(head, "sessionId") && names(head, "projectHash"),
    read,
};

/// Its format.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "gemini-cli",
    about: "Gemini CLI: the folder tmp in ~/.gemini, or a session's file",
    standard_input: false,
    only: Some("projects"),
    looks_like: |sample| PROGRAM.is_in(sample),
    open: FormatOpener::Chat(|settings| open(&PROGRAM, settings)),
};

/// Files beside the sessions.
const BESIDE: [&str; 2] = ["logs.json", "projects.json"];
/// How many digits of the hash of a directory name a project whose directory is not known.
const HASH_DIGITS: usize = 12;

/// The fields of a session around its messages, before version 0.39.
const SESSION_FORM: RecordForm = RecordForm {
    needed: &[],
    other: &[],
    known: &["startTime", "lastUpdated", "summary", "directories"],
    remedy: "write it as Gemini CLI does",
};

/// The fields of a message.
const FORM: RecordForm = RecordForm {
    needed: &[
        ("id", TEXT),
        ("type", TEXT),
        ("timestamp", TEXT),
        ("content", TEXT | LIST),
        ("content[]/text", TEXT),
        ("displayContent", TEXT | LIST),
        ("displayContent[]/text", TEXT),
    ],
    other: &[("model", TEXT), ("thoughts", LIST), ("toolCalls", LIST)],
    known: &[
        "thoughts[]",
        "toolCalls[]",
        "tokens",
        "content[]/functionCall",
        "content[]/functionResponse",
        "content[]/inlineData",
        "content[]/fileData",
        "content[]/thoughtSignature",
    ],
    remedy: "write it as Gemini CLI does",
};

/// What is known of a session so far.
struct GeminiSession {
    id: String,
    is_subagent: bool,
    /// The number of each message among the messages, by its id.
    places: HashMap<String, usize>,
    /// Whether a summary came last, which the program has the model answer.
    was_summary: bool,
}

fn read(file: &TranscriptFile<'_>, found: &mut Findings) -> Result<(), SourceError> {
    let mut session =
        GeminiSession { id: file.stem().to_owned(), is_subagent: false, places: HashMap::new(), was_summary: false };
    let mut hash = None;
    if file.name.ends_with(".json") {
        let Some(mut whole) = file.whole(found)? else { return Ok(()) };
        hash = filled(&whole, "projectHash");
        session.begin(&whole);
        found.envelope(&SESSION_FORM, &whole, &["messages"]);
        if whole.get("messages").is_none_or(|messages| !messages.is_array()) {
            found.reject_part(&file.origin(), 1, &whole, "messages: missing or no list; read it again".to_owned());
            return Ok(());
        }
        let messages = whole.get_mut("messages").map(Value::take).unwrap_or_default();
        take_list(file, &mut session, found, 1, messages);
        found.not_talk(kind::RECORD);
    } else {
        file.each_line(found, |found, record| {
            let TranscriptRecord { line, mut value } = record;
            if let Some(set) = value.get_mut("$set") {
                let messages = set.get_mut("messages").map(Value::take).unwrap_or_default();
                found.not_talk(kind::RECORD);
                take_list(file, &mut session, found, line, messages);
            } else if let Some(from) = text(&value, "$rewindTo") {
                session.rewind(&mut found.messages, from);
                found.not_talk(kind::RECORD);
            } else if value.get("projectHash").is_some() {
                hash = filled(&value, "projectHash").or(hash.take());
                session.begin(&value);
                found.not_talk(kind::RECORD);
            } else {
                return take(file, &mut session, found, line, value);
            }
            Ok(())
        })?;
    }
    let directory = directory(file, hash.as_deref());
    found.messages.iter_mut().for_each(|(_, message)| message.directory.clone_from(&directory));
    let unknown = hash.map(|hash| format!("project-{}", hash.chars().take(HASH_DIGITS).collect::<String>()));
    found.begins_in(directory.or(unknown).as_deref());
    Ok(())
}

/// Takes the messages of a list, each as if it stood alone.
fn take_list(file: &TranscriptFile<'_>, session: &mut GeminiSession, found: &mut Findings, line: u64, list: Value) {
    let Value::Array(messages) = list else { return };
    for message in messages {
        if let Err(reason) = take(file, session, found, line, message.clone()) {
            found.reject_part(&file.origin(), line, &message, reason);
        }
    }
}

fn take(
    file: &TranscriptFile<'_>,
    session: &mut GeminiSession,
    found: &mut Findings,
    line: u64,
    value: Value,
) -> Result<(), String> {
    let role = match text(&value, "type").unwrap_or_default() {
        "user" | "gemini" if session.is_subagent => {
            found.not_talk(kind::SUBAGENT);
            return Ok(());
        }
        "user" => TranscriptRole::Person,
        "gemini" => TranscriptRole::Assistant,
        "info" | "error" | "warning" => {
            found.not_talk(kind::SYSTEM);
            return Ok(());
        }
        name => {
            found.unsupported(name);
            return Ok(());
        }
    };
    let (value, odd) = FORM.read::<Value>(value)?;
    let id = filled(&value, "id");
    let is_repeated = id.as_ref().is_some_and(|id| session.places.contains_key(id));
    let mut parts = Findings::default();
    let words = words(&value, role, &mut parts);
    let is_summary = std::mem::take(&mut session.was_summary);
    if role == TranscriptRole::Person {
        session.was_summary = words.is_empty() && parts.skipped.iter().any(|part| part.name() == kind::SUMMARY);
    } else if is_summary && !is_repeated {
        found.not_talk(kind::NOTE);
        return Ok(());
    }
    if let Some(place) = id.as_ref().and_then(|id| session.places.get(id)) {
        found.not_talk(kind::COPY);
        if let Some((_, earlier)) = found.messages.get_mut(*place) {
            odd.tell_beside(&words, &mut found.unread);
            // The parts of a copy were counted with its first line. What a person typed stays as it was first shown: a
            // later list has it as the model was sent it.
            if !words.is_empty() && role == TranscriptRole::Assistant {
                earlier.text = words;
            }
            // Its calls stand in the copy alone.
            if role == TranscriptRole::Assistant && !parts.calls.is_empty() {
                earlier.calls = parts.calls;
            }
        }
        return Ok(());
    }
    let has_parts = !parts.skipped.is_empty();
    found.skipped.append(&mut parts.skipped);
    found.calls.append(&mut parts.calls);
    if words.is_empty() && has_parts {
        odd.tell_beside("", &mut found.unread);
        return Ok(());
    }
    let message = TranscriptMessage {
        model: filled(&value, "model"),
        id: id.clone(),
        ..file.message(&session.id, role, time(&value, "timestamp")?, words)
    };
    let place = found.messages.len();
    found.said(line, message, &odd)?;
    if let Some(id) = id.filter(|_| found.messages.len() > place) {
        session.places.insert(id, place);
    }
    Ok(())
}

/// The words of a message: of a person, what the program shows as typed, without the files that it names.
fn words(value: &Value, role: TranscriptRole, parts: &mut Findings) -> String {
    let list = |name: &str| value.get(name).and_then(Value::as_array).map_or(0, Vec::len);
    (0..list("thoughts")).for_each(|_| parts.not_talk(kind::THINKING));
    let calls = value.get("toolCalls").and_then(Value::as_array);
    calls.into_iter().flatten().for_each(|call| parts.call(call));
    let shown = value.get("displayContent").filter(|shown| !shown.is_null());
    let (mut words, mut typed) = (String::new(), Vec::new());
    let mut say = |text, parts: &mut Findings| match role {
        TranscriptRole::Person => typed.push(text),
        TranscriptRole::Assistant => add(&mut words, text, role, parts),
    };
    match shown.or_else(|| value.get("content")).unwrap_or(&Value::Null) {
        Value::String(text) => say(text, parts),
        Value::Array(list) => {
            for part in list {
                if part.get("thought").and_then(Value::as_bool).unwrap_or(false) {
                    parts.not_talk(kind::THINKING);
                } else if let Some(text) = part.as_str().or_else(|| text(part, "text")) {
                    say(text, parts);
                } else if part.get("functionCall").is_some() {
                    parts.call(part);
                } else if part.get("functionResponse").is_some() {
                    parts.not_talk(kind::TOOL_OUTPUT);
                } else if part.get("inlineData").or_else(|| part.get("fileData")).is_some() {
                    parts.not_talk(kind::IMAGE);
                } else {
                    parts.unsupported("part of a message");
                }
            }
        }
        _ => {}
    }
    if role == TranscriptRole::Person { words_before_files(&typed, parts) } else { words }
}

/// The project's directory: as its folder says, or the list of projects, by the folder's name or the path's hash.
fn directory(file: &TranscriptFile<'_>, hash: Option<&str>) -> Option<String> {
    if let Some(root) = file.beside("../.project_root") {
        return Some(root.trim().to_owned()).filter(|root| !root.is_empty());
    }
    let list: Value = serde_json::from_str(&file.beside("../../../projects.json")?).ok()?;
    let path = file.path().map(|path| path.to_string_lossy().replace('\\', "/"));
    let folder = path.as_deref().unwrap_or(file.name).rsplit('/').nth(2).map(str::to_owned);
    let is_hash = |path: &str| {
        let found = ring::digest::digest(&ring::digest::SHA256, path.as_bytes());
        let digits: String = found.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        hash == Some(digits.as_str())
    };
    let projects = list.get("projects")?.as_object()?;
    let found = projects.iter().find(|(path, name)| is_hash(path) || folder.as_deref() == name.as_str());
    found.map(|(path, _)| path.clone())
}

impl GeminiSession {
    fn begin(&mut self, header: &Value) {
        self.id = filled(header, "sessionId").unwrap_or_else(|| std::mem::take(&mut self.id));
        self.is_subagent |= text(header, "kind").is_some_and(|kind| kind != "main");
    }

    /// Gives up a message and all after it.
    fn rewind(&self, messages: &mut [(u64, TranscriptMessage)], from: &str) {
        if let Some(place) = self.places.get(from) {
            messages.iter_mut().skip(*place).for_each(|(_, message)| message.is_on_kept_branch = false);
        }
    }
}
