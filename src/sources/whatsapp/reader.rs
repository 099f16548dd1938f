//! Reads messages from WhatsApp's text exports.
//!
//! In: one or several chats, each surveyed first. Out: items in the file's order. A line that does not begin a message
//! continues the previous one; a notice without a sender is a separate message that is skipped. An id is made from the
//! time, the sender and the message's number among the sender's messages of that time, so that a message keeps its id
//! when it is edited or deleted.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp, civil::Date, tz::Offset};

use super::{
    body::{WhatsappBody, WhatsappContent, behind_notice, body},
    date_order::WhatsappDateOrder,
    header::{WhatsappHeader, WhatsappHeaderEnd, header},
    phrases::PHRASES,
    survey::{WhatsappFirstYear, WhatsappSender, WhatsappSurvey, has_year, is_next_year},
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
    zone::{Zone, zone_assumed},
};
use types::{
    config::SourceSettings,
    model::{DeadLetter, EventTime},
};

/// WhatsApp's export.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "whatsapp",
    about: "WhatsApp chat exported as text: the file, its folder or its zip archive",
    standard_input: false,
    only: Some("chats"),
    looks_like,
    open: FormatOpener::Chat(|settings| Ok(Box::new(WhatsappReader::open(settings, this_year())?))),
};

/// The year of tomorrow in UTC, because in some time zones it is already tomorrow.
fn this_year() -> u32 {
    let tomorrow = Timestamp::now().checked_add(SignedDuration::from_hours(24)).unwrap_or(Timestamp::MAX);
    u32::try_from(Offset::UTC.to_datetime(tomorrow).year()).unwrap_or_default()
}

fn looks_like(sample: &FileSample) -> bool {
    if sample.is_file() {
        return begins_like_chat(&sample.name(), sample.head());
    }
    sample.entries().any(|entry| {
        let name = file_name(entry);
        name == CHAT_FILE || (is_text(name) && name.to_lowercase().contains("whatsapp"))
    }) || sample.entries().filter(|e| is_text(e)).take(5).any(|e| begins_like_chat(e, &sample.head_of(e)))
}

/// Whether `day` is at the end of the previous year and `last` is in the first days of a year.
fn is_late(day: Date, last: Date) -> bool {
    const DAYS: i16 = 31;
    last.day_of_year() <= DAYS && day.day_of_year() > 365 - DAYS
}

/// A chat's name without the year at its end, and that year.
fn year_in_name(name: &str, this_year: u32) -> Option<(String, u32)> {
    let before = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let year: u32 = name.get(before.len()..)?.parse().ok()?;
    let before = before.trim_end_matches([' ', '-', '_', '.']);
    ((2009..=this_year).contains(&year) && !before.is_empty()).then(|| (before.to_owned(), year))
}

/// The error for a chat that cannot be read because of a line.
fn refused(tree: &ExportTree, entry: &str, line: u64, problem: String, remedy: &'static str) -> SourceError {
    let line = usize::try_from(line).unwrap_or(usize::MAX);
    SourceError::Format { path: PathBuf::from(tree.origin(entry)), line, column: 1, problem, remedy }
}

/// The error for a chat whose words for the halves of the day are not known.
fn unknown_half(tree: &ExportTree, entry: &str, line: u64, word: &str) -> SourceError {
    let problem = format!("`{word}` behind its times is not known as a half of the day");
    refused(tree, entry, line, problem, "write AM or PM instead, everywhere in the file")
}

/// The error for a chat whose dates may be of two calendars.
fn two_calendars(tree: &ExportTree, entry: &str) -> SourceError {
    let problem = "its dates fit the Persian and the Gregorian calendar, with the year first or last".to_owned();
    let remedy = "say where the year is: source.date_order (--date-order) is ymd or dmy";
    refused(tree, entry, 1, problem, remedy)
}

/// The error for a chat in which no line has a year.
fn no_year(tree: &ExportTree, entry: &str) -> SourceError {
    let remedy =
        "put the year of the first message at the end of the file's name, such as `WhatsApp Chat with Ann 2013.txt`";
    refused(tree, entry, 1, "its dates have no year".to_owned(), remedy)
}

