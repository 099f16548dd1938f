//! Reads a message of Zulip's export, or of its API.
//!
//! In: a row of `zerver_message`, or an element of the API's `messages`. Out: its parts under the same names, whichever
//! version of Zulip wrote it, and its words with what was shared.

use std::{collections::BTreeSet, sync::LazyLock};

use regex::{Captures, Regex};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::realm::ZulipRealm;
use crate::chat::{Account, LIST, NUMBER, RecordForm, TEXT, TRUTH, html_to_text, shared_file};
use types::model::Attachment;

/// The fields of a message.
pub(super) const FORM: RecordForm = RecordForm {
    needed: &[
        ("id", NUMBER),
        ("sender", NUMBER),
        ("sender_id", NUMBER),
        ("sender_full_name", TEXT),
        ("sender_name", TEXT),
        ("recipient", NUMBER),
        ("stream_id", NUMBER),
        ("subject", TEXT),
        ("content", TEXT),
        ("rendered_content", TEXT),
        ("date_sent", NUMBER),
        ("pub_date", NUMBER),
        ("timestamp", NUMBER),
    ],
    other: &[
        ("sender_email", TEXT),
        ("recipient_name", TEXT | LIST),
        ("type", TEXT | NUMBER),
        ("is_channel_message", TRUTH),
        ("display_recipient", TEXT | LIST),
        ("content_type", TEXT),
        ("last_edit_time", NUMBER),
        ("last_moved_time", NUMBER),
        ("last_edit_timestamp", NUMBER),
        ("last_moved_timestamp", NUMBER),
        ("edit_history", TEXT | LIST),
    ],
    known: &[
        "edit_history",
        "display_recipient",
        "recipient_name",
        "realm",
        "realm_id",
        "sending_client",
        "client",
        "rendered_content_version",
        "search_tsvector",
        "has_attachment",
        "has_image",
        "has_link",
        "is_me_message",
        "sender_realm_str",
        "sender_short_name",
        "avatar_url",
        "flags",
        "reactions",
        "topic_links",
        "submessages",
        "subject_links",
        "recipient_id",
        "sender_email",
        "content_type",
        "match_content",
        "match_subject",
    ],
    remedy: "write it as Zulip does",
};

/// When a message was sent; nothing else is read until the messages are in order.
#[derive(Deserialize)]
pub(super) struct ZulipSentTime {
    date_sent: Option<f64>,
    /// The name of `date_sent` until 2019.
    pub_date: Option<f64>,
    /// Its name in the API.
    timestamp: Option<f64>,
}

impl ZulipSentTime {
    /// Milliseconds since 1970.
    pub(super) fn unix_ms(&self) -> Option<i64> {
        self.date_sent.or(self.pub_date).or(self.timestamp).and_then(milliseconds)
    }
}

/// A message.
#[derive(Deserialize)]
pub(super) struct ZulipMessage {
    pub(super) id: i64,
    sender: Option<i64>,
    sender_id: Option<i64>,
    sender_full_name: Option<String>,
    sender_name: Option<String>,
    sender_email: Option<String>,
    pub(super) recipient: Option<i64>,
    recipient_name: Option<Value>,
    pub(super) stream_id: Option<i64>,
    /// `stream` or `private` in the API, a number in an export.
    #[serde(rename = "type")]
    kind: Option<Value>,
    is_channel_message: Option<bool>,
    display_recipient: Option<Value>,
    subject: Option<String>,
    content: Option<String>,
    rendered_content: Option<String>,
    content_type: Option<String>,
    last_edit_time: Option<f64>,
    last_moved_time: Option<f64>,
    last_edit_timestamp: Option<f64>,
    last_moved_timestamp: Option<f64>,
    edit_history: Option<Value>,
}

/// The fields that identify a message's conversation.
const PLACE: [&str; 9] = [
    "sender",
    "sender_id",
    "recipient",
    "recipient_name",
    "stream_id",
    "type",
    "is_channel_message",
    "display_recipient",
    "subject",
];

