//! Reads the JSON files of DiscordChatExporter.
//!
//! In: the file of one channel or thread, or any number of such files; a channel may be split into several. Out: their
//! messages, oldest first in each conversation. Each file's beginning is read once to learn its channel and its order;
//! an export in which a file is newest first (`--reverse`) is sorted through a temporary file. A file that is blank or
//! cut before its channel is reported; other files in the folder, such as attachments, are ignored.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    io::Read,
    sync::Arc,
};

use serde_json::Value;

use super::{
    message::{DiscordChannel, FORM as MESSAGE},
    snowflake::{self, id_of},
};
use crate::{
    SourceError,
    chat::{
        ChatItem, ChatMessage, ChatReader, ExportTree, JsonElement, JsonElements, JsonFiles, SkipReason,
        TimeOrderedReader, TimeSorter, TimedRecord, UnorderedReader, UnreadCounts, begins_with_key,
    },
    turn_source::SourceProgress,
};
use types::model::DeadLetter;

/// How much of a file shows whether it begins like an export.
const START_BYTES: u64 = 256;
const CUT: &str = "holds no list of messages, and names no channel; export the channel again";
const HEAD_PATHS: [&str; 3] = ["guild", "channel", "messages/*"];
/// The index of the messages in [`HEAD_PATHS`].
const MESSAGES: usize = 2;

/// The files of an export, and how far they have been read.
pub(super) struct DiscordExporterReader {
    files: JsonFiles,
    /// What the files' beginnings say, by their number.
    heads: Vec<DiscordFileHead>,
    /// Rejects for exports that were cut before their channel, until they are returned.
    cut: VecDeque<ChatItem>,
    /// The names of channels and threads by id.
    channels: HashMap<String, String>,
    /// The messages that began a thread, if the export has the thread's file; by conversation and id, each with the
    /// version that was read.
    starters: HashMap<(String, String), Option<Box<ChatMessage>>>,
    unread: UnreadCounts,
}

/// A file, as its beginning describes it.
struct DiscordFileHead {
    name: String,
    origin: String,
    channel: DiscordChannel,
    /// The time of its first message, in milliseconds.
    first_ms: i64,
    is_newest_first: bool,
}

impl DiscordExporterReader {
    /// A reader of those files that DiscordChatExporter wrote; `None` if it wrote none of them.
    ///
    /// # Errors
    /// [`SourceError`] when one cannot be read.
    pub(super) fn open(tree: ExportTree, names: &[String]) -> Result<Option<Box<dyn ChatReader>>, SourceError> {
        let (mut heads, mut cut) = (Vec::new(), VecDeque::new());
        for name in names {
            match beginning(&tree, name)? {
                Some(head) => heads.push(head),
                None if is_cut(&tree, name)? => {
                    let letter = DeadLetter::new(format!("{}:1", tree.origin(name)), CUT.to_owned(), b"");
                    cut.push_back(ChatItem::Reject { conversation: None, letter });
                }
                None => {}
            }
        }
        if heads.is_empty() {
            return Ok(None);
        }
        heads.sort_by(|a, b| (&a.channel.id, a.first_ms, &a.name).cmp(&(&b.channel.id, b.first_ms, &b.name)));
        let channels = heads.iter().map(|file| (file.channel.id.clone(), file.channel.name.clone())).collect();
        let is_newest_first = heads.iter().any(|file| file.is_newest_first);
        let threads = heads.iter().map(|file| &file.channel).filter(|channel| channel.is_thread);
        let starters = threads.map(|thread| ((thread.conversation.id.clone(), thread.id.clone()), None)).collect();
        let names = heads.iter().map(|file| file.name.clone()).collect();
        let exporter = Self {
            files: JsonFiles::new(tree, names, &["messages/*"]).expect_lists(|_| true),
            heads,
            cut,
            channels,
            starters,
            unread: UnreadCounts::default(),
        };
        Ok(Some(if is_newest_first { Box::new(TimeOrderedReader::new(exporter)) } else { Box::new(exporter) }))
    }

    fn item_of(&mut self, index: usize, element: &JsonElement) -> Option<ChatItem> {
        let file = self.heads.get(index)?;
        let item = element.parse::<Value>(&file.origin).and_then(|mut message| {
            let read = MESSAGE.check(&mut message).and_then(|odd| {
                let item = file.channel.item(&message, &self.channels)?;
                odd.judge(item, &mut self.unread)
            });
            read.map_err(|reason| element.reject(&file.origin, reason))
        });
        Some(match item {
            Ok(ChatItem::Message(message)) => self.once(message),
            Ok(item) => item,
            Err(letter) => ChatItem::Reject { conversation: Some(Arc::clone(&file.channel.conversation)), letter },
        })
    }

