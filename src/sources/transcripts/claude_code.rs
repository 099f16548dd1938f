//! Claude Code, versions 1 and 2: one file of JSON lines for each session.
//!
//! In: `~/.claude/projects/DIRECTORY/SESSION.jsonl`. Out: what was typed, by the line's `uuid`, and what was answered,
//! by the `id` of the model's message, whose blocks stand on a line each. A resume of version 1 and a fork repeat lines
//! with the same ids. The kept branch ends at the `leafUuid` of the last `last-prompt`, or at the last line.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    content_blocks::{ContentPart, joined, parts, words},
    file_names::file_name,
    findings::{Findings, kind},
    kept_branch::MessageTree,
    program::TranscriptProgram,
    transcript_file::{TranscriptFile, TranscriptRecord, filled, text, time},
    transcript_reader::open,
};
use crate::{
    SourceError,
    chat::{LIST, OBJECT, RecordForm, TEXT, TRUTH, TranscriptMessage, TranscriptRole, UnreadFields},
    format::{FormatOpener, SourceFormat},
};

/// Claude Code.
pub(in crate::transcripts) const PROGRAM: TranscriptProgram = TranscriptProgram {
    agent: "claude-code",
    speaker: "Claude Code",
    has_local_times: false,
    is_database: false,
    is_rewritten: false,
    has_name: |name| name.ends_with(".jsonl") && file_name(name) != "history.jsonl",
    has_head,
    read,
};

/// Its format.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "claude-code",
    about: "Claude Code: the folder projects in ~/.claude, or a session's file",
    standard_input: false,
    only: Some("projects"),
    looks_like: |sample| PROGRAM.is_in(sample),
    open: FormatOpener::Chat(|settings| open(&PROGRAM, settings)),
};

/// Records that hold no talk, by their type.
const RECORDS: [&str; 22] = [
    "ai-title",
    "agent-color",
    "agent-name",
    "agent-setting",
    "attribution-snapshot",
    "bridge-session",
    "content-replacement",
    "custom-title",
    "file-history-snapshot",
    "fork-context-ref",
    "last-prompt",
    "marble-origami-commit",
    "marble-origami-snapshot",
    "mode",
    "permission-mode",
    "pr-link",
    "progress",
    "queue-operation",
    "speculation-accept",
    "tag",
    "task-summary",
    "worktree-state",
];

/// The fields of a line of a person or of the assistant.
const FORM: RecordForm = RecordForm {
    needed: &[
        ("type", TEXT),
        ("uuid", TEXT),
        ("timestamp", TEXT),
        ("message", OBJECT),
        ("message/id", TEXT),
        ("message/content", TEXT | LIST),
        ("message/content[]/type", TEXT),
        ("message/content[]/text", TEXT),
    ],
    other: &[
        ("parentUuid", TEXT),
        ("sessionId", TEXT),
        ("cwd", TEXT),
        ("gitBranch", TEXT),
        ("isSidechain", TRUTH),
        ("isMeta", TRUTH),
        ("isCompactSummary", TRUTH),
        ("isVisibleInTranscriptOnly", TRUTH),
        ("message/model", TEXT),
    ],
    known: &[
        "message/role",
        "message/usage",
        "message/stop_reason",
        "message/stop_sequence",
        "message/stop_details",
        "message/container",
        "message/context_management",
        "message/content[]/thinking",
        "message/content[]/signature",
        "message/content[]/input",
        "message/content[]/name",
        "message/content[]/content",
        "message/content[]/source",
        "message/content[]/title",
        "message/content[]/caller",
        "message/content[]/citations",
        "message/content[]/cache_control",
        "message/content[]/data",
        "toolUseResult",
        "sourceToolAssistantUUID",
        "userType",
        "entrypoint",
        "promptSource",
        "permissionMode",
        "slug",
        "agentId",
        "sessionKind",
        "isApiErrorMessage",
        "error",
        "todos",
        "thinkingMetadata",
        "imagePasteIds",
        "origin",
        "forkedFrom",
        "mcpMeta",
        "attributionSkill",
        "attributionPlugin",
    ],
    remedy: "write it as Claude Code does",
};

/// Lines of Qwen Code have other fields; one that is all that the beginning holds may be a snapshot of files.
fn has_head(head: &str) -> bool {
    let names = |name: &str| head.contains(&format!("\"{name}\":"));
    let is_alone = |kind: &str| head.starts_with(&format!("{{\"type\":\"{kind}\""));
    // A picture may stand between these two fields and the id of the session.
    let is_message = ["isSidechain", "parentUuid"].into_iter().all(names);
    let is_line = ["isSidechain", "operation", "leafUuid"].into_iter().any(names) && names("sessionId");
    head.starts_with('{') && (is_message || is_line || is_alone("summary") || is_alone("file-history-snapshot"))
}

