//! Reads what a Teams message says.
//!
//! In: a message of Microsoft Graph. Out: its words with mentions as names, what was shared, and the message that it
//! quotes. Cards that programs post become attachments whose caption is the card's words.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

use super::message::{TeamsObject, identity};
use crate::chat::{Account, html_to_text, resolve_entities, shared_file};
use types::model::Attachment;

/// The maximum number of texts that are taken from a card.
const MAX_CARD_TEXTS: usize = 200;

static MENTION: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?is)<at\b[^>]*>(.*?)</at>").ok());
static EMOJI: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?is)<emoji\b[^>]*\balt="([^"]*)"[^>]*>(?:\s*</emoji>)?"#).ok());
static MARKER: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?is)<attachment\b[^>]*>(?:\s*</attachment>)?").ok());
static IMAGE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?is)<img\b[^>]*>").ok());
static ALT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#"(?i)\balt="([^"]*)""#).ok());
static SRC: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#"(?i)\bsrc="([^"]*)""#).ok());

/// What a message says.
#[derive(Debug, Default)]
pub(super) struct TeamsContent {
    pub(super) text: String,
    pub(super) attachments: Vec<Attachment>,
    pub(super) mentions: Vec<Account>,
    /// The id of the message that it quotes.
    pub(super) quotes: Option<String>,
}

/// Reads a message's body and attachments.
pub(super) fn words(message: TeamsObject<'_>) -> TeamsContent {
    let mut words = TeamsContent::default();
    let content = message.object("body").and_then(|b| b.get("content")).and_then(Value::as_str).unwrap_or_default();
    let kind = message.object("body").and_then(|b| b.get("contentType"));
    // PowerShell may write the content type as its number in the enumeration.
    let is_html = match kind {
        Some(Value::String(kind)) => kind.eq_ignore_ascii_case("html"),
        Some(Value::Number(kind)) => kind.as_u64() == Some(1),
        _ => content.trim_start().starts_with('<'),
    };
    words.text = if is_html { html(content, &mut words.attachments) } else { content.trim().to_owned() };
    if let Some(subject) = message.text("subject") {
        words.text = format!("{subject}\n{}", words.text).trim().to_owned();
    }
    for mention in message.list("mentions") {
        let mentioned = mention.object("mentioned");
        let account = mentioned.and_then(|m| {
            let user = m.object("user").and_then(|user| identity(user, false));
            user.or_else(|| m.object("application").and_then(|bot| identity(bot, true)))
        });
        // The text shows the name at the time of writing, and often only the first name.
        let Some(shown) = mention.text("mentionText") else { continue };
        let Some(account) = account else { continue };
        let account = Account { name: shown.to_owned(), ..account };
        if words.text.contains(shown) && !words.mentions.contains(&account) {
            words.mentions.push(account);
        }
    }
    for attachment in message.list("attachments") {
        attached(attachment, &mut words);
    }
    words
}

fn html(content: &str, attachments: &mut Vec<Attachment>) -> String {
    let mut html = content.to_owned();
    let replace = |html: &mut String, pattern: &LazyLock<Option<Regex>>, with: &str| {
        if let Some(pattern) = &**pattern {
            *html = pattern.replace_all(html, with).into_owned();
        }
    };
    replace(&mut html, &MENTION, "@$1");
    replace(&mut html, &EMOJI, "$1");
    replace(&mut html, &MARKER, "");
    if let Some(pattern) = &*IMAGE {
        let pictures = pattern.replace_all(&html, |found: &Captures<'_>| {
            let tag = found.get(0).map_or("", |m| m.as_str());
            let value = |pattern: &LazyLock<Option<Regex>>| {
                let value = pattern.as_ref().and_then(|p| p.captures(tag)).and_then(|c| c.get(1));
                value.map(|m| resolve_entities(m.as_str())).filter(|v| !v.trim().is_empty())
            };
            let alt = value(&ALT);
            // Older clients write emoji as pictures.
            if tag.contains("schema.skype.com/Emoji") {
                return alt.unwrap_or_default();
            }
            let caption = alt.unwrap_or_else(|| "image".to_owned());
            attachments.push(Attachment { kind: Some("image".to_owned()), caption: Some(caption), url: value(&SRC) });
            String::new()
        });
        html = pictures.into_owned();
    }
    html_to_text(&html)
}

fn attached(attachment: TeamsObject<'_>, words: &mut TeamsContent) {
    let kind = attachment.text("contentType").unwrap_or_default();
    let name = attachment.text("name");
    let url = attachment.text("contentUrl").map(str::to_owned);
    let content = attachment.text("content").and_then(|text| serde_json::from_str::<Value>(text).ok());
    let content = content.as_ref().or_else(|| attachment.get("content").filter(|c| c.is_object()));
    match kind {
        "messageReference" => {
            words.quotes = content.and_then(|c| TeamsObject(c).id("messageId")).or(attachment.id("id"))
        }
        "forwardedMessageReference" => {
            let forwarded = content.and_then(|c| TeamsObject(c).text("originalMessageContent")).map(html_to_text);
            if let Some(forwarded) = forwarded.filter(|text| !text.is_empty()) {
                words.text = format!("{}\n{forwarded}", words.text).trim().to_owned();
            }
        }
        "reference" => words.attachments.push(shared_file(name.or(url.as_deref()).unwrap_or_default(), url.clone())),
        _ => {
            let mut texts = Vec::new();
            if let Some(content) = content {
                card_texts(content, &mut texts);
            }
            let is_card = kind.contains("card") || !texts.is_empty();
            let words_of_card = (!texts.is_empty()).then(|| texts.join("\n"));
            words.attachments.push(match words_of_card.or_else(|| name.map(str::to_owned)) {
                Some(caption) if is_card => Attachment { kind: Some("card".to_owned()), caption: Some(caption), url },
                Some(name) => shared_file(&name, url),
                None => Attachment {
                    kind: Some(if is_card { "card" } else { "file" }.to_owned()),
                    caption: Some(if is_card { "card" } else { "file" }.to_owned()),
                    url,
                },
            });
        }
    }
}

/// The words of a card, in the order in which it shows them.
fn card_texts(card: &Value, texts: &mut Vec<String>) {
    // Lists the order in which cards show fields, because serde_json sorts an object's keys.
    const SHOWN: [&str; 5] = ["title", "subtitle", "summary", "text", "value"];
    const WITHIN: [&str; 8] = ["body", "items", "columns", "facts", "sections", "rows", "cells", "inlines"];
    match card {
        Value::Array(parts) => parts.iter().for_each(|part| card_texts(part, texts)),
        Value::Object(object) => {
            for key in SHOWN {
                let text = object.get(key).and_then(Value::as_str).map(html_to_text).filter(|t| !t.is_empty());
                if texts.len() < MAX_CARD_TEXTS {
                    texts.extend(text);
                }
            }
            for key in WITHIN {
                if let Some(parts) = object.get(key) {
                    card_texts(parts, texts);
                }
            }
        }
        _ => {}
    }
}
