//! Reads the pages of Telegram Desktop's HTML export.
//!
//! In: `messages.html`, `messages2.html` and so on, of one chat or of several folders. Out: the messages in order. The
//! pages hold less than the JSON: accounts and chats have names but no ids, edits are not marked, topics are not
//! distinguished, and the zone is the winter zone all year. So a JSON export of the same chat produces different turns;
//! use only one of the forms. One page is held at a time; Telegram Desktop begins another page after 1,000 messages.

use std::{collections::VecDeque, io::Read, sync::Arc};

use jiff::{
    civil::{Date, DateTime, Time},
    tz::Offset,
};

use super::message_text::forwarded;
use crate::{
    SourceError,
    chat::{
        Account, ChatItem, ChatMessage, ChatReader, Conversation, ConversationPrivacy, ExportTree, SkipReason,
        html_to_text, resolve_entities,
    },
    turn_source::SourceProgress,
    zone::{Zone, zone_notice},
};
use types::model::{Attachment, DeadLetter, EventTime};

/// The longest page that is read.
const MAX_PAGE_BYTES: u64 = 64 << 20;
/// The beginning of a message.
const MESSAGE: &str = "<div class=\"message ";

/// A reader of the pages.
pub(super) struct TelegramHtmlReader {
    tree: ExportTree,
    /// The pages that remain, the next one last.
    remaining: Vec<String>,
    chat: Option<TelegramPagedChat>,
    items: VecDeque<ChatItem>,
    zone: Zone,
    notice: Option<String>,
    done_bytes: u64,
    total_bytes: u64,
}

/// The chat of the pages in one folder.
struct TelegramPagedChat {
    folder: String,
    conversation: Arc<Conversation>,
    /// The author of the previous message, because the next message may leave its author out.
    author: Option<Account>,
}

impl TelegramHtmlReader {
    /// A reader of these pages.
    ///
    /// # Errors
    /// [`SourceError`] when the first one cannot be read.
    pub(super) fn open(tree: ExportTree, mut pages: Vec<String>, zone: &str) -> Result<Self, SourceError> {
        let total_bytes = tree.entries().iter().filter(|e| pages.contains(&e.name)).map(|e| e.bytes).sum();
        pages.sort_by_key(|page| std::cmp::Reverse(place_of(page)));
        let zone_setting = zone;
        let zone = Zone::parse(zone)?;
        let (items, notice) = (VecDeque::new(), None);
        let mut reader = Self { tree, remaining: pages, chat: None, items, zone, notice, done_bytes: 0, total_bytes };
        let has_zones = reader.read_page()?;
        if has_zones == Some(false) {
            reader.notice = Some(zone_notice(reader.tree.path(), zone_setting));
        }
        Ok(reader)
    }

    /// Reads the next page; `None` at the end. True if its times state their zone.
    fn read_page(&mut self) -> Result<Option<bool>, SourceError> {
        let Some(name) = self.remaining.pop() else { return Ok(None) };
        let mut bytes = Vec::new();
        let read = self.tree.read(&name)?.take(MAX_PAGE_BYTES).read_to_end(&mut bytes);
        read.map_err(|e| self.tree.unreadable(&name, 0, e))?;
        self.done_bytes += bytes.len() as u64;
        let page = String::from_utf8_lossy(&bytes);
        let (folder, _) = place_of(&name);
        if self.chat.as_ref().is_none_or(|chat| chat.folder != folder) {
            self.chat = Some(TelegramPagedChat {
                folder: folder.clone(),
                conversation: conversation(&page, &folder),
                author: None,
            });
        }
        let Some(chat) = self.chat.as_mut() else { return Ok(None) };
        let origin = self.tree.origin(&name);
        let mut line = 1;
        let mut before = 0;
        let mut has_zones = true;
        for (at, _) in page.match_indices(MESSAGE) {
            line += newlines(page.get(before..at).unwrap_or_default());
            before = at;
            let rest = page.get(at + MESSAGE.len()..).unwrap_or_default();
            let block = rest.split(MESSAGE).next().unwrap_or_default();
            match chat.item(block, &self.zone, &mut has_zones) {
                Ok(item) => self.items.extend(item),
                Err(reason) => self.items.push_back(ChatItem::Reject {
                    conversation: Some(Arc::clone(&chat.conversation)),
                    letter: DeadLetter::new(format!("{origin}:{line}"), reason, block.as_bytes()),
                }),
            }
        }
        Ok(Some(has_zones))
    }
}