/// The type of a notice that a topic was resolved. It is written under the account of the person who resolved it.
const TOPIC_RESOLVED: u64 = 2;

/// What a message says.
#[derive(Debug, Default)]
pub(super) struct ZulipContent {
    pub(super) text: String,
    pub(super) attachments: Vec<Attachment>,
    pub(super) mentions: Vec<Account>,
}

static UPLOAD_LINK: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?s)<a\s[^>]*href="([^"]*/user_uploads/[^"]+)"[^>]*>(.*?)</a>"#).ok());
static PREVIEW: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?s)<div class="message_inline_(?:image|ref|video)[^"]*">.*?</div>"#).ok());
static EMOJI_IMAGE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#"<img\s[^>]*alt="(:[^"]+:)"[^>]*>"#).ok());
static HTML_MENTION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"<span\s[^>]*class="user-mention[^"]*"[^>]*data-user-id="(\d+)"[^>]*>@?([^<]+)</span>"#).ok()
});
static MARKDOWN_UPLOAD: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"!?\[([^\]]*)\]\(([^)\s]*/user_uploads/[^)\s]+)\)").ok());
static MARKDOWN_MENTION: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"@_?\*\*([^*|]+)(?:\|(\d+))?\*\*").ok());
static MARKDOWN_CHANNEL: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"#\*\*([^*]+)\*\*").ok());

impl ZulipMessage {
    /// Only the fields of an unreadable record that identify its conversation.
    pub(super) fn placed(record: &Value) -> Option<Self> {
        let kept = PLACE.into_iter().filter_map(|key| Some((key.to_owned(), record.get(key)?.clone())));
        // A channel is identified without the sender, too.
        let kept = kept.filter(|(key, value)| !key.starts_with("sender") || value.is_i64());
        let place: Map<String, Value> = kept.chain([("id".to_owned(), Value::from(0))]).collect();
        serde_json::from_value(Value::Object(place)).ok()
    }

    /// The id of its author.
    pub(super) fn sender(&self) -> Option<i64> {
        self.sender.or(self.sender_id)
    }

    /// The author as the message itself names it; `None` if it has only an id.
    pub(super) fn named_sender(&self) -> Option<Account> {
        let name = self.sender_full_name.as_deref().or(self.sender_name.as_deref())?;
        let name = without_address(name);
        let id = self.sender().map(|id| id.to_string()).or_else(|| self.sender_email.clone());
        (!name.is_empty()).then(|| Account {
            id: id.unwrap_or_else(|| name.to_owned()),
            name: name.to_owned(),
            handle: None,
            bot: self.sender_handle().is_some_and(|handle| handle.ends_with("-bot")),
        })
    }

    /// Whether Zulip itself wrote it.
    pub(super) fn is_notice(&self) -> bool {
        self.kind.as_ref().and_then(Value::as_u64) == Some(TOPIC_RESOLVED)
            || matches!(self.sender_handle(), Some("notification-bot" | "welcome-bot"))
    }

    fn sender_handle(&self) -> Option<&str> {
        let named = || Some(self.sender_name.as_deref()?.rsplit_once('<')?.1);
        self.sender_email.as_deref().or_else(named).and_then(|email| email.split('@').next())
    }

    /// Whether it was written in a channel; direct messages have no topic.
    pub(super) fn is_in_channel(&self) -> bool {
        match (self.is_channel_message, self.kind.as_ref().and_then(Value::as_str)) {
            (Some(is), _) => is,
            (None, Some("stream" | "channel")) => true,
            (None, Some("private" | "direct")) => false,
            _ => self.stream_id.is_some() || self.searched_channel().is_some() || self.topic().is_some(),
        }
    }

