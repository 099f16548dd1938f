//! Reads Discord's data package: the user's own messages.
//!
//! In: a package, packed or unpacked, or the table of one channel. Folders are recognised by what they hold, since
//! Discord translates their names: a channel's folder holds `channel.json` and `messages.json` (until March 2024,
//! `messages.csv`). Out: the messages, oldest first, whatever their order in the package. If a message's own time is
//! unreadable, the time in its id is used. Texts are raw, so mentions of people and channels that the package does not
//! name keep their ids.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    fs::File,
    io::Read,
    path::Path,
    sync::Arc,
};

use serde_json::{Value, json};

use super::{
    attachments::{field, linked_file},
    csv::{self, CsvRecords},
    markdown::plain,
    mentions::{DiscordNames, with_names},
    snowflake::{self, id_of},
};
use crate::{
    SourceError,
    chat::{
        Account, ChatItem, ChatMessage, Conversation, ConversationPrivacy, ExportTree, JsonElement, JsonElements,
        NUMBER, RecordForm, SkipReason, TEXT, TimeSorter, TimedRecord, UnorderedReader, UnreadCounts,
    },
};
use types::model::{DeadLetter, EventTime};

/// The longest description of a channel or an account that is read.
const MAX_DESCRIPTION_BYTES: u64 = 16 << 20;

/// The columns of a table.
const FORM: RecordForm = RecordForm {
    needed: &[("ID", NUMBER | TEXT), ("Timestamp", TEXT), ("Contents", TEXT)],
    other: &[("Attachments", TEXT)],
    known: &[],
    remedy: "request the package again",
};

/// A data package, and how far it has been read.
pub(super) struct DiscordPackageReader {
    tree: ExportTree,
    /// The path that the user named.
    shown: String,
    channels: Vec<DiscordPackageChannel>,
    next_channel: usize,
    current: Option<DiscordTable>,
    owner: Account,
    people: HashMap<String, String>,
    names: HashMap<String, String>,
    notice: Option<String>,
    unread: UnreadCounts,
    done_bytes: u64,
    total_bytes: u64,
}

struct DiscordPackageChannel {
    /// The name of the table in the tree.
    table: String,
    origin: String,
    is_csv: bool,
    conversation: Arc<Conversation>,
}

/// The open table of a channel.
enum DiscordTable {
    Json(JsonElements),
    Csv {
        records: CsvRecords,
        /// The names of the columns, from the first record.
        columns: Vec<String>,
    },
}

