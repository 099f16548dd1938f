//! Makes messages from the records of Mattermost's bulk export.
//!
//! In: the lines of one or several files. Out: items, oldest first. Users and channels are known before the first
//! message is made, wherever their lines are in the files.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Arc, LazyLock},
};

use regex::{Captures, Regex};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use super::export_lines::{
    MattermostChannelLine, MattermostLine, MattermostPostLine, MattermostPostPlace, MattermostUserLine, cards,
};
use crate::{
    chat::{
        Account, ChatItem, ChatMessage, Conversation, ConversationPrivacy, ExportTree, FileSample, PositionalIds,
        SkipReason, TimeOrderedReader, TimeSorter, TimedRecord, UnorderedReader, UnreadCounts, UnreadFields,
        shared_file,
    },
    error::SourceError,
    format::{FormatOpener, SourceFormat},
    lines::{StreamLine, StreamLines},
    zone::Zone,
};
use types::{
    config::SourceSettings,
    lone_surrogates::replace_lone_surrogates,
    model::{Attachment, DeadLetter},
};

/// Mattermost's bulk export.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "mattermost",
    about: "Mattermost bulk export: import.jsonl, or the zip archive that holds it",
    standard_input: false,
    only: Some("channels"),
    looks_like,
    open: FormatOpener::Chat(|settings| Ok(Box::new(TimeOrderedReader::new(MattermostReader::open(settings)?)))),
};

/// The longest line: a post and all its replies are on one line.
const MAX_LINE_BYTES: usize = 16 << 20;
/// The longest id of a direct channel that lists its members.
const MAX_MEMBERS_BYTES: usize = 100;

static MENTION: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)(^|[^\w@./-])@([a-z0-9][a-z0-9._-]*)").ok());

fn looks_like(sample: &FileSample) -> bool {
    let shows = |head: &str| {
        // The last line of a sample may be cut.
        head.lines().take(3).filter_map(|line| serde_json::from_str::<Value>(line).ok()).any(|line| {
            let kind = line.get("type").and_then(Value::as_str).unwrap_or_default();
            matches!(kind, "version" | "info" | "team" | "channel" | "user" | "post" | "direct_channel" | "direct_post")
                && line.get(kind).is_some_and(|value| value.is_object() || value.is_u64())
        })
    };
    if sample.is_file() {
        return shows(sample.head());
    }
    sample.entries().any(|entry| is_export(entry) && shows(&sample.head_of(entry)))
}

/// Whether an entry holds the export's lines. Attached files are under `data` and may be JSON Lines too.
fn is_export(entry: &str) -> bool {
    entry.ends_with(".jsonl") && !format!("/{entry}").contains("/data/")
}

/// An export that is read line by line.
struct MattermostReader {
    tree: ExportTree,
    zone: Zone,
    /// The files that hold lines, and the index of the one that is being read.
    files: Vec<String>,
    file: usize,
    lines: Option<StreamLines>,
    /// The size of the files that were read completely, and of all files.
    read_bytes: u64,
    total_bytes: u64,
    users: HashMap<String, MattermostUser>,
    channels: HashMap<(String, String), MattermostChannel>,
    conversations: HashMap<MattermostPlace, Arc<Conversation>>,
    /// The ids of one moment. Posts come in order of time, so a post's id depends on no other moment.
    ids: HashMap<MattermostPlace, PositionalIds>,
    ids_at: i64,
    unread: UnreadCounts,
}

struct MattermostUser {
    name: String,
    bot: bool,
}

struct MattermostChannel {
    name: String,
    open: bool,
}

/// Where something was said, by the names in the export.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum MattermostPlace {
    /// A team's channel.
    Channel(String, String),
    /// The members of a direct channel, sorted.
    Direct(Vec<String>),
}

/// What is kept of a post until messages are returned in order of time.
#[derive(Serialize, Deserialize)]
struct MattermostStoredPost {
    place: MattermostPlace,
    user: String,
    kind: String,
    message: String,
    props: Option<Value>,
    edit_at: u64,
    delete_at: u64,
    files: Vec<String>,
    /// Time and author of the post that began the thread.
    root: Option<(i64, String)>,
    is_reply: bool,
    /// Its fields that are not read.
    odd: UnreadFields,
}

