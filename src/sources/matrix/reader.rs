//! Makes messages from the events of rooms.
//!
//! In: the events of one or several files, in any order. Out: items, oldest first. Edits, redactions, threads and names
//! are known before the first message is made, wherever their events are in the files.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
    io::Read,
    sync::Arc,
};

use serde_json::Value;

use super::{
    event::{FORM as FORM_OF_EVENTS, MatrixEvent, MatrixEventKind, MatrixStoredMessage, quotation},
    final_message::{MatrixFinalMessage, account, display_name},
};
use crate::{
    chat::{
        Account, ChatItem, Conversation, ConversationPrivacy, ExportTree, FileSample, JsonElement, JsonFileItem,
        JsonFiles, SkipReason, TimeOrderedReader, TimeSorter, TimedRecord, UnorderedReader, UnreadCounts,
        begins_with_key, has_json_keys,
    },
    error::SourceError,
    format::{FormatOpener, SourceFormat},
    trimmed_text::TrimmedText,
};
use types::{
    config::SourceSettings,
    model::{DeadLetter, EventTime},
};

/// The conversation of a record that cannot be read: its room if it states one, and its file.
type MatrixPlace = (Option<usize>, usize);

/// Element's JSON export.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "matrix",
    about: "Matrix: a room that Element exported to JSON: the file, its zip archive, or a directory of them",
    standard_input: false,
    only: Some("rooms"),
    looks_like,
    open: FormatOpener::Chat(|settings| Ok(Box::new(TimeOrderedReader::new(MatrixReader::open(settings)?)))),
};

const ROOM_NAME: usize = 3;
/// The paths that are read: the events in each of the forms, and the room's name.
const PATHS: [&str; 4] = ["messages/*", "chunk/*", "*", "room_name"];
const HEAD_BYTES: u64 = 64 << 10;
const REMEDY: &str = "export the room again and choose JSON as the format";

fn looks_like(sample: &FileSample) -> bool {
    if sample.is_file() {
        return is_export(sample.head()) || is_html(sample.head());
    }
    sample.entries().any(|entry| {
        (entry.ends_with(".json") && is_export(&sample.head_of(entry)))
            || (entry.ends_with(".html") && is_html(&sample.head_of(entry)))
    })
}

fn is_export(head: &str) -> bool {
    has_json_keys(head, &["room_name", "exported_by"])
        || has_json_keys(head, &["event_id", "origin_server_ts", "sender"])
}

/// Whether it is a page of Element's HTML export.
fn is_html(head: &str) -> bool {
    head.trim_start().starts_with('<') && head.contains("mx_")
}

/// Rooms that are read event by event.
struct MatrixReader {
    files: JsonFiles,
    /// The number of the file that is read.
    file: usize,
    rooms: Vec<MatrixRoom>,
    /// The index of each room by its id, and of one room for each file without room ids.
    by_id: HashMap<String, usize>,
    /// The room name in the file that is being read, and the rooms of its events.
    name: Option<String>,
    in_file: BTreeSet<usize>,
    /// The room of each file that was read, if all its events are of one.
    file_rooms: Vec<Option<usize>>,
    /// Names of members, each with the time of the event that states it.
    names: HashMap<(usize, String), (i64, String)>,
    /// Edits of each message.
    edits: HashMap<String, Vec<MatrixEdit>>,
    /// When events were removed.
    removed: HashMap<String, u64>,
    /// The events that began a thread.
    roots: HashSet<String>,
    /// Hashes of the ids of messages, and of other events that may be removed.
    messages: HashSet<u64>,
    others: HashSet<u64>,
    unread: UnreadCounts,
    trimmed: TrimmedText,
}

struct MatrixRoom {
    id: Option<String>,
    name: Option<String>,
    conversation: Option<Arc<Conversation>>,
}

struct MatrixEdit {
    id: String,
    sender: String,
    unix_ms: u64,
    content: Value,
}

