//! Reads one message of Slack.
//!
//! In: the JSON of a message, its conversation, and the channels and users of the export. Out: a message, a deletion,
//! or a skip. Times are read from the text of `ts`.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::{
    blocks::{SlackBlockText, block_words},
    directory::{SlackDirectory, SlackProfile},
    lenient_fields,
    mrkdwn::{SlackNames, SlackRenderedText, render},
};
use crate::{
    chat::{
        Account, ChatItem, ChatMessage, Conversation, LIST, NUMBER, OBJECT, RecordForm, SkipReason, TEXT, TRUTH,
        UnreadCounts, media_kind,
    },
    zone::Zone,
};
use types::model::Attachment;

/// The kinds of values that integrations may write instead of a text.
const WRITTEN: u8 = TEXT | NUMBER | TRUTH;

/// The fields of a message.
pub(super) const FORM: RecordForm = RecordForm {
    needed: &[
        ("type", TEXT),
        ("subtype", TEXT),
        ("ts", TEXT),
        ("deleted_ts", TEXT),
        ("thread_ts", TEXT),
        ("user", TEXT),
        ("bot_id", TEXT),
        ("text", TEXT),
        ("message", OBJECT),
        ("message/ts", TEXT),
        ("message/user", TEXT),
        ("message/text", TEXT),
    ],
    other: &[
        ("username", WRITTEN),
        ("blocks", LIST),
        ("blocks[]", OBJECT),
        ("attachments", LIST),
        ("attachments[]", OBJECT),
        ("attachments[]/pretext", WRITTEN),
        ("attachments[]/title", WRITTEN),
        ("attachments[]/text", WRITTEN),
        ("attachments[]/fallback", WRITTEN),
        ("attachments[]/fields", LIST),
        ("attachments[]/blocks", LIST),
        ("files", LIST),
        ("files[]", OBJECT),
        ("files[]/name", WRITTEN),
        ("files[]/title", WRITTEN),
        ("edited", OBJECT),
        ("user_profile", OBJECT),
        ("bot_profile", OBJECT),
        ("comment", OBJECT),
        ("reply_count", NUMBER),
        ("replies", LIST),
        ("attachments[]/author_name", WRITTEN),
        ("attachments[]/fields[]/title", WRITTEN),
        ("attachments[]/fields[]/value", WRITTEN),
        ("attachments[]/blocks[]", OBJECT),
        ("file", OBJECT),
        ("file/name", WRITTEN),
        ("file/title", WRITTEN),
        ("file/initial_comment", OBJECT),
        ("files[]/initial_comment", OBJECT),
        ("files[]/alt_txt", WRITTEN),
        ("comment/comment", WRITTEN),
    ],
    known: &[
        "message",
        "replies",
        "user_profile",
        "bot_profile",
        "icons",
        "reactions",
        "pinned_to",
        "pinned_info",
        "team",
        "user_team",
        "source_team",
        "latest_reply",
        "reply_users",
        "reply_users_count",
        "last_read",
        "subscribed",
        "parent_user_id",
        "channel",
        "channel_type",
        "event_ts",
        "hidden",
        "previous_message",
        "root",
        "inviter",
        "topic",
        "purpose",
        "old_name",
        "name",
        "item",
        "metadata",
        "permalink",
        "room",
        "slackdump_thread_replies",
        "bot_link",
        "members",
        "assistant_app_thread",
        "edited/user",
        "comment/user",
        "comment/created",
        "attachments[]/mrkdwn_in",
        "attachments[]/actions",
        "attachments[]/service_name",
        "attachments[]/service_icon",
        "attachments[]/author_icon",
        "attachments[]/author_link",
        "attachments[]/author_subname",
        "attachments[]/title_link",
        "attachments[]/image_url",
        "attachments[]/thumb_url",
        "attachments[]/channel_name",
        "attachments[]/channel_team",
        "attachments[]/msg_subtype",
        "attachments[]/message_blocks",
        "attachments[]/files",
        "attachments[]/author_name",
        "attachments[]/video_html",
        "attachments[]/footer_icon",
        "**/block_id",
        "**/user_id",
        "**/channel_id",
        "**/usergroup_id",
        "**/emoji",
        "**/name",
        "**/username",
        "**/user",
        "**/filetype",
        "**/pretty_type",
        "**/permalink",
        "**/permalink_public",
        "**/url_private",
        "**/url_private_download",
        "**/channels",
        "**/groups",
        "**/ims",
        "**/shares",
        "**/display_as_bot",
        "**/external_type",
        "**/user_team",
        "**/team",
        "**/file_access",
        "**/media_display_type",
        "**/skin_tone",
        "**/range",
        "**/action_id",
        "**/value",
        "**/accessory",
        "**/border",
        "**/verbatim",
        "**/file",
    ],
    remedy: "the export has another form here; export it again",
};