/// What is wrong with a record, and where it was said if that is known.
type MattermostProblem = (Option<MattermostPlace>, String);

impl MattermostReader {
    fn open(settings: &SourceSettings) -> Result<Self, SourceError> {
        let tree = ExportTree::open(&settings.path)?;
        let is_file = tree.is_file();
        let entries = tree.entries().iter().filter(|e| is_file || is_export(&e.name));
        let (files, sizes): (Vec<String>, Vec<u64>) = entries.map(|e| (e.name.clone(), e.bytes)).unzip();
        if files.is_empty() {
            return Err(SourceError::Format {
                path: settings.path.clone(),
                line: 1,
                column: 1,
                problem: "no file that ends in .jsonl".to_owned(),
                remedy: "name the bulk export, its folder or its zip archive",
            });
        }
        Ok(Self {
            tree,
            zone: Zone::parse(&settings.zone)?,
            files,
            file: 0,
            lines: None,
            read_bytes: 0,
            total_bytes: sizes.iter().sum(),
            users: HashMap::new(),
            channels: HashMap::new(),
            conversations: HashMap::new(),
            ids: HashMap::new(),
            ids_at: i64::MIN,
            unread: UnreadCounts::default(),
        })
    }

    fn origin(&self, file: usize, line: u64) -> String {
        format!("{}:{line}", self.tree.origin(self.files.get(file).map_or("", String::as_str)))
    }

    /// Keeps a record that cannot be read, since the lines of its channel and users may still follow. A record without
    /// a place is returned at once.
    fn reject(
        &self,
        line: u64,
        (place, reason): MattermostProblem,
        payload: &[u8],
        order: &mut TimeSorter,
        found: &mut VecDeque<ChatItem>,
    ) -> Result<(), SourceError> {
        let letter = DeadLetter::new(self.origin(self.file, line), reason, payload);
        match place {
            Some(place) => order.add_reject(&place, &letter),
            None => {
                found.push_back(ChatItem::Reject { conversation: None, letter });
                Ok(())
            }
        }
    }

