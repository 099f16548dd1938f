//! Reads records in the two schemas: that of chats on the platform's servers, and that of end-to-end encrypted chats.
//!
//! In: a message's JSON. Out: one form for both, with repaired texts, and what it is: words, a notice from the
//! platform, or a reaction written as a message. Reactions themselves are left out.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::mojibake::repaired;
use crate::chat::{LIST, NUMBER, OBJECT, RecordForm, SkipReason, TEXT, TRUTH, shared_file};
use types::model::{Attachment, DeadLetter};

/// The fields of a message of either schema.
pub(super) const FORM: RecordForm = RecordForm {
    needed: &[
        ("sender_name", TEXT),
        ("senderName", TEXT),
        ("timestamp_ms", NUMBER),
        ("timestamp", NUMBER),
        ("content", TEXT),
        ("text", TEXT),
        ("is_unsent", TRUTH),
        ("isUnsent", TRUTH),
    ],
    other: &[
        ("type", TEXT),
        ("photos", LIST | OBJECT | TEXT),
        ("photos[]", OBJECT | TEXT),
        ("videos", LIST | OBJECT | TEXT),
        ("videos[]", OBJECT | TEXT),
        ("audio_files", LIST | OBJECT | TEXT),
        ("audio_files[]", OBJECT | TEXT),
        ("gifs", LIST | OBJECT | TEXT),
        ("gifs[]", OBJECT | TEXT),
        ("files", LIST | OBJECT | TEXT),
        ("files[]", OBJECT | TEXT),
        ("media", LIST | OBJECT | TEXT),
        ("media[]", OBJECT | TEXT),
        ("sticker", OBJECT | LIST | TEXT),
        ("share", OBJECT),
        ("share/share_text", TEXT),
        ("share/link", TEXT),
        ("share/profile_share_username", TEXT),
    ],
    known: &[
        "reactions",
        "is_geoblocked_for_viewer",
        "is_taken_down",
        "is_unsent_image_by_messenger_kid_parent",
        "bumped_message_metadata",
        "users",
        "ip",
        "call_duration",
        "missed",
        "magic_words",
        "participants",
        "thread_name",
        "sticker/ai_stickers",
        "photos[]/backup_uri",
        "share/link",
        "share/original_content_owner",
        "**/creation_timestamp",
        "**/thumbnail",
        "**/backup_uri",
    ],
    remedy: "the export has another form here; download it again",
};

/// A message of either schema.
#[derive(Debug, Default, Deserialize)]
pub(super) struct MessengerRecord {
    #[serde(alias = "senderName")]
    sender_name: Option<String>,
    timestamp_ms: Option<i64>,
    timestamp: Option<i64>,
    content: Option<String>,
    text: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(alias = "isUnsent")]
    is_unsent: Option<bool>,
    photos: Option<Value>,
    videos: Option<Value>,
    audio_files: Option<Value>,
    gifs: Option<Value>,
    files: Option<Value>,
    media: Option<Value>,
    sticker: Option<Value>,
    share: Option<Value>,
    call_duration: Option<Value>,
}

/// What is kept of a message until messages are returned in order of time.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MessengerStoredMessage {
    pub(super) sender: String,
    pub(super) what: MessengerMessageKind,
}

/// What a message is.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum MessengerMessageKind {
    /// Words, or what was shared.
    Said { text: String, attachments: Vec<Attachment> },
    /// The author unsent it.
    Unsent,
    /// The platform's notice: a call, somebody who joined, a new name.
    Service,
    /// A reaction, which the platform also writes as a message.
    Reaction,
    /// Nothing was said or shared.
    Empty,
    /// A record that could not be read, kept until its chat is known.
    Rejected(DeadLetter),
}

impl MessengerMessageKind {
    /// Why it is not a turn.
    pub(super) fn skip(&self) -> Option<SkipReason> {
        match self {
            Self::Said { .. } | Self::Unsent | Self::Rejected(_) => None,
            Self::Service => Some(SkipReason::ServiceMessage),
            Self::Reaction => Some(SkipReason::Unsupported),
            Self::Empty => Some(SkipReason::Empty),
        }
    }
}

