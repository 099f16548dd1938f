//! Reads the events of a room, in the form of the client-server API.
//!
//! In: an event's JSON. Out: what it is: words, an edit, a redaction, a member's name, or none of these; and the words
//! of a content as a person reads them. Fields that hold no words are ignored.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::{NUMBER, OBJECT, RecordForm, TEXT, UnreadFields, html_to_text, shared_file};
use types::model::Attachment;

/// The fields of an event.
pub(super) const FORM: RecordForm = RecordForm {
    needed: &[
        ("type", TEXT),
        ("event_id", TEXT),
        ("room_id", TEXT),
        ("sender", TEXT),
        ("origin_server_ts", NUMBER),
        ("state_key", TEXT),
        ("redacts", TEXT),
        ("content", OBJECT),
        ("content/msgtype", TEXT),
        ("content/body", TEXT),
        ("content/m.new_content", OBJECT),
        ("content/m.new_content/body", TEXT),
    ],
    other: &[
        ("unsigned", OBJECT),
        ("content/formatted_body", TEXT),
        ("content/filename", TEXT),
        ("content/m.mentions", OBJECT),
        ("content/m.relates_to", OBJECT),
    ],
    known: &[
        "unsigned",
        "age",
        "prev_content",
        "replaces_state",
        "membership",
        "invite_room_state",
        "user_id",
        "content/m.relates_to",
        "content/m.mentions",
        "content/format",
        "content/info",
        "content/file",
        "content/geo_uri",
        "content/org.matrix.msc1767.text",
        "content/org.matrix.msc1767.html",
        "content/org.matrix.msc1767.message",
        "content/org.matrix.msc1767.file",
        "content/org.matrix.msc1767.audio",
        "content/org.matrix.msc3245.voice",
        "content/org.matrix.msc3488.location",
        "content/org.matrix.msc3488.asset",
        "content/org.matrix.msc3488.ts",
        "content/org.matrix.msc3381.poll.start",
        "content/m.poll",
        "content/m.text",
        "content/m.location",
        "content/m.asset",
        "content/m.ts",
        "content/displayname",
        "content/avatar_url",
        "content/reason",
        "content/redacts",
        "content/algorithm",
        "content/ciphertext",
        "content/device_id",
        "content/sender_key",
        "content/session_id",
        "content/m.new_content/msgtype",
        "content/m.new_content/format",
        "content/m.new_content/formatted_body",
        "content/m.new_content/m.mentions",
        "content/m.new_content/filename",
        "content/m.new_content/info",
        "content/m.new_content/url",
        "content/m.new_content/file",
        "content/m.new_content/m.relates_to",
        "content/m.new_content/org.matrix.msc1767.text",
        "content/m.new_content/org.matrix.msc1767.html",
        "content/m.new_content/org.matrix.msc1767.message",
        "content/m.new_content/org.matrix.msc3381.poll.start",
        "content/com.beeper.linkpreviews",
        "content/com.beeper.per_message_profile",
        "content/m.federate",
        "content/xyz.amorgan.blurhash",
    ],
    remedy: "write it as Element exports it",
};

/// An event.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct MatrixEvent {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) event_id: Option<String>,
    pub(super) room_id: Option<String>,
    pub(super) sender: Option<String>,
    pub(super) origin_server_ts: Option<i64>,
    pub(super) state_key: Option<String>,
    #[serde(default)]
    pub(super) content: Value,
    #[serde(default)]
    pub(super) unsigned: Value,
    pub(super) redacts: Option<String>,
}

/// What is kept of a message until messages are returned in order of time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct MatrixStoredMessage {
    /// The index of its room in the reader.
    pub(super) room: usize,
    pub(super) id: String,
    pub(super) sender: String,
    pub(super) what: MatrixEventKind,
    /// Its fields that are not read.
    pub(super) odd: UnreadFields,
}

/// What an event is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum MatrixEventKind {
    /// Something was said.
    Said {
        /// Its content, after the edit that the server has bundled with it, if any.
        content: Value,
        /// The time of that edit; 0 if there is none.
        version: u64,
        /// The event that began its thread.
        thread: Option<String>,
        /// The event that it answers.
        reply_to: Option<String>,
    },
    /// A message was edited. The edit itself is kept separately, by the message's id.
    Edit {
        /// The message.
        of: String,
    },
    /// The message was removed.
    Redacted {
        /// When, if the event says so.
        version: Option<u64>,
    },
    /// Another event was removed.
    Redaction {
        /// The event.
        of: String,
    },
}