/// Whether one of the first lines begins a message, in a form that no other format writes.
fn begins_like_chat(name: &str, head: &str) -> bool {
    let named = file_name(name) == CHAT_FILE || name.to_lowercase().contains("whatsapp");
    is_text(name)
        && head.lines().take(5).filter_map(|line| Some((line, header(line)?))).any(|(line, header)| {
            let iso = header.shape.separator == '-' && header.date.first().is_some_and(|year| *year > 31);
            // Signal's exporters write `[2019-12-24, 12:23] Name: text`, or end each line with two spaces.
            let signal =
                iso && (line.split(']').next().is_some_and(|begin| begin.contains(", ")) || line.ends_with("  "));
            // Other formats write other words in brackets.
            let bracket = header.shape.end == WhatsappHeaderEnd::Bracket && header.unknown_half.is_none() && !signal;
            named || header.shape.end == WhatsappHeaderEnd::Dash || bracket
        })
}

/// The name of the file on iOS.
const CHAT_FILE: &str = "_chat.txt";

/// The name of a file without its folder, and without the suffix of gzip.
fn file_name(entry: &str) -> &str {
    without_gzip(entry.rsplit('/').next().unwrap_or(entry))
}

fn is_text(entry: &str) -> bool {
    file_name(entry).to_lowercase().ends_with(".txt")
}

/// Chats that are read one after another.
pub(super) struct WhatsappReader {
    path: PathBuf,
    tree: ExportTree,
    zone: Zone,
    notice: String,
    chats: VecDeque<WhatsappChat>,
    open: Option<WhatsappOpenChat>,
    /// Items that were found and not returned yet.
    found: VecDeque<ChatItem>,
    total_bytes: u64,
    done_bytes: u64,
}

struct WhatsappChat {
    entry: String,
    bytes: u64,
    conversation: Arc<Conversation>,
    survey: WhatsappSurvey,
    /// The year of the first message, if its line has none.
    first_year: Option<u32>,
}

struct WhatsappOpenChat {
    chat: WhatsappChat,
    lines: StreamLines,
    ids: PositionalIds,
    /// The day of the last message.
    last: Option<Date>,
    /// The message whose lines are still being read.
    message: Option<WhatsappMessage>,
    /// Lines before the first message.
    stray: Option<WhatsappStrayLine>,
}

struct WhatsappMessage {
    line: u64,
    date: [u32; 3],
    time: [u32; 3],
    has_seconds: bool,
    order: WhatsappDateOrder,
    /// The word for the half of the day, if it is not known: then the time is not known, either.
    unknown_half: Option<String>,
    /// The text after the date and time, with the lines that follow.
    text: String,
}

struct WhatsappStrayLine {
    line: u64,
    text: String,
}

impl WhatsappReader {
    /// Opens an export and surveys its chats. No message can be from a later year than `this_year`.
    ///
    /// # Errors
    /// [`SourceError`] when it cannot be read, or holds no chat.
    pub(super) fn open(settings: &SourceSettings, this_year: u32) -> Result<Self, SourceError> {
        let path = &settings.path;
        let zone = Zone::parse(&settings.zone)?;
        let tree = ExportTree::open(path)?;
        let mut chats = VecDeque::new();
        for (entry, bytes) in chat_files(&tree)? {
            let name = chat_name(&tree, &entry);
            let mut lines = StreamLines::of_text(tree.read(&entry)?);
            let survey = WhatsappSurvey::of(&mut lines, name.as_deref(), settings.date_order, this_year)
                .map_err(|e| tree.unreadable(&entry, lines.number(), e))?;
            if let Some((line, word)) = survey.unknown_half() {
                return Err(unknown_half(&tree, &entry, line, word));
            }
            if survey.has_two_calendars() {
                return Err(two_calendars(&tree, &entry));
            }
            if survey.has_messages() {
                let name = name.unwrap_or_else(|| fallback_name(&tree, &entry));
                let mut lines = StreamLines::of_text(tree.read(&entry)?);
                let first = survey.first_year(&mut lines).map_err(|e| tree.unreadable(&entry, lines.number(), e))?;
                let (first_year, name) = match first {
                    WhatsappFirstYear::Named => (None, name),
                    WhatsappFirstYear::Is(year) => (Some(year), name),
                    WhatsappFirstYear::Unknown => {
                        let (name, year) = year_in_name(&name, this_year).ok_or_else(|| no_year(&tree, &entry))?;
                        (Some(year), name)
                    }
                };
                let conversation =
                    Conversation { workspace: None, id: name.clone(), name, privacy: ConversationPrivacy::Open };
                chats.push_back(WhatsappChat {
                    entry,
                    bytes,
                    conversation: Arc::new(conversation),
                    survey,
                    first_year,
                });
            }
        }
        if chats.is_empty() {
            return Err(SourceError::Format {
                path: path.clone(),
                line: 1,
                column: 1,
                problem: "no line begins with a date and a time, as WhatsApp's messages do".to_owned(),
                remedy: "export the chat in the app (More, Export chat) and name the text file, its folder or the archive",
            });
        }
        let total_bytes = chats.iter().map(|chat| chat.bytes).sum();
        let notice = notice(&tree, &chats, &settings.zone);
        Ok(Self {
            path: path.clone(),
            tree,
            zone,
            notice,
            chats,
            open: None,
            found: VecDeque::new(),
            total_bytes,
            done_bytes: 0,
        })
    }