impl ChatReader for TelegramHtmlReader {
    fn next(&mut self) -> Result<Option<ChatItem>, SourceError> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Ok(Some(item));
            }
            if self.read_page()?.is_none() {
                return Ok(None);
            }
        }
    }

    fn describe(&self) -> String {
        format!("Telegram from {}", self.tree.path().display())
    }

    fn progress(&self) -> SourceProgress {
        SourceProgress { done: self.done_bytes, total: Some(self.total_bytes), unit: "bytes" }
    }

    fn notice(&self) -> Option<String> {
        self.notice.clone()
    }
}

impl TelegramPagedChat {
    /// The item of a message's HTML, which begins after [`MESSAGE`]; `None` for the line that separates two days.
    fn item(&mut self, block: &str, zone: &Zone, has_zones: &mut bool) -> Result<Option<ChatItem>, String> {
        let id = attribute(block, "id").unwrap_or_default();
        let id = id.strip_prefix("message").unwrap_or_default().to_owned();
        if !block.starts_with("default") {
            // Days have negative ids; notices have ids like messages.
            return Ok((!id.starts_with('-')).then_some(ChatItem::Skip(SkipReason::ServiceMessage)));
        }
        if id.parse::<i64>().is_err() {
            return Err("id: not a number; export the chat again".to_owned());
        }
        let stated = element(block, "pull_right date details").and_then(|date| attribute(date.tag, "title"));
        let stated = stated.ok_or("date: missing; export the chat again")?;
        let (time, has_zone) = time(&stated, zone).ok_or_else(|| format!("date: {stated:?} is not a time"))?;
        *has_zones &= has_zone;
        let (own, forward) =
            block.split_once("<div class=\"forwarded body\"").map_or((block, None), |(own, f)| (own, Some(f)));
        if let Some(name) = element(own, "from_name") {
            // In "Ann via @gif", `@gif` is the bot that she used.
            let name = html_to_text(name.inner);
            let name = name.split(" via @").next().unwrap_or(&name).to_owned();
            self.author = Some(Account { id: name.clone(), name, handle: None, bot: false });
        }
        let author = self.author.clone().filter(|author| !author.name.is_empty());
        let author = author.ok_or("from_name: missing; export the chat again")?;
        if block.contains("media_call") {
            return Ok(Some(ChatItem::Skip(SkipReason::ServiceMessage)));
        }
        let body = forward.unwrap_or(own);
        let words = element(body, "text").map(|text| html_to_text(text.inner)).unwrap_or_default();
        let mut attachments: Vec<Attachment> = attachment(body).into_iter().collect();
        let text = match forward {
            Some(forward) => {
                let origin = element(forward, "from_name");
                let origin = origin.map(|o| html_to_text(o.inner.split("<span").next().unwrap_or_default()));
                forwarded(origin.as_deref().filter(|origin| !origin.is_empty()), &words, &mut attachments)
            }
            None => words,
        };
        if text.is_empty() && attachments.is_empty() {
            return Ok(Some(ChatItem::Skip(SkipReason::Empty)));
        }
        let reply_to = element(block, "reply_to details").and_then(|reply| {
            let (_, target) = reply.inner.split_once("#go_to_message")?;
            target.split('"').next().filter(|id| id.parse::<i64>().is_ok()).map(str::to_owned)
        });
        Ok(Some(ChatItem::Message(Box::new(ChatMessage {
            conversation: Arc::clone(&self.conversation),
            id,
            version: 0,
            author,
            text,
            time,
            thread: None,
            reply_to,
            attachments,
            mentions: Vec::new(),
        }))))
    }
}

/// The chat of a page. In an account's export the pages do not say what kind of chat it is.
fn conversation(page: &str, folder: &str) -> Arc<Conversation> {
    let header = page.split("<div class=\"page_header\"").nth(1).unwrap_or_default();
    let name = element(header, "text bold").map(|title| html_to_text(title.inner)).unwrap_or_default();
    let name = if name.is_empty() { "Telegram".to_owned() } else { name };
    let is_of_account = format!("/{folder}").contains("/chats/chat_");
    let privacy = if is_of_account { ConversationPrivacy::Direct } else { ConversationPrivacy::Open };
    Arc::new(Conversation { workspace: None, id: name.clone(), name, privacy })
}

