//! Puts mails in order and into threads.
//!
//! In: files of mails. Out: items, oldest first; mails are sorted because programs append them in the order in which
//! they were moved. A thread is named after its first mail, even if that mail is not in the file. A mail that is in
//! several files is returned once.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    io::Read as _,
    sync::Arc,
};

use xxhash_rust::xxh3::xxh3_64;

use super::{
    mail::{Mail, MailKind, read},
    mails::{MboxMails, begins_with_separator, is_header},
};
use crate::{
    chat::{
        Account, ChatItem, ChatMessage, Conversation, ConversationPrivacy, ExportTree, FileSample, SkipReason,
        TimeOrderedReader, TimeSorter, TimedRecord, UnorderedReader, UnreadCounts,
    },
    error::SourceError,
    format::{FormatOpener, SourceFormat},
    lines::BYTE_ORDER_MARK,
    trimmed_text::TrimmedText,
    zone::Zone,
};
use types::{
    config::SourceSettings,
    model::{DeadLetter, EventTime},
};

/// Mail.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "mbox",
    about: "mail: an mbox or .eml file, or a folder or zip archive of them",
    standard_input: false,
    only: Some("files"),
    looks_like,
    open: FormatOpener::Chat(|settings| Ok(Box::new(TimeOrderedReader::new(MboxReader::open(settings)?)))),
};

fn looks_like(sample: &FileSample) -> bool {
    if sample.is_file() {
        let head = sample.head().trim_start();
        let first = head.lines().next().unwrap_or_default().as_bytes();
        return begins_with_separator(head.as_bytes())
            || (is_header(first) && sample.name().to_ascii_lowercase().ends_with(".eml"));
    }
    sample.entries().any(|entry| {
        kind(entry) == MboxFileKind::Mbox && begins_with_separator(sample.head_of(entry).trim_start().as_bytes())
    }) || sample.entries().next().is_some_and(|entry| kind(entry) == MboxFileKind::Single)
}

/// The kind of a file, judged by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MboxFileKind {
    /// Its name ends in `.mbox`, or is `mbox`, as Apple Mail writes it.
    Mbox,
    /// One mail.
    Single,
    /// It may be an mbox: Thunderbird's folders have no suffix, and list archives end in `.txt`.
    MayBe,
    Other,
}

fn kind(entry: &str) -> MboxFileKind {
    let name = entry.rsplit('/').next().unwrap_or(entry).to_ascii_lowercase();
    match name.rsplit_once('.') {
        Some((_, "mbox" | "mbx")) => MboxFileKind::Mbox,
        Some((_, "eml")) => MboxFileKind::Single,
        Some((_, "txt")) => MboxFileKind::MayBe,
        None if name == "mbox" => MboxFileKind::Mbox,
        None => MboxFileKind::MayBe,
        Some(_) => MboxFileKind::Other,
    }
}

/// Files of mails that are read one after another.
struct MboxReader {
    tree: ExportTree,
    zone: Zone,
    files: Vec<(String, Arc<Conversation>)>,
    file: usize,
    mails: Option<MboxMails>,
    read_bytes: u64,
    total_bytes: u64,
    /// Hashes of the ids of mails that another mail answers.
    answered: HashSet<u64>,
    /// The first mail of each mail's thread, by the hash of its id.
    threads: HashMap<u64, Arc<str>>,
    /// Hashes of the ids seen so far.
    seen: HashSet<u64>,
    unread: UnreadCounts,
    trimmed: TrimmedText,
}

