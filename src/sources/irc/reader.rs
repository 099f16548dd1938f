//! IRC logs: a file, or a directory or archive of them.
//!
//! In: logs of any of the clients that `line` knows, plain or as `.gz`. Out: messages of each channel in the order of
//! its files' days; joins, nick changes, topics and modes as service messages; a reject with `FILE:LINE` for each line
//! that is not a log line. Times have no zone and are read in the zone of the settings, unless the line states an
//! offset. Messages have no ids: `PositionalIds` makes them from local time and nick.

use std::{
    collections::{HashMap, VecDeque},
    io::Read,
    sync::Arc,
};

use jiff::{civil::DateTime, tz::Offset};

use super::{
    clock::IrcClock,
    encoding::decode,
    line::{IrcEvent, IrcLine as LogLine, line},
    log_file::{IrcLogFile, IrcLogHead, reads_like_a_log},
    log_path::{IrcLogPath, is_log, log_path},
    nicks::IrcNicks,
    timestamp::IrcTimestamp,
};
use crate::{
    chat::{
        ChatItem, ChatMessage, ChatReader, Conversation, ConversationPrivacy, ExportTree, FileSample, PositionalIds,
        SkipReason,
    },
    error::SourceError,
    format::{FormatOpener, SourceFormat},
    lines::StreamLine,
    turn_source::SourceProgress,
    zone::{Zone, zone_notice},
};
use types::{
    config::SourceSettings,
    model::{DeadLetter, EventTime},
};

/// IRC logs.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "irc",
    about: "IRC logs of irssi, WeeChat, ZNC, EnergyMech and others: a file, a directory or an archive",
    standard_input: false,
    only: Some("channels"),
    looks_like,
    open: FormatOpener::Chat(|settings| Ok(Box::new(IrcReader::open(settings)?))),
};

fn looks_like(sample: &FileSample) -> bool {
    if sample.is_file() {
        return reads_like_a_log(sample.head());
    }
    sample.entries().filter(|e| is_log(e)).take(ASKED_ENTRIES).any(|e| reads_like_a_log(&sample.head_of(e)))
}

const REMEDY: &str = "name a log of irssi, WeeChat, ZNC, EnergyMech, HexChat or mIRC, or a directory of such logs";
const NAME_THE_DAY: &str = "put the day of the first line into the file's name, such as #channel-2013-01-26.log";
/// How many files are searched for the channel if their names have none.
const ASKED_FILES: usize = 50;
const ASKED_BYTES: u64 = 64 << 10;
/// How many files of a directory are checked for times without a zone.
const ASKED_ZONES: usize = 500;
/// How many files of a directory are checked to find whether it holds logs.
const ASKED_ENTRIES: usize = 5;

/// A reader of IRC logs.
struct IrcReader {
    tree: ExportTree,
    zone: Zone,
    zone_name: String,
    files: VecDeque<(IrcLogPath, String, u64)>,
    /// The channel for files whose names and lines state none.
    common: Option<String>,
    has_channels: bool,
    open: Option<IrcOpenLog>,
    /// The network and channel of the last file.
    last: (Option<String>, String),
    /// The conversations in that channel's files, by the channel name in their lines.
    conversations: HashMap<String, IrcConversation>,
    nicks: IrcNicks,
    zoneless: bool,
    done_bytes: u64,
    total_bytes: u64,
}

/// A file that is being read.
struct IrcOpenLog {
    origin: String,
    name: String,
    bytes: u64,
    file: IrcLogFile,
    clock: IrcClock,
    channel: String,
    network: Option<String>,
}

/// A conversation and its ids.
struct IrcConversation {
    conversation: Arc<Conversation>,
    ids: PositionalIds,
}

impl IrcReader {
    /// Opens a log, a directory or an archive.
    ///
    /// # Errors
    /// [`SourceError`] when it cannot be read, when the zone is invalid, or when a single file is not a log or states
    /// no day.
    fn open(settings: &SourceSettings) -> Result<Self, SourceError> {
        let zone = Zone::parse(&settings.zone)?;
        let tree = ExportTree::open(&settings.path)?;
        let entries = tree.entries().iter().filter(|e| tree.is_file() || is_log(&e.name));
        let mut files: Vec<_> = entries.map(|e| (log_path(&e.name), e.name.clone(), e.bytes)).collect();
        files.sort_by(|(a, a_name, _), (b, b_name, _)| {
            let key = |p: &IrcLogPath| (p.network.clone(), p.channel.clone().or_else(|| p.other.clone()), p.date);
            key(a).cmp(&key(b)).then_with(|| a_name.cmp(b_name))
        });
        let mut reader = Self {
            zone,
            zone_name: settings.zone.clone(),
            common: None,
            has_channels: files.iter().any(|(p, ..)| p.channel.is_some()),
            total_bytes: files.iter().map(|(.., bytes)| bytes).sum(),
            files: files.into(),
            open: None,
            last: (None, String::new()),
            conversations: HashMap::new(),
            nicks: IrcNicks::default(),
            zoneless: false,
            done_bytes: 0,
            tree,
        };
        reader.common = reader.common_channel();
        if reader.tree.is_file() {
            reader.open_next()?;
        } else {
            reader.zoneless = reader.has_times_without_zone();
        }
        Ok(reader)
    }

