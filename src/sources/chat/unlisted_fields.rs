//! The fields of a record that its form does not list, and whether they may hold words of a message.
//!
//! In: a record and its form. Out: the unlisted fields that hold a text, a list or an object, with their texts. Fields
//! are left out if their name (an id, an address, a time, a size) or their form (a URL, a date, a hash) shows that they
//! hold no words. Inside a field that is read and has no listed parts, every text is unlisted: it counts as read if its
//! words are in the message. Bounded: at most [`MAX_FIELDS`] fields of a record are reported, from [`MAX_DEPTH`]
//! levels.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::record_form::{RecordForm, split};

/// How many unlisted fields of a record are reported.
const MAX_FIELDS: usize = 16;
/// How deeply a record is searched.
const MAX_DEPTH: usize = 24;
/// How many texts of one field are compared with the message.
const MAX_TEXTS: usize = 256;
/// The longest part of a path that is shown.
const MAX_NAME_BYTES: usize = 48;
/// Names of fields that hold no words on any platform.
const NAMES: [&str; 38] = [
    "type",
    "id",
    "ids",
    "uuid",
    "guid",
    "url",
    "uri",
    "href",
    "ts",
    "time",
    "date",
    "timestamp",
    "mimetype",
    "locale",
    "language",
    "lang",
    "color",
    "colour",
    "width",
    "height",
    "size",
    "version",
    "status",
    "state",
    "flags",
    "hash",
    "checksum",
    "extension",
    "style",
    "format",
    "etag",
    "token",
    "key",
    "signature",
    "mode",
    "privacy",
    "role",
    "level",
];
/// Ends of such names: `user_id`, `userId`, `imageUrl`.
const ENDS: [&str; 22] = [
    "_id",
    "Id",
    "ID",
    "_ids",
    "Ids",
    "_url",
    "Url",
    "URL",
    "_uri",
    "_ts",
    "_time",
    "Time",
    "_at",
    "At",
    "_date",
    "Date",
    "_timestamp",
    "Timestamp",
    "_unixtime",
    "_type",
    "Type",
    "_ms",
];

/// A field that the form does not list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct UnlistedField {
    /// Its path, as a person writes it.
    pub(super) path: String,
    /// Its texts that may be words.
    texts: Vec<String>,
}

impl UnlistedField {
    /// Whether it has words that the message lacks.
    pub(super) fn adds_to(&self, message: &str) -> bool {
        let held: HashSet<String> = words(message).collect();
        self.texts.iter().flat_map(|text| words(text)).any(|word| !held.contains(&word))
    }
}

/// The unlisted fields of a record.
pub(super) fn unlisted(form: &RecordForm, record: &Value) -> Vec<UnlistedField> {
    let read = form.needed.iter().chain(form.other).map(|(path, _)| ListedField { path, is_read: true });
    let anywhere = form.known.iter().filter_map(|path| path.strip_prefix("**/")).collect();
    let known = form.known.iter().filter(|path| !path.starts_with("**/"));
    let paths: Vec<ListedField<'_>> = read.chain(known.map(|path| ListedField { path, is_read: false })).collect();
    let mut walk = UnlistedSearch { anywhere, found: Vec::new() };
    walk.known(record, &paths, "", 0);
    walk.found
}

/// A listed path, relative to a place in the record.
#[derive(Clone, Copy)]
struct ListedField<'a> {
    path: &'a str,
    /// Whether the reader reads it; else it holds no words of the message.
    is_read: bool,
}

struct UnlistedSearch<'a> {
    /// Names that are known at any depth.
    anywhere: HashSet<&'a str>,
    found: Vec<UnlistedField>,
}