/// What is gathered of a file before its kept branch is known.
#[derive(Default)]
struct ClaudeSession {
    tree: MessageTree,
    /// The last line of the kept branch, as far as the file has been read.
    leaf: Option<String>,
    /// The lines of each answer, by its id, those without words too: calls of tools that run side by side leave the
    /// chain.
    lines: HashMap<String, Vec<String>>,
    /// The parts of each answer, by its id: they stand on several lines.
    answers: HashMap<String, Vec<ContentPart>>,
    /// The number of a message among the messages, by its id.
    numbers: HashMap<String, usize>,
}

/// Adds the parts of a further line to those of an answer. While an answer is streamed, a line repeats the last parts so
/// far, and its last part may go on where it broke off. A line that was there before adds nothing. Returns how many
/// calls of tools are not new.
fn add_parts(answer: &mut Vec<ContentPart>, parts: Vec<ContentPart>, is_repeated: bool) -> usize {
    let calls = |parts: &[ContentPart]| parts.iter().filter(|part| matches!(part, ContentPart::Call(_))).count();
    let goes_on = |old: &ContentPart, new: &ContentPart, is_last: bool| match (old, new) {
        (ContentPart::Words(old), ContentPart::Words(new)) if is_last => new.starts_with(old.as_str()),
        _ => old == new,
    };
    let is_overlap = |count: &usize| {
        let last = answer.iter().skip(answer.len() - count);
        last.zip(&parts).enumerate().all(|(at, (old, new))| goes_on(old, new, at + 1 == *count))
    };
    let overlap = (1..=parts.len().min(answer.len())).rev().find(is_overlap);
    if overlap.is_none() && is_repeated {
        return calls(&parts);
    }
    let overlap = overlap.unwrap_or(0);
    let known = calls(parts.get(..overlap).unwrap_or_default());
    answer.truncate(answer.len() - overlap);
    answer.extend(parts);
    known
}

fn read(file: &TranscriptFile<'_>, found: &mut Findings) -> Result<(), SourceError> {
    let mut session = ClaudeSession::default();
    file.each_line(found, |found, record| take(file, &mut session, found, record))?;
    let ClaudeSession { tree, leaf, lines, answers, .. } = session;
    let given_up = leaf.as_deref().map(|leaf| tree.given_up(leaf)).unwrap_or_default();
    for (_, message) in &mut found.messages {
        let Some(id) = message.id.as_deref() else { continue };
        if let Some(parts) = answers.get(id) {
            message.text = joined(parts);
        }
        let is_kept = |line: &String| !given_up.contains(line.as_str());
        message.is_on_kept_branch =
            lines.get(id).map_or_else(|| !given_up.contains(id), |lines| lines.iter().any(is_kept));
    }
    Ok(())
}

fn take(
    file: &TranscriptFile<'_>,
    session: &mut ClaudeSession,
    found: &mut Findings,
    record: TranscriptRecord,
) -> Result<(), String> {
    let TranscriptRecord { line, value } = record;
    let is_set = |name: &str| value.get(name).and_then(Value::as_bool).unwrap_or(false);
    let is_sidechain = is_set("isSidechain");
    if let (Some(id), false) = (text(&value, "uuid"), is_sidechain) {
        session.tree.add(id, text(&value, "parentUuid").or_else(|| text(&value, "logicalParentUuid")));
        session.leaf = Some(id.to_owned());
    }
    found.begins_in(text(&value, "cwd"));
    match text(&value, "type").unwrap_or_default() {
        "user" | "assistant" if is_sidechain => found.not_talk(kind::SUBAGENT),
        "user" | "assistant" => {
            let (value, odd) = FORM.read::<Value>(value)?;
            return said(file, session, found, line, &value, &odd);
        }
        "attachment" => return attached(file, found, line, &value),
        "system" => found.not_talk(kind::SYSTEM),
        "summary" => found.not_talk(kind::SUMMARY),
        "last-prompt" => {
            let leaf = text(&value, "leafUuid").filter(|leaf| session.tree.has(leaf));
            session.leaf = leaf.map(str::to_owned).or(session.leaf.take());
            found.not_talk(kind::RECORD);
        }
        name if RECORDS.contains(&name) => found.not_talk(kind::RECORD),
        name => found.unsupported(name),
    }
    Ok(())
}