    /// Its topic; `None` for a direct message and for a channel's unnamed topic.
    pub(super) fn topic(&self) -> Option<String> {
        // Since 2025, direct messages have the topic U+0007.
        let topic = self.subject.as_deref()?.trim_matches(|c: char| c.is_control() || c.is_whitespace());
        (!topic.is_empty()).then(|| topic.to_owned())
    }

    /// The name of the channel, or of the people, that it was sent to, if it states one.
    pub(super) fn recipient_name(&self) -> Option<String> {
        let text = |value: &Value| value.as_str().map(str::trim).filter(|n| !n.is_empty()).map(str::to_owned);
        let of_people = || Some(names_of(self.recipient_name.as_ref()?.as_str()?).join(", "));
        let shown = self.display_recipient.as_ref().and_then(text);
        shown.or_else(|| self.searched_channel().map(str::to_owned)).or_else(|| of_people().filter(|n| !n.is_empty()))
    }

    /// The channel as `export_search` names it, without its mark.
    fn searched_channel(&self) -> Option<&str> {
        self.recipient_name.as_ref()?.as_str()?.trim().strip_prefix('#').filter(|name| !name.is_empty())
    }

    /// The members of a direct conversation, with ids and names, as the API lists them.
    pub(super) fn members(&self) -> Option<(BTreeSet<i64>, Vec<String>)> {
        let people = self.display_recipient.as_ref()?.as_array()?;
        let mut members: Vec<(i64, String)> = people
            .iter()
            .filter_map(|p| {
                let name = p.get("full_name").or_else(|| p.get("email")).and_then(Value::as_str).unwrap_or_default();
                Some((p.get("id").or_else(|| p.get("user_id"))?.as_i64()?, name.to_owned()))
            })
            .collect();
        members.sort();
        members.dedup_by_key(|m| m.0);
        let (ids, names): (Vec<i64>, Vec<String>) = members.into_iter().unzip();
        (!ids.is_empty()).then(|| (ids.into_iter().collect(), names))
    }

    /// When it was last edited or moved, in milliseconds since 1970; 0 for never.
    pub(super) fn version(&self) -> u64 {
        let times = [self.last_edit_time, self.last_moved_time, self.last_edit_timestamp, self.last_moved_timestamp];
        let last = times.into_iter().flatten().filter_map(milliseconds).max();
        last.or_else(|| self.history()).and_then(|ms| u64::try_from(ms).ok()).unwrap_or(0)
    }

    /// The last entry of the history of edits, which exports keep as JSON in a string.
    fn history(&self) -> Option<i64> {
        let parsed = match self.edit_history.as_ref()? {
            Value::String(text) => serde_json::from_str(text).ok()?,
            other => other.clone(),
        };
        let times = parsed.as_array()?.iter().filter_map(|edit| edit.get("timestamp")?.as_f64());
        times.filter_map(milliseconds).max()
    }

    /// Whether its words were deleted but the message was left. An export has Markdown, and the API may have HTML.
    pub(super) fn is_emptied(&self, words: &ZulipContent) -> bool {
        const DELETED: &str = "(deleted)";
        let is_deleted = self.content.as_deref().map(str::trim) == Some(DELETED) || words.text == DELETED;
        is_deleted && words.attachments.is_empty() && self.version() > 0
    }

    /// Its words; `None` if it has no content. Markdown may name people without their ids.
    pub(super) fn words(&self, realm: &ZulipRealm) -> Option<ZulipContent> {
        let filled = |text: &Option<String>| text.clone().filter(|t| !t.trim().is_empty());
        if let Some(html) = filled(&self.rendered_content) {
            return Some(from_html(&html));
        }
        let content = self.content.as_deref()?;
        let is_html = match self.content_type.as_deref() {
            Some(kind) => kind == "text/html",
            None => content.starts_with('<') && content.trim_end().ends_with('>'),
        };
        Some(if is_html { from_html(content) } else { from_markdown(content, realm) })
    }
}

