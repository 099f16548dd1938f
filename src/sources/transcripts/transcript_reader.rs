//! Turns transcripts into items, whatever programs wrote them.
//!
//! In: an export with files of one program, or single files of several. Out: their messages, oldest first. A message
//! that stands in several files, as a fork or a resume copies it, is returned once, with its earliest time; the files
//! are read in the order in which their sessions began, so that of equal times the original's counts, whatever the files
//! are called. A message of a branch that was given up says so, unless a copy of it was kept. A file that cannot be read
//! is a dead letter, and one that is not the program's is counted. Memory grows with the number of messages, by a few
//! words for each.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use super::{
    findings::{Findings, kind},
    known_messages::{KnownMessages, MessageSighting},
    pauses::AgentPauses,
    program::TranscriptProgram,
    project::Projects,
    project_choice::{MessageOrigin, ProjectChoice},
    transcript_file::TranscriptFile,
};
use crate::{
    SourceError,
    chat::{
        Account, ChatItem, ChatReader, ExportTree, SkipReason, TimeOrderedReader, TimeSorter, TimedRecord,
        TranscriptMessage, TranscriptRole, UnknownNames, UnorderedReader, UnreadCounts,
    },
    zone::{Zone, zone_notice},
};
use types::{
    config::SourceSettings,
    model::{DeadLetter, EventTime},
};

/// How much of a file is read to recognise it.
const HEAD_BYTES: u64 = 64 << 10;
/// How much of a line is read beyond that to find its time, which may stand behind a picture.
const MOST_LINE_BYTES: u64 = 32 << 20;
/// The bank if the user names none.
pub(crate) const DEFAULT_BANK: &str = "{project}";
/// What is replaced in texts if the user names nothing.
pub(crate) const DEFAULT_REDACTION: &str = "keys";
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
    Ok(Box::new(TimeOrderedReader::new(TranscriptReader::of_export(program, settings)?)))
}

/// A file that is read.
pub(super) struct TranscriptFileToRead {
    program: &'static TranscriptProgram,
    place: FilePlace,
    beginning: FileBeginning,
    /// Whether its beginning is not that of the program's files: then it is only counted.
    is_of_other_form: bool,
    bytes: u64,
    /// What distinguishes it from other files.
    id: u32,
    purpose: ReadingPurpose,
}

/// What the beginning of a file says of its session. Files are read in this order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct FileBeginning {
    /// In milliseconds since 1970; late if the file does not say it.
    began_ms: i64,
    /// Whether its messages name the session from which they were forked.
    is_fork: bool,
    /// The id of the session, so that copies with the same times belong to one session, whatever the files are called.
    session: String,
}

/// What of a file is returned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadingPurpose {
    /// All.
    All,
    /// Only what is new in it: the rest was returned and counted before.
    News,
    /// Nothing: its messages are to be known.
    Knowledge,
}

enum FilePlace {
    /// A name in the export.
    Entry(String),
    /// A file by itself.
    Alone(PathBuf),
}

impl TranscriptFileToRead {
    /// A file of a program by itself; `None` if it is not there, or holds nothing.
    pub(super) fn alone(program: &'static TranscriptProgram, path: &Path, id: u32) -> Option<Self> {
        let (head, bytes) = match ExportTree::open(path) {
            Ok(tree) => {
                let entry = tree.entries().first()?;
                (head_of(&tree, &entry.name).ok(), entry.bytes)
            }
            // Mistakes in it are reported when it is read.
            Err(_) if path.exists() => (None, 0),
            Err(_) => return None,
        };
        Self::with_head(program, FilePlace::Alone(path.to_owned()), head.as_deref(), bytes, id)
    }

    /// A file with this beginning, if that can be read; `None` if the file holds nothing.
    fn with_head(
        program: &'static TranscriptProgram,
        place: FilePlace,
        head: Option<&str>,
        bytes: u64,
        id: u32,
    ) -> Option<Self> {
        if head.is_some_and(|head| head.trim().is_empty()) {
            return None;
        }
        let beginning = FileBeginning::of(head.unwrap_or_default());
        let is_of_other_form = head.is_some_and(|head| !(program.has_head)(head));
        Some(Self { program, place, beginning, is_of_other_form, bytes, id, purpose: ReadingPurpose::All })
    }

    /// Whether it is only counted, since it is not its program's.
    pub(super) fn is_of_other_form(&self) -> bool {
        self.is_of_other_form
    }

    /// The same file, which was read before.
    pub(super) fn read_again(self) -> Self {
        Self { purpose: ReadingPurpose::News, ..self }
    }

    /// The same file, only to know its messages.
    pub(super) fn only_known(self) -> Self {
        Self { purpose: ReadingPurpose::Knowledge, ..self }
    }