impl MatrixEvent {
    /// Whether the content was removed.
    pub(super) fn is_redacted(&self) -> bool {
        self.unsigned.get("redacted_because").is_some()
            || (self.is_message() && self.content.as_object().is_none_or(serde_json::Map::is_empty))
    }

    /// When the content was removed.
    pub(super) fn redacted_at(&self) -> Option<u64> {
        self.unsigned.get("redacted_because")?.get("origin_server_ts")?.as_u64()
    }

    /// Whether it is of a kind that holds words.
    pub(super) fn is_message(&self) -> bool {
        self.state_key.is_none()
            && matches!(
                self.kind.as_str(),
                "m.room.message" | "m.sticker" | "m.room.encrypted" | "m.poll.start" | "org.matrix.msc3381.poll.start"
            )
    }

    /// Whether it is encrypted, and the exporting client could not read it.
    pub(super) fn is_encrypted(&self) -> bool {
        self.kind == "m.room.encrypted"
            || self.content.get("msgtype").and_then(Value::as_str) == Some("m.bad.encrypted")
    }

    /// The event that a redaction removes.
    pub(super) fn removed(&self) -> Option<&str> {
        self.redacts.as_deref().or_else(|| self.content.get("redacts").and_then(Value::as_str))
    }

    fn relation(&self, kind: &str) -> Option<&Value> {
        self.content.get("m.relates_to").filter(|r| r.get("rel_type").and_then(Value::as_str) == Some(kind))
    }

    /// The message that it edits.
    pub(super) fn edited(&self) -> Option<&str> {
        self.relation("m.replace")?.get("event_id")?.as_str()
    }

    /// The event that began its thread.
    pub(super) fn thread(&self) -> Option<&str> {
        self.relation("m.thread")?.get("event_id")?.as_str()
    }

    /// Whether the server says that a thread begins here.
    pub(super) fn begins_thread(&self) -> bool {
        self.bundled("m.thread").is_some()
    }

    /// The event that it answers. In a thread, clients name the previous message as a fallback, which is not an answer.
    pub(super) fn reply_to(&self) -> Option<&str> {
        let relation = self.content.get("m.relates_to")?;
        let fallback = relation.get("is_falling_back").and_then(Value::as_bool) == Some(true);
        relation.get("m.in_reply_to").filter(|_| !fallback)?.get("event_id")?.as_str()
    }

    fn bundled(&self, kind: &str) -> Option<&Value> {
        self.unsigned.get("m.relations")?.get(kind)
    }

    /// The content and its version, both from the edit that the server bundles with the message. Some servers have put
    /// the edited words into the content itself and bundle only the time.
    pub(super) fn edited_content(&mut self) -> (Value, u64) {
        let edit = self.bundled("m.replace");
        let version = edit.and_then(|e| e.get("origin_server_ts")).and_then(Value::as_u64).unwrap_or(0);
        let is_own = edit
            .and_then(|e| e.get("sender"))
            .and_then(Value::as_str)
            .is_none_or(|s| Some(s) == self.sender.as_deref());
        if !is_own {
            return (self.content.take(), 0);
        }
        let new = edit.and_then(|e| e.get("content")?.get("m.new_content")).cloned();
        (new.unwrap_or_else(|| self.content.take()), version)
    }
}

/// The words of a content.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct MatrixContent {
    pub(super) text: String,
    pub(super) attachments: Vec<Attachment>,
    /// The accounts that the text mentions, each as its id and the name in the text.
    pub(super) pills: Vec<(String, String)>,
    /// The accounts in the sender's list of mentions; the text may name them.
    pub(super) mentioned: Vec<String>,
    /// Whether a program wrote it: bots mark their messages as notices.
    pub(super) bot: bool,
    /// Whether it is an action: `/me waves`.
    pub(super) action: bool,
    /// Whether it is part of a protocol between clients, not a message.
    pub(super) protocol: bool,
}