    /// Reads a line.
    fn take(
        &mut self,
        line: &StreamLine,
        order: &mut TimeSorter,
        found: &mut VecDeque<ChatItem>,
    ) -> Result<(), SourceError> {
        if let Some(length) = line.too_long {
            let reason = format!("the line has {length} bytes, more than {MAX_LINE_BYTES}; split its thread in two");
            return self.reject(line.number, (None, reason), &line.bytes, order, found);
        }
        if line.bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let bytes = replace_lone_surrogates(&line.bytes);
        let export: MattermostLine<'_> = match serde_json::from_slice(&bytes) {
            Ok(export) => export,
            Err(e) => {
                let reason = format!("{e}; write one JSON object with its type per line, as the bulk export does");
                return self.reject(line.number, (None, reason), &line.bytes, order, found);
            }
        };
        let read = match export.kind.as_ref() {
            "channel" => export.channel.map(|c| serde_json::from_str(c.get()).map(|c| self.channel(c))),
            "user" => export.user.map(|u| serde_json::from_str(u.get()).map(|u| self.user(&u, false))),
            "bot" => export.bot.map(|b| serde_json::from_str(b.get()).map(|b| self.user(&b, true))),
            "post" | "direct_post" => {
                match export.post.or(export.direct_post).map(|p| (p, MattermostPostLine::read(p))) {
                    Some((_, Ok((post, odd)))) => return self.post(post, odd, line, order, found),
                    Some((post, Err(reason))) => {
                        let problem = (place_of_damaged(post), format!("{}: {reason}", export.kind));
                        return self.reject(line.number, problem, &line.bytes, order, found);
                    }
                    None => None,
                }
            }
            // These hold no words.
            "version" | "info" | "team" | "scheme" | "role" | "emoji" | "direct_channel" => return Ok(()),
            // A type that a later version may have added.
            other => {
                found.push_back(ChatItem::Skip(SkipReason::unsupported(other)));
                return Ok(());
            }
        };
        let reason = match read {
            Some(Ok(())) => return Ok(()),
            Some(Err(e)) => format!("{}: {e}; write it as the bulk export does", export.kind),
            None => format!("{}: missing; write it next to its type", export.kind),
        };
        self.reject(line.number, (None, reason), &line.bytes, order, found)
    }

    fn channel(&mut self, line: MattermostChannelLine) {
        let name = line.display_name.filter(|n| !n.trim().is_empty()).unwrap_or_else(|| line.name.clone());
        let channel = MattermostChannel { name, open: line.kind.as_deref() == Some("O") };
        self.channels.insert((line.team.unwrap_or_default(), line.name), channel);
    }

    fn user(&mut self, line: &MattermostUserLine, bot: bool) {
        self.users.insert(line.username.to_lowercase(), MattermostUser { name: line.name(), bot });
    }

    /// Keeps a post and its replies.
    fn post(
        &mut self,
        mut post: MattermostPostLine,
        odd: UnreadFields,
        line: &StreamLine,
        order: &mut TimeSorter,
        found: &mut VecDeque<ChatItem>,
    ) -> Result<(), SourceError> {
        let replies = post.replies.take().unwrap_or_default();
        let place = match place(post.team.as_deref(), post.channel.as_deref(), post.channel_members.as_deref()) {
            Ok(place) => place,
            Err(problem) => return self.reject(line.number, problem, &line.bytes, order, found),
        };
        let root = post.create_at.zip(post.user.clone());
        let own_root = if replies.is_empty() { None } else { root.clone() };
        match keep(post, odd, place.clone(), own_root, false) {
            Ok((unix_ms, payload)) => order.add(self.timed(unix_ms, line.number, payload))?,
            Err(problem) => self.reject(line.number, problem, &line.bytes, order, found)?,
        }
        for reply in replies {
            let read = MattermostPostLine::read(&reply).map_err(|e| (Some(place.clone()), format!("replies: {e}")));
            let kept = read.and_then(|(reply, odd)| keep(reply, odd, place.clone(), root.clone(), true));
            match kept {
                Ok((unix_ms, payload)) => order.add(self.timed(unix_ms, line.number, payload))?,
                Err(problem) => self.reject(line.number, problem, reply.get().as_bytes(), order, found)?,
            }
        }
        Ok(())
    }

    fn timed(&self, unix_ms: i64, line: u64, payload: Vec<u8>) -> TimedRecord {
        TimedRecord { unix_ms, file: u32::try_from(self.file).unwrap_or(u32::MAX), line, payload }
    }

    /// The conversation of a place, once all lines of channels and users are known.
    fn conversation(&mut self, place: &MattermostPlace) -> Arc<Conversation> {
        if let Some(conversation) = self.conversations.get(place) {
            return conversation.clone();
        }
        let conversation = Arc::new(match place {
            MattermostPlace::Channel(team, channel) => {
                // A channel without a line of its own may be private.
                let known = self.channels.get(&(team.clone(), channel.clone()));
                Conversation {
                    workspace: (!team.is_empty()).then(|| team.clone()),
                    id: channel.clone(),
                    name: known.map_or_else(|| channel.clone(), |c| c.name.clone()),
                    privacy: if known.is_some_and(|c| c.open) {
                        ConversationPrivacy::Open
                    } else {
                        ConversationPrivacy::Private
                    },
                }
            }
            MattermostPlace::Direct(members) => {
                let id = members.join(",");
                let names: Vec<String> = members.iter().map(|m| self.account(m).name).collect();
                Conversation {
                    workspace: None,
                    id: if id.len() > MAX_MEMBERS_BYTES {
                        blake3::hash(id.as_bytes()).to_hex()[..32].to_owned()
                    } else {
                        id
                    },
                    name: names.join(", "),
                    privacy: ConversationPrivacy::Direct,
                }
            }
        });
        self.conversations.insert(place.clone(), conversation.clone());
        conversation
    }

    fn account(&self, username: &str) -> Account {
        let user = self.users.get(&username.to_lowercase());
        Account {
            id: username.to_owned(),
            name: user.map_or_else(|| username.to_owned(), |u| u.name.clone()),
            handle: Some(username.to_owned()),
            bot: user.is_some_and(|u| u.bot),
        }
    }

    /// The author. A webhook writes under the account of the person who made it.
    fn author(&self, kept: &MattermostStoredPost) -> Account {
        let account = self.account(&kept.user);
        let prop = |key: &str| kept.props.as_ref().and_then(|p| p.get(key));
        let is_set = |key: &str| prop(key).is_some_and(|v| v.as_bool() == Some(true) || v.as_str() == Some("true"));
        if !is_set("from_webhook") {
            return Account { bot: account.bot || is_set("from_bot"), ..account };
        }
        let shown = prop("override_username").and_then(Value::as_str).map(str::trim).filter(|n| !n.is_empty());
        let name = shown.map_or(account.name, str::to_owned);
        Account { id: format!("webhook:{name}"), name, handle: None, bot: true }
    }

    /// A text with its mentions as names.
    fn text(&self, text: &str) -> (String, Vec<Account>) {
        let mut mentions: Vec<Account> = Vec::new();
        let Some(pattern) = &*MENTION else { return (text.to_owned(), mentions) };
        let named = |found: &Captures<'_>| {
            let (before, handle) = (found.get(1).map_or("", |m| m.as_str()), found.get(2).map_or("", |m| m.as_str()));
            let mut known = handle;
            // A full stop after a handle is part of the sentence.
            while !self.users.contains_key(&known.to_lowercase()) {
                match known.strip_suffix(['.', '-', '_']) {
                    Some(shorter) => known = shorter,
                    None => return format!("{before}@{handle}"),
                }
            }
            let account = self.account(&known.to_lowercase());
            let text = format!("{before}@{}{}", account.name, handle.get(known.len()..).unwrap_or_default());
            if !mentions.contains(&account) {
                mentions.push(account);
            }
            text
        };
        let text = pattern.replace_all(text, named).trim().to_owned();
        (text, mentions)
    }
}