/// A line of a person or of the assistant.
fn said(
    file: &TranscriptFile<'_>,
    session: &mut ClaudeSession,
    found: &mut Findings,
    line: u64,
    value: &Value,
    odd: &UnreadFields,
) -> Result<(), String> {
    let is_set = |name: &str| value.get(name).and_then(Value::as_bool).unwrap_or(false);
    let message = value.get("message").unwrap_or(&Value::Null);
    let model = filled(message, "model");
    let is_of_program = is_set("isMeta")
        || is_set("isApiErrorMessage")
        || model.as_deref() == Some("<synthetic>")
        || text(value, "promptSource") == Some("system");
    if is_set("isCompactSummary") || is_set("isVisibleInTranscriptOnly") || is_of_program {
        found.not_talk(if is_of_program { kind::NOTE } else { kind::SUMMARY });
        odd.tell_beside("", &mut found.unread);
        return Ok(());
    }
    let is_person = text(value, "type") == Some("user");
    let role = if is_person { TranscriptRole::Person } else { TranscriptRole::Assistant };
    let (before, calls_before) = (found.skipped.len(), found.calls.len());
    let mut parts = parts(message.get("content").unwrap_or(&Value::Null), role, found);
    if is_person {
        parts.retain(|part| match part {
            ContentPart::Words(words) if is_written_by_program(words) => {
                found.not_talk(kind::NOTE);
                false
            }
            _ => true,
        });
    }
    let words = joined(&parts);
    let is_silent = words.is_empty() && found.skipped.len() > before;
    let draft = if is_silent { None } else { Some(draft(file, value, role, words.clone())) };
    // A line that cannot be read is a dead letter, with its words.
    if let (false, Some(id), Some(uuid)) = (is_person, filled(message, "id"), filled(value, "uuid")) {
        let lines = session.lines.entry(id.clone()).or_default();
        let is_repeated = lines.contains(&uuid);
        lines.push(uuid);
        if !matches!(draft, Some(Err(_))) {
            let known = add_parts(session.answers.entry(id).or_default(), parts, is_repeated);
            found.calls.drain(calls_before..(calls_before + known).min(found.calls.len()));
        }
    }
    let Some(draft) = draft.transpose()? else {
        odd.tell_beside("", &mut found.unread);
        return Ok(());
    };
    let uuid = filled(value, "uuid").ok_or("uuid: missing; write it as Claude Code does")?;
    let id = if is_person { uuid } else { filled(message, "id").unwrap_or(uuid) };
    if session.numbers.contains_key(&id) {
        odd.tell_beside(&words, &mut found.unread);
        found.not_talk(if is_person { kind::COPY } else { kind::FURTHER_PART });
        return Ok(());
    }
    let message = TranscriptMessage { id: Some(id.clone()), model, ..draft };
    let count = found.messages.len();
    found.said(line, message, odd)?;
    if found.messages.len() > count {
        session.numbers.insert(id, count);
    }
    Ok(())
}

/// Whether a text in a person's line is another agent's, a clock's, a channel's or a skill's.
fn is_written_by_program(words: &str) -> bool {
    let is_inside = |tag: &str| {
        let rest = words.strip_prefix('<').and_then(|rest| rest.strip_prefix(tag));
        rest.is_some_and(|rest| rest.starts_with(['>', ' ']) && rest.ends_with(&format!("</{tag}>")))
    };
    ["teammate-message", "tick", "channel"].into_iter().any(is_inside)
        || words.starts_with("Base directory for this skill:")
}

/// What a person typed while the assistant was at work, or a program's note.
fn attached(file: &TranscriptFile<'_>, found: &mut Findings, line: u64, value: &Value) -> Result<(), String> {
    let attachment = value.get("attachment").unwrap_or(&Value::Null);
    let name = text(attachment, "type").unwrap_or_default();
    let is_typed = name == "queued_command" && matches!(text(attachment, "commandMode"), None | Some("prompt"));
    if !is_typed {
        found.not_talk(if name.starts_with("hook_") { kind::HOOK } else { kind::NOTE });
        return Ok(());
    }
    let words = words(attachment.get("prompt").unwrap_or(&Value::Null), TranscriptRole::Person, found);
    if words.is_empty() {
        found.not_talk(kind::NOTE);
        return Ok(());
    }
    let draft = draft(file, value, TranscriptRole::Person, words)?;
    found.add(line, TranscriptMessage { id: filled(value, "uuid"), ..draft });
    Ok(())
}

fn draft(
    file: &TranscriptFile<'_>,
    value: &Value,
    role: TranscriptRole,
    words: String,
) -> Result<TranscriptMessage, String> {
    let thread = filled(value, "sessionId").unwrap_or_else(|| file.stem().to_owned());
    Ok(TranscriptMessage {
        directory: filled(value, "cwd"),
        branch: filled(value, "gitBranch"),
        ..file.message(&thread, role, time(value, "timestamp")?, words)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_a_line_repeats_are_told() {
        let words = |words: &str| ContentPart::Words(words.to_owned());
        let call = |id: &str| ContentPart::Call(id.to_owned());
        let mut answer = Vec::new();
        assert_eq!(add_parts(&mut answer, vec![words("Six"), call("a")], false), 0);
        assert_eq!(add_parts(&mut answer, vec![words("Six"), call("a"), call("b"), words("Sev")], false), 1);
        assert_eq!(add_parts(&mut answer, vec![words("Seven."), call("c")], false), 0);
        assert_eq!(add_parts(&mut answer, vec![call("a"), call("b")], true), 2, "the line was there before");
        let expected = [words("Six"), call("a"), call("b"), words("Seven."), call("c")];
        assert_eq!(answer, expected);
    }
}