    fn name(&self) -> String {
        match &self.place {
            FilePlace::Entry(name) => name.clone(),
            FilePlace::Alone(path) => path.display().to_string(),
        }
    }
}

/// The files of one program or of several.
pub(super) struct TranscriptReader {
    description: String,
    /// The export, if the files are in one.
    tree: Option<ExportTree>,
    zone: Zone,
    /// The notice that a zone is assumed, for programs whose times have none.
    notice: Option<String>,
    /// In the order of their sessions.
    files: Vec<TranscriptFileToRead>,
    at: usize,
    bytes: (u64, u64),
    projects: Projects,
    choice: ProjectChoice,
    pauses: AgentPauses,
    known: KnownMessages,
    unread: UnreadCounts,
    /// Files that could not be read, each with the letter that says why.
    failures: Vec<(u32, DeadLetter)>,
    /// Whether they are tried again, and are no dead letters yet.
    tries_again: bool,
}

impl TranscriptReader {
    /// The files of a program in an export.
    fn of_export(program: &'static TranscriptProgram, settings: &SourceSettings) -> Result<Self, SourceError> {
        let tree = ExportTree::open(&settings.path)?;
        let mut files = Vec::new();
        for entry in tree.entries() {
            let name = entry.name.as_str();
            // Of a single file, the user says that it is the program's.
            let is_alone = tree.is_file();
            if is_alone || (program.has_name)(name) {
                let head = if is_alone { None } else { head_of(&tree, name).ok() };
                let place = FilePlace::Entry(name.to_owned());
                files.extend(TranscriptFileToRead::with_head(program, place, head.as_deref(), entry.bytes, 0));
            }
        }
        if files.iter().all(TranscriptFileToRead::is_of_other_form) {
            return Err(SourceError::Format {
                path: settings.path.clone(),
                line: 1,
                column: 1,
                problem: format!("no file of {} is in it", program.speaker),
                remedy: "name the folder in which the program keeps its sessions, or one of its files",
            });
        }
        let description = format!("{}'s transcripts in {}", program.speaker, tree.path().display());
        let mut reader = Self::of_files(files, settings, description)?;
        for (number, file) in reader.files.iter_mut().enumerate() {
            file.id = u32::try_from(number).unwrap_or(u32::MAX);
        }
        reader.tree = Some(tree);
        Ok(reader)
    }

    /// These files, which may be of several programs.
    ///
    /// # Errors
    /// [`SourceError::Settings`] when the zone is not one.
    pub(super) fn of_files(
        mut files: Vec<TranscriptFileToRead>,
        settings: &SourceSettings,
        description: String,
    ) -> Result<Self, SourceError> {
        files.sort_by_cached_key(|file| (file.beginning.clone(), file.name()));
        // Of a file and its compressed copy, the file itself is read.
        let plain: HashSet<String> = files.iter().map(TranscriptFileToRead::name).collect();
        files.retain(|file| file.name().strip_suffix(".zst").is_none_or(|name| !plain.contains(name)));
        let has_local_times = files.iter().any(|file| file.program.has_local_times && !file.is_of_other_form);
        Ok(Self {
            description,
            tree: None,
            zone: Zone::parse(&settings.zone)?,
            notice: has_local_times.then(|| zone_notice(&settings.path, &settings.zone)),
            bytes: (0, files.iter().map(|file| file.bytes).sum()),
            files,
            at: 0,
            projects: Projects::default(),
            choice: ProjectChoice::new(&settings.only, &settings.except),
            pauses: AgentPauses::default(),
            known: KnownMessages::default(),
            unread: UnreadCounts::default(),
            failures: Vec::new(),
            tries_again: false,
        })
    }

    /// The same reader, without what was said in pauses.
    pub(super) fn without(mut self, pauses: AgentPauses) -> Self {
        self.leave_out(pauses);
        self
    }

    /// Leaves out what was said in pauses, in the files that are not read yet.
    pub(super) fn leave_out(&mut self, pauses: AgentPauses) {
        self.pauses = pauses;
    }

    /// The same reader, after messages that were read before; files that cannot be read are tried again later.
    pub(super) fn after(mut self, mut known: KnownMessages) -> Self {
        known.begin();
        self.known = known;
        self.tries_again = true;
        self
    }

    /// What was read before and now, for the next reader.
    pub(super) fn into_known(self) -> KnownMessages {
        self.known
    }

    /// The item of a record; `None` if it was returned before or is not to be returned.
    pub(super) fn news(&mut self, record: TimedRecord) -> Option<ChatItem> {
        let purpose = self.files.get(record.file as usize).map(|file| file.purpose);
        let item = self.item(record);
        match (purpose, &item) {
            (Some(ReadingPurpose::Knowledge), _) | (Some(ReadingPurpose::News), ChatItem::Skip(_)) => None,
            _ => Some(item),
        }
    }

