//! Aider: a Markdown file in the folder of each project.
//!
//! In: `.aider.chat.history.md`. Out: what was typed (lines that begin with `####`) and answered (lines without a
//! mark). Lines that begin with `>` are Aider's own. Both marks count only where the line ends with two blanks, as
//! Aider ends them, since an answer may have headings and quotations. A command with which a person asks is left off its
//! words. Messages have no ids and no times: one is known by its directory, its session, its number and its words, and
//! has the time at which its session began, in the zone of the settings, a millisecond later than the message before it.

use std::collections::HashMap;

use super::{
    file_names::file_name,
    findings::{Findings, kind},
    program::TranscriptProgram,
    transcript_file::{TranscriptFile, later},
    transcript_reader::open,
};
use crate::{
    SourceError,
    chat::{TranscriptMessage, TranscriptRole},
    format::{FormatOpener, SourceFormat},
    lines::StreamLines,
};
use types::model::{DeadLetter, EventTime};

/// The beginning of a line with which a session begins.
const BEGIN: &str = "# aider chat started at ";
/// Commands behind which words to the assistant stand.
const ASKING: [&str; 4] = ["/ask", "/code", "/architect", "/context"];
/// What stands for an empty prompt.
const BLANK: &str = "<blank>";

/// Aider.
pub(in crate::transcripts) const PROGRAM: TranscriptProgram = TranscriptProgram {
    agent: "aider",
    speaker: "Aider",
    has_local_times: true,
    is_database: false,
    is_rewritten: true,
    has_name: |name| file_name(name).ends_with("aider.chat.history.md"),
    has_head: |head| head.lines().any(|line| line.starts_with(BEGIN)),
    read,
};

/// Its format.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "aider",
    about: "Aider: a file .aider.chat.history.md, or a folder with projects",
    standard_input: false,
    only: Some("projects"),
    looks_like: |sample| PROGRAM.is_in(sample),
    open: FormatOpener::Chat(|settings| open(&PROGRAM, settings)),
};

/// A session, and the message in it that is read.
#[derive(Default)]
struct AiderSession {
    name: String,
    /// How many sessions of the file began in the same second before it.
    before: usize,
    began: Option<EventTime>,
    count: usize,
    role: Option<TranscriptRole>,
    words: String,
    line: u64,
    /// Whether a line of Aider's own was just counted: what it prints at once counts once.
    is_in_note: bool,
}

fn read(file: &TranscriptFile<'_>, found: &mut Findings) -> Result<(), SourceError> {
    let path = file.path().and_then(|path| std::path::absolute(path).ok());
    let folder = path.as_deref().and_then(|path| path.parent()).map(|folder| folder.to_string_lossy().into_owned());
    let directory = folder.or_else(|| file.name.rsplit('/').nth(1).map(str::to_owned));
    found.begins_in(directory.as_deref());
    // Two projects may begin a session in the same second.
    let project = directory.clone().filter(|_| path.is_some()).unwrap_or_else(|| file.name.to_owned());
    let file = &AiderFile { file, directory, project };
    let (mut session, mut names) = (AiderSession::default(), HashMap::new());
    let mut lines = StreamLines::of_text(file.file.tree.read(file.file.name)?);
    while let Some(line) = lines.next().map_err(|e| file.file.tree.unreadable(file.file.name, lines.number(), e))? {
        let text = String::from_utf8_lossy(&line.bytes);
        session.take(file, found, line.number, &text);
        if let Some(name) = text.strip_prefix(BEGIN) {
            let count: &mut usize = names.entry(name.trim().to_owned()).or_default();
            session.before = *count;
            *count += 1;
        }
    }
    session.finish(file, found);
    Ok(())
}

/// A file of a project.
struct AiderFile<'f> {
    file: &'f TranscriptFile<'f>,
    directory: Option<String>,
    /// By which its messages are known: the directory, or the file's name in an export.
    project: String,
}

impl AiderSession {
    fn take(&mut self, file: &AiderFile<'_>, found: &mut Findings, number: u64, line: &str) {
        if let Some(time) = line.strip_prefix(BEGIN) {
            self.finish(file, found);
            let began = time.trim().parse().ok().and_then(|local| file.file.zone.moment(local));
            if began.is_none() {
                let reason = "the time of a session is not one; write it as Aider does".to_owned();
                let origin = format!("{}:{number}", file.file.origin());
                found.rejects.push(DeadLetter::new(origin, reason, line.as_bytes()));
            }
            *self = Self { name: time.trim().to_owned(), began, ..Self::default() };
            return;
        }
        let marked = line.strip_suffix("  ").map(str::trim_end);
        let prompt =
            marked.and_then(|line| line.strip_prefix("####")).filter(|rest| rest.is_empty() || rest.starts_with(' '));
        if let Some(prompt) = prompt {
            if self.role != Some(TranscriptRole::Person) {
                self.finish(file, found);
                (self.role, self.line) = (Some(TranscriptRole::Person), number);
            } else {
                self.words.push('\n');
            }
            self.words.push_str(prompt.trim_start());
        } else if marked.is_some_and(|line| line.starts_with('>')) {
            self.finish(file, found);
            if !std::mem::replace(&mut self.is_in_note, true) {
                found.not_talk(kind::NOTE);
            }
            return;
        } else {
            if self.role != Some(TranscriptRole::Assistant) {
                if line.trim().is_empty() {
                    return;
                }
                self.finish(file, found);
                (self.role, self.line) = (Some(TranscriptRole::Assistant), number);
            } else {
                self.words.push('\n');
            }
            self.words.push_str(line.trim_end());
        }
        self.is_in_note = false;
    }

    /// Ends the message that is read.
    fn finish(&mut self, file: &AiderFile<'_>, found: &mut Findings) {
        let words = std::mem::take(&mut self.words).trim().to_owned();
        let Some(role) = self.role.take() else { return };
        let at = self.count;
        self.count += 1;
        let asked = if role == TranscriptRole::Person { asked(&words) } else { None };
        let is_command = asked.is_none() && words.starts_with('/');
        let words = asked.unwrap_or(words);
        if role == TranscriptRole::Person && (is_command || words == BLANK || words.is_empty()) {
            found.not_talk(kind::COMMAND);
            return;
        }
        let Some(began) = self.began else {
            let reason = "it stands in no session; write a line with the time before it".to_owned();
            let origin = format!("{}:{}", file.file.origin(), self.line);
            found.rejects.push(DeadLetter::new(origin, reason, words.as_bytes()));
            return;
        };
        // So may two processes in one project.
        let thread = if self.before == 0 { self.name.clone() } else { format!("{} ({})", self.name, self.before + 1) };
        let message = TranscriptMessage {
            place: format!("{}/{thread}/{at}", file.project),
            directory: file.directory.clone(),
            ..file.file.message(&thread, role, later(began, at), words)
        };
        found.add(self.line, message);
    }
}

/// The words behind the command with which a prompt asks the assistant; `None` if it has no such command, or no words.
fn asked(prompt: &str) -> Option<String> {
    let behind = |command: &&str| prompt.strip_prefix(*command).filter(|rest| rest.starts_with(char::is_whitespace));
    ASKING.iter().find_map(behind).map(|words| words.trim().to_owned()).filter(|words| !words.is_empty())
}