    /// Reads lines until something is found; returns false at the end.
    fn read(&mut self) -> Result<bool, SourceError> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => match self.chats.pop_front() {
                Some(chat) => WhatsappOpenChat {
                    lines: StreamLines::of_text(self.tree.read(&chat.entry)?),
                    chat,
                    ids: PositionalIds::default(),
                    last: None,
                    message: None,
                    stray: None,
                },
                None => return Ok(false),
            },
        };
        let origin = self.tree.origin(&open.chat.entry);
        while self.found.is_empty() {
            let line = open.lines.next().map_err(|e| self.tree.unreadable(&open.chat.entry, open.lines.number(), e))?;
            let Some(line) = line else {
                self.found.extend(open.finish(&origin, &self.zone));
                self.done_bytes += open.chat.bytes;
                return Ok(true);
            };
            let text = String::from_utf8_lossy(&line.bytes);
            let begun = open.chat.survey.header(&text).map(|(header, order)| {
                let mut message = WhatsappMessage::begin(line.number, &header, order);
                if !has_year(&header) {
                    message.date = WhatsappDateOrder::with_year(header.date, open.year_of(header.date, order));
                }
                open.last = order.date(message.date).or(open.last);
                message
            });
            match begun {
                Some(message) => {
                    self.found.extend(open.finish(&origin, &self.zone));
                    open.message = Some(message);
                }
                None => open.go_on(line.number, &text),
            }
        }
        self.open = Some(open);
        Ok(true)
    }
}

impl ChatReader for WhatsappReader {
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
        format!("WhatsApp chats from {}", self.path.display())
    }

    fn progress(&self) -> SourceProgress {
        let open = self.open.as_ref().map_or(0, |open| open.lines.read_bytes());
        SourceProgress { done: self.done_bytes + open, total: Some(self.total_bytes), unit: "bytes" }
    }

    fn notice(&self) -> Option<String> {
        Some(self.notice.clone())
    }
}

impl WhatsappMessage {
    fn begin(line: u64, header: &WhatsappHeader<'_>, order: WhatsappDateOrder) -> Self {
        Self {
            line,
            date: header.date,
            time: header.time,
            has_seconds: header.shape.seconds,
            order,
            unknown_half: header.unknown_half.map(str::to_owned),
            text: header.rest.to_owned(),
        }
    }

    /// The local time in digits, and the moment.
    fn moment(&self, zone: &Zone) -> Option<(String, EventTime)> {
        let date = self.order.date(self.date)?;
        let [hour, minute, second] = self.time.map(|n| i8::try_from(n).ok());
        let local = date.at(hour?, minute?, second?, 0);
        let written = local.strftime(if self.has_seconds { "%Y-%m-%dT%H:%M:%S" } else { "%Y-%m-%dT%H:%M" }).to_string();
        Some((written, zone.moment(local)?))
    }
}

impl WhatsappOpenChat {
    /// The year of a line that states none: usually the year of the previous message, or the next year.
    fn year_of(&self, numbers: [u32; 3], order: WhatsappDateOrder) -> u32 {
        let Some(last) = self.last else { return self.chat.first_year.unwrap_or_default() };
        let year = u32::try_from(last.year()).unwrap_or_default();
        let same_year = order.date(WhatsappDateOrder::with_year(numbers, year));
        match same_year {
            Some(day) if is_next_year(last, day) => year + 1,
            // A message from December that arrives in January.
            Some(day) if is_next_year(day, last) && is_late(day, last) => year.saturating_sub(1),
            Some(_) => year,
            None => year + 1,
        }
    }