impl MatrixReader {
    fn open(settings: &SourceSettings) -> Result<Self, SourceError> {
        let tree = ExportTree::open(&settings.path)?;
        let is_file = tree.is_file();
        let (mut names, mut html) = (Vec::new(), false);
        let mut expects_list = !is_file;
        // Exports that are blank, or cut before they show what they are.
        let mut cut = Vec::new();
        for entry in tree.entries() {
            let page = entry.name.ends_with(".html") || entry.name.ends_with(".htm");
            if !is_file && !page && !entry.name.ends_with(".json") {
                continue;
            }
            let mut head = Vec::new();
            let read = tree.read(&entry.name)?.take(HEAD_BYTES).read_to_end(&mut head);
            read.map_err(|e| tree.unreadable(&entry.name, 0, e))?;
            let head = String::from_utf8_lossy(&head);
            let head = head.strip_prefix('\u{feff}').unwrap_or(&head);
            if is_html(head) || page {
                html = true;
            } else if is_file || is_export(head) {
                names.push(entry.name.clone());
                expects_list |= is_export(head);
            } else if begins_with_key(head, "room_name") && !format!("/{}", entry.name).contains("/files/") {
                cut.push(entry.name.clone());
            }
        }
        if names.is_empty() {
            let problem = if html { "Element's export in HTML is not read" } else { "no room that Element exported" };
            return Err(SourceError::Format {
                path: settings.path.clone(),
                line: 1,
                column: 1,
                problem: problem.to_owned(),
                remedy: REMEDY,
            });
        }
        names.extend(cut);
        Ok(Self {
            files: JsonFiles::new(tree, names, &PATHS).expect_lists(if expects_list { |_| true } else { |_| false }),
            file: 0,
            rooms: Vec::new(),
            by_id: HashMap::new(),
            name: None,
            in_file: BTreeSet::new(),
            file_rooms: Vec::new(),
            names: HashMap::new(),
            edits: HashMap::new(),
            removed: HashMap::new(),
            roots: HashSet::new(),
            messages: HashSet::new(),
            others: HashSet::new(),
            unread: UnreadCounts::default(),
            trimmed: TrimmedText::default(),
        })
    }

    /// The room of an event.
    fn room(&mut self, id: Option<&str>) -> usize {
        let key = id.map_or_else(|| format!("file {}", self.file), str::to_owned);
        let room = match self.by_id.get(&key) {
            Some(room) => *room,
            None => {
                self.rooms.push(MatrixRoom { id: id.map(str::to_owned), name: None, conversation: None });
                self.by_id.insert(key, self.rooms.len() - 1);
                self.rooms.len() - 1
            }
        };
        self.in_file.insert(room);
        room
    }

    fn conversation(&mut self, room: usize) -> Option<Arc<Conversation>> {
        // If a file does not state its room's id, only the room's name stays the same in later exports.
        let stem =
            || self.files.tree().path().file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        let stem = stem();
        let room = self.rooms.get_mut(room)?;
        if room.conversation.is_none() {
            let name = room.name.clone().filter(|n| !n.trim().is_empty()).or_else(|| room.id.clone()).unwrap_or(stem);
            let id = room.id.clone().unwrap_or_else(|| name.clone());
            room.conversation =
                Some(Arc::new(Conversation { workspace: None, id, name, privacy: ConversationPrivacy::Open }));
        }
        room.conversation.clone()
    }

    /// Keeps a record that cannot be read, since the name of its room may still follow.
    fn reject(
        &self,
        letter: &DeadLetter,
        room: Option<usize>,
        order: &mut TimeSorter,
    ) -> Result<Option<ChatItem>, SourceError> {
        let place: MatrixPlace = (room, self.file);
        order.add_reject(&place, letter)?;
        Ok(None)
    }