impl UnorderedReader for MattermostReader {
    fn collect(&mut self, order: &mut TimeSorter, found: &mut VecDeque<ChatItem>) -> Result<bool, SourceError> {
        let Some(name) = self.files.get(self.file) else { return Ok(false) };
        if self.lines.is_none() {
            self.lines = Some(StreamLines::with_max_bytes(self.tree.read(name)?, MAX_LINE_BYTES));
        }
        let Some(lines) = &mut self.lines else { return Ok(false) };
        match lines.next() {
            Ok(Some(line)) => self.take(&line, order, found)?,
            Ok(None) => {
                self.read_bytes += lines.read_bytes();
                self.lines = None;
                self.file += 1;
            }
            Err(e) => return Err(self.tree.unreadable(name, lines.number(), e)),
        }
        Ok(true)
    }

    fn item(&mut self, record: TimedRecord) -> ChatItem {
        if let Some((place, letter)) = record.rejected::<MattermostPlace>() {
            return ChatItem::Reject { conversation: Some(self.conversation(&place)), letter };
        }
        let origin = self.origin(record.file as usize, record.line);
        let kept: MattermostStoredPost = match serde_json::from_slice(&record.payload) {
            Ok(kept) => kept,
            Err(e) => {
                let letter = DeadLetter::new(origin, format!("{e}; import the file again"), &record.payload);
                return ChatItem::Reject { conversation: None, letter };
            }
        };
        // The Calls plugin writes a notice when somebody starts a call.
        if kept.kind.starts_with("system_") || kept.kind.starts_with("custom_calls") {
            return ChatItem::Skip(SkipReason::ServiceMessage);
        }
        let Some(time) = self.zone.at_unix_ms(record.unix_ms) else {
            let reason = format!("create_at: {} is out of range; write milliseconds since 1970", record.unix_ms);
            let letter = DeadLetter::new(origin, reason, &record.payload);
            return ChatItem::Reject { conversation: Some(self.conversation(&kept.place)), letter };
        };
        let conversation = self.conversation(&kept.place);
        if record.unix_ms != self.ids_at {
            self.ids.clear();
            self.ids_at = record.unix_ms;
        }
        let id = self.ids.entry(kept.place.clone()).or_default().id(&record.unix_ms.to_string(), &kept.user);
        if kept.delete_at > 0 {
            return ChatItem::Deletion { conversation, id, version: Some(kept.delete_at) };
        }
        let author = self.author(&kept);
        let (mut text, mentions) = self.text(&kept.message);
        if kept.kind == "me" {
            text = format!("{} {}", author.name, text.trim_matches('*'));
        }
        let mut attachments: Vec<Attachment> =
            kept.files.iter().map(|path| shared_file(path, Some(path.clone()))).collect();
        attachments.extend(kept.props.iter().flat_map(cards).map(|card| Attachment {
            kind: Some("card".to_owned()),
            caption: Some(self.text(&card).0),
            url: None,
        }));
        if text.is_empty() && attachments.is_empty() {
            return match kept.odd.without_words() {
                None => ChatItem::Skip(SkipReason::Empty),
                Some(reason) => ChatItem::Reject {
                    conversation: Some(conversation),
                    letter: DeadLetter::new(origin, reason, &record.payload),
                },
            };
        }
        let root = kept.root.map(|(unix_ms, user)| PositionalIds::default().id(&unix_ms.to_string(), &user));
        let message = ChatMessage {
            conversation,
            reply_to: if kept.is_reply { root.clone() } else { None },
            thread: if kept.is_reply || root.is_none() { root } else { Some(id.clone()) },
            id,
            version: kept.edit_at,
            author,
            text,
            time,
            attachments,
            mentions,
        };
        kept.odd.tell_beside(&message.words(), &mut self.unread);
        ChatItem::Message(Box::new(message))
    }