impl DiscordPackageReader {
    /// Whether these are the files of a package.
    pub(super) fn is_one<'a>(names: impl Iterator<Item = &'a str>) -> bool {
        let folders: Vec<&str> = names.filter_map(|name| name.strip_suffix("/channel.json")).collect();
        folders.iter().any(|folder| channel_id(folder).is_some())
    }

    /// Opens the table of one channel, which is all that `tree` holds. The files next to it, and the account folder if
    /// it has its English name, say whose it is.
    pub(super) fn open_table(tree: ExportTree, is_csv: bool) -> Self {
        let path = tree.path().to_owned();
        let folder = path.parent().unwrap_or(Path::new(""));
        let beside = |name: &str| -> Option<Value> {
            let file = File::open(folder.join(name)).ok()?;
            let mut bytes = Vec::new();
            file.take(MAX_DESCRIPTION_BYTES).read_to_end(&mut bytes).ok()?;
            serde_json::from_slice(&bytes).ok()
        };
        let owner =
            ["../../Account/user.json", "../../account/user.json"].into_iter().find_map(|name| account(&beside(name)?));
        let labels = labels(beside("../index.json"));
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let conversation = conversation(&beside("channel.json").unwrap_or_default(), &name, &labels.collect(), true);
        let table = tree.entries().first().map(|entry| entry.name.clone()).unwrap_or_default();
        let channel =
            DiscordPackageChannel { origin: tree.origin(&table), table, is_csv, conversation: Arc::new(conversation) };
        Self::of(tree, vec![channel], owner)
    }

    /// Opens a package; `None` if it holds no channel.
    ///
    /// # Errors
    /// [`SourceError`] when its files cannot be read.
    pub(super) fn open(tree: ExportTree) -> Result<Option<Self>, SourceError> {
        let names: Vec<String> = tree.entries().iter().map(|entry| entry.name.clone()).collect();
        let mut tables: Vec<&String> = names.iter().filter(|name| is_table(name)).collect();
        // If a package holds both, the newer form wins.
        tables.retain(|name| !name.ends_with(".csv") || !tree.has(&name.replace("messages.csv", "messages.json")));
        tables.retain(|name| channel_id(folder_of(name)).is_some());
        let owner = owner(&tree, &names)?;
        let mut known = HashMap::new();
        let mut parents: Vec<&str> = tables.iter().map(|table| folder_of(folder_of(table))).collect();
        parents.dedup();
        for parent in parents {
            let index = if parent.is_empty() { "index.json".to_owned() } else { format!("{parent}/index.json") };
            known.extend(labels(if tree.has(&index) { description(&tree, &index)? } else { None }));
        }
        let mut channels = Vec::new();
        for table in tables {
            let folder = folder_of(table);
            let about = if folder.is_empty() { "channel.json".to_owned() } else { format!("{folder}/channel.json") };
            let about = if tree.has(&about) { description(&tree, &about)? } else { None };
            let conversation = conversation(&about.unwrap_or_default(), folder, &known, false);
            channels.push(DiscordPackageChannel {
                table: table.clone(),
                origin: tree.origin(table),
                is_csv: table.ends_with(".csv"),
                conversation: Arc::new(conversation),
            });
        }
        Ok((!channels.is_empty()).then(|| Self::of(tree, channels, owner)))
    }

    fn of(tree: ExportTree, channels: Vec<DiscordPackageChannel>, owner: Option<Account>) -> Self {
        let shown = tree.path().display().to_string();
        let notice = owner.is_none().then(|| {
            format!("{shown}: it holds no account, so the speaker is named \"me\"; give it a name with source.aliases")
        });
        let me = || Account { id: "me".to_owned(), name: "me".to_owned(), handle: None, bot: false };
        let total_bytes =
            tree.entries().iter().filter(|e| channels.iter().any(|c| c.table == e.name)).map(|e| e.bytes).sum();
        Self {
            people: owner.iter().map(|owner| (owner.id.clone(), owner.name.clone())).collect(),
            names: channels.iter().map(|c| (c.conversation.id.clone(), c.conversation.name.clone())).collect(),
            owner: owner.unwrap_or_else(me),
            tree,
            shown,
            channels,
            next_channel: 0,
            current: None,
            notice,
            unread: UnreadCounts::default(),
            done_bytes: 0,
            total_bytes,
        }
    }

    /// The next message of the open table: its value and line, or why it cannot be read.
    fn next_row(&mut self) -> Result<Option<DiscordRow>, SourceError> {
        loop {
            let index = self.next_channel.saturating_sub(1);
            let Some(table) = self.current.as_mut() else {
                let Some(channel) = self.channels.get(self.next_channel) else { return Ok(None) };
                let input = self.tree.read(&channel.table)?;
                self.next_channel += 1;
                self.current = Some(if channel.is_csv {
                    DiscordTable::Csv { records: CsvRecords::new(input), columns: Vec::new() }
                } else {
                    DiscordTable::Json(JsonElements::new(input, &["*"]))
                });
                continue;
            };
            let Some(channel) = self.channels.get(index) else { return Ok(None) };
            let row = table.row(&channel.origin).map_err(|e| self.tree.unreadable(&channel.table, table.line(), e))?;
            match row {
                Some((line, value)) => return Ok(Some(DiscordRow { channel: index, line, value })),
                None => {
                    self.done_bytes += table.read_bytes();
                    self.current = None;
                }
            }
        }
    }

    fn item_of(&mut self, index: usize, line: u64, row: &Value) -> ChatItem {
        let Some(channel) = self.channels.get(index) else { return ChatItem::Skip(SkipReason::Unsupported) };
        let mut checked = row.clone();
        let read = FORM.check(&mut checked).and_then(|odd| Ok((self.message(channel, &checked)?, odd)));
        let conversation = Arc::clone(&channel.conversation);
        let origin = format!("{}:{line}", channel.origin);
        read.and_then(|(item, odd)| odd.judge(item, &mut self.unread)).unwrap_or_else(|reason| ChatItem::Reject {
            conversation: Some(conversation),
            letter: DeadLetter::new(origin, reason, row.to_string().as_bytes()),
        })
    }

    fn message(&self, channel: &DiscordPackageChannel, row: &Value) -> Result<ChatItem, String> {
        let id = row.get("ID").and_then(id_of).ok_or("ID: not an id of Discord; request the package again")?;
        let time = time(row, &id).ok_or("Timestamp: not a time; request the package again")?;
        let text = field(row, "Contents").map(|text| plain(&with_names(text, self))).unwrap_or_default();
        let urls = field(row, "Attachments").unwrap_or_default().split(|c: char| c.is_whitespace() || c == ',');
        let urls = urls.filter(|url| !url.is_empty());
        let attachments: Vec<_> = urls.map(linked_file).collect();
        if text.is_empty() && attachments.is_empty() {
            return Ok(ChatItem::Skip(SkipReason::Empty));
        }
        Ok(ChatItem::Message(Box::new(ChatMessage {
            conversation: Arc::clone(&channel.conversation),
            id,
            version: 0,
            author: self.owner.clone(),
            text,
            time,
            thread: None,
            reply_to: None,
            attachments,
            mentions: Vec::new(),
        })))
    }
}