    /// Reads an event.
    fn take(&mut self, element: &JsonElement, order: &mut TimeSorter) -> Result<Option<ChatItem>, SourceError> {
        let origin = self.files.origin(self.file);
        let read = element.parse::<Value>(&origin).and_then(|value| {
            FORM_OF_EVENTS.read::<MatrixEvent>(value).map_err(|reason| element.reject(&origin, reason))
        });
        let (mut event, odd) = match read {
            Ok(read) => read,
            Err(letter) => {
                let event = serde_json::from_slice::<Value>(&element.bytes).ok();
                let stated = event.as_ref().and_then(|event| event.get("room_id")?.as_str());
                let room = stated.map(|id| self.room(Some(id)));
                return self.reject(&letter, room, order);
            }
        };
        let room = self.room(event.room_id.clone().as_deref());
        if event.kind == "m.room.member" {
            self.member(room, &event);
        }
        let missing =
            |field: &str| element.reject(&origin, format!("{field}: missing; write it as Element exports it"));
        if event.state_key.is_some() || event.kind.starts_with("m.call.") {
            return Ok(Some(ChatItem::Skip(SkipReason::ServiceMessage)));
        }
        if event.kind == "m.reaction" {
            self.others.extend(event.event_id.as_deref().map(hash));
            return Ok(Some(ChatItem::Skip(SkipReason::unsupported(&event.kind))));
        }
        if !event.is_message() && event.kind != "m.room.redaction" {
            return Ok(Some(ChatItem::Skip(SkipReason::unsupported(&event.kind))));
        }
        let Some(id) = event.event_id.clone() else {
            return self.reject(&missing("event_id"), Some(room), order);
        };
        let Some(sender) = event.sender.clone() else {
            return self.reject(&missing("sender"), Some(room), order);
        };
        let Some(unix_ms) = event.origin_server_ts.filter(|ms| EventTime::new(*ms, 0).is_ok()) else {
            let reason = "origin_server_ts: missing or out of range; write milliseconds since 1970".to_owned();
            return self.reject(&element.reject(&origin, reason), Some(room), order);
        };
        let what = if event.kind == "m.room.redaction" {
            let Some(of) = event.removed().map(str::to_owned) else {
                return Ok(Some(ChatItem::Skip(SkipReason::Unsupported)));
            };
            self.removed.insert(of.clone(), u64::try_from(unix_ms).unwrap_or(0));
            MatrixEventKind::Redaction { of }
        } else if event.is_redacted() {
            self.messages.insert(hash(&id));
            MatrixEventKind::Redacted { version: event.redacted_at() }
        } else if event.is_encrypted() {
            self.messages.insert(hash(&id));
            return Ok(Some(ChatItem::Skip(SkipReason::Encrypted)));
        } else if let Some(of) = event.edited().map(str::to_owned) {
            let Some(content) = event.content.get("m.new_content").cloned() else {
                return Ok(Some(ChatItem::Skip(SkipReason::Unsupported)));
            };
            self.others.insert(hash(&id));
            let unix_ms = u64::try_from(unix_ms).unwrap_or(0);
            let edit = MatrixEdit { id: id.clone(), sender: sender.clone(), unix_ms, content };
            self.edits.entry(of.clone()).or_default().push(edit);
            MatrixEventKind::Edit { of }
        } else {
            if !self.messages.insert(hash(&id)) {
                return Ok(Some(ChatItem::Skip(SkipReason::Copy)));
            }
            let (thread, reply_to) = (event.thread().map(str::to_owned), event.reply_to().map(str::to_owned));
            self.roots.extend(thread.clone());
            if event.begins_thread() {
                self.roots.insert(id.clone());
            }
            let (content, version) = event.edited_content();
            MatrixEventKind::Said { content, version, thread, reply_to }
        };
        let payload = serde_json::to_vec(&MatrixStoredMessage { room, id, sender, what, odd }).unwrap_or_default();
        let file = u32::try_from(self.file).unwrap_or(u32::MAX);
        order.add(TimedRecord { unix_ms, file, line: element.line, payload })?;
        Ok(None)
    }

    /// Keeps a member's name; the last one counts.
    fn member(&mut self, room: usize, event: &MatrixEvent) {
        let before = || display_name(event.unsigned.get("prev_content"));
        let (Some(account), Some(name)) = (&event.state_key, display_name(Some(&event.content)).or_else(before)) else {
            return;
        };
        let time = event.origin_server_ts.unwrap_or(0);
        let known = self.names.entry((room, account.clone())).or_insert_with(|| (time, name.clone()));
        if time >= known.0 {
            *known = (time, name);
        }
    }

    fn account(&self, room: usize, id: &str) -> Account {
        account(id, self.names.get(&(room, id.to_owned())).map(|(_, name)| name.clone()))
    }

    /// The last edit of a message that was not redacted; only edits by the message's author count.
    fn last_edit(&self, id: &str, sender: &str) -> Option<&MatrixEdit> {
        let edits = self.edits.get(id)?.iter().filter(|e| e.sender == sender && !self.removed.contains_key(&e.id));
        edits.max_by(|a, b| (a.unix_ms, &a.id).cmp(&(b.unix_ms, &b.id)))
    }

    fn message(
        &mut self,
        kept: MatrixStoredMessage,
        conversation: Arc<Conversation>,
        unix_ms: i64,
    ) -> Result<ChatItem, String> {
        let MatrixStoredMessage { room, id, sender, what, odd } = kept;
        let MatrixEventKind::Said { mut content, mut version, thread, reply_to } = what else {
            return Ok(ChatItem::Skip(SkipReason::Copy));
        };
        if let Some(edit) = self.last_edit(&id, &sender).filter(|e| e.unix_ms >= version) {
            (content, version) = (edit.content.clone(), edit.unix_ms);
        }
        let thread = thread.or_else(|| self.roots.contains(&id).then(|| id.clone()));
        let quotation = quotation(&content);
        let spoken = MatrixFinalMessage { conversation, id, sender, unix_ms, content, version, thread, reply_to };
        let item = spoken.item(&|id| self.account(room, id));
        if matches!(item, ChatItem::Message(_)) {
            self.trimmed.add("quotation", &quotation);
        }
        odd.judge(item, &mut self.unread)
    }
}