    fn unread(&self) -> BTreeMap<String, u64> {
        self.unread.counts().clone()
    }

    fn describe(&self) -> String {
        format!("Mattermost's export {}", self.tree.path().display())
    }

    fn bytes(&self) -> (u64, u64) {
        (self.read_bytes + self.lines.as_ref().map_or(0, StreamLines::read_bytes), self.total_bytes)
    }
}

/// Where a post was written.
fn place(
    team: Option<&str>,
    channel: Option<&str>,
    members: Option<&[String]>,
) -> Result<MattermostPlace, MattermostProblem> {
    let Some(members) = members else {
        let channel = channel.filter(|c| !c.is_empty());
        let channel = channel.ok_or_else(|| (None, "channel: missing; write the channel's name".to_owned()))?;
        return Ok(MattermostPlace::Channel(team.unwrap_or_default().to_owned(), channel.to_owned()));
    };
    let mut members: Vec<String> = members.iter().filter(|m| !m.is_empty()).cloned().collect();
    members.sort();
    members.dedup();
    if members.is_empty() {
        let reason = "channel_members: empty, so it is not known who could read it; write the members' names";
        return Err((Some(MattermostPlace::Direct(Vec::new())), reason.to_owned()));
    }
    Ok(MattermostPlace::Direct(members))
}

/// Where an unreadable post was written; `None` if that part is unreadable, too.
fn place_of_damaged(post: &RawValue) -> Option<MattermostPlace> {
    let MattermostPostPlace { team, channel, channel_members } = serde_json::from_str(post.get()).ok()?;
    place(team.as_deref(), channel.as_deref(), channel_members.as_deref()).ok()
}

/// The record that is kept of a post, with its time.
fn keep(
    mut post: MattermostPostLine,
    odd: UnreadFields,
    place: MattermostPlace,
    root: Option<(i64, String)>,
    is_reply: bool,
) -> Result<(i64, Vec<u8>), MattermostProblem> {
    let files = post.files();
    let wrong = |reason: &str| (Some(place.clone()), reason.to_owned());
    let user = post.user.filter(|u| !u.trim().is_empty()).ok_or_else(|| wrong("user: missing; write the author"))?;
    let unix_ms = post.create_at.ok_or_else(|| wrong("create_at: missing; write milliseconds since 1970"))?;
    let kept = MattermostStoredPost {
        user,
        kind: post.kind.unwrap_or_default(),
        message: post.message.unwrap_or_default(),
        props: post.props.filter(|p| p.as_object().is_some_and(|p| !p.is_empty())),
        edit_at: post.edit_at.unwrap_or(0),
        delete_at: post.delete_at.unwrap_or(0),
        files,
        root,
        is_reply,
        odd,
        place: place.clone(),
    };
    let payload = serde_json::to_vec(&kept).map_err(|e| wrong(&e.to_string()))?;
    Ok((unix_ms, payload))
}