/// Reads a content.
pub(super) fn words(content: &Value) -> MatrixContent {
    let string = |key: &str| content.get(key).and_then(Value::as_str).map(str::trim).filter(|t| !t.is_empty());
    let kind = string("msgtype").unwrap_or_default();
    let mentioned = content.get("m.mentions").and_then(|m| m.get("user_ids")?.as_array());
    let mut words = MatrixContent {
        bot: matches!(kind, "m.notice" | "m.server_notice"),
        action: kind == "m.emote",
        protocol: kind.starts_with("m.key.verification."),
        mentioned: mentioned.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
        ..MatrixContent::default()
    };
    let url = || {
        let file = content.get("file").and_then(|f| f.get("url")?.as_str());
        string("url").or(file).or_else(|| string("geo_uri")).map(str::to_owned)
    };
    let shared = match kind {
        "m.image" => Some("image"),
        "m.video" => Some("video"),
        "m.audio" => Some("audio"),
        "m.file" => Some("file"),
        "m.location" => Some("location"),
        // A sticker's content has no type.
        "" if content.get("url").is_some() || content.get("file").is_some() => Some("sticker"),
        _ => None,
    };
    if let Some(kind) = shared {
        // If there is a file name, the body is what was said with the file.
        let said = string("filename").filter(|name| string("body") != Some(*name)).and(string("body"));
        let name = string("filename").or_else(|| string("body")).unwrap_or(kind);
        let attachment = shared_file(name, url());
        words.attachments.push(Attachment {
            kind: Some(kind.to_owned()),
            caption: if matches!(kind, "location" | "sticker") { Some(name.to_owned()) } else { attachment.caption },
            url: attachment.url,
        });
        if said.is_none() {
            return words;
        }
    } else if let Some(poll) = poll(content) {
        words.text = poll;
        return words;
    }
    let body = without_quote(string("body").unwrap_or_default());
    let html = string("formatted_body").filter(|_| string("format") == Some("org.matrix.custom.html"));
    if let Some(html) = html {
        let (html, pills) = without_pills(&without_reply(html));
        words.text = html_to_text(&html);
        words.pills = pills;
    }
    if words.text.is_empty() {
        words.text = body.to_owned();
    }
    words
}

