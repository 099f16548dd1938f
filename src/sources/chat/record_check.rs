//! The kinds of values that the fields of a platform's records may hold, as one table for each format.
//!
//! In: a record as JSON, and the table. Out: the record, in which every listed field holds what it should, or why it
//! cannot be read. If a field with words, a speaker, a time or an id holds another kind of value, the record is a dead
//! letter that names the field; any other listed field is then removed from the record and reported. A field that is
//! not listed, such as one of a later version of the platform, is reported if its words are not in the message; if the
//! message has no other words, it is a dead letter, `unsupported: FIELD`. So no part of a message disappears silently.
//! A field that is absent, null or an empty text is not an error.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

pub(crate) use super::record_form::{LIST, NUMBER, OBJECT, RecordForm, TEXT, TRUTH};
use super::{
    chat_item::{ChatItem, SkipReason},
    record_form::split,
    unlisted_fields::{UnlistedField, unlisted},
    unread_counts::UnreadCounts,
};

/// The kinds in words, in the order of their bits.
const KINDS: [&str; 5] = ["a text", "a number", "true or false", "an object", "a list"];

/// The fields of one record that are not read.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct UnreadFields {
    /// Listed fields that hold the wrong kind of value, each with the problem.
    odd: Vec<(String, String)>,
    /// Fields that the form does not list.
    unlisted: Vec<UnlistedField>,
}

impl RecordForm {
    /// Checks a record, and removes fields that are odd and not needed.
    ///
    /// # Errors
    /// Names the needed field that is odd, and says what to do.
    pub(crate) fn check(&self, record: &mut Value) -> Result<UnreadFields, String> {
        for (path, holds) in self.needed {
            if let Some(problem) = first_odd(record, path, *holds) {
                return Err(format!("{}: {problem}; {}", shown(path), self.remedy));
            }
        }
        let mut odd = Vec::new();
        for (path, holds) in self.other {
            if let Some(problem) = first_odd(record, path, *holds) {
                leave_out(record, path, *holds);
                odd.push((shown(path), problem));
            }
        }
        Ok(UnreadFields { odd, unlisted: unlisted(self, record) })
    }

    /// A record of this form as `T`, and its odd fields.
    ///
    /// # Errors
    /// As [`RecordForm::check`]; also if the record does not fit `T` for another reason.
    pub(crate) fn read<T: DeserializeOwned>(&self, mut record: Value) -> Result<(T, UnreadFields), String> {
        let odd = self.check(&mut record)?;
        let read = serde_json::from_value(record).map_err(|e| format!("{e}; {}", self.remedy))?;
        Ok((read, odd))
    }
}

impl UnreadFields {
    /// The item of a record with these fields. A message without words becomes a dead letter, since its words may be in
    /// these fields; for any other message the fields are reported.
    ///
    /// # Errors
    /// Names the first of the fields, if the message has no other words.
    pub(crate) fn judge(self, item: ChatItem, unread: &mut UnreadCounts) -> Result<ChatItem, String> {
        match item {
            ChatItem::Skip(SkipReason::Empty) => {
                self.without_words().map_or(Ok(ChatItem::Skip(SkipReason::Empty)), Err)
            }
            ChatItem::Message(message) => {
                self.tell_beside(&message.words(), unread);
                Ok(ChatItem::Message(message))
            }
            other => Ok(other),
        }
    }

    /// Why a message without other words is a dead letter; `None` if every field of it is read.
    pub(crate) fn without_words(&self) -> Option<String> {
        if let Some((path, problem)) = self.odd.first() {
            return Some(format!("{path}: {problem}, and the message has no other words; export it again"));
        }
        let UnlistedField { path, .. } = self.unlisted.first()?;
        Some(format!("unsupported: {path}; the message has no words in fields that are known; report this field"))
    }

    /// Counts the fields as unread; unlisted ones only if their words are not all in `words`, those of the message.
    pub(crate) fn tell_beside(&self, words: &str, unread: &mut UnreadCounts) {
        self.odd.iter().for_each(|(path, _)| unread.add(path));
        self.unlisted.iter().filter(|field| field.adds_to(words)).for_each(|field| unread.add(&field.path));
    }
}

/// A path as a person writes it.
fn shown(path: &str) -> String {
    path.replace('/', ".")
}

/// The problem with the first value under a path that is of another kind.
fn first_odd(value: &Value, path: &str, holds: u8) -> Option<String> {
    if path.is_empty() {
        return odd(value, holds);
    }
    let (name, rest) = split(path);
    match (name, value) {
        ("[]", Value::Array(elements)) => elements.iter().find_map(|element| first_odd(element, rest, holds)),
        ("[]", value) => first_odd(value, rest, holds),
        (name, Value::Object(_)) => first_odd(value.get(key_of(value, name)?)?, rest, holds),
        _ => None,
    }
}

