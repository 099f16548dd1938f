//! Makes attachments from files, embeds and stickers.
//!
//! In: the lists of a message of DiscordChatExporter. Out: attachments, each with a caption: a file's
//! name, an embed's words, a sticker's name.

use serde_json::Value;

use crate::chat::shared_file;
use types::model::Attachment;

/// What a message shares: files, then embeds, then stickers. `render` turns an embed's words into plain text.
pub(super) fn attachments(message: &Value, render: impl Fn(&str) -> String) -> Vec<Attachment> {
    let list = |name: &str| message.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let files = list("attachments").iter().filter_map(|file| match (field(file, "fileName"), field(file, "url")) {
        (Some(name), url) => Some(shared_file(name, url.map(str::to_owned))),
        (None, url) => url.map(linked_file),
    });
    let embeds = list("embeds").iter().filter_map(|embed| embed_attachment(embed, &render));
    let stickers = list("stickers").iter().filter(|sticker| sticker.is_object()).map(|sticker| {
        let name = field(sticker, "name").map_or("sticker".to_owned(), |name| format!("sticker {name}"));
        attachment("sticker", name, field(sticker, "sourceUrl"))
    });
    files.chain(embeds).chain(stickers).collect()
}

/// A file known only by its address.
pub(super) fn linked_file(url: &str) -> Attachment {
    shared_file(url.split(['?', '#']).next().unwrap_or(url), Some(url.to_owned()))
}

fn embed_attachment(embed: &Value, render: impl Fn(&str) -> String) -> Option<Attachment> {
    let url = field(embed, "url");
    let nested = |object: &str, name: &str| embed.get(object).and_then(|o| field(o, name));
    let fields = embed.get("fields").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let fields = fields.iter().filter_map(|f| match (field(f, "name"), field(f, "value")) {
        (Some(name), Some(value)) => Some(format!("{name}: {value}")),
        (one, other) => one.or(other).map(str::to_owned),
    });
    let own = [nested("author", "name"), field(embed, "title"), field(embed, "description")];
    let own = own.into_iter().flatten().map(str::to_owned);
    let footer = nested("footer", "text").map(str::to_owned);
    let words: Vec<String> = own.chain(fields).chain(footer).map(|words| render(&words)).collect();
    let image = ["image", "thumbnail", "video"].into_iter().find_map(|object| nested(object, "url"));
    let caption = match (words.join("\n"), url.or(image)) {
        (words, _) if !words.trim().is_empty() => words,
        (_, Some(address)) => address.to_owned(),
        _ => return None,
    };
    Some(attachment("embed", caption, url.or(image)))
}

fn attachment(kind: &str, caption: String, url: Option<&str>) -> Attachment {
    Attachment { kind: Some(kind.to_owned()), caption: Some(caption), url: url.map(str::to_owned) }
}

/// A text field, without blank space at its ends; `None` if it is empty.
pub(super) fn field<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}