/// A message of a table.
struct DiscordRow {
    /// The index of the channel.
    channel: usize,
    line: u64,
    /// The message, or a dead letter.
    value: Result<Value, DeadLetter>,
}

impl DiscordTable {
    /// The next message and its line.
    fn row(&mut self, origin: &str) -> std::io::Result<Option<(u64, Result<Value, DeadLetter>)>> {
        match self {
            Self::Json(elements) => {
                Ok(elements.next()?.map(|element: JsonElement| (element.line, element.parse(origin))))
            }
            Self::Csv { records, columns } => loop {
                let Some(record) = records.next()? else { return Ok(None) };
                if columns.is_empty() {
                    columns.clone_from(&record.fields);
                    continue;
                }
                let fields = columns.iter().cloned().zip(record.fields.into_iter().map(Value::from));
                let value = Value::Object(fields.collect());
                if record.is_too_long {
                    let reason = format!("longer than {} bytes; split it", csv::MAX_RECORD_BYTES);
                    let letter =
                        DeadLetter::new(format!("{origin}:{}", record.line), reason, value.to_string().as_bytes());
                    return Ok(Some((record.line, Err(letter))));
                }
                return Ok(Some((record.line, Ok(value))));
            },
        }
    }

    fn line(&self) -> u64 {
        match self {
            Self::Json(elements) => elements.line(),
            Self::Csv { records, .. } => records.line(),
        }
    }

    fn read_bytes(&self) -> u64 {
        match self {
            Self::Json(elements) => elements.read_bytes(),
            Self::Csv { records, .. } => records.read_bytes(),
        }
    }
}

impl UnorderedReader for DiscordPackageReader {
    fn collect(&mut self, order: &mut TimeSorter, found: &mut VecDeque<ChatItem>) -> Result<bool, SourceError> {
        let Some(DiscordRow { channel, line, value }) = self.next_row()? else { return Ok(false) };
        let value = match value {
            Ok(value) => value,
            Err(letter) => {
                let conversation = self.channels.get(channel).map(|c| Arc::clone(&c.conversation));
                found.push_back(ChatItem::Reject { conversation, letter });
                return Ok(true);
            }
        };
        match value.get("ID").and_then(id_of).and_then(|id| time(&value, &id)) {
            Some(time) => {
                let payload = kept(&value).to_string().into_bytes();
                let file = u32::try_from(channel).unwrap_or(u32::MAX);
                order.add(TimedRecord { unix_ms: time.unix_ms, file, line, payload })?;
            }
            None => found.push_back(self.item_of(channel, line, &value)),
        }
        Ok(true)
    }

    fn item(&mut self, record: TimedRecord) -> ChatItem {
        let row = serde_json::from_slice(&record.payload).unwrap_or_default();
        self.item_of(usize::try_from(record.file).unwrap_or(usize::MAX), record.line, &row)
    }

    fn describe(&self) -> String {
        format!("Discord's data package from {}", self.shown)
    }

    fn bytes(&self) -> (u64, u64) {
        let current = self.current.as_ref().map_or(0, DiscordTable::read_bytes);
        (self.done_bytes + current, self.total_bytes)
    }

    fn notice(&self) -> Option<String> {
        self.notice.clone()
    }

    fn unread(&self) -> BTreeMap<String, u64> {
        self.unread.counts().clone()
    }
}

impl DiscordNames for DiscordPackageReader {
    fn account(&self, id: &str) -> Option<String> {
        self.people.get(id).cloned()
    }

    fn role(&self, _: &str) -> Option<String> {
        None
    }

    fn channel(&self, id: &str) -> Option<String> {
        self.names.get(id).cloned()
    }
}

/// The record, reduced to the columns that are read.
fn kept(row: &Value) -> Value {
    let column = |name: &str| row.get(name).cloned().unwrap_or_default();
    json!({
        "ID": column("ID"), "Timestamp": column("Timestamp"),
        "Contents": column("Contents"), "Attachments": column("Attachments"),
    })
}