/// The names in a list of people with their addresses: `Ann Lee <ann@a.example>, "Day, Bo" <bo@a.example>`.
fn names_of(list: &str) -> Vec<String> {
    let people = list.split_inclusive('>').map(|person| person.trim().trim_start_matches(',').trim());
    let names = people.filter(|person| !person.is_empty()).map(|person| without_address(person).to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

/// A name without the address after it, and without the quotes that some names need.
fn without_address(person: &str) -> &str {
    let name = person.rsplit_once('<').map_or(person, |(name, _)| name).trim();
    name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name)
}

fn milliseconds(seconds: f64) -> Option<i64> {
    // 2^53: beyond it, and for NaN, the result would be meaningless.
    let ms = (seconds * 1_000.0).round();
    #[allow(clippy::cast_possible_truncation)]
    (ms.abs() < 9_007_199_254_740_992.0).then_some(ms as i64)
}

fn from_html(html: &str) -> ZulipContent {
    let mut words = ZulipContent::default();
    let mut html = html.to_owned();
    if let Some(pattern) = &*HTML_MENTION {
        for found in pattern.captures_iter(&html) {
            let name = html_to_text(found.get(2).map_or("", |m| m.as_str()));
            mention(&mut words, found.get(1).map_or("", |m| m.as_str()), name);
        }
    }
    if let Some(pattern) = &*UPLOAD_LINK {
        let shared = pattern.replace_all(&html, |found: &Captures<'_>| {
            let label = html_to_text(found.get(2).map_or("", |m| m.as_str()));
            upload(&mut words, found.get(1).map_or("", |m| m.as_str()), &label);
            String::new()
        });
        html = shared.into_owned();
    }
    if let Some(pattern) = &*PREVIEW {
        html = pattern.replace_all(&html, "").into_owned();
    }
    if let Some(pattern) = &*EMOJI_IMAGE {
        html = pattern.replace_all(&html, "$1").into_owned();
    }
    words.text = html_to_text(&html);
    words
}

fn from_markdown(content: &str, realm: &ZulipRealm) -> ZulipContent {
    let mut words = ZulipContent::default();
    let mut text = content.to_owned();
    if let Some(pattern) = &*MARKDOWN_UPLOAD {
        let shared = pattern.replace_all(&text, |found: &Captures<'_>| {
            upload(&mut words, found.get(2).map_or("", |m| m.as_str()), found.get(1).map_or("", |m| m.as_str()));
            String::new()
        });
        text = shared.into_owned();
    }
    if let Some(pattern) = &*MARKDOWN_MENTION {
        let named = pattern.replace_all(&text, |found: &Captures<'_>| {
            let name = found.get(1).map_or("", |m| m.as_str());
            // Without an id, a name that nobody has or that several people have does not identify an account.
            let id = found.get(2).map(|id| id.as_str().to_owned());
            if let Some(id) = id.or_else(|| realm.named(name).map(|account| account.id.clone())) {
                mention(&mut words, &id, name.to_owned());
            }
            format!("@{name}")
        });
        text = named.into_owned();
    }
    if let Some(pattern) = &*MARKDOWN_CHANNEL {
        text = pattern.replace_all(&text, "#$1").into_owned();
    }
    words.text = text.trim().to_owned();
    words
}

/// Adds a file once, however often the message shows it.
fn upload(words: &mut ZulipContent, url: &str, label: &str) {
    let known = words.attachments.iter().any(|a| a.url.as_deref().is_some_and(|known| known == url));
    if !known {
        let mut file = shared_file(url, Some(url.to_owned()));
        if !label.trim().is_empty() {
            file.caption = Some(label.trim().to_owned());
        }
        words.attachments.push(file);
    }
}

fn mention(words: &mut ZulipContent, id: &str, name: String) {
    let account = Account { id: id.to_owned(), name, handle: None, bot: false };
    if !account.name.is_empty() && !words.mentions.contains(&account) {
        words.mentions.push(account);
    }
}