impl MboxReader {
    fn open(settings: &SourceSettings) -> Result<Self, SourceError> {
        let tree = ExportTree::open(&settings.path)?;
        let zone = Zone::parse(&settings.zone)?;
        let (mut files, mut total_bytes) = (Vec::new(), 0);
        for entry in tree.entries() {
            let is_mail = match kind(&entry.name) {
                _ if tree.is_file() => begins_like_mail(&tree, &entry.name)?,
                MboxFileKind::Mbox | MboxFileKind::Single => true,
                MboxFileKind::MayBe => begins_with_separator(&beginning(&tree, &entry.name)?),
                MboxFileKind::Other => false,
            };
            if is_mail {
                files.push((entry.name.clone(), Arc::new(conversation(&tree, &entry.name))));
                total_bytes += entry.bytes;
            }
        }
        if files.is_empty() {
            return Err(SourceError::Format {
                path: settings.path.clone(),
                line: 1,
                column: 1,
                problem: "no mail: an mbox begins with a line such as \"From a@b.example Mon Jan  1 10:00:00 2024\""
                    .to_owned(),
                remedy: "name an mbox or .eml file, or a folder of them",
            });
        }
        Ok(Self {
            tree,
            zone,
            files,
            file: 0,
            mails: None,
            read_bytes: 0,
            total_bytes,
            answered: HashSet::new(),
            threads: HashMap::new(),
            seen: HashSet::new(),
            unread: UnreadCounts::default(),
            trimmed: TrimmedText::default(),
        })
    }

    fn origin(&self, file: usize, line: u64) -> String {
        format!("{}:{line}", self.tree.origin(self.files.get(file).map_or("", |(name, _)| name)))
    }

    /// The thread of a mail, and the mail that it answers.
    fn thread(&mut self, mail: &Mail) -> (Option<String>, Option<String>) {
        let own = hash(&mail.id);
        let Some(first) = mail.references.first() else {
            // The first mail of a thread names itself once somebody answers.
            if !self.answered.contains(&own) {
                return (None, None);
            }
            self.threads.insert(own, mail.id.as_str().into());
            return (Some(mail.id.clone()), None);
        };
        // A mail that answers itself, or a second reference to the first mail, does not begin another thread.
        let known = mail.references.iter().find_map(|id| self.threads.get(&hash(id)));
        let root = known.cloned().unwrap_or_else(|| first.as_str().into());
        self.threads.insert(own, root.clone());
        (Some(root.to_string()), mail.references.last().cloned().filter(|id| *id != mail.id))
    }
}

impl UnorderedReader for MboxReader {
    fn collect(&mut self, order: &mut TimeSorter, found: &mut VecDeque<ChatItem>) -> Result<bool, SourceError> {
        let Some((name, conversation)) = self.files.get(self.file) else { return Ok(false) };
        if self.mails.is_none() {
            self.mails = Some(MboxMails::new(self.tree.read(name)?));
        }
        let Some(mails) = &mut self.mails else { return Ok(false) };
        let raw = match mails.next() {
            Ok(Some(raw)) => raw,
            Ok(None) => {
                self.read_bytes += mails.read_bytes();
                self.mails = None;
                self.file += 1;
                return Ok(true);
            }
            Err(e) => return Err(self.tree.unreadable(name, mails.line(), e)),
        };
        match read(&raw.bytes, raw.separator.as_deref(), &self.zone) {
            Ok(MailKind::Mail(mail)) => {
                self.answered.extend(mail.references.iter().map(|id| hash(id)));
                mail.doubts.iter().for_each(|doubt| self.unread.add(doubt));
                mail.trimmed.iter().for_each(|(kind, text)| self.trimmed.add(kind, text));
                let payload = serde_json::to_vec(&mail).unwrap_or_default();
                let file = u32::try_from(self.file).unwrap_or(u32::MAX);
                order.add(TimedRecord { unix_ms: mail.unix_ms, file, line: raw.line, payload })?;
            }
            Ok(MailKind::Internal) => found.push_back(ChatItem::Skip(SkipReason::ServiceMessage)),
            Ok(MailKind::Expunged) => found.push_back(ChatItem::Skip(SkipReason::Copy)),
            Ok(MailKind::Encrypted) => found.push_back(ChatItem::Skip(SkipReason::Encrypted)),
            Err(reason) => found.push_back(ChatItem::Reject {
                conversation: Some(conversation.clone()),
                letter: DeadLetter::new(self.origin(self.file, raw.line), reason, &raw.bytes),
            }),
        }
        Ok(true)
    }

