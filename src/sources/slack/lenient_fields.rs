//! Reads fields that integrations fill, and which therefore do not always match Slack's documentation.
//!
//! In: a field of a message, of any type. Out: the part of it that can be read. A field that cannot be read counts as
//! absent. It is never an error, because the words of the message are in other fields.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

/// A text, or a number or boolean as it is written.
///
/// # Errors
/// When the field is not valid JSON.
pub(super) fn text<'de, D: Deserializer<'de>>(field: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(field)? {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    })
}

/// A value of this type, if it is one.
///
/// # Errors
/// As [`text`].
pub(super) fn value<'de, D: Deserializer<'de>, T: DeserializeOwned>(field: D) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(field)?).ok())
}

/// The elements of a list that are of this type.
///
/// # Errors
/// As [`text`].
pub(super) fn list<'de, D: Deserializer<'de>, T: DeserializeOwned>(field: D) -> Result<Vec<T>, D::Error> {
    Ok(match Value::deserialize(field)? {
        Value::Array(elements) => elements.into_iter().filter_map(|e| serde_json::from_value(e).ok()).collect(),
        _ => Vec::new(),
    })
}