    /// The channel that is named in the lines of a file whose path names nothing.
    fn common_channel(&self) -> Option<String> {
        let nameless = self.files.iter().filter(|(p, ..)| p.channel.is_none() && p.other.is_none());
        nameless.take(ASKED_FILES).find_map(|(_, name, _)| {
            let input = self.tree.read(name).ok()?.take(ASKED_BYTES);
            IrcLogFile::open(Box::new(input)).ok()?.1.channel
        })
    }

    /// Whether the beginning of any file of a directory has times without a zone.
    fn has_times_without_zone(&self) -> bool {
        self.files.iter().take(ASKED_ZONES).any(|(_, name, _)| {
            let beginning = || IrcLogFile::open(Box::new(self.tree.read(name).ok()?.take(ASKED_BYTES))).ok();
            beginning().is_some_and(|(_, beginning)| beginning.zoneless)
        })
    }

    /// Opens the next file if it is a log. Returns a reject or a skip if it is not usable.
    fn open_next(&mut self) -> Result<Option<ChatItem>, SourceError> {
        let Some((place, name, bytes)) = self.files.pop_front().filter(|(.., bytes)| *bytes > 0) else {
            return Ok(None);
        };
        let input = self.tree.read(&name)?;
        let (file, beginning) = IrcLogFile::open(input).map_err(|e| self.tree.unreadable(&name, 0, e))?;
        let origin = self.tree.origin(&name);
        let channel = self.channel(&place, &beginning, &name);
        if !beginning.is_log || beginning.clock(place.date).is_none() {
            self.done_bytes += bytes;
            let (problem, remedy) = match beginning.is_log {
                true => ("its lines name no day", NAME_THE_DAY),
                false => ("no line of an IRC log", REMEDY),
            };
            if self.tree.is_file() {
                let path = self.tree.path().to_owned();
                return Err(SourceError::Format { path, line: 1, column: 1, problem: problem.to_owned(), remedy });
            }
            if !beginning.is_log {
                return Ok(Some(ChatItem::Skip(SkipReason::Unsupported)));
            }
            let letter = DeadLetter::new(format!("{origin}:1"), format!("{problem}; {remedy}"), b"");
            let conversation = Some(self.conversation(place.network, &channel));
            return Ok(Some(ChatItem::Reject { conversation, letter }));
        }
        self.zoneless |= beginning.zoneless;
        let Some(clock) = beginning.clock(place.date) else { return Ok(None) };
        // Ids continue from one file of a channel to the next.
        let of = (place.network.clone(), channel.clone());
        if self.last != of {
            self.conversations.clear();
            self.nicks = IrcNicks::default();
            self.last = of;
        }
        self.nicks.next_file();
        self.open = Some(IrcOpenLog { origin, name, bytes, file, clock, channel, network: place.network });
        Ok(None)
    }

    /// The channel of a file: from its name, its lines, the other files, or its folder.
    fn channel(&self, place: &IrcLogPath, beginning: &IrcLogHead, name: &str) -> String {
        let folder = || name.rsplit('/').nth(1).filter(|f| f.chars().any(char::is_alphabetic)).map(str::to_owned);
        let own = place.channel.clone().or_else(|| beginning.channel.clone()).or_else(|| place.other.clone());
        let found = own.or_else(|| self.common.clone()).or_else(folder);
        found.unwrap_or_else(|| {
            let stem = self.tree.path().file_stem().map(|s| s.to_string_lossy().into_owned());
            stem.filter(|s| !s.is_empty()).unwrap_or_else(|| "irc".to_owned())
        })
    }

    fn conversation(&self, workspace: Option<String>, channel: &str) -> Arc<Conversation> {
        let is_channel = channel.starts_with(['#', '&']);
        let privacy = if is_channel || self.tree.is_file() || !self.has_channels {
            ConversationPrivacy::Open
        } else {
            ConversationPrivacy::Direct
        };
        let name = channel.trim_start_matches(['#', '&']);
        let name = if name.is_empty() { channel } else { name };
        Arc::new(Conversation { workspace, id: channel.to_lowercase(), name: name.to_owned(), privacy })
    }

