//! Reads the words of a message, which Telegram writes as a string or as a list of pieces.
//!
//! In: the value of `text` or `text_entities`: a string, or a list of strings and of objects with a `type` and a
//! `text`. Out: plain text. A link with a label keeps its address in parentheses.

use serde_json::Value;

use types::model::Attachment;

/// The plain text of such a value; empty for anything else.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(pieces) => pieces.iter().map(piece).collect(),
        _ => String::new(),
    }
}

fn piece(value: &Value) -> String {
    let field = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    match (value, field("type")) {
        (Value::String(text), _) => text.clone(),
        (_, "text_link") if !field("href").is_empty() && field("href") != field("text") => {
            format!("{} ({})", field("text"), field("href"))
        }
        _ => field("text").to_owned(),
    }
}

/// The words of a forwarded message, after its origin if that is known. If there are no words, the captions of what it
/// shares name the origin.
pub(super) fn forwarded(origin: Option<&str>, words: &str, attachments: &mut [Attachment]) -> String {
    let mark = origin.map_or_else(|| "Forwarded".to_owned(), |origin| format!("Forwarded from {origin}"));
    if !words.is_empty() {
        return format!("{mark}: {words}");
    }
    for caption in attachments.iter_mut().filter_map(|attachment| attachment.caption.as_mut()) {
        *caption = format!("{mark}: {caption}");
    }
    String::new()
}

/// A text field, without blank space at its ends; `None` if it is empty.
pub(super) fn text_field<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}

/// A whole-number field; the number may be in quotes.
pub(super) fn integer(object: &Value, name: &str) -> Option<i64> {
    match object.get(name)? {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}