    /// A message that began a thread is in the channel's file and in the thread's file. Whichever is read first, the
    /// message belongs to the thread, with its answers, and the second one is a copy.
    fn once(&mut self, mut message: Box<ChatMessage>) -> ChatItem {
        let key = (message.conversation.id.clone(), message.id.clone());
        let Some(seen) = self.starters.get_mut(&key) else { return ChatItem::Message(message) };
        message.thread = Some(message.id.clone());
        let is_same = |seen: &ChatMessage| seen.version == message.version && seen.text == message.text;
        if seen.as_deref().is_some_and(|seen| seen.version > message.version || is_same(seen)) {
            return ChatItem::Skip(SkipReason::Copy);
        }
        *seen = Some(message.clone());
        ChatItem::Message(message)
    }
}

impl ChatReader for DiscordExporterReader {
    fn next(&mut self) -> Result<Option<ChatItem>, SourceError> {
        if let Some(item) = self.cut.pop_front() {
            return Ok(Some(item));
        }
        while let Some((index, element)) = self.files.next()? {
            if let Some(item) = self.item_of(index, &element) {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    fn describe(&self) -> String {
        format!("Discord from {}", self.files.tree().path().display())
    }

    fn progress(&self) -> SourceProgress {
        let (done, total) = self.bytes();
        SourceProgress { done, total: Some(total), unit: "bytes" }
    }

    fn unread(&self) -> BTreeMap<String, u64> {
        self.unread.counts().clone()
    }
}

impl UnorderedReader for DiscordExporterReader {
    fn collect(&mut self, order: &mut TimeSorter, found: &mut VecDeque<ChatItem>) -> Result<bool, SourceError> {
        found.append(&mut self.cut);
        let Some((index, element)) = self.files.next()? else { return Ok(false) };
        let id = serde_json::from_slice::<Value>(&element.bytes).ok();
        match id.as_ref().and_then(said_ms).filter(|_| element.problem.is_none()) {
            Some(unix_ms) => {
                let file = u32::try_from(index).unwrap_or(u32::MAX);
                order.add(TimedRecord { unix_ms, file, line: element.line, payload: element.bytes })?;
            }
            None => found.extend(self.item_of(index, &element)),
        }
        Ok(true)
    }

    fn item(&mut self, kept: TimedRecord) -> ChatItem {
        let element = JsonElement { path: 0, line: kept.line, bytes: kept.payload, problem: None };
        let index = usize::try_from(kept.file).unwrap_or(usize::MAX);
        self.item_of(index, &element).unwrap_or(ChatItem::Skip(SkipReason::Unsupported))
    }

    fn describe(&self) -> String {
        ChatReader::describe(self)
    }

    fn unread(&self) -> BTreeMap<String, u64> {
        ChatReader::unread(self)
    }

    fn bytes(&self) -> (u64, u64) {
        self.files.bytes()
    }
}

/// The description of a file, from its beginning; `None` if DiscordChatExporter did not write the file.
fn beginning(tree: &ExportTree, name: &str) -> Result<Option<DiscordFileHead>, SourceError> {
    let mut elements = JsonElements::new(tree.read(name)?, &HEAD_PATHS);
    let (mut guild, mut channel) = (Value::Null, Value::Null);
    let mut times = Vec::new();
    while times.len() < 2 {
        let element = elements.next().map_err(|e| tree.unreadable(name, elements.line(), e))?;
        let Some(element) = element.filter(|element| element.problem.is_none()) else { break };
        let value: Option<Value> = serde_json::from_slice(&element.bytes).ok();
        match element.path {
            0 => guild = value.unwrap_or_default(),
            1 => channel = value.unwrap_or_default(),
            MESSAGES if !channel.is_object() => break,
            _ => times.extend(value.as_ref().and_then(said_ms)),
        }
    }
    if !channel.is_object() {
        return Ok(None);
    }
    Ok(Some(DiscordFileHead {
        name: name.to_owned(),
        origin: tree.origin(name),
        channel: DiscordChannel::new(&guild, &channel, tree.is_file()),
        first_ms: times.first().copied().unwrap_or_default(),
        is_newest_first: matches!(times.as_slice(), [first, second] if first > second),
    }))
}

/// Whether a file that names no channel is blank, or begins like an export. Attached files do not count.
fn is_cut(tree: &ExportTree, name: &str) -> Result<bool, SourceError> {
    let mut start = Vec::new();
    let read = tree.read(name)?.take(START_BYTES).read_to_end(&mut start);
    read.map_err(|e| tree.unreadable(name, 0, e))?;
    Ok(!name.contains("_Files/") && begins_with_key(&String::from_utf8_lossy(&start), "guild"))
}

/// The time of a message in milliseconds, from its id.
fn said_ms(message: &Value) -> Option<i64> {
    snowflake::unix_ms(&message.get("id").and_then(id_of)?)
}