/// A message as it is in the export. Every field may be missing or null; fields that integrations fill may be of any
/// type.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct SlackMessage {
    #[serde(rename = "type")]
    kind: Option<String>,
    subtype: Option<String>,
    pub(super) ts: Option<String>,
    user: Option<String>,
    bot_id: Option<String>,
    #[serde(deserialize_with = "lenient_fields::text")]
    username: Option<String>,
    text: Option<String>,
    thread_ts: Option<String>,
    #[serde(deserialize_with = "lenient_fields::value")]
    reply_count: Option<u64>,
    #[serde(deserialize_with = "lenient_fields::list")]
    replies: Vec<Value>,
    #[serde(deserialize_with = "lenient_fields::value")]
    edited: Option<SlackEditStamp>,
    #[serde(deserialize_with = "lenient_fields::value")]
    user_profile: Option<SlackProfile>,
    #[serde(deserialize_with = "lenient_fields::value")]
    bot_profile: Option<SlackBotProfile>,
    #[serde(deserialize_with = "lenient_fields::list")]
    files: Vec<SlackFile>,
    #[serde(deserialize_with = "lenient_fields::value")]
    file: Option<SlackFile>,
    #[serde(deserialize_with = "lenient_fields::value")]
    comment: Option<SlackComment>,
    #[serde(deserialize_with = "lenient_fields::list")]
    attachments: Vec<SlackAttachment>,
    #[serde(deserialize_with = "lenient_fields::list")]
    blocks: Vec<Value>,
    deleted_ts: Option<String>,
    message: Option<Box<SlackMessage>>,
    /// A thread's replies, which slackdump puts into the thread's first message.
    #[serde(deserialize_with = "lenient_fields::list")]
    pub(super) slackdump_thread_replies: Vec<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SlackEditStamp {
    #[serde(deserialize_with = "lenient_fields::text")]
    ts: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SlackBotProfile {
    #[serde(deserialize_with = "lenient_fields::text")]
    name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SlackComment {
    #[serde(deserialize_with = "lenient_fields::text")]
    user: Option<String>,
    #[serde(deserialize_with = "lenient_fields::text")]
    comment: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SlackFile {
    #[serde(deserialize_with = "lenient_fields::value")]
    mode: Option<String>,
    #[serde(deserialize_with = "lenient_fields::text")]
    name: Option<String>,
    #[serde(deserialize_with = "lenient_fields::text")]
    title: Option<String>,
    #[serde(deserialize_with = "lenient_fields::value")]
    mimetype: Option<String>,
    #[serde(deserialize_with = "lenient_fields::value")]
    permalink: Option<String>,
    #[serde(deserialize_with = "lenient_fields::value")]
    url_private: Option<String>,
    #[serde(deserialize_with = "lenient_fields::value")]
    initial_comment: Option<SlackComment>,
    #[serde(deserialize_with = "lenient_fields::text")]
    alt_txt: Option<String>,
}

/// What Slack calls an attachment: a link preview, or the body of an integration's message.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SlackAttachment {
    #[serde(deserialize_with = "lenient_fields::text")]
    pretext: Option<String>,
    #[serde(deserialize_with = "lenient_fields::text")]
    author_name: Option<String>,
    #[serde(deserialize_with = "lenient_fields::text")]
    title: Option<String>,
    #[serde(deserialize_with = "lenient_fields::value")]
    title_link: Option<String>,
    #[serde(deserialize_with = "lenient_fields::text")]
    text: Option<String>,
    #[serde(deserialize_with = "lenient_fields::text")]
    fallback: Option<String>,
    #[serde(deserialize_with = "lenient_fields::list")]
    fields: Vec<SlackAttachmentField>,
    #[serde(deserialize_with = "lenient_fields::value")]
    from_url: Option<String>,
    #[serde(deserialize_with = "lenient_fields::value")]
    original_url: Option<String>,
    #[serde(deserialize_with = "lenient_fields::value")]
    image_url: Option<String>,
    #[serde(deserialize_with = "lenient_fields::value")]
    is_msg_unfurl: Option<bool>,
    #[serde(deserialize_with = "lenient_fields::value")]
    is_share: Option<bool>,
    #[serde(deserialize_with = "lenient_fields::list")]
    blocks: Vec<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SlackAttachmentField {
    #[serde(deserialize_with = "lenient_fields::text")]
    title: Option<String>,
    #[serde(deserialize_with = "lenient_fields::text")]
    value: Option<String>,
}

/// The item of a message; an error says what is wrong with the message.
pub(super) fn item(
    raw: SlackMessage,
    conversation: &Arc<Conversation>,
    directory: &mut SlackDirectory,
    zone: &Zone,
    unread: &mut UnreadCounts,
) -> Result<ChatItem, String> {
    let subtype = raw.subtype.as_deref().unwrap_or_default();
    if let Some(kind) = raw.kind.as_deref().filter(|kind| *kind != "message") {
        return Ok(ChatItem::Skip(SkipReason::unsupported(kind)));
    }
    if let (Some(bot), Some(label)) = (&raw.bot_id, raw.text.as_deref().and_then(integration))
        && subtype == "bot_add"
    {
        directory.name_bot(bot, label);
    }
    match subtype {
        "message_changed" => {
            return match raw.message {
                Some(message) if message.message.is_none() => item(*message, conversation, directory, zone, unread),
                _ => Ok(ChatItem::Skip(SkipReason::unsupported(subtype))),
            };
        }
        "ekm_access_denied" => return Ok(ChatItem::Skip(SkipReason::Encrypted)),
        "reply_broadcast" => return Ok(ChatItem::Skip(SkipReason::Copy)),
        _ if is_notice(subtype) => return Ok(ChatItem::Skip(SkipReason::ServiceMessage)),
        _ => {}
    }
    let deleted = match subtype {
        "tombstone" => raw.ts.clone(),
        "message_deleted" => raw.deleted_ts.clone(),
        _ => None,
    };
    if let Some(id) = deleted {
        return Ok(ChatItem::Deletion { conversation: conversation.clone(), id, version: None });
    }
    message(raw, conversation, directory, zone, unread)
}

fn message(
    mut raw: SlackMessage,
    conversation: &Arc<Conversation>,
    directory: &mut SlackDirectory,
    zone: &Zone,
    unread: &mut UnreadCounts,
) -> Result<ChatItem, String> {
    let id = raw.ts.clone().filter(|ts| !ts.is_empty()).ok_or("ts: missing; every message has one")?;
    let sent_ms = unix_ms(&id).ok_or_else(|| format!("ts: {id:?} is not a time; write seconds.microseconds"))?;
    let time = zone.at_unix_ms(sent_ms).ok_or_else(|| format!("ts: {id:?} is out of range"))?;
    let author = author(&mut raw, directory);
    let files: Vec<SlackFile> = raw.file.into_iter().chain(raw.files).collect();

    let mut rendered = words(raw.subtype.as_deref(), raw.text, raw.comment, &files, directory);
    let mut blocks = block_words(&raw.blocks);
    if rendered.text.is_empty() {
        rendered = render(&blocks.whole(), directory);
    } else {
        add_blocks(&mut rendered, &blocks.texts, raw.bot_id.is_some(), directory);
    }
    blocks.unknown.extend(raw.attachments.iter().flat_map(|attachment| block_words(&attachment.blocks).unknown));
    let mut shared: Vec<Attachment> = files.into_iter().filter_map(attachment).collect();
    let previews = raw.attachments;
    if rendered.text.is_empty() {
        // The body of an integration's message is the text that people see.
        let (bodies, previews): (Vec<_>, Vec<_>) = previews.into_iter().partition(|a| !a.is_preview());
        let bodies: Vec<SlackRenderedText> = bodies.iter().map(|body| body.render(directory)).collect();
        rendered.text = bodies.iter().map(|b| b.text.as_str()).filter(|t| !t.is_empty()).collect::<Vec<_>>().join("\n");
        rendered.mentions = bodies.into_iter().flat_map(|body| body.mentions).collect();
        shared.extend(previews.iter().filter_map(|preview| preview.attachment(directory)));
    } else {
        shared.extend(previews.iter().filter_map(|preview| preview.attachment(directory)));
    }
    if rendered.text.is_empty() && shared.is_empty() {
        let kind = blocks.unknown.into_iter().next().or(raw.subtype.filter(|subtype| !has_words(subtype)));
        return Ok(ChatItem::Skip(kind.map_or(SkipReason::Empty, |kind| SkipReason::unsupported(&kind))));
    }
    blocks.unknown.iter().for_each(|kind| match SkipReason::unsupported(kind) {
        SkipReason::UnsupportedKind(kind) => unread.add(&format!("block {kind}")),
        _ => unread.add("block"),
    });
    let has_replies = raw.reply_count.is_some_and(|count| count > 0) || !raw.replies.is_empty();
    let root = raw.thread_ts.filter(|root| !root.is_empty());
    let reply_to = root.clone().filter(|root| *root != id);
    let version = match raw.edited {
        Some(edited) => edited.ts.as_deref().and_then(unix_ms).and_then(|ms| u64::try_from(ms).ok()).unwrap_or(1),
        None => 0,
    };
    Ok(ChatItem::Message(Box::new(ChatMessage {
        conversation: conversation.clone(),
        thread: root.or_else(|| has_replies.then(|| id.clone())),
        id,
        version,
        author,
        text: rendered.text,
        time,
        reply_to,
        attachments: shared,
        mentions: rendered.mentions,
    })))
}

fn author(raw: &mut SlackMessage, directory: &mut SlackDirectory) -> Account {
    let commenter = raw.comment.as_ref().and_then(|comment| comment.user.clone());
    let user = raw.user.clone().or(commenter).filter(|user| !user.is_empty());
    let bot_name = raw.username.as_deref().or(raw.bot_profile.as_ref().and_then(|profile| profile.name.as_deref()));
    match (&user, &raw.bot_id) {
        (Some(user), Some(bot)) if !directory.is_known(user) && bot_name.is_some() => directory.bot(bot, bot_name),
        (Some(user), bot) => directory.author(user, raw.user_profile.take(), bot.is_some()),
        (None, bot) => {
            directory.bot(bot.as_deref().unwrap_or_default(), bot_name.or(bot.is_none().then_some("unknown")))
        }
    }
}

/// Adds words of blocks that the text lacks: a table, a card, the body of a program's message. Blocks that a person
/// typed are left out: the text has the same words, in slightly different form.
fn add_blocks(rendered: &mut SlackRenderedText, blocks: &[SlackBlockText], is_program: bool, names: &dyn SlackNames) {
    let letters =
        |text: &str| -> String { text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect() };
    let mut said = letters(&rendered.text);
    for block in blocks.iter().filter(|block| is_program || !block.is_typed) {
        let added = render(&block.text, names);
        let is_new = |line: &&str| !said.contains(letters(line).as_str());
        let lines: Vec<&str> = added.text.lines().filter(is_new).collect();
        if lines.is_empty() {
            continue;
        }
        rendered.text = format!("{}\n{}", rendered.text, lines.join("\n"));
        said = letters(&rendered.text);
        for account in added.mentions {
            if !rendered.mentions.contains(&account) {
                rendered.mentions.push(account);
            }
        }
    }
}

/// Whether messages of a subtype are somebody's words, even if the words are empty.
fn has_words(subtype: &str) -> bool {
    matches!(
        subtype,
        "" | "bot_message"
            | "me_message"
            | "file_share"
            | "file_comment"
            | "thread_broadcast"
            | "slackbot_response"
            | "message_changed"
            | "channel_share"
            | "reminder"
    )
}

/// The words, without the notice that a file was shared, because the attachment shows that.
fn words(
    subtype: Option<&str>,
    text: Option<String>,
    comment: Option<SlackComment>,
    files: &[SlackFile],
    names: &dyn SlackNames,
) -> SlackRenderedText {
    let text = text.unwrap_or_default();
    let is_notice = text.starts_with("<@")
        && text.split_once('>').is_some_and(|(_, rest)| {
            [" uploaded ", " shared ", " commented on "].iter().any(|verb| rest.starts_with(verb))
        });
    let said = match subtype {
        Some("file_comment") => comment.and_then(|comment| comment.comment).unwrap_or(text),
        Some("file_share") if is_notice => {
            let comments = files.iter().filter_map(|file| file.initial_comment.as_ref()?.comment.as_deref());
            comments.collect::<Vec<_>>().join("\n")
        }
        _ => text,
    };
    render(&said, names)
}

/// A shared file. `None` if it was deleted, or if the plan's limit hides it and no name is left.
fn attachment(file: SlackFile) -> Option<Attachment> {
    if file.mode.as_deref() == Some("tombstone") {
        return None;
    }
    let name = file.name.filter(|name| !name.trim().is_empty());
    let kind = match file.mimetype.as_deref().and_then(|mime| mime.split('/').next()) {
        Some(kind @ ("image" | "video" | "audio")) => kind,
        _ => media_kind(name.as_deref().unwrap_or_default()),
    };
    let titles = [file.alt_txt, file.title, name];
    let caption = titles.into_iter().flatten().find(|title| !title.trim().is_empty());
    let is_hidden = file.mode.as_deref() == Some("hidden_by_limit");
    let url = file.permalink.or(file.url_private).map(|url| without_token(&url)).filter(|url| !url.is_empty());
    if caption.is_none() && (is_hidden || url.is_none()) {
        return None;
    }
    let caption = Some(caption.unwrap_or_else(|| kind.to_owned()));
    Some(Attachment { kind: Some(kind.to_owned()), caption, url })
}

/// An address without the token that lets the reader of an export fetch files.
fn without_token(url: &str) -> String {
    match url.split_once('?') {
        Some((address, query)) if query.split('&').any(|part| part.starts_with("t=")) => {
            let kept: Vec<&str> = query.split('&').filter(|part| !part.starts_with("t=")).collect();
            if kept.is_empty() { address.to_owned() } else { format!("{address}?{}", kept.join("&")) }
        }
        _ => url.to_owned(),
    }
}

impl SlackAttachment {
    /// Whether it is a preview of something that the message links to.
    fn is_preview(&self) -> bool {
        self.from_url.is_some() || self.original_url.is_some() || self.is_quote()
    }

    fn is_quote(&self) -> bool {
        self.is_msg_unfurl == Some(true) || self.is_share == Some(true)
    }

    /// Its words, each part on a line; if it has none, its fallback text.
    fn render(&self, names: &dyn SlackNames) -> SlackRenderedText {
        let blocks = block_words(&self.blocks).whole();
        let fields = self.fields.iter().filter_map(|field| {
            let parts = [field.title.as_deref(), field.value.as_deref()];
            let parts: Vec<&str> = parts.into_iter().flatten().filter(|part| !part.trim().is_empty()).collect();
            (!parts.is_empty()).then(|| parts.join(": "))
        });
        let author = self.author_name.as_ref().filter(|_| self.is_quote()).map(|name| format!("{name}:"));
        let lines: Vec<String> = [self.pretext.clone(), author, self.title.clone(), self.text.clone(), Some(blocks)]
            .into_iter()
            .flatten()
            .chain(fields)
            .filter(|line| !line.trim().is_empty())
            .collect();
        // Slack's fallback text for programs that cannot show attachments.
        let says = |fallback: &&String| !fallback.trim().eq_ignore_ascii_case("[no preview available]");
        let plain = || self.fallback.as_ref().filter(says).cloned().unwrap_or_default();
        render(&if lines.is_empty() { plain() } else { lines.join("\n") }, names)
    }

    fn attachment(&self, names: &dyn SlackNames) -> Option<Attachment> {
        let url = [&self.title_link, &self.from_url, &self.original_url, &self.image_url];
        let url = url.into_iter().flatten().find(|url| !url.is_empty()).cloned();
        let kind = if self.is_quote() {
            "message"
        } else if self.is_preview() {
            "link"
        } else {
            "attachment"
        };
        let caption = Some(self.render(names).text).filter(|text| !text.is_empty()).or_else(|| url.clone())?;
        Some(Attachment { kind: Some(kind.to_owned()), caption: Some(caption), url })
    }
}

/// The name of the integration in `added an integration to this channel: <https://…|github>`.
fn integration(text: &str) -> Option<&str> {
    let (_, label) = text.rsplit_once("/services/")?.1.split_once('|')?;
    label.split('>').next().filter(|label| !label.trim().is_empty())
}

/// Whether a subtype is one of the platform's own notices.
fn is_notice(subtype: &str) -> bool {
    const NOTICES: [&str; 22] = [
        "bot_add",
        "bot_remove",
        "bot_enable",
        "bot_disable",
        "pinned_item",
        "unpinned_item",
        "reminder_add",
        "reminder_delete",
        "joiner_notification",
        "joiner_notification_for_inviter",
        "huddle_thread",
        "sh_room_created",
        "sh_room_shared",
        "app_conversation_join",
        "app_conversation_leave",
        "assistant_app_thread",
        "document_mention",
        "file_mention",
        "bot_disabled",
        "canvas_notification",
        "tabbed_canvas_updated",
        "message_replied",
    ];
    let of = |room: &str| {
        subtype.strip_prefix(room).is_some_and(|what| {
            matches!(what, "join" | "leave" | "topic" | "purpose" | "name" | "archive" | "unarchive" | "open" | "close")
                || what.starts_with("posting_permissions")
                || what.starts_with("convert_to")
                || what.starts_with("canvas_")
        })
    };
    NOTICES.contains(&subtype) || of("channel_") || of("group_") || of("mpim_") || of("im_")
}

/// A `ts` such as `1452837318.000002` in milliseconds.
fn unix_ms(ts: &str) -> Option<i64> {
    let (seconds, fraction) = ts.split_once('.').unwrap_or((ts, ""));
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if seconds.is_empty() || !all_digits(seconds) || !all_digits(fraction) {
        return None;
    }
    let thousandths: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    seconds.parse::<i64>().ok()?.checked_mul(1_000)?.checked_add(thousandths)
}