/// The time of a message; times without an offset are UTC.
fn time(row: &Value, id: &str) -> Option<EventTime> {
    let stated = field(row, "Timestamp")
        .map(str::trim)
        .and_then(|text| EventTime::read(text).or_else(|_| EventTime::read(&format!("{text}Z"))).ok());
    stated.or_else(|| EventTime::new(snowflake::unix_ms(id)?, 0).ok())
}

/// The account of the package, from the `user.json` in the package.
fn owner(tree: &ExportTree, names: &[String]) -> Result<Option<Account>, SourceError> {
    let is_one = |name: &&String| name.as_str() == "user.json" || name.ends_with("/user.json");
    let mut found: Vec<&String> = names.iter().filter(is_one).collect();
    found.sort_by_key(|name| name.matches('/').count());
    for name in found {
        if let Some(account) = description(tree, name)?.as_ref().and_then(account) {
            return Ok(Some(account));
        }
    }
    Ok(None)
}

fn account(user: &Value) -> Option<Account> {
    let (id, handle) = (user.get("id").and_then(id_of)?, field(user, "username")?);
    let shown = ["global_name", "display_name"].into_iter().find_map(|key| field(user, key)).unwrap_or(handle);
    Some(Account { id, name: shown.to_owned(), handle: Some(handle.to_owned()), bot: false })
}

/// The labels of channels by id, from `index.json`.
fn labels(index: Option<Value>) -> impl Iterator<Item = (String, String)> {
    let index = index.and_then(|index| index.as_object().cloned()).unwrap_or_default();
    index.into_iter().filter_map(|(id, label)| Some((id, label.as_str()?.to_owned())))
}

/// A channel from its `channel.json` and its label in `index.json`, such as `general in Team` or
/// `Direct Message with ann#0`.
fn conversation(about: &Value, folder: &str, labels: &HashMap<String, String>, alone: bool) -> Conversation {
    let id = about.get("id").and_then(id_of).or_else(|| channel_id(folder).map(str::to_owned));
    let id = id.unwrap_or_else(|| "Discord".to_owned());
    let kind = about.get("type").map(|kind| kind.as_str().map_or_else(|| kind.to_string(), str::to_owned));
    let kind = kind.unwrap_or_default();
    let workspace = about.get("guild").and_then(|guild| field(guild, "name")).map(str::to_owned);
    let label = labels.get(&id).map(|label| label.trim().to_owned());
    let is_direct = matches!(kind.as_str(), "DM" | "GROUP_DM" | "1" | "3")
        || kind.is_empty() && label.as_ref().is_some_and(|label| label.starts_with("Direct Message"));
    let label = label.map(|label| match label.strip_prefix("Direct Message with ") {
        Some(name) => name.strip_suffix("#0").unwrap_or(name).to_owned(),
        None => match workspace.as_ref().and_then(|guild| label.strip_suffix(&format!(" in {guild}"))) {
            Some(channel) => channel.to_owned(),
            None => label,
        },
    });
    let known = label.filter(|label| !label.is_empty() && label != "Unknown channel" && label != "None");
    // The name that DiscordChatExporter gives the server of direct messages.
    let workspace = workspace.or_else(|| is_direct.then(|| "Direct Messages".to_owned()));
    let name = field(about, "name").map(str::to_owned).or(known).unwrap_or_else(|| id.clone());
    let privacy = match kind.as_str() {
        _ if alone => ConversationPrivacy::Open,
        _ if is_direct => ConversationPrivacy::Direct,
        "PRIVATE_THREAD" | "12" => ConversationPrivacy::Private,
        _ => ConversationPrivacy::Open,
    };
    Conversation { workspace, id, name, privacy }
}

/// A small JSON file; `None` if it is not valid JSON.
fn description(tree: &ExportTree, name: &str) -> Result<Option<Value>, SourceError> {
    let mut bytes = Vec::new();
    let read = tree.read(name)?.take(MAX_DESCRIPTION_BYTES).read_to_end(&mut bytes);
    read.map_err(|e| tree.unreadable(name, 0, e))?;
    Ok(serde_json::from_slice(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes)).ok())
}

/// The id in the name of a channel's folder: `c123`, or `123` until 2021.
fn channel_id(folder: &str) -> Option<&str> {
    let name = folder.rsplit('/').next()?;
    let id = name.strip_prefix('c').unwrap_or(name);
    (!id.is_empty() && id.bytes().all(|b| b.is_ascii_digit())).then_some(id)
}

fn is_table(name: &str) -> bool {
    matches!(name.rsplit('/').next(), Some("messages.json" | "messages.csv"))
}

/// The folder of an entry; empty at the top.
fn folder_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}