    /// Takes a line that does not begin a message.
    fn go_on(&mut self, number: u64, text: &str) {
        let into = match &mut self.message {
            Some(message) => &mut message.text,
            // Blank lines before the first message are ignored.
            None if text.trim().is_empty() => return,
            None => &mut self.stray.get_or_insert_with(|| WhatsappStrayLine { line: number, text: String::new() }).text,
        };
        if into.len() <= MAX_MESSAGE_BYTES {
            into.push('\n');
            into.push_str(text);
        }
    }

    /// Ends the message whose lines were read so far, and returns its items.
    fn finish(&mut self, origin: &str, zone: &Zone) -> Vec<ChatItem> {
        let mut items = Vec::new();
        if let Some(stray) = self.stray.take() {
            let reason = "it comes before the first message; remove it".to_owned();
            items.push(self.reject(origin, stray.line, reason, stray.text.trim_start()));
        }
        if let Some(message) = self.message.take() {
            let item = self.item(&message, origin, zone);
            let is_notice = matches!(item, ChatItem::Skip(SkipReason::ServiceMessage));
            items.push(item);
            if let Some((lines, words)) = is_notice.then(|| behind_notice(&message.text)).flatten() {
                let reason = "it follows a notice; if somebody said it, write the date and the name in front";
                items.push(self.reject(origin, message.line + lines, reason.to_owned(), words));
            }
        }
        items
    }

    fn item(&mut self, message: &WhatsappMessage, origin: &str, zone: &Zone) -> ChatItem {
        if let Some(word) = &message.unknown_half {
            let reason = format!("`{word}` behind its time is not known as a half of the day; write AM or PM instead");
            return self.reject(origin, message.line, reason, &message.text);
        }
        let Some((written, time)) = message.moment(zone) else {
            let reason = format!("{} is not a date; correct it", message.date.map(|n| n.to_string()).join(" "));
            return self.reject(origin, message.line, reason, &message.text);
        };
        let WhatsappSender::Person(name, said) = self.chat.survey.sender(&message.text) else {
            return ChatItem::Skip(SkipReason::ServiceMessage);
        };
        let body = body(said);
        if body == WhatsappBody::Notice {
            return ChatItem::Skip(SkipReason::ServiceMessage);
        }
        // Every message that is not a notice gets an id, whatever it is now, because earlier it may have been an
        // ordinary message.
        let id = self.ids.id(&written, &name);
        let conversation = Arc::clone(&self.chat.conversation);
        let WhatsappContent { text, edited, attachments, mentions } = match body {
            WhatsappBody::Said(said) => said,
            WhatsappBody::Deleted => return ChatItem::Deletion { conversation, id, version: None },
            WhatsappBody::Notice => return ChatItem::Skip(SkipReason::ServiceMessage),
            WhatsappBody::Waiting => return ChatItem::Skip(SkipReason::Encrypted),
            WhatsappBody::Empty => return ChatItem::Skip(SkipReason::Empty),
            WhatsappBody::Unsupported => return ChatItem::Skip(SkipReason::Unsupported),
        };
        ChatItem::Message(Box::new(ChatMessage {
            conversation,
            id,
            version: u64::from(edited),
            author: account(name),
            text,
            time,
            thread: None,
            reply_to: None,
            attachments,
            mentions: mentions.into_iter().map(account).collect(),
        }))
    }

    fn reject(&self, origin: &str, line: u64, reason: String, payload: &str) -> ChatItem {
        let letter = DeadLetter::new(format!("{origin}:{line}"), reason, payload.as_bytes());
        ChatItem::Reject { conversation: Some(Arc::clone(&self.chat.conversation)), letter }
    }
}

fn account(name: String) -> Account {
    let bot = name == "Meta AI";
    Account { id: name.clone(), name, handle: None, bot }
}