    /// The item of a line; `None` if there is none.
    fn item(&mut self, raw: &StreamLine) -> Option<ChatItem> {
        let open = self.open.as_mut()?;
        let text = decode(&raw.bytes);
        let (channel, problem) = match line(&text) {
            _ if raw.too_long.is_some() => (None, "longer than a line of a log; split it"),
            LogLine::Blank | LogLine::Channel(_) => return None,
            LogLine::Day(date) => {
                open.clock.day(date);
                return None;
            }
            LogLine::Unknown => (None, "no line of an IRC log; a line begins with its time"),
            LogLine::Event { stamp, channel, event } => {
                let local = open.clock.at(stamp);
                let (nick, text, action) = match event {
                    IrcEvent::Said { nick, text } => (nick, text, false),
                    IrcEvent::Did { nick, text } => (nick, text, true),
                    IrcEvent::Service { .. } => return Some(ChatItem::Skip(SkipReason::ServiceMessage)),
                    IrcEvent::Renamed { from, to } => {
                        self.nicks.changes(from, to);
                        return Some(ChatItem::Skip(SkipReason::ServiceMessage));
                    }
                    IrcEvent::Left { nick } => {
                        self.nicks.leaves(nick);
                        return Some(ChatItem::Skip(SkipReason::ServiceMessage));
                    }
                };
                if text.trim().is_empty() {
                    return Some(ChatItem::Skip(SkipReason::Empty));
                }
                let offset = stamp.and_then(|s| s.offset_seconds);
                let moment = |local| offset.map_or_else(|| self.zone.moment(local), |offset| at_offset(local, offset));
                match local.and_then(|local| Some((local, moment(local)?))) {
                    Some((local, time)) => {
                        let author = self.nicks.speaks(nick);
                        let mentions = addressed(text).and_then(|nick| self.nicks.named(nick)).into_iter().collect();
                        let text =
                            if action { format!("{nick} {}", text.trim_end()) } else { text.trim_end().to_owned() };
                        let talk = self.talk(channel)?;
                        return Some(ChatItem::Message(Box::new(ChatMessage {
                            conversation: talk.conversation.clone(),
                            id: talk.ids.id(&written(local, stamp), nick),
                            version: 0,
                            author,
                            text,
                            time,
                            thread: None,
                            reply_to: None,
                            attachments: Vec::new(),
                            mentions,
                        })));
                    }
                    None => (channel, "nothing before it names its day; put the day into the file's name"),
                }
            }
        };
        let origin = format!("{}:{}", self.open.as_ref()?.origin, raw.number);
        let letter = DeadLetter::new(origin, problem.to_owned(), &raw.bytes);
        Some(ChatItem::Reject { conversation: self.talk(channel).map(|t| t.conversation.clone()), letter })
    }

    /// The conversation of a line that names a channel, or of its file.
    fn talk(&mut self, channel: Option<&str>) -> Option<&mut IrcConversation> {
        let open = self.open.as_ref()?;
        let channel = channel.unwrap_or(&open.channel);
        if !self.conversations.contains_key(channel) {
            let conversation = self.conversation(open.network.clone(), channel);
            self.conversations
                .insert(channel.to_owned(), IrcConversation { conversation, ids: PositionalIds::default() });
        }
        self.conversations.get_mut(channel)
    }
}

impl ChatReader for IrcReader {
    fn next(&mut self) -> Result<Option<ChatItem>, SourceError> {
        loop {
            let Some(open) = &mut self.open else {
                if self.files.is_empty() {
                    return Ok(None);
                }
                match self.open_next()? {
                    Some(item) => return Ok(Some(item)),
                    None => continue,
                }
            };
            match open.file.next() {
                Ok(Some(raw)) => {
                    if let Some(item) = self.item(&raw) {
                        return Ok(Some(item));
                    }
                }
                Ok(None) => {
                    self.done_bytes += open.bytes;
                    self.open = None;
                }
                Err(error) => return Err(self.tree.unreadable(&open.name, open.file.number(), error)),
            }
        }
    }

    fn describe(&self) -> String {
        format!("IRC logs from {}", self.tree.path().display())
    }

    fn progress(&self) -> SourceProgress {
        let within = self.open.as_ref().map_or(0, |o| o.file.read_bytes().min(o.bytes));
        SourceProgress { done: self.done_bytes + within, total: Some(self.total_bytes), unit: "bytes" }
    }

    fn notice(&self) -> Option<String> {
        self.zoneless.then(|| zone_notice(self.tree.path(), &self.zone_name))
    }
}

/// The nick to which a line is addressed: `nick: text` or `nick, text`.
fn addressed(text: &str) -> Option<&str> {
    const MAX_NICK: usize = 32;
    let (nick, _) = text.split_once([':', ','])?;
    (!nick.is_empty() && nick.len() <= MAX_NICK && !nick.contains(' ')).then_some(nick)
}

/// A local time as the file states it, so that it does not depend on the zone in the settings.
fn written(local: DateTime, stamp: Option<IrcTimestamp>) -> String {
    let minutes = format!("{}T{:02}:{:02}", local.date(), local.hour(), local.minute());
    match stamp {
        Some(stamp) if !stamp.seconds => minutes,
        _ => format!("{minutes}:{:02}", local.second()),
    }
}

/// The moment of a local time with a given offset.
fn at_offset(local: DateTime, offset_seconds: i32) -> Option<EventTime> {
    let moment = Offset::from_seconds(offset_seconds).and_then(|o| o.to_timestamp(local)).ok()?;
    EventTime::new(moment.as_millisecond(), offset_seconds).ok()
}
