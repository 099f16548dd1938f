//! Recognises what a path holds, and reads messages from imessage-exporter's text files.
//!
//! In: a database, which `database` reads, or one or several texts, each a conversation. Out: the texts' items in the
//! files' order. A message begins with a date after a blank line. The exporter prints a copy of each answer below the
//! message that it answers. The copy is skipped, but is used to find that message when the answer itself comes at its
//! own time.

use std::{
    collections::{HashMap, VecDeque},
    io::Read,
    path::PathBuf,
    sync::Arc,
};

use jiff::civil::DateTime;

#[cfg(feature = "imessage")]
use super::database;
#[cfg(not(feature = "imessage"))]
use super::without_database as database;
use super::{
    block::{ImessageBlock, header},
    time::date_time,
};
use crate::{
    chat::{
        Account, ChatItem, ChatMessage, ChatReader, Conversation, ConversationPrivacy, ExportTree, FileSample,
        PositionalIds, SkipReason,
    },
    compression::without_ending as without_gzip,
    error::SourceError,
    format::{FormatOpener, SourceFormat},
    lines::{MAX_MESSAGE_BYTES, StreamLines},
    turn_source::SourceProgress,
    zone::{Zone, zone_notice},
};
use types::{
    config::SourceSettings,
    model::{DeadLetter, EventTime},
};

/// iMessage's conversations.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "imessage",
    about: "iMessage: Messages' chat.db, or the folder or a file of `imessage-exporter -f txt`",
    standard_input: false,
    only: Some("conversations"),
    looks_like,
    open: FormatOpener::Chat(open),
};

/// How many answers are remembered until they come at their own time.
const MAX_ANSWERS: usize = 100_000;
/// The name that the exporter gives the owner of the account.
const ME: &str = "Me";
/// The beginning of a SQLite database.
const DATABASE: &[u8] = b"SQLite format 3\0";

fn looks_like(sample: &FileSample) -> bool {
    if sample.is_file() {
        return is_database(sample) || (is_text(&sample.name()) && begins_like_one(sample.head()));
    }
    sample.entries().filter(|entry| is_text(entry)).take(5).any(|entry| begins_like_one(&sample.head_of(entry)))
}

fn begins_like_one(head: &str) -> bool {
    head.lines().find(|line| !line.trim().is_empty()).and_then(date_time).is_some()
}

fn is_text(entry: &str) -> bool {
    without_gzip(entry).to_lowercase().ends_with(".txt")
}

/// Whether it is Messages' own database, judged by its tables or by a name that Apple or a backup gives it. The name
/// counts because the tables of a new database may still be in the log next to it.
fn is_database(sample: &FileSample) -> bool {
    let name = sample.name().to_lowercase();
    sample.head().as_bytes().starts_with(DATABASE)
        && (matches!(name.as_str(), "chat.db" | "sms.db") || database::is_messages(sample.path()))
}

/// Opens a database or an export.
///
/// # Errors
/// [`SourceError`] when it cannot be read, or is neither.
pub(super) fn open(settings: &SourceSettings) -> Result<Box<dyn ChatReader>, SourceError> {
    let tree = ExportTree::open(&settings.path)?;
    if let (true, Some(file)) = (tree.is_file(), tree.entries().first()) {
        let mut head = Vec::new();
        let read = tree.read(&file.name)?.take(DATABASE.len() as u64).read_to_end(&mut head);
        read.map_err(|e| tree.unreadable(&file.name, 0, e))?;
        if head == DATABASE {
            return database::open(settings);
        }
    }
    Ok(Box::new(ImessageReader::open(settings, tree)?))
}

/// Conversations that are read one after another.
struct ImessageReader {
    path: PathBuf,
    tree: ExportTree,
    zone: Zone,
    zone_setting: String,
    files: VecDeque<(String, u64)>,
    privacy: ConversationPrivacy,
    open: Option<ImessageOpenFile>,
    found: VecDeque<ChatItem>,
    total_bytes: u64,
    done_bytes: u64,
}

struct ImessageOpenFile {
    bytes: u64,
    entry: String,
    origin: String,
    lines: StreamLines,
    conversation: Arc<Conversation>,
    ids: PositionalIds,
    answered: ImessageAnswerTargets,
    begun: Option<ImessageOpenMessage>,
    after_blank: bool,
}

/// A message whose lines are still being read.
struct ImessageOpenMessage {
    line: u64,
    time: DateTime,
    /// The text after the date of a notice.
    notice: Option<String>,
    text: String,
}

/// The message that each answer belongs to, by a hash of the answer.
#[derive(Default)]
struct ImessageAnswerTargets {
    ids: HashMap<[u8; 32], String>,
    order: VecDeque<[u8; 32]>,
}