    /// The unread fields so far.
    pub(super) fn take_unread(&mut self) -> UnreadCounts {
        std::mem::take(&mut self.unread)
    }

    /// The files that could not be read, each with the letter that says why.
    pub(super) fn take_failures(&mut self) -> Vec<(u32, DeadLetter)> {
        std::mem::take(&mut self.failures)
    }

    /// Reads the file at `at`.
    fn read(&self, at: usize) -> Result<Findings, SourceError> {
        let mut findings = Findings::default();
        let Some(file) = self.files.get(at) else { return Ok(findings) };
        let (alone, name);
        let tree = match (&file.place, &self.tree) {
            (FilePlace::Entry(entry), Some(tree)) => {
                name = entry.as_str();
                tree
            }
            (FilePlace::Entry(_), None) => return Ok(findings),
            (FilePlace::Alone(path), _) => {
                alone = ExportTree::open(path)?;
                name = alone.entries().first().map(|entry| entry.name.as_str()).unwrap_or_default();
                &alone
            }
        };
        let program = file.program;
        (program.read)(&TranscriptFile { tree, name, agent: program.agent, zone: &self.zone }, &mut findings)?;
        findings.settle();
        Ok(findings)
    }

    /// Adds the messages of a file to those that are sorted.
    fn keep(
        &mut self,
        number: usize,
        findings: Findings,
        order: &mut TimeSorter,
        found: &mut VecDeque<ChatItem>,
    ) -> Result<(), SourceError> {
        let Findings { messages, mut skipped, rejects, placed_rejects, mut unread, project: place, .. } = findings;
        let Some(file) = self.files.get(number) else { return Ok(()) };
        let (program, id) = (file.program, file.id);
        if file.purpose == ReadingPurpose::All {
            self.unread.take(&mut unread);
        } else {
            skipped.clear();
        }
        let purpose = file.purpose;
        let is_silent = purpose != ReadingPurpose::All;
        found.extend(skipped.into_iter().map(ChatItem::Skip));
        let agent = program.agent;
        // Of which of its projects a record of a database is, its reader says, if anything does.
        let of_file = place.filter(|_| !program.is_database);
        let of_file = rejects.into_iter().map(|letter| (of_file.clone(), letter));
        let letters = of_file.chain(placed_rejects.into_iter().map(|(place, letter)| (Some(place), letter)));
        for (place, letter) in letters.filter(|_| purpose != ReadingPurpose::Knowledge) {
            // In a file that grows, a record that cannot be read is found each time.
            let key = format!("letter/{}/{}/{}", letter.origin, letter.reason, letter.payload);
            let is_new = self.known.see(&key, b"", id, true) == MessageSighting::New;
            if is_silent && !is_new {
                continue;
            }
            let project = self.projects.project(agent, place.as_deref());
            let left_out =
                self.choice.left_out(&project, MessageOrigin { agent, place: place.as_deref(), directory: None });
            let may_be_left_out = program.is_database && place.is_none() && !self.choice.has_no_lists();
            found.push_back(match left_out {
                // A record that cannot be read does not say when it was said, either. Of an export, its source
                // withholds it then; of a followed file, it is withheld here.
                _ if may_be_left_out || !self.pauses.is_empty() => {
                    let is_followed = self.tries_again;
                    let letter = if is_followed { DeadLetter::new(letter.origin, letter.reason, b"") } else { letter };
                    ChatItem::Reject { conversation: None, letter }
                }
                Some(reason) => ChatItem::Skip(SkipReason::NotTalk(reason)),
                None => ChatItem::Reject { conversation: Some(project), letter },
            });
        }
        let mut skip = |reason| {
            if !is_silent {
                found.push_back(ChatItem::Skip(SkipReason::NotTalk(reason)));
            }
        };
        for (line, message) in messages {
            if self.pauses.covers(message.time) {
                skip(kind::PAUSE);
                continue;
            }
            let project = self.projects.project(agent, message.project.as_deref());
            let (place, directory) = (message.project.as_deref(), message.directory.as_deref());
            if let Some(reason) = self.choice.left_out(&project, MessageOrigin { agent, place, directory }) {
                skip(reason);
                continue;
            }
            let unix_ms = message.time.unix_ms;
            let payload = serde_json::to_vec(&message).unwrap_or_default();
            order.add(TimedRecord { unix_ms, file: u32::try_from(number).unwrap_or(u32::MAX), line, payload })?;
        }
        Ok(())
    }

