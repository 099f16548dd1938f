//! Turns the transcripts of a program into items, whatever program it is.
//!
//! In: an export with files of one program. Out: their messages, oldest first. A message that stands in several files,
//! as a fork or a resume copies it, is returned once, with its earliest time; the files are read in the order in which
//! their sessions began, so that of equal times the original's counts. Messages of a given-up branch are counted and
//! left out. Memory grows with the number of messages, by a hash for each.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    io::Read,
};

use xxhash_rust::xxh3::xxh3_64;

use super::{
    findings::{Findings, kind},
    program::TranscriptProgram,
    project::Projects,
    transcript_file::TranscriptFile,
};
use crate::{
    SourceError,
    chat::{
        Account, ChatItem, ChatReader, ExportTree, SkipReason, TimeOrderedReader, TimeSorter, TimedRecord,
        TranscriptMessage, TranscriptRole, UnorderedReader, UnreadCounts,
    },
    zone::{Zone, zone_notice},
};
use types::{
    config::SourceSettings,
    model::{DeadLetter, EventTime},
};

/// How much of a file is read to recognise it.
const HEAD_BYTES: u64 = 64 << 10;
/// The bank if the user names none.
const DEFAULT_BANK: &str = "{project}";
/// The id and the name of the person.
const PERSON: (&str, &str) = ("user", "User");

/// Opens the transcripts of a program.
///
/// # Errors
/// [`SourceError`] when the export cannot be read or holds no file of the program.
pub(super) fn open(
    program: &'static TranscriptProgram,
    settings: &SourceSettings,
) -> Result<Box<dyn ChatReader>, SourceError> {
    Ok(Box::new(TimeOrderedReader::new(TranscriptReader::open(program, settings)?)))
}

struct TranscriptReader {
    program: &'static TranscriptProgram,
    tree: ExportTree,
    zone: Zone,
    /// The notice that a zone is assumed, for a program whose times have none.
    notice: Option<String>,
    /// The files that are read, in the order of their sessions.
    names: Vec<String>,
    file: usize,
    /// Files with lines of JSON that are not the program's, which are counted.
    other_files: usize,
    bytes: (u64, u64),
    projects: Projects,
    /// Hashes of the keys of messages that were returned.
    seen: HashSet<u64>,
    unread: UnreadCounts,
}

impl TranscriptReader {
    fn open(program: &'static TranscriptProgram, settings: &SourceSettings) -> Result<Self, SourceError> {
        let tree = ExportTree::open(&settings.path)?;
        let (mut files, mut other_files) = (Vec::new(), 0);
        for entry in tree.entries() {
            let name = entry.name.as_str();
            let head = if tree.is_file() || (program.has_name)(name) { head_of(&tree, name)? } else { continue };
            if tree.is_file() || (program.has_head)(&head) {
                files.push((first_time(&head), name.to_owned(), entry.bytes));
            } else if name.contains(".jsonl") && !head.trim().is_empty() {
                other_files += 1;
            }
        }
        if files.is_empty() {
            return Err(SourceError::Format {
                path: settings.path.clone(),
                line: 1,
                column: 1,
                problem: format!("no file of {} is in it", program.speaker),
                remedy: "name the folder in which the program keeps its sessions, or one of its files",
            });
        }
        files.sort();
        // Of a file and its compressed copy, the file itself is read.
        let plain: HashSet<String> = files.iter().map(|(_, name, _)| name.clone()).collect();
        files.retain(|(_, name, _)| name.strip_suffix(".zst").is_none_or(|name| !plain.contains(name)));
        Ok(Self {
            program,
            tree,
            zone: Zone::parse(&settings.zone)?,
            notice: program.has_local_times.then(|| zone_notice(&settings.path, &settings.zone)),
            bytes: (0, files.iter().map(|(.., bytes)| bytes).sum()),
            names: files.into_iter().map(|(_, name, _)| name).collect(),
            file: 0,
            other_files,
            projects: Projects::of(program),
            seen: HashSet::new(),
            unread: UnreadCounts::default(),
        })
    }