impl ImessageReader {
    /// Opens an export.
    ///
    /// # Errors
    /// [`SourceError`] when it cannot be read, or holds no text file of the exporter.
    fn open(settings: &SourceSettings, tree: ExportTree) -> Result<Self, SourceError> {
        let path = settings.path.clone();
        let zone = Zone::parse(&settings.zone)?;
        let format = |problem: &str, remedy| SourceError::Format {
            path: path.clone(),
            line: 1,
            column: 1,
            problem: problem.to_owned(),
            remedy,
        };
        let mut files = VecDeque::new();
        let mut has_database = false;
        for entry in tree.entries() {
            let mut lines = StreamLines::new(tree.read(&entry.name)?);
            let mut next = || lines.next().map_err(|e| tree.unreadable(&entry.name, 0, e));
            let may_be = tree.is_file() || is_text(&entry.name);
            let is_named_database = entry.name.to_lowercase().ends_with(".db");
            if !(may_be || is_named_database) {
                continue;
            }
            let mut first = next()?;
            while first.as_ref().is_some_and(|line| line.bytes.iter().all(u8::is_ascii_whitespace)) {
                first = next()?;
            }
            let Some(first) = first else { continue };
            has_database |= first.bytes.starts_with(DATABASE);
            if may_be && date_time(&String::from_utf8_lossy(&first.bytes)).is_some() {
                files.push_back((entry.name.clone(), entry.bytes));
            }
        }
        if files.is_empty() && has_database {
            return Err(format(
                "it holds Messages' database, but no text file of imessage-exporter",
                "name the database itself, unpacked, such as FOLDER/chat.db",
            ));
        }
        if files.is_empty() {
            return Err(format(
                "no text begins with a date such as \"May 17, 2022  5:29:42 PM\"",
                "run `imessage-exporter -f txt -o FOLDER` and name the folder",
            ));
        }
        Ok(Self {
            privacy: if files.len() > 1 { ConversationPrivacy::Direct } else { ConversationPrivacy::Open },
            total_bytes: files.iter().map(|(_, bytes)| bytes).sum(),
            path,
            tree,
            zone,
            zone_setting: settings.zone.clone(),
            files,
            open: None,
            found: VecDeque::new(),
            done_bytes: 0,
        })
    }

    /// Reads a line; returns false at the end.
    fn read(&mut self) -> Result<bool, SourceError> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => match self.files.pop_front() {
                Some((entry, bytes)) => self.open_file(entry, bytes)?,
                None => return Ok(false),
            },
        };
        let line = open.lines.next().map_err(|e| self.tree.unreadable(&open.entry, open.lines.number(), e))?;
        match line {
            Some(line) => {
                let text = String::from_utf8_lossy(&line.bytes);
                open.line(line.number, &text, &self.zone, &mut self.found);
                self.open = Some(open);
            }
            None => {
                open.finish(&self.zone, &mut self.found);
                self.done_bytes += open.bytes;
            }
        }
        Ok(true)
    }

    fn open_file(&self, entry: String, bytes: u64) -> Result<ImessageOpenFile, SourceError> {
        let file = without_gzip(entry.rsplit('/').next().unwrap_or(&entry));
        let name = if is_text(file) { file.get(..file.len() - 4).unwrap_or(file) } else { file };
        let conversation =
            Conversation { workspace: None, id: name.to_owned(), name: name.to_owned(), privacy: self.privacy };
        Ok(ImessageOpenFile {
            bytes,
            origin: self.tree.origin(&entry),
            lines: StreamLines::of_text(self.tree.read(&entry)?),
            conversation: Arc::new(conversation),
            ids: PositionalIds::default(),
            answered: ImessageAnswerTargets::default(),
            begun: None,
            after_blank: true,
            entry,
        })
    }
}

impl ChatReader for ImessageReader {
    fn next(&mut self) -> Result<Option<ChatItem>, SourceError> {
        loop {
            if let Some(item) = self.found.pop_front() {
                return Ok(Some(item));
            }
            if !self.read()? {
                return Ok(None);
            }
        }
    }

    fn describe(&self) -> String {
        format!("iMessage from {}", self.path.display())
    }

    fn progress(&self) -> SourceProgress {
        let open = self.open.as_ref().map_or(0, |open| open.lines.read_bytes());
        SourceProgress { done: self.done_bytes + open, total: Some(self.total_bytes), unit: "bytes" }
    }

    fn notice(&self) -> Option<String> {
        Some(zone_notice(&self.path, &self.zone_setting))
    }
}

impl ImessageOpenFile {
    fn line(&mut self, number: u64, line: &str, zone: &Zone, found: &mut VecDeque<ChatItem>) {
        let begins = if self.after_blank { date_time(line) } else { None };
        self.after_blank = line.trim().is_empty();
        match (begins, &mut self.begun) {
            (Some((time, rest)), _) => {
                self.finish(zone, found);
                let notice = header(line).is_none().then(|| rest.trim().to_owned());
                self.begun = Some(ImessageOpenMessage { line: number, time, notice, text: String::new() });
            }
            (None, Some(begun)) => {
                if begun.text.len() <= MAX_MESSAGE_BYTES {
                    begun.text.push_str(line);
                    begun.text.push('\n');
                }
            }
            (None, None) if self.after_blank => {}
            (None, None) => {
                found.push_back(self.reject(number, "it comes before the first message; remove it", line));
            }
        }
    }

