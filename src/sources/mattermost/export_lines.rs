//! Reads the records of Mattermost's bulk export.
//!
//! In: a line. Out: its content, depending on its type. Fields that hold no words are ignored, so that later versions
//! of Mattermost may change them.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::chat::{LIST, NUMBER, OBJECT, RecordForm, TEXT, TRUTH, UnreadFields};

/// A line of the export.
#[derive(Deserialize)]
pub(super) struct MattermostLine<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) channel: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) user: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) bot: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) post: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) direct_post: Option<&'a RawValue>,
}

/// A channel of a team.
#[derive(Deserialize)]
pub(super) struct MattermostChannelLine {
    pub(super) team: Option<String>,
    pub(super) name: String,
    pub(super) display_name: Option<String>,
    /// `O` for open, `P` for private.
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
}

/// A user or a bot.
#[derive(Deserialize)]
pub(super) struct MattermostUserLine {
    pub(super) username: String,
    nickname: Option<String>,
    first_name: Option<String>,
    last_name: Option<String>,
    display_name: Option<String>,
}

impl MattermostUserLine {
    /// The name that people see: a bot's name, first and last name, nickname, else the handle.
    pub(super) fn name(&self) -> String {
        let filled =
            |name: &Option<String>| name.as_deref().map(str::trim).filter(|n| !n.is_empty()).map(str::to_owned);
        let full: Vec<String> = [&self.first_name, &self.last_name].into_iter().filter_map(filled).collect();
        let full = (!full.is_empty()).then(|| full.join(" "));
        let name = filled(&self.display_name).or(full).or_else(|| filled(&self.nickname));
        name.unwrap_or_else(|| self.username.clone())
    }
}

/// The fields of a post.
const FORM: RecordForm = RecordForm {
    needed: &[
        ("team", TEXT),
        ("channel", TEXT),
        ("channel_members", LIST),
        ("channel_members[]", TEXT),
        ("user", TEXT),
        ("message", TEXT),
        ("create_at", NUMBER),
        ("delete_at", NUMBER),
    ],
    other: &[
        ("type", TEXT),
        ("edit_at", NUMBER),
        ("props", OBJECT),
        ("props/attachments", LIST),
        ("attachments", LIST),
        ("attachments[]", OBJECT),
        ("attachments[]/path", TEXT),
        ("replies", LIST),
        ("props/attachments[]/pretext", TEXT),
        ("props/attachments[]/title", TEXT),
        ("props/attachments[]/text", TEXT),
        ("props/attachments[]/fallback", TEXT),
        ("props/attachments[]/fields", LIST),
        ("props/attachments[]/fields[]/title", TEXT),
        ("props/attachments[]/fields[]/value", TEXT | NUMBER | TRUTH | OBJECT | LIST),
    ],
    known: &[
        "replies",
        "reactions",
        "flagged_by",
        "is_pinned",
        "thread_followers",
        "props/override_username",
        "props/override_icon_url",
        "props/override_icon_emoji",
        "props/from_webhook",
        "props/from_bot",
        "props/from_plugin",
        "props/webhook_display_name",
        "props/disable_group_highlight",
        "props/mentionHighlightDisabled",
        "props/previewed_post",
        "props/from_oauth_app",
        "props/addedUserId",
        "props/addedUsername",
        "props/username",
        "props/userId",
        "props/channel_mentions",
        "props/attachments[]/actions",
        "props/attachments[]/author_name",
        "props/attachments[]/author_icon",
        "props/attachments[]/author_link",
        "props/attachments[]/title_link",
        "props/attachments[]/image_url",
        "props/attachments[]/thumb_url",
        "props/attachments[]/footer_icon",
        "props/attachments[]/fields[]/value",
        "attachments[]/props",
        "attachments[]/is_bookmark",
    ],
    remedy: "write it as the bulk export does",
};

/// A post, a direct post or a reply.
#[derive(Deserialize)]
pub(super) struct MattermostPostLine {
    pub(super) team: Option<String>,
    pub(super) channel: Option<String>,
    pub(super) channel_members: Option<Vec<String>>,
    pub(super) user: Option<String>,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) message: Option<String>,
    pub(super) props: Option<Value>,
    pub(super) create_at: Option<i64>,
    pub(super) edit_at: Option<u64>,
    pub(super) delete_at: Option<u64>,
    attachments: Option<Vec<MattermostFilePath>>,
    /// Not parsed yet, so that a damaged reply is rejected alone.
    pub(super) replies: Option<Vec<Box<RawValue>>>,
}

/// Where a post was written, and nothing else of it.
#[derive(Deserialize)]
pub(super) struct MattermostPostPlace {
    pub(super) team: Option<String>,
    pub(super) channel: Option<String>,
    pub(super) channel_members: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct MattermostFilePath {
    path: Option<String>,
}

impl MattermostPostLine {
    /// Reads a post, and which of its fields are odd.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(post: &RawValue) -> Result<(Self, UnreadFields), String> {
        let advice = |e: serde_json::Error| format!("{e}; write it as the bulk export does");
        let mut value: Value = serde_json::from_str(post.get()).map_err(advice)?;
        let odd = FORM.check(&mut value)?;
        Ok((serde_json::from_str(&value.to_string()).map_err(advice)?, odd))
    }

    /// The paths of the shared files in the archive.
    pub(super) fn files(&mut self) -> Vec<String> {
        self.attachments.take().unwrap_or_default().into_iter().filter_map(|file| file.path).collect()
    }
}

/// The cards that a program attached to a post, in Slack's form: a title, words and fields.
pub(super) fn cards(props: &Value) -> Vec<String> {
    let texts = |card: &Value| {
        let of = |value: &Value, key: &str| {
            value.get(key).and_then(Value::as_str).map(str::trim).filter(|t| !t.is_empty()).map(str::to_owned)
        };
        let mut lines: Vec<String> = ["pretext", "title", "text"].iter().filter_map(|key| of(card, key)).collect();
        for field in card.get("fields").and_then(Value::as_array).into_iter().flatten() {
            let value = match field.get("value") {
                Some(Value::String(text)) => text.trim().to_owned(),
                Some(Value::Null) | None => String::new(),
                Some(other) => other.to_string(),
            };
            lines.extend(match (of(field, "title"), value.is_empty()) {
                (Some(title), false) => Some(format!("{title}: {value}")),
                (Some(title), true) => Some(title),
                (None, false) => Some(value),
                (None, true) => None,
            });
        }
        if lines.is_empty() {
            lines.extend(of(card, "fallback"));
        }
        lines.join("\n")
    };
    let cards = props.get("attachments").and_then(Value::as_array).into_iter().flatten();
    cards.map(texts).filter(|text| !text.is_empty()).collect()
}