/// Removes the values under a path that are of another kind.
fn leave_out(value: &mut Value, path: &str, holds: u8) {
    let (name, rest) = split(path);
    match (name, value) {
        ("[]", Value::Array(elements)) if rest.is_empty() => elements.retain(|element| odd(element, holds).is_none()),
        ("[]", Value::Array(elements)) => elements.iter_mut().for_each(|element| leave_out(element, rest, holds)),
        ("[]", value) if !rest.is_empty() => leave_out(value, rest, holds),
        (name, value @ Value::Object(_)) => {
            let Some(key) = key_of(value, name) else { return };
            let Some(object) = value.as_object_mut() else { return };
            if !rest.is_empty() && rest != "[]" {
                if let Some(inner) = object.get_mut(&key) {
                    leave_out(inner, rest, holds);
                }
            } else if object.get(&key).is_some_and(|inner| rest.is_empty() || !inner.is_array()) {
                object.remove(&key);
            } else if let Some(inner) = object.get_mut(&key) {
                leave_out(inner, rest, holds);
            }
        }
        _ => {}
    }
}

/// The key of a name in an object: as it is, or with a capital letter.
fn key_of(value: &Value, name: &str) -> Option<String> {
    let object = value.as_object()?;
    if object.contains_key(name) {
        return Some(name.to_owned());
    }
    let mut letters = name.chars();
    let capital = format!("{}{}", letters.next()?.to_ascii_uppercase(), letters.as_str());
    object.contains_key(&capital).then_some(capital)
}

/// The problem with a value, if it is of none of these kinds.
fn odd(value: &Value, holds: u8) -> Option<String> {
    let kind = match value {
        Value::Null => return None,
        Value::String(text) if text.trim().is_empty() => return None,
        Value::String(_) => TEXT,
        Value::Number(_) => NUMBER,
        Value::Bool(_) => TRUTH,
        Value::Object(_) => OBJECT,
        Value::Array(_) => LIST,
    };
    let stands_for_an_object = holds & OBJECT != 0 && value.as_str().is_some_and(is_of_powershell);
    if kind & holds != 0 && !stands_for_an_object {
        return None;
    }
    let names = |kinds: u8| {
        let named = KINDS.iter().enumerate().filter(|(at, _)| kinds & (1 << at) != 0).map(|(_, name)| *name);
        named.collect::<Vec<_>>().join(" or ")
    };
    Some(format!("{} where {} belongs", names(kind), names(if stands_for_an_object { holds & !TEXT } else { holds })))
}

/// Whether a text is what PowerShell writes for an object below the depth that it converts: `@{id=1; name=}`, or its
/// type.
fn is_of_powershell(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("@{") || ["System.", "Microsoft.Graph."].iter().any(|of| text.starts_with(of))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FORM: RecordForm = RecordForm {
        needed: &[("id", TEXT | NUMBER), ("from", OBJECT | TEXT), ("from/name", TEXT), ("parts[]/text", TEXT)],
        other: &[("files", LIST), ("files[]", OBJECT), ("files[]/size", NUMBER), ("edited", TEXT)],
        known: &["files[]/name", "reactions"],
        remedy: "export it again",
    };

    #[test]
    fn a_needed_field_of_another_kind_is_named() {
        for (record, expected) in [
            (json!({"id": {}}), "id: an object where a text or a number belongs; export it again"),
            (json!({"from": 5}), "from: a number where a text or an object belongs; export it again"),
            (json!({"from": "@{name=; id=}"}), "from: a text where an object belongs; export it again"),
            (json!({"from": {"name": ["a"]}}), "from.name: a list where a text belongs; export it again"),
            (json!({"From": {"Name": true}}), "from.name: true or false where a text belongs; export it again"),
            (
                json!({"parts": [{"text": "x"}, {"text": 1}]}),
                "parts[].text: a number where a text belongs; export it again",
            ),
            (json!({"parts": {"text": 1}}), "parts[].text: a number where a text belongs; export it again"),
        ] {
            assert_eq!(FORM.check(&mut record.clone()), Err(expected.to_owned()), "{record}");
        }
        for record in
            [json!({}), json!({"id": null, "from": ""}), json!({"id": 5, "from": "Ann", "parts": []}), json!([1])]
        {
            assert_eq!(FORM.check(&mut record.clone()), Ok(UnreadFields::default()), "{record}");
        }
    }

    #[test]
    fn another_field_is_left_out_and_told() {
        for (record, left, odd) in [
            (json!({"id": 1, "edited": 5}), json!({"id": 1}), vec!["edited"]),
            (json!({"files": "System.Object[]"}), json!({}), vec!["files"]),
            (
                json!({"files": [1, {"size": "big", "name": "a"}]}),
                json!({"files": [{"name": "a"}]}),
                vec!["files[]", "files[].size"],
            ),
            (json!({"files": [{"size": 3}]}), json!({"files": [{"size": 3}]}), vec![]),
        ] {
            let mut checked = record.clone();
            let found = FORM.check(&mut checked).unwrap();
            assert_eq!(found.odd.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), odd, "{record}");
            assert_eq!(checked, left, "{record}");
        }
    }

    #[test]
    fn a_message_without_other_words_is_a_dead_letter() {
        let odd = || FORM.check(&mut json!({"edited": 5})).unwrap();
        let mut unread = UnreadCounts::default();
        let reason = odd().judge(ChatItem::Skip(SkipReason::Empty), &mut unread).unwrap_err();
        assert!(reason.starts_with("edited: a number where a text belongs, and the message has no other"), "{reason}");
        assert_eq!(odd().judge(ChatItem::Skip(SkipReason::Copy), &mut unread), Ok(ChatItem::Skip(SkipReason::Copy)));
        assert!(unread.counts().is_empty());
    }
}
