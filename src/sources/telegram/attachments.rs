//! Reads what is shared in a message: files, places, contacts, polls.
//!
//! In: a message of the JSON export. Out: attachments, each with a caption and, if the file was exported, its path
//! inside the export. A remark in place of a path, such as `(File not included. …)`, is not taken for a path.

use serde_json::Value;

use super::message_text::{plain, text_field};
use types::model::Attachment;

/// What a message shares, in the order in which Telegram shows it.
pub(super) fn attachments(message: &Value) -> Vec<Attachment> {
    let mut all = Vec::new();
    let mut add = |kind: &str, caption: String, url: Option<String>| {
        let caption = if caption.trim().is_empty() { kind.to_owned() } else { caption };
        all.push(Attachment { kind: Some(kind.to_owned()), caption: Some(caption), url });
    };
    if message.get("photo").is_some() {
        add("image", String::new(), path(message, "photo"));
    }
    if message.get("file").is_some() || message.get("media_type").is_some() {
        let (kind, caption) = file(message);
        add(kind, caption, path(message, "file"));
    }
    if let Some(contact) = message.get("contact_information") {
        let name = joined([text_field(contact, "first_name"), text_field(contact, "last_name")], " ");
        add(
            "contact",
            joined([Some(name.as_str()), text_field(contact, "phone_number")], ", "),
            path(message, "contact_vcard"),
        );
    }
    if let Some(place) = text_field(message, "place_name") {
        add("location", joined([Some(place), text_field(message, "address")], ", "), None);
    } else if let Some(point) = message.get("location_information") {
        let degrees = |name| point.get(name).map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned));
        let (latitude, longitude) = (degrees("latitude"), degrees("longitude"));
        add("location", joined([latitude.as_deref(), longitude.as_deref()], ", "), None);
    }
    if let Some(title) = text_field(message, "game_title") {
        let url = text_field(message, "game_link").map(str::to_owned);
        add("game", joined([Some(title), text_field(message, "game_description")], ": "), url);
    }
    if let Some(invoice) = message.get("invoice_information") {
        // Telegram Desktop writes this object as a string that holds JSON.
        let inner = invoice.as_str().and_then(|text| serde_json::from_str(text).ok());
        let invoice: &Value = inner.as_ref().unwrap_or(invoice);
        add("invoice", joined([text_field(invoice, "title"), text_field(invoice, "description")], ": "), None);
    }
    if let Some(poll) = message.get("poll") {
        add("poll", list(poll, "question"), None);
    }
    if let Some(todo) = message.get("todo_list") {
        add("checklist", list(todo, "title"), None);
    }
    for (field, kind) in [
        ("giveaway_information", "giveaway"),
        ("giveaway_results", "giveaway results"),
        ("paid_stars_amount", "paid media"),
    ] {
        if let Some(value) = message.get(field) {
            add(kind, text_field(value, "additional_prize").unwrap_or_default().to_owned(), None);
        }
    }
    all
}

/// The kind and the caption of a file.
fn file(message: &Value) -> (&'static str, String) {
    let mime = text_field(message, "mime_type").unwrap_or_default();
    let kind = match text_field(message, "media_type").unwrap_or_default() {
        "sticker" => "sticker",
        "video_message" => "video message",
        "voice_message" => "voice message",
        "animation" => "animation",
        "video_file" => "video",
        "audio_file" => "audio",
        _ if mime.starts_with("image/") => "image",
        _ if mime.starts_with("video/") => "video",
        _ if mime.starts_with("audio/") => "audio",
        _ => "file",
    };
    let name = || {
        let stored = path(message, "file");
        let stored = stored.as_deref().and_then(|p| p.rsplit('/').next());
        text_field(message, "file_name").or(stored).unwrap_or_default().to_owned()
    };
    let caption = match kind {
        "sticker" => joined([Some("sticker"), text_field(message, "sticker_emoji")], " "),
        // Telegram Desktop makes up their names, which mean nothing.
        "voice message" | "video message" => String::new(),
        "audio" => joined([text_field(message, "performer"), text_field(message, "title")], " – "),
        _ => name(),
    };
    (kind, if caption.is_empty() && kind == "audio" { name() } else { caption })
}

/// A title with its answers or items: `Where to? (Paris / Rome)`.
fn list(value: &Value, title: &str) -> String {
    let title = value.get(title).map(plain).unwrap_or_default();
    let items = value.get("answers").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let items: Vec<String> = items.iter().filter_map(|item| item.get("text").map(plain)).collect();
    if items.is_empty() { title } else { format!("{title} ({})", items.join(" / ")) }
}

/// The path of a file inside the export.
fn path(message: &Value, field: &str) -> Option<String> {
    // "(File not included. …)"; a contact's name may come before it: "Ann (File unavailable, …)".
    let is_remark = |path: &str| path.ends_with("download.)") || path.ends_with("later)") || path.starts_with('(');
    text_field(message, field).filter(|path| !is_remark(path)).map(str::to_owned)
}

/// The non-empty texts, with a separator between them.
fn joined<const N: usize>(texts: [Option<&str>; N], separator: &str) -> String {
    let texts: Vec<&str> = texts.into_iter().flatten().filter(|t| !t.is_empty()).collect();
    texts.join(separator)
}