/// What a message shares; Telegram Desktop writes one thing per message.
fn attachment(body: &str) -> Option<Attachment> {
    let (_, media) = body.split_once("<div class=\"media_wrap")?;
    let of = |class: &str| element(media, class).map(|part| html_to_text(part.inner)).filter(|text| !text.is_empty());
    let kinds = [
        ("photo_wrap", "image"),
        ("video_file_wrap", "video"),
        ("animated_wrap", "animation"),
        ("sticker_wrap", "sticker"),
        ("media_poll", "poll"),
        ("media_giveaway", "giveaway"),
        ("media_voice_message", "voice message"),
        ("media_audio_file", "audio"),
        ("media_video", "video"),
        ("media_photo", "image"),
        ("media_contact", "contact"),
        ("media_location", "location"),
        ("media_live_location", "location"),
        ("media_venue", "location"),
        ("media_game", "game"),
        ("media_invoice", "invoice"),
    ];
    let class = media.split("class=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    let kind = kinds.iter().find(|(name, _)| class.split(' ').any(|c| c == *name)).map_or("file", |(_, kind)| kind);
    let caption = if kind == "poll" {
        let answers =
            media.match_indices("<div class=\"answer\"").filter_map(|(at, _)| element(media.get(at..)?, "answer"));
        let answers = answers.map(|a| html_to_text(a.inner.split("<span").next().unwrap_or_default()));
        let answers: Vec<String> = answers.map(|a| a.trim_start_matches("- ").to_owned()).collect();
        of("question bold").map(|question| format!("{question} ({})", answers.join(" / ")))
    } else {
        let parts = [of("title bold"), of("status details").filter(|_| ["contact", "location"].contains(&kind))];
        Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", ")).filter(|caption| !caption.is_empty())
    };
    let tag = media.split("<a ").nth(1).and_then(|rest| rest.split('>').next()).unwrap_or_default();
    Some(Attachment {
        kind: Some(kind.to_owned()),
        caption: Some(caption.unwrap_or_else(|| kind.to_owned())),
        url: attribute(tag, "href").filter(|href| !href.starts_with('#')),
    })
}

/// An element of a page.
struct TelegramHtmlElement<'a> {
    /// Its opening tag.
    tag: &'a str,
    /// The text between its tags.
    inner: &'a str,
}

/// The first `div` with exactly this class.
fn element<'a>(html: &'a str, class: &str) -> Option<TelegramHtmlElement<'a>> {
    let start = html.find(&format!("<div class=\"{class}\""))?;
    let html = html.get(start..)?;
    let (tag, rest) = html.split_at_checked(html.find('>')? + 1)?;
    let mut depth = 1u32;
    let mut at = 0;
    while let Some(found) = rest.get(at..)?.find('<') {
        at += found;
        let here = rest.get(at..)?;
        if here.starts_with("</div") {
            depth -= 1;
        } else if here.starts_with("<div") {
            depth += 1;
        }
        if depth == 0 {
            return Some(TelegramHtmlElement { tag, inner: rest.get(..at)? });
        }
        at += 1;
    }
    Some(TelegramHtmlElement { tag, inner: rest })
}

/// The value of a tag's attribute. The text must begin with the tag.
fn attribute(tag: &str, name: &str) -> Option<String> {
    let tag = tag.split('>').next()?;
    let (_, rest) = tag.split_once(&format!("{name}=\""))?;
    rest.split('"').next().map(resolve_entities)
}

/// A time such as `23.08.2023 13:11:23 UTC-08:00`, and whether it states its zone; times from older versions of
/// Telegram Desktop do not.
fn time(stated: &str, zone: &Zone) -> Option<(EventTime, bool)> {
    let mut words = stated.split_whitespace();
    let mut date = words.next()?.split('.').map(str::parse::<i16>);
    let (day, month, year) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let date = Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    let mut clock = words.next()?.split(':').map(str::parse::<i8>);
    let (hour, minute) = (clock.next()?.ok()?, clock.next()?.ok()?);
    let time = Time::new(hour, minute, clock.next().and_then(Result::ok).unwrap_or_default(), 0).ok()?;
    let local = DateTime::from_parts(date, time);
    let Some(offset) = words.next().and_then(|word| word.strip_prefix("UTC")) else {
        return Some((zone.moment(local)?, false));
    };
    let seconds = offset_seconds(offset)?;
    let moment = Offset::from_seconds(seconds).ok()?.to_timestamp(local).ok()?;
    Some((EventTime::new(moment.as_millisecond(), seconds).ok()?, true))
}

/// The seconds of `+02:00`, `-08:00` or nothing.
fn offset_seconds(text: &str) -> Option<i32> {
    if text.is_empty() {
        return Some(0);
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = text.trim_start_matches(['+', '-']).split_once(':')?;
    let hours: i32 = hours.parse::<u8>().ok()?.into();
    let minutes: i32 = minutes.parse::<u8>().ok()?.into();
    Some(sign * (hours * 3_600 + minutes * 60))
}

/// A page's folder and number, for sorting: `messages2.html` follows `messages.html`.
fn place_of(name: &str) -> (String, u64) {
    let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
    let digits: String = file.chars().filter(char::is_ascii_digit).collect();
    (folder.to_owned(), digits.parse().unwrap_or(1))
}

fn newlines(text: &str) -> u64 {
    text.bytes().map(|b| u64::from(b == b'\n')).sum()
}