    /// Who says a message.
    fn author(program: &TranscriptProgram, message: &TranscriptMessage) -> Account {
        let (id, name) = match message.role {
            TranscriptRole::Person => PERSON,
            TranscriptRole::Assistant => (program.agent, program.speaker),
        };
        match &message.speaker {
            Some(name) => Account { id: format!("{id}/{name}"), name: name.clone(), handle: None, bot: false },
            None => Account { id: id.to_owned(), name: name.to_owned(), handle: None, bot: false },
        }
    }
}

impl UnorderedReader for TranscriptReader {
    fn collect(&mut self, order: &mut TimeSorter, found: &mut VecDeque<ChatItem>) -> Result<bool, SourceError> {
        let number = self.at;
        let Some(file) = self.files.get(number) else {
            return Ok(false);
        };
        self.at += 1;
        self.bytes.0 += file.bytes;
        if file.is_of_other_form {
            if file.purpose == ReadingPurpose::All {
                found.push_back(ChatItem::Skip(SkipReason::NotTalk(kind::OTHER_FILE)));
            }
            return Ok(true);
        }
        match (self.read(number), &file.place) {
            (Ok(findings), _) => self.keep(number, findings, order, found)?,
            // Where the user names one file, there are no others.
            (Err(error), FilePlace::Entry(_)) if self.tree.as_ref().is_some_and(ExportTree::is_file) => {
                return Err(error);
            }
            // A program may delete a file at any time, and one bad file does not stop the others.
            (Err(_), FilePlace::Alone(path)) if !path.exists() => {}
            (Err(error), _) => {
                let origin = self.tree.as_ref().map_or_else(|| file.name(), |tree| tree.origin(&file.name()));
                let letter = DeadLetter::new(origin, error.to_string(), b"");
                if self.tries_again {
                    self.failures.push((file.id, letter));
                } else {
                    found.push_back(ChatItem::Reject { conversation: None, letter });
                }
            }
        }
        Ok(true)
    }

    fn item(&mut self, record: TimedRecord) -> ChatItem {
        let Some(file) = self.files.get(record.file as usize) else { return ChatItem::Skip(SkipReason::Empty) };
        let message = match serde_json::from_slice::<TranscriptMessage>(&record.payload) {
            Ok(message) => message,
            Err(error) => {
                let origin = format!("{}:{}", file.name(), record.line);
                let letter = DeadLetter::new(origin, format!("{error}; read it again"), &record.payload);
                return ChatItem::Reject { conversation: None, letter };
            }
        };
        let key = format!("{}/{}", message.agent, message.key());
        match self.known.see(&key, &record.payload, file.id, message.is_on_kept_branch) {
            MessageSighting::New | MessageSighting::Changed => {}
            MessageSighting::Same | MessageSighting::Copy => return ChatItem::Skip(SkipReason::Copy),
        }
        let author = Self::author(file.program, &message);
        let project = self.projects.project(&message.agent, message.project.as_deref());
        ChatItem::Transcript { project, author, message: Box::new(message) }
    }

    fn describe(&self) -> String {
        self.description.clone()
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

    fn default_redaction(&self) -> Option<&'static str> {
        Some(DEFAULT_REDACTION)
    }

    fn chosen(&self) -> Option<UnknownNames> {
        Some(self.choice.unknown())
    }

    fn unread(&self) -> BTreeMap<String, u64> {
        self.unread.counts().clone()
    }
}

/// The beginning of a file; of one of lines, where it names no time, to the end of its last line.
fn head_of(tree: &ExportTree, name: &str) -> Result<String, SourceError> {
    let failed = |error| tree.unreadable(name, 0, error);
    let (mut bytes, mut input) = (Vec::new(), BufReader::new(tree.read(name)?));
    (&mut input).take(HEAD_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    if name.contains(".jsonl") && first_time(&String::from_utf8_lossy(&bytes)).is_none() {
        input.take(MOST_LINE_BYTES).read_until(b'\n', &mut bytes).map_err(failed)?;
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}

/// The first time that a text names.
fn first_time(text: &str) -> Option<EventTime> {
    texts_of(text, "timestamp").find_map(|time| EventTime::read(time).ok())
}

/// What stands in the fields of this name.
fn texts_of<'t>(text: &'t str, name: &str) -> impl Iterator<Item = &'t str> {
    let name = format!("\"{name}\"");
    let fields: Vec<usize> = text.match_indices(&name).map(|(at, name)| at + name.len()).collect();
    fields.into_iter().filter_map(move |at| {
        let value = text.get(at..)?.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
        value.split('"').next()
    })
}

impl FileBeginning {
    fn of(head: &str) -> Self {
        Self {
            began_ms: first_time(head).map_or(i64::MAX, |time| time.unix_ms),
            is_fork: head.contains("\"forkedFrom\""),
            session: texts_of(head, "sessionId").next().unwrap_or_default().to_owned(),
        }
    }
}