/// The question and the answers of a poll.
fn poll(content: &Value) -> Option<String> {
    let poll = content.get("m.poll").or_else(|| content.get("org.matrix.msc3381.poll.start"))?;
    let text = |value: &Value| {
        let plain = value.get("org.matrix.msc1767.text").or_else(|| value.get("body")).or_else(|| value.get("m.text"));
        let plain = plain.and_then(|p| p.as_str().or_else(|| p.get(0)?.get("body")?.as_str()));
        plain.map(str::trim).filter(|t| !t.is_empty()).map(str::to_owned)
    };
    let mut lines: Vec<String> = poll.get("question").and_then(text).into_iter().collect();
    let answers = poll.get("answers").and_then(Value::as_array);
    lines.extend(answers.into_iter().flatten().filter_map(text).map(|answer| format!("- {answer}")));
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// A body without the quote that clients put before an answer: `> <@ann:example.org> words`.
fn without_quote(body: &str) -> &str {
    if !body.starts_with("> <@") && !body.starts_with("> * <@") {
        return body;
    }
    let mut rest = body;
    while rest.starts_with('>') {
        rest = rest.split_once('\n').map_or("", |(_, after)| after);
    }
    rest.trim_start_matches('\n')
}

/// The same for a formatted body.
fn without_reply(html: &str) -> String {
    let mut html = html.to_owned();
    if let Some(reply) = reply_in(&html) {
        html.replace_range(reply, "");
    }
    html
}

/// The position of the quote in a formatted body.
fn reply_in(html: &str) -> Option<Range<usize>> {
    const END: &str = "</mx-reply>";
    let (from, to) = (html.find("<mx-reply>")?, html.find(END)?);
    (from < to).then(|| from..to + END.len())
}

/// The quote that [`words`] leaves out of a content; empty without one.
pub(super) fn quotation(content: &Value) -> String {
    let string = |key: &str| content.get(key).and_then(Value::as_str).unwrap_or_default();
    let (body, html) = (string("body").trim(), string("formatted_body"));
    match body.strip_suffix(without_quote(body)).unwrap_or_default() {
        "" => reply_in(html).and_then(|reply| html.get(reply)).map(html_to_text).unwrap_or_default(),
        quote => quote.to_owned(),
    }
}

/// Replaces links to accounts with the names that they show. Also returns each account's id and shown name.
fn without_pills(html: &str) -> (String, Vec<(String, String)>) {
    const LINK: &str = "<a href=\"https://matrix.to/#/";
    let mut plain = String::with_capacity(html.len());
    let mut pills: Vec<(String, String)> = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find(LINK) {
        let (before, from) = rest.split_at(at);
        let parts = || {
            let (target, after) = from.get(LINK.len()..)?.split_once('"')?;
            let (_, after) = after.split_once('>')?;
            let (label, after) = after.split_once("</a>")?;
            Some((target, label, after))
        };
        let Some((target, label, after)) = parts() else { break };
        plain.push_str(before);
        plain.push_str(label);
        let account = target.replace("%40", "@").replace("%3A", ":");
        if account.starts_with('@') {
            let pill = (account, html_to_text(label).trim_start_matches('@').to_owned());
            if !pill.1.is_empty() && !pills.contains(&pill) {
                pills.push(pill);
            }
        }
        rest = after;
    }
    plain.push_str(rest);
    (plain, pills)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quotes_and_markup_are_removed() {
        for (content, expected) in [
            (json!({"msgtype": "m.text", "body": "plain *words*"}), "plain *words*"),
            (json!({"msgtype": "m.text", "body": "> <@ann:example.org> one\n> two\n\nyes\n> mine"}), "yes\n> mine"),
            (json!({"msgtype": "m.text", "body": "> * <@ann:example.org> waves\n\nyes"}), "yes"),
            (json!({"msgtype": "m.text", "body": "> my own quote\n\nyes"}), "> my own quote\n\nyes"),
            (
                json!({"msgtype": "m.text", "body": "> <@a:b> x\n\n**yes**", "format": "org.matrix.custom.html",
                    "formatted_body": "<mx-reply><blockquote>x</blockquote></mx-reply><strong>yes</strong> &amp; no"}),
                "yes & no",
            ),
            (json!({"msgtype": "m.text", "body": "plain", "formatted_body": "<b>x</b>"}), "plain"),
            (
                json!({"msgtype": "m.text", "body": "plain", "format": "org.matrix.custom.html", "formatted_body": " "}),
                "plain",
            ),
            (
                json!({"org.matrix.msc3381.poll.start": {
                    "question": {"org.matrix.msc1767.text": "Tea?"},
                    "answers": [{"id": "1", "org.matrix.msc1767.text": "yes"}, {"id": "2", "org.matrix.msc1767.text": "no"}],
                }}),
                "Tea?\n- yes\n- no",
            ),
            (json!({}), ""),
            (json!("x"), ""),
        ] {
            assert_eq!(words(&content).text, expected, "{content}");
        }
    }

    #[test]
    fn pills_are_names_and_mentions() {
        let found = words(&json!({"msgtype": "m.text", "body": "Ann: hi", "format": "org.matrix.custom.html",
            "formatted_body": "<a href=\"https://matrix.to/#/@ann:example.org\">Ann</a>: hi, see <a href=\"https://matrix.to/#/#room:example.org\">#room</a>",
            "m.mentions": {"user_ids": ["@ann:example.org"]}}));
        assert_eq!(found.text, "Ann: hi, see #room");
        assert_eq!(found.pills, [("@ann:example.org".to_owned(), "Ann".to_owned())]);
        assert_eq!(found.mentioned, ["@ann:example.org"]);
    }

    #[test]
    fn media_have_their_names_and_their_captions() {
        let check = |content: Value, kind: &str, caption: &str, text: &str| {
            let found = words(&content);
            let [attachment] = &found.attachments[..] else { panic!("{found:?}") };
            assert_eq!(attachment.kind.as_deref(), Some(kind));
            assert_eq!(attachment.caption.as_deref(), Some(caption));
            assert_eq!(attachment.url.as_deref(), Some("mxc://x/y"));
            assert_eq!(found.text, text);
        };
        check(json!({"msgtype": "m.image", "body": "cat.png", "url": "mxc://x/y"}), "image", "cat.png", "");
        check(json!({"msgtype": "m.file", "body": "a.pdf", "file": {"url": "mxc://x/y"}}), "file", "a.pdf", "");
        check(
            json!({"msgtype": "m.image", "body": "our cat", "filename": "cat.png", "url": "mxc://x/y"}),
            "image",
            "cat.png",
            "our cat",
        );
        check(json!({"body": "a wave", "url": "mxc://x/y"}), "sticker", "a wave", "");
        check(json!({"msgtype": "m.audio", "url": "mxc://x/y"}), "audio", "audio", "");
    }
}