impl UnlistedSearch<'_> {
    /// Searches a value; `parts` are the listed paths below it.
    fn known(&mut self, value: &Value, parts: &[ListedField<'_>], at: &str, depth: usize) {
        if depth > MAX_DEPTH || self.found.len() >= MAX_FIELDS {
            return;
        }
        let below: Vec<ListedField<'_>> = parts.iter().filter(|part| !part.path.is_empty()).copied().collect();
        if below.is_empty() {
            // Nothing is searched inside a part that is known but not read.
            if parts.iter().all(|part| part.is_read) {
                self.whole(value, at, depth);
            }
            return;
        }
        let elements = beneath(&below, "[]");
        match value {
            Value::Array(list) => {
                let inside = elements.unwrap_or_else(|| below.clone());
                list.iter().for_each(|element| self.known(element, &inside, at, depth + 1));
            }
            Value::Object(fields) => {
                // A program may write a single element without its list.
                let single = elements.unwrap_or_default();
                let below: Vec<ListedField<'_>> = below.iter().chain(&single).copied().collect();
                for (name, value) in fields {
                    let path = joined(at, name);
                    match beneath(&below, name).or_else(|| beneath(&below, &lower_first(name))) {
                        Some(inside) => self.known(value, &inside, &path, depth + 1),
                        None if self.is_left_out(name) => {}
                        None => self.unlisted(path, value),
                    }
                }
            }
            _ => {}
        }
    }

    /// Searches a field that is listed as a whole: its texts may be words that its reader does not know.
    fn whole(&mut self, value: &Value, at: &str, depth: usize) {
        match value {
            _ if depth > MAX_DEPTH => {}
            Value::Array(list) => list.iter().for_each(|element| match element {
                Value::String(text) if !is_code(text) => self.add(at.to_owned(), vec![text.clone()]),
                element => self.whole(element, at, depth + 1),
            }),
            Value::Object(fields) => {
                for (name, value) in fields.iter().filter(|(name, _)| !self.is_left_out(name)).collect::<Vec<_>>() {
                    let path = joined(at, name);
                    match value {
                        Value::String(text) if !is_code(text) => self.add(path, vec![text.clone()]),
                        value => self.whole(value, &path, depth + 1),
                    }
                }
            }
            _ => {}
        }
    }

    fn is_left_out(&self, name: &str) -> bool {
        is_technical(name) || self.anywhere.contains(name)
    }

    /// Notes an unlisted field, if it is filled.
    fn unlisted(&mut self, path: String, value: &Value) {
        let is_filled = match value {
            Value::String(text) => !text.trim().is_empty() && !is_code(text),
            Value::Array(list) => !list.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            _ => false,
        };
        if is_filled {
            let mut texts = Vec::new();
            collect(value, 0, &mut texts);
            self.add(path, texts);
        }
    }

    fn add(&mut self, path: String, texts: Vec<String>) {
        if let Some(found) = self.found.iter_mut().find(|found| found.path == path) {
            found.texts.extend(texts);
        } else if self.found.len() < MAX_FIELDS {
            self.found.push(UnlistedField { path, texts });
        }
    }
}

/// The texts in a value that may be words.
fn collect(value: &Value, depth: usize, texts: &mut Vec<String>) {
    if depth > MAX_DEPTH || texts.len() >= MAX_TEXTS {
        return;
    }
    match value {
        Value::String(text) if !is_code(text) => texts.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|value| collect(value, depth + 1, texts)),
        Value::Object(fields) => {
            let may_be_words = fields.iter().filter(|(name, _)| !is_technical(name));
            may_be_words.for_each(|(_, value)| collect(value, depth + 1, texts));
        }
        _ => {}
    }
}

/// The listed paths below a name; `None` if no path has the name.
fn beneath<'a>(parts: &[ListedField<'a>], name: &str) -> Option<Vec<ListedField<'a>>> {
    let of_name = parts.iter().filter_map(|part| {
        let (first, path) = split(part.path);
        (first == name).then_some(ListedField { path, is_read: part.is_read })
    });
    Some(of_name.collect::<Vec<_>>()).filter(|inside| !inside.is_empty())
}

fn joined(at: &str, name: &str) -> String {
    let name = name.get(..name.floor_char_boundary(MAX_NAME_BYTES)).unwrap_or_default();
    let name: String = name.chars().map(|c| if c.is_control() { '_' } else { c }).collect();
    if at.is_empty() { name } else { format!("{at}.{name}") }
}