    /// Adds the messages of a file to those that are sorted.
    fn keep(
        &mut self,
        file: u32,
        findings: Findings,
        order: &mut TimeSorter,
        found: &mut VecDeque<ChatItem>,
    ) -> Result<(), SourceError> {
        let Findings { messages, skipped, rejects, mut unread, project } = findings;
        self.unread.take(&mut unread);
        found.extend(skipped.into_iter().map(ChatItem::Skip));
        let project = self.projects.project(project.as_deref());
        found
            .extend(rejects.into_iter().map(|letter| ChatItem::Reject { conversation: Some(project.clone()), letter }));
        for (line, message) in messages {
            if !message.is_on_kept_branch {
                found.push_back(ChatItem::Skip(SkipReason::NotTalk(kind::GIVEN_UP)));
                continue;
            }
            let unix_ms = message.time.unix_ms;
            let payload = serde_json::to_vec(&message).unwrap_or_default();
            order.add(TimedRecord { unix_ms, file, line, payload })?;
        }
        Ok(())
    }

    /// Who says a message.
    fn author(&self, message: &TranscriptMessage) -> Account {
        let (id, name) = match message.role {
            TranscriptRole::Person => PERSON,
            TranscriptRole::Assistant => (self.program.agent, self.program.speaker),
        };
        match &message.speaker {
            Some(name) => Account { id: format!("{id}/{name}"), name: name.clone(), handle: None, bot: false },
            None => Account { id: id.to_owned(), name: name.to_owned(), handle: None, bot: false },
        }
    }
}

impl UnorderedReader for TranscriptReader {
    fn collect(&mut self, order: &mut TimeSorter, found: &mut VecDeque<ChatItem>) -> Result<bool, SourceError> {
        let others = std::mem::take(&mut self.other_files);
        found.extend((0..others).map(|_| ChatItem::Skip(SkipReason::NotTalk(kind::OTHER_FILE))));
        let Some(name) = self.names.get(self.file) else { return Ok(false) };
        let file = TranscriptFile { tree: &self.tree, name, agent: self.program.agent, zone: &self.zone };
        let mut findings = Findings::default();
        (self.program.read)(&file, &mut findings)?;
        findings.settle();
        self.bytes.0 += self.tree.bytes_of(name);
        let number = u32::try_from(self.file).unwrap_or(u32::MAX);
        self.file += 1;
        self.keep(number, findings, order, found)?;
        Ok(true)
    }

    fn item(&mut self, record: TimedRecord) -> ChatItem {
        let message = match serde_json::from_slice::<TranscriptMessage>(&record.payload) {
            Ok(message) => message,
            Err(error) => {
                let name = self.names.get(record.file as usize).map_or("", String::as_str);
                let origin = format!("{}:{}", self.tree.origin(name), record.line);
                let letter = DeadLetter::new(origin, format!("{error}; read it again"), &record.payload);
                return ChatItem::Reject { conversation: None, letter };
            }
        };
        if !self.seen.insert(xxh3_64(message.key().as_bytes())) {
            return ChatItem::Skip(SkipReason::Copy);
        }
        let project = self.projects.project(message.project.as_deref());
        ChatItem::Transcript { project, author: self.author(&message), message: Box::new(message) }
    }

    fn describe(&self) -> String {
        format!("{}'s transcripts in {}", self.program.speaker, self.tree.path().display())
    }

    fn bytes(&self) -> (u64, u64) {
        self.bytes
    }

    fn notice(&self) -> Option<String> {
        self.notice.clone()
    }

    fn default_bank(&self) -> Option<&'static str> {
        Some(DEFAULT_BANK)
    }

    fn unread(&self) -> BTreeMap<String, u64> {
        self.unread.counts().clone()
    }
}

fn head_of(tree: &ExportTree, name: &str) -> Result<String, SourceError> {
    let mut bytes = Vec::new();
    let read = tree.read(name)?.take(HEAD_BYTES).read_to_end(&mut bytes);
    read.map_err(|e| tree.unreadable(name, 0, e))?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}

/// When a session began, as the first time in its file says; late if there is none.
fn first_time(head: &str) -> i64 {
    const NAME: &str = "\"timestamp\"";
    let times = head.match_indices(NAME).filter_map(|(at, _)| {
        let value = head.get(at + NAME.len()..)?.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
        EventTime::read(value.split('"').next()?).ok()
    });
    times.into_iter().next().map_or(i64::MAX, |time| time.unix_ms)
}