    /// Ends the message whose lines were read so far, and adds its items to `found`.
    fn finish(&mut self, zone: &Zone, found: &mut VecDeque<ChatItem>) {
        let Some(ImessageOpenMessage { line, time: local, notice, text }) = self.begun.take() else { return };
        let whole = || notice.iter().map(String::as_str).chain([text.as_str()]).collect::<Vec<_>>().join("\n");
        let Some(time) = zone.moment(local) else {
            found.push_back(self.reject(line, "its date is out of range; correct it", &whole()));
            return;
        };
        if let Some(notice) = &notice {
            // A notice is one line. Lines below it are somebody's words, after a date that is not recognised.
            found.push_back(if text.trim().is_empty() {
                self.notice(notice, local)
            } else {
                let reason = "what stands behind its date is not known, and lines follow; correct its date";
                self.reject(line, reason, &whole())
            });
            return;
        }
        let lines: Vec<&str> = text.lines().collect();
        let mut block = ImessageBlock::of(&lines);
        if block.sender.is_empty() {
            found.push_back(self.reject(line, "no sender is named below its date; name the sender there", &text));
            return;
        }
        let answers = std::mem::take(&mut block.answers);
        let is_notice = block.is_notice();
        let id = if is_notice { String::new() } else { self.ids.id(&local.to_string(), &block.sender) };
        for (answered, answer) in &answers {
            self.answered.add(*answered, answer, &id);
            found.push_back(ChatItem::Skip(SkipReason::Copy));
        }
        found.push_back(if is_notice {
            ChatItem::Skip(SkipReason::ServiceMessage)
        } else {
            self.item(block, id, local, time)
        });
    }

    fn reject(&self, line: u64, reason: &str, payload: &str) -> ChatItem {
        let letter = DeadLetter::new(format!("{}:{line}", self.origin), reason.to_owned(), payload.as_bytes());
        ChatItem::Reject { conversation: Some(Arc::clone(&self.conversation)), letter }
    }

    /// A notice from the app: somebody joined, or a whole message was unsent.
    fn notice(&mut self, notice: &str, local: DateTime) -> ChatItem {
        let Some(who) = notice.strip_suffix(" unsent a message!") else {
            return ChatItem::Skip(SkipReason::ServiceMessage);
        };
        let who = if who == "You" { ME } else { who };
        let id = self.ids.id(&local.to_string(), who);
        ChatItem::Deletion { conversation: Arc::clone(&self.conversation), id, version: None }
    }

    fn item(&mut self, block: ImessageBlock, id: String, local: DateTime, time: EventTime) -> ChatItem {
        let conversation = Arc::clone(&self.conversation);
        let sent_ms = u64::try_from(time.unix_ms).unwrap_or(0);
        let changed_ms = block.changed_after_ms.map(|after_ms| sent_ms.saturating_add(after_ms));
        if block.deleted {
            return ChatItem::Deletion { conversation, id, version: None };
        }
        if block.is_empty() {
            return if block.unsent {
                ChatItem::Deletion { conversation, id, version: changed_ms }
            } else {
                ChatItem::Skip(SkipReason::Empty)
            };
        }
        let reply_to = block.is_answer.then(|| self.answered.take(local, &block)).flatten();
        ChatItem::Message(Box::new(ChatMessage {
            conversation,
            id,
            version: changed_ms.unwrap_or(u64::from(block.unsent)),
            author: Account { id: block.sender.clone(), name: block.sender, handle: None, bot: false },
            text: block.text,
            time,
            thread: None,
            reply_to,
            attachments: block.attachments,
            mentions: Vec::new(),
        }))
    }
}

impl ImessageAnswerTargets {
    fn add(&mut self, time: DateTime, answer: &ImessageBlock, id: &str) {
        let key = key(time, answer);
        if self.ids.insert(key, id.to_owned()).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > MAX_ANSWERS {
            if let Some(oldest) = self.order.pop_front() {
                self.ids.remove(&oldest);
            }
        }
    }

    fn take(&self, time: DateTime, answer: &ImessageBlock) -> Option<String> {
        self.ids.get(&key(time, answer)).cloned()
    }
}

/// A hash of an answer's sender, time and words.
fn key(time: DateTime, answer: &ImessageBlock) -> [u8; 32] {
    let words: Vec<&str> = answer.text.split_whitespace().collect();
    *blake3::hash(format!("{time}/{}/{}", answer.sender, words.join(" ")).as_bytes()).as_bytes()
}