fn lower_first(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// Whether a field of this name holds no words.
fn is_technical(name: &str) -> bool {
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known)) || ENDS.iter().any(|end| name.ends_with(end))
}

/// Whether a text is no words by its form: without a letter, or a URL, a date, or a long code without spaces.
fn is_code(text: &str) -> bool {
    const LONG_CODE_BYTES: usize = 20;
    let text = text.trim();
    if !text.chars().any(char::is_alphabetic) {
        return true;
    }
    if text.contains(char::is_whitespace) || !text.is_ascii() {
        return false;
    }
    let has_digit = text.bytes().any(|byte| byte.is_ascii_digit());
    let is_address = text.contains("://") || text.starts_with("data:");
    let is_date =
        text.starts_with(|c: char| c.is_ascii_digit()) && text.bytes().all(|b| b"0123456789TZtz:+-.".contains(&b));
    is_address || is_date || (has_digit && text.len() >= LONG_CODE_BYTES)
}

/// The words of a text, in lower case.
fn words(text: &str) -> impl Iterator<Item = String> {
    let plain = text.replace("&amp;", " ").replace("&lt;", " ").replace("&gt;", " ").replace("&nbsp;", " ");
    let plain: Vec<String> =
        plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    plain.into_iter()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::record_form::{LIST, OBJECT, TEXT},
        *,
    };

    const FORM: RecordForm = RecordForm {
        needed: &[("text", TEXT), ("from", OBJECT), ("from/name", TEXT)],
        other: &[("parts", LIST), ("parts[]", OBJECT), ("parts[]/text", TEXT), ("blocks", LIST)],
        known: &["reactions", "**/sender_color"],
        remedy: "export it again",
    };

    fn found(record: Value) -> Vec<String> {
        unlisted(&FORM, &record).into_iter().map(|field| field.path).collect()
    }

    #[test]
    fn unlisted_fields_are_found_at_every_level() {
        for (record, expected) in [
            (json!({"text": "hi", "note": "some words"}), vec!["note"]),
            (json!({"Text": "hi", "From": {"Name": "Ann", "mood": "merry"}}), vec!["From.mood"]),
            (json!({"parts": [{"text": "a"}, {"aside": "b"}, {"aside": "c"}]}), vec!["parts.aside"]),
            (json!({"parts": {"aside": "b"}}), vec!["parts.aside"]),
            (json!({"rich": {"blocks": [{"text": "b"}]}, "list": ["灯塔"]}), vec!["list", "rich"]),
            (json!({"note": "zq001qz"}), vec!["note"]),
            // If nothing below a field is listed, the message shows whether the field is read.
            (json!({"blocks": [{"text": "b", "more": {"aside": "c"}}]}), vec!["blocks.more.aside", "blocks.text"]),
            (json!({"reactions": [{"by": "Ann Lee"}], "text": {"x": "y"}}), vec!["text.x"]),
            (json!({"user_id": "a b", "sender_color": "red", "from": {"sender_color": "red"}, "note": null}), vec![]),
            (json!({"note": "", "more": " ", "count": 3, "is_new": true, "list": [], "object": {}}), vec![]),
            (
                json!({"a": "https://a.example/x", "b": "2024-05-01T10:00:00Z", "c": "6ba7b810-9dad-11d1-80b4", "d": "12"}),
                vec![],
            ),
        ] {
            let shown = record.to_string();
            assert_eq!(found(record), expected, "{shown}");
        }
    }

    #[test]
    fn words_that_the_message_has_elsewhere_are_not_missing() {
        let fields = unlisted(&FORM, &json!({"html": "<b>Six</b>, at the quay", "more": {"x": [{"y": "at nine"}]}}));
        let adds: Vec<bool> = fields.iter().map(|field| field.adds_to("at the quay, b six b!")).collect();
        assert_eq!(adds, [false, true]);
    }
}