/// The files that may be chats, with their sizes.
fn chat_files(tree: &ExportTree) -> Result<Vec<(String, u64)>, SourceError> {
    let files = || tree.entries().iter().map(|entry| (entry.name.clone(), entry.bytes));
    if tree.is_file() {
        return Ok(files().collect());
    }
    let named: Vec<_> = files()
        .filter(|(entry, _)| {
            let name = file_name(entry).to_lowercase();
            name == CHAT_FILE || (is_text(&name) && name.contains("whatsapp"))
        })
        .collect();
    if !named.is_empty() {
        return Ok(named);
    }
    // Renamed exports: text files that begin like one. Attached text files may be next to them.
    let mut begun = Vec::new();
    for (entry, bytes) in files().filter(|(entry, _)| is_text(entry)) {
        let mut lines = StreamLines::new(tree.read(&entry)?);
        for _ in 0..5 {
            let line = lines.next().map_err(|e| tree.unreadable(&entry, lines.number(), e))?;
            let Some(line) = line else { break };
            let text = String::from_utf8_lossy(&line.bytes);
            if header(&text).is_some_and(|header| header.unknown_half.is_none() || header.rest.contains(": ")) {
                begun.push((entry, bytes));
                break;
            }
        }
    }
    Ok(begun)
}

/// The chat's name, if the app wrote it into the name of the file, its folder or the archive.
fn chat_name(tree: &ExportTree, entry: &str) -> Option<String> {
    let folder = entry.rsplit_once('/').map(|(folder, _)| file_name(folder));
    // `_chat.txt` and `.` are named after the folder that they are in.
    let path = std::path::absolute(tree.path()).unwrap_or_else(|_| tree.path().to_owned());
    let named = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let own = named(&path);
    let parent = path.parent().filter(|_| tree.is_file() && file_name(entry) == CHAT_FILE).and_then(named);
    [Some(file_name(entry)), folder, own.as_deref(), parent.as_deref()].into_iter().flatten().find_map(|name| {
        let name = without_ending(name);
        let lower = name.to_lowercase();
        // In rare scripts the lower-case form has another length in bytes, so characters are counted.
        let known = PHRASES.file_names.iter().find(|known| lower.starts_with(known.as_str()))?;
        let rest: String = name.chars().skip(known.chars().count()).collect();
        Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty())
    })
}

/// The name for a chat whose file does not state one.
fn fallback_name(tree: &ExportTree, entry: &str) -> String {
    let path = tree.path();
    let parent = || path.parent().and_then(|p| p.file_name()).map(|n| n.to_string_lossy().into_owned());
    let own = || path.file_name().map(|n| without_ending(&n.to_string_lossy()).to_owned());
    let name = file_name(entry);
    let name = if name != CHAT_FILE {
        Some(without_ending(name).to_owned())
    } else if tree.is_file() {
        parent()
    } else {
        entry.rsplit_once('/').map(|(folder, _)| file_name(folder).to_owned()).or_else(own)
    };
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "chat".to_owned())
}

/// A file's name without `.txt`, `.zip`, the suffix of gzip, and the ` (1)` of a second download.
fn without_ending(name: &str) -> &str {
    let name = without_gzip(name);
    let lower = name.to_lowercase();
    let name = if lower.ends_with(".txt") || lower.ends_with(".zip") {
        name.get(..name.len() - 4).unwrap_or(name)
    } else {
        name
    };
    match name.strip_suffix(')').and_then(|n| n.rsplit_once(" (")) {
        Some((before, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => before,
        _ => name,
    }
}

/// The notice about the order of the dates and the zone, stated once for all chats that agree.
fn notice(tree: &ExportTree, chats: &VecDeque<WhatsappChat>, zone: &str) -> String {
    let mut said: Vec<(String, String, usize)> = Vec::new();
    for chat in chats {
        let Some(notice) = chat.survey.notice() else { continue };
        match said.iter_mut().find(|(known, ..)| *known == notice) {
            Some((_, _, others)) => *others += 1,
            None => said.push((notice, tree.origin(&chat.entry), 0)),
        }
    }
    let mut lines: Vec<String> = said
        .into_iter()
        .map(|(notice, origin, others)| match others {
            0 => format!("{origin}: {notice}"),
            _ => format!("{origin} and {others} more: {notice}"),
        })
        .collect();
    lines.push(zone_assumed(zone));
    lines.join("; ")
}