    fn item(&mut self, record: TimedRecord) -> ChatItem {
        let file = record.file as usize;
        let read = serde_json::from_slice::<Mail>(&record.payload).map_err(|e| e.to_string());
        let known = self.files.get(file).map(|(_, conversation)| conversation.clone());
        let read = read.and_then(|mail| {
            let time = EventTime::new(mail.unix_ms, mail.offset_seconds).map_err(|e| e.to_string())?;
            Ok((mail, time, known.clone().ok_or("the file is not known; read it again")?))
        });
        let (mail, time, conversation) = match read {
            Ok(read) => read,
            Err(reason) => {
                let letter = DeadLetter::new(self.origin(file, record.line), reason, &record.payload);
                return ChatItem::Reject { conversation: known, letter };
            }
        };
        if !self.seen.insert(hash(&mail.id)) {
            return ChatItem::Skip(SkipReason::Copy);
        }
        let (thread, reply_to) = self.thread(&mail);
        if mail.text.is_empty() && mail.attachments.is_empty() {
            return ChatItem::Skip(SkipReason::Empty);
        }
        ChatItem::Message(Box::new(ChatMessage {
            conversation,
            id: mail.id,
            version: 0,
            author: Account { id: mail.author_id, name: mail.author, handle: None, bot: mail.bot },
            text: mail.text,
            time,
            thread,
            reply_to,
            attachments: mail.attachments,
            mentions: Vec::new(),
        }))
    }

    fn unread(&self) -> BTreeMap<String, u64> {
        self.unread.counts().clone()
    }

    fn trimmed(&self) -> TrimmedText {
        self.trimmed.clone()
    }

    fn describe(&self) -> String {
        format!("mail in {}", self.tree.path().display())
    }

    fn bytes(&self) -> (u64, u64) {
        (self.read_bytes + self.mails.as_ref().map_or(0, MboxMails::read_bytes), self.total_bytes)
    }
}

/// The conversation of a file; single mails belong to their folder's conversation.
fn conversation(tree: &ExportTree, entry: &str) -> Conversation {
    let root = || tree.path().file_stem().map_or_else(|| "mail".to_owned(), |n| n.to_string_lossy().into_owned());
    let folder = || entry.rsplit_once('/').map_or_else(root, |(folder, _)| folder.to_owned());
    let id = match kind(entry) {
        MboxFileKind::Single if tree.is_file() => root(),
        MboxFileKind::Single => folder(),
        // Apple Mail writes a folder `Inbox.mbox` with a file `mbox`.
        _ if entry == "mbox" || entry.ends_with("/mbox") => folder(),
        _ => entry.to_owned(),
    };
    let ending = [".mbox", ".mbx", ".txt"].into_iter().find_map(|ending| id.strip_suffix(ending));
    let id = ending.filter(|id| !id.is_empty()).unwrap_or(&id).to_owned();
    let name = id.rsplit('/').next().unwrap_or(&id).to_owned();
    Conversation { workspace: None, id, name, privacy: ConversationPrivacy::Open }
}

/// The beginning of a file, from the first line that is not blank.
fn beginning(tree: &ExportTree, name: &str) -> Result<Vec<u8>, SourceError> {
    let mut bytes = Vec::new();
    let read = tree.read(name)?.take(4 << 10).read_to_end(&mut bytes);
    read.map_err(|e| tree.unreadable(name, 0, e))?;
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
    let from = bytes.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
    Ok(bytes.get(from..).unwrap_or_default().to_vec())
}

/// Whether a file that the user named is mail: an mbox, or a mail without a separator.
fn begins_like_mail(tree: &ExportTree, name: &str) -> Result<bool, SourceError> {
    let text = beginning(tree, name)?;
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok(line.is_empty() || line.starts_with(b"From ") || is_header(line))
}

fn hash(id: &str) -> u64 {
    xxh3_64(id.as_bytes())
}