impl MessengerStoredMessage {
    /// All of its words.
    pub(super) fn words(&self) -> String {
        let MessengerMessageKind::Said { text, attachments } = &self.what else { return self.sender.clone() };
        let shared = attachments.iter().flat_map(|shared| [&shared.kind, &shared.caption, &shared.url]).flatten();
        shared.chain([text, &self.sender]).map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

impl MessengerRecord {
    /// The record for a message of a page.
    pub(super) fn of_page(sender: &str, unix_ms: i64, text: &str, shared: &[String]) -> Self {
        Self {
            sender_name: Some(sender.to_owned()),
            timestamp_ms: Some(unix_ms),
            content: Some(text.to_owned()),
            media: Some(shared.into()),
            ..Self::default()
        }
    }

    /// The time in milliseconds since 1970, and what is kept of the message.
    ///
    /// # Errors
    /// What is missing, and what to write.
    pub(super) fn read(self) -> Result<(i64, MessengerStoredMessage), String> {
        let Some(sender) = self.sender_name.as_ref() else {
            return Err("sender_name: missing; write who said it".to_owned());
        };
        let Some(unix_ms) = self.timestamp_ms.or(self.timestamp) else {
            return Err("timestamp_ms: missing; write milliseconds since 1970".to_owned());
        };
        let sender = repaired(sender.trim().to_owned());
        // The name that the platform shows for a deleted account.
        let sender = if sender.is_empty() { "Facebook user".to_owned() } else { sender };
        let what = self.what(&sender);
        Ok((unix_ms, MessengerStoredMessage { sender, what }))
    }

    fn what(self, sender: &str) -> MessengerMessageKind {
        if self.is_unsent == Some(true) {
            return MessengerMessageKind::Unsent;
        }
        let kind = self.kind.as_deref().unwrap_or_default();
        let is_call = self.call_duration.as_ref().is_some_and(|c| !c.is_null());
        if is_call || matches!(kind, "Call" | "Subscribe" | "Unsubscribe" | "call" | "admin" | "placeholder") {
            return MessengerMessageKind::Service;
        }
        let text = repaired(self.content.or(self.text).unwrap_or_default());
        let mut text = text.trim().to_owned();
        if is_reaction(&text) {
            return MessengerMessageKind::Reaction;
        }
        let mut attachments = Vec::new();
        let lists = [
            (&self.photos, Some("image")),
            (&self.videos, Some("video")),
            (&self.audio_files, Some("audio")),
            (&self.gifs, Some("image")),
            (&self.files, None),
            (&self.media, None),
            (&self.sticker, Some("sticker")),
        ];
        for (value, kind) in lists {
            attachments.extend(media(value.as_ref(), kind));
        }
        attachments.extend(self.share.as_ref().and_then(|share| shared_link(share, &text)));
        if !attachments.is_empty() || self.share.is_some() {
            // The text that the platform writes if nothing was said.
            let said_nothing = [format!("{sender} sent an attachment."), "You sent an attachment.".to_owned()];
            if said_nothing.contains(&text) {
                text.clear();
            }
        }
        match (text.is_empty(), attachments.is_empty()) {
            (true, true) => MessengerMessageKind::Empty,
            (false, true) if is_notice(&text, sender) => MessengerMessageKind::Service,
            _ => MessengerMessageKind::Said { text, attachments },
        }
    }
}

/// The files of a list, or of one object.
fn media(value: Option<&Value>, kind: Option<&str>) -> Vec<Attachment> {
    let one = |file: &Value| {
        let uri = file.as_str().or_else(|| file.get("uri")?.as_str()).filter(|uri| !uri.is_empty())?;
        let attachment = shared_file(&repaired(uri.to_owned()), Some(uri.to_owned()));
        let kind = kind.map(str::to_owned).or(attachment.kind);
        Some(Attachment { kind, ..attachment })
    };
    match value {
        Some(Value::Array(files)) => files.iter().filter_map(one).collect(),
        Some(file) => one(file).into_iter().collect(),
        None => Vec::new(),
    }
}

/// A link or a post that was shared; `None` if there is only a link and the text already has it.
fn shared_link(share: &Value, text: &str) -> Option<Attachment> {
    let string = |key: &str| {
        let text = share.get(key).and_then(Value::as_str).map(str::trim).filter(|t| !t.is_empty());
        text.map(|t| repaired(t.to_owned()))
    };
    let link = string("link");
    let words = string("share_text").filter(|words| !text.contains(words.as_str()));
    if words.is_none() && link.as_deref().is_some_and(|link| text.contains(link)) {
        return None;
    }
    let caption = words.or_else(|| link.clone()).or_else(|| string("profile_share_username"));
    Some(Attachment { kind: Some("link".to_owned()), caption: Some(caption?), url: link })
}

/// Whether a text is one that the platform writes for a reaction.
fn is_reaction(text: &str) -> bool {
    const MAX_EMOJI_BYTES: usize = 40;
    let emoji = text.strip_prefix("Reacted ").and_then(|rest| rest.strip_suffix(" to your message"));
    text == "Liked a message" || emoji.is_some_and(|e| e.len() <= MAX_EMOJI_BYTES && !e.contains(' '))
}

/// Whether a text is a notice that the platform writes in an account's name. Exports in other languages have such
/// notices in their language; they stay messages, because only the type could distinguish them.
fn is_notice(text: &str, sender: &str) -> bool {
    const ACTS: [&str; 29] = [
        "named the group ",
        "created the group",
        "created this group",
        "left the group",
        "joined the group",
        "changed the group photo",
        "changed the group name",
        "set the nickname for ",
        "set your nickname to ",
        "set his own nickname to ",
        "set her own nickname to ",
        "set their own nickname to ",
        "cleared the nickname for ",
        "cleared your nickname",
        "changed the chat theme to ",
        "changed the theme to ",
        "changed the chat colors",
        "set the emoji to ",
        "set the quick reaction to ",
        "missed your call",
        "missed a call",
        "missed your video chat",
        "called you",
        "called the group",
        "started a call",
        "started a video chat",
        "started sharing video",
        "ended the call",
        "joined the call",
    ];
    const NOTICES: [&str; 4] = [
        "You are now connected on Messenger",
        "You can now message and call each other",
        "Say hi to your new Facebook friend",
        "The video chat ended",
    ];
    let act = text.strip_prefix(sender).or_else(|| text.strip_prefix("You")).map(str::trim_start);
    let in_group = |act: &str| {
        (act.starts_with("added ") || act.starts_with("removed ")) && act.trim_end_matches('.').ends_with("the group")
    };
    act.is_some_and(|act| ACTS.iter().any(|start| act.starts_with(start)) || in_group(act))
        || NOTICES.iter().any(|start| text.starts_with(start))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(mut message: Value, expected: MessengerMessageKind) {
        message["sender_name"] = json!("Ann");
        message["timestamp_ms"] = json!(1);
        let shown = message.to_string();
        let record: MessengerRecord = serde_json::from_value(message).unwrap();
        assert_eq!(record.read().unwrap().1.what, expected, "{shown}");
    }

    fn said(text: &str, attachments: &[(&str, &str, &str)]) -> MessengerMessageKind {
        let owned = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let attachments = attachments
            .iter()
            .map(|(kind, caption, url)| Attachment { kind: owned(kind), caption: owned(caption), url: owned(url) })
            .collect();
        MessengerMessageKind::Said { text: text.to_owned(), attachments }
    }

    #[test]
    fn messages_notices_and_reactions_are_told_apart() {
        check(json!({"content": "hi"}), said("hi", &[]));
        check(json!({"content": "caf\u{c3}\u{a9}"}), said("café", &[]));
        check(json!({"content": "hi", "is_unsent": true}), MessengerMessageKind::Unsent);
        check(json!({"text": "", "isUnsent": true}), MessengerMessageKind::Unsent);
        check(json!({"type": "Call", "call_duration": 192}), MessengerMessageKind::Service);
        check(
            json!({"type": "Generic", "content": "Ann called you.", "call_duration": 0}),
            MessengerMessageKind::Service,
        );
        check(json!({"type": "Unsubscribe", "content": "Ann left the chat"}), MessengerMessageKind::Service);
        check(json!({"content": "Ann named the group Tea."}), MessengerMessageKind::Service);
        check(json!({"content": "Ann added Bob to the group."}), MessengerMessageKind::Service);
        check(json!({"content": "Ann added milk to my tea"}), said("Ann added milk to my tea", &[]));
        check(json!({"content": "You are now connected on Messenger."}), MessengerMessageKind::Service);
        check(json!({"content": "Liked a message"}), MessengerMessageKind::Reaction);
        check(json!({"content": "Reacted \u{f0}\u{9f}\u{91}\u{8d} to your message "}), MessengerMessageKind::Reaction);
        check(
            json!({"content": "Reacted badly to the news, to your message"}),
            said("Reacted badly to the news, to your message", &[]),
        );
        check(json!({"type": "Generic"}), MessengerMessageKind::Empty);
        check(json!({"content": "hi", "reactions": [{"reaction": "x", "actor": "Bob"}]}), said("hi", &[]));
    }

    #[test]
    fn what_is_shared_has_a_caption() {
        let photo = json!([{"uri": "messages/inbox/a/photos/cat.jpg", "creation_timestamp": 1}]);
        let uri = "messages/inbox/a/photos/cat.jpg";
        check(json!({"photos": photo}), said("", &[("image", "cat.jpg", uri)]));
        check(json!({"photos": photo, "content": "our cat"}), said("our cat", &[("image", "cat.jpg", uri)]));
        check(json!({"sticker": {"uri": "s/1.png"}}), said("", &[("sticker", "1.png", "s/1.png")]));
        check(json!({"media": [{"uri": "./media/a.mp4"}]}), said("", &[("video", "a.mp4", "./media/a.mp4")]));
        check(
            json!({"type": "Share", "content": "Ann sent an attachment.", "share": {"link": "https://x.example", "share_text": "A post"}}),
            said("", &[("link", "A post", "https://x.example")]),
        );
        check(
            json!({"content": "see https://x.example", "share": {"link": "https://x.example"}}),
            said("see https://x.example", &[]),
        );
        check(json!({"photos": "none", "share": 3}), said("", &[("image", "none", "none")]));
    }

    #[test]
    fn what_is_missing_is_named() {
        for (message, expected) in [
            (json!({"timestamp_ms": 1}), "sender_name: missing"),
            (json!({"sender_name": "Ann"}), "timestamp_ms: missing"),
        ] {
            let record: MessengerRecord = serde_json::from_value(message).unwrap();
            assert!(record.read().unwrap_err().starts_with(expected));
        }
        let record: MessengerRecord =
            serde_json::from_value(json!({"senderName": " ", "timestamp": 5, "text": "x"})).unwrap();
        let (unix_ms, kept) = record.read().unwrap();
        assert_eq!((unix_ms, kept.sender.as_str()), (5, "Facebook user"));
    }
}