impl UnorderedReader for MatrixReader {
    fn collect(&mut self, order: &mut TimeSorter, found: &mut VecDeque<ChatItem>) -> Result<bool, SourceError> {
        let Some((file, step)) = self.files.step()? else { return Ok(false) };
        self.file = file;
        match step {
            JsonFileItem::Element(element) if element.path == ROOM_NAME && element.problem.is_none() => {
                self.name = serde_json::from_slice(&element.bytes).ok();
            }
            JsonFileItem::Element(element) => found.extend(self.take(&element, order)?),
            JsonFileItem::End => {
                if self.in_file.is_empty() && self.name.is_some() {
                    self.room(None);
                }
                let in_file = std::mem::take(&mut self.in_file);
                self.file_rooms.push(in_file.first().copied().filter(|_| in_file.len() == 1));
                // The name may come after the events.
                for room in in_file {
                    if let (Some(room), Some(name)) = (self.rooms.get_mut(room), &self.name) {
                        room.name.get_or_insert_with(|| name.clone());
                    }
                }
                self.name = None;
            }
        }
        Ok(true)
    }

    fn item(&mut self, record: TimedRecord) -> ChatItem {
        if let Some(((room, file), letter)) = record.rejected::<MatrixPlace>() {
            // A file is the export of one room, even if a record does not say so.
            let room = room.or_else(|| self.file_rooms.get(file).copied().flatten());
            let conversation = room.and_then(|room| self.conversation(room));
            return ChatItem::Reject { conversation, letter };
        }
        let origin = format!("{}:{}", self.files.origin(record.file as usize), record.line);
        let kept: MatrixStoredMessage = match serde_json::from_slice(&record.payload) {
            Ok(kept) => kept,
            Err(e) => {
                let letter = DeadLetter::new(origin, format!("{e}; import the file again"), &record.payload);
                return ChatItem::Reject { conversation: None, letter };
            }
        };
        let Some(conversation) = self.conversation(kept.room) else { return ChatItem::Skip(SkipReason::Unsupported) };
        match &kept.what {
            MatrixEventKind::Redacted { version } => {
                ChatItem::Deletion { conversation, id: kept.id, version: *version }
            }
            MatrixEventKind::Redaction { of }
                if self.messages.contains(&hash(of)) || self.others.contains(&hash(of)) =>
            {
                // The removed message is itself in the export, and says that it was removed.
                ChatItem::Skip(SkipReason::Copy)
            }
            MatrixEventKind::Redaction { of } => {
                let version = self.removed.get(of).copied();
                ChatItem::Deletion { conversation, id: of.clone(), version }
            }
            MatrixEventKind::Edit { of } if self.messages.contains(&hash(of)) => ChatItem::Skip(SkipReason::Copy),
            MatrixEventKind::Edit { .. } => {
                let reason = "it edits a message that the export does not hold; export the room from an earlier day";
                let letter = DeadLetter::new(origin, reason.to_owned(), &record.payload);
                ChatItem::Reject { conversation: Some(conversation), letter }
            }
            MatrixEventKind::Said { .. } => match self.removed.get(&kept.id) {
                Some(version) => ChatItem::Deletion { conversation, id: kept.id, version: Some(*version) },
                None => self.message(kept, conversation.clone(), record.unix_ms).unwrap_or_else(|reason| {
                    let letter = DeadLetter::new(origin, reason, &record.payload);
                    ChatItem::Reject { conversation: Some(conversation), letter }
                }),
            },
        }
    }

    fn unread(&self) -> BTreeMap<String, u64> {
        self.unread.counts().clone()
    }

    fn trimmed(&self) -> TrimmedText {
        self.trimmed.clone()
    }

    fn describe(&self) -> String {
        format!("Matrix rooms from {}", self.files.tree().path().display())
    }

    fn bytes(&self) -> (u64, u64) {
        self.files.bytes()
    }
}

/// A hash of an event's id, so that the ids of a large room are held in little memory.
fn hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}
