//! What was found in one transcript.
//!
//! In: messages, parts that are not talk, and records that cannot be read, as a program's reader finds them. Out: the
//! same, in the file's order. Every record and every part of one is counted as exactly one of these; unlisted fields
//! are counted beside them by name.

use serde_json::Value;

use super::tool_calls;
use crate::chat::{JsonElement, RecordForm, SkipReason, TranscriptMessage, TranscriptRole, UnreadCounts, UnreadFields};
use types::model::DeadLetter;

/// Parts of transcripts that are not talk, as a dry run names them.
pub(super) mod kind {
    pub(crate) const COPY: &str = "copy";
    pub(crate) const ENVIRONMENT: &str = "environment";
    pub(crate) const FURTHER_PART: &str = "further part of a turn";
    pub(crate) const HOOK: &str = "hook text";
    pub(crate) const IMAGE: &str = "image or file";
    pub(crate) const INTERRUPT: &str = "interrupt";
    pub(crate) const NOTE: &str = "program's note";
    pub(crate) const OTHER_FILE: &str = "file of another form";
    pub(crate) const PAUSE: &str = "said in a pause";
    pub(crate) const RECORD: &str = "session record";
    pub(crate) const COMMAND: &str = "slash command";
    pub(crate) const SUBAGENT: &str = "subagent";
    pub(crate) const SUMMARY: &str = "summary";
    pub(crate) const SYSTEM: &str = "system text";
    pub(crate) const THINKING: &str = "thinking";
    pub(crate) const TOOL_CALL: &str = "tool call";
    pub(crate) const TOOL_OUTPUT: &str = "tool output";
    pub(crate) const UNFINISHED: &str = "unfinished line";
}

/// What was found in a file.
#[derive(Default)]
pub(super) struct Findings {
    /// Each with the line on which it stands.
    pub(super) messages: Vec<(u64, TranscriptMessage)>,
    pub(super) skipped: Vec<SkipReason>,
    pub(super) rejects: Vec<DeadLetter>,
    /// Those of which it is known where they were said, each with that directory.
    pub(super) placed_rejects: Vec<(String, DeadLetter)>,
    pub(super) unread: UnreadCounts,
    /// The project of the file, for records that cannot be read.
    pub(super) project: Option<String>,
    /// Calls of tools since the last message.
    pub(super) calls: Vec<String>,
}

impl Findings {
    /// Counts a part that is not talk.
    pub(super) fn not_talk(&mut self, kind: &'static str) {
        self.skipped.push(SkipReason::NotTalk(kind));
    }

    /// Counts a call of a tool, and keeps it for the answer that it belongs to.
    pub(super) fn call(&mut self, call: &Value) {
        self.not_talk(kind::TOOL_CALL);
        if self.calls.len() < tool_calls::MOST_CALLS {
            self.calls.extend(tool_calls::of_call(call));
        }
    }

    /// Adds a message. An answer has the calls since the message before it; those after the last answer to a person's
    /// message are the last answer's, too.
    pub(super) fn add(&mut self, line: u64, mut message: TranscriptMessage) {
        let calls = std::mem::take(&mut self.calls);
        match message.role {
            TranscriptRole::Assistant => tool_calls::keep(&mut message.calls, calls),
            TranscriptRole::Person => self.belated(calls),
        }
        self.messages.push((line, message));
    }

    /// Adds calls to the last answer, if the last message is one.
    fn belated(&mut self, calls: Vec<String>) {
        if let Some((_, last)) = self.messages.last_mut().filter(|(_, last)| last.role == TranscriptRole::Assistant) {
            tool_calls::keep(&mut last.calls, calls);
        }
    }

    /// Counts a record or a part of a kind that is not known.
    pub(super) fn unsupported(&mut self, kind: &str) {
        self.skipped.push(SkipReason::unsupported(kind));
    }

    /// Counts a record that cannot be read.
    pub(super) fn reject(&mut self, element: &JsonElement, origin: &str, reason: String) {
        self.rejects.push(element.reject(origin, reason));
    }

    /// Counts the fields around a list of messages that no form lists, by name. `left_out` are those with the messages.
    pub(super) fn envelope(&mut self, form: &RecordForm, value: &Value, left_out: &[&str]) {
        let fields = value.as_object().into_iter().flatten().filter(|(name, _)| !left_out.contains(&name.as_str()));
        let around = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
        if let Ok((_, odd)) = form.read::<Value>(Value::Object(around)) {
            odd.tell_beside("", &mut self.unread);
        }
    }

    /// Counts a part of a record that cannot be read. The record begins on `line`.
    pub(super) fn reject_part(&mut self, origin: &str, line: u64, part: &Value, reason: String) {
        let payload = part.to_string();
        self.rejects.push(DeadLetter::new(format!("{origin}:{line}"), reason, payload.as_bytes()));
    }

    /// Counts a record of a database that cannot be read, of a session in this directory; empty if none is known.
    #[cfg(feature = "opencode")]
    pub(super) fn reject_in(&mut self, directory: &str, origin: String, part: &Value, reason: String) {
        let letter = DeadLetter::new(origin, reason, part.to_string().as_bytes());
        if directory.is_empty() {
            self.rejects.push(letter);
        } else {
            self.placed_rejects.push((directory.to_owned(), letter));
        }
    }

    /// Adds a message, and counts fields of its record that are not read. A message without words is an error if they
    /// may stand in such a field.
    ///
    /// # Errors
    /// Names that field.
    pub(super) fn said(&mut self, line: u64, message: TranscriptMessage, odd: &UnreadFields) -> Result<(), String> {
        if message.text.trim().is_empty() {
            return self.empty(odd);
        }
        odd.tell_beside(&message.text, &mut self.unread);
        self.add(line, message);
        Ok(())
    }

    /// Counts a message without words.
    ///
    /// # Errors
    /// Names the field in which its words may stand.
    pub(super) fn empty(&mut self, odd: &UnreadFields) -> Result<(), String> {
        match odd.without_words() {
            Some(reason) => Err(reason),
            None => {
                self.skipped.push(SkipReason::Empty);
                Ok(())
            }
        }
    }

    /// Whether the file's project is known; else takes it from a directory or a name.
    pub(super) fn begins_in(&mut self, place: Option<&str>) {
        if self.project.is_none() {
            self.project = place.filter(|place| !place.trim().is_empty()).map(str::to_owned);
        }
    }

    /// Gives every message without a project that of the file, and the last answer the calls after it.
    pub(super) fn settle(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        self.belated(calls);
        for (_, message) in &mut self.messages {
            if message.project.is_none() {
                message.project.clone_from(&self.project);
            }
        }
    }
}
