//! Metadata of a turn: what a program keeps beside the words.
//!
//! In: a JSON object. Out: the same object, of limited size and depth. Nobody reads it but conditions of a selector:
//! it is no text of the turn, so nothing of it is embedded, quoted or counted.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{FieldError, MAX_METADATA_BYTES, MAX_METADATA_DEPTH};

/// A JSON object; at most 65,536 bytes of JSON and 32 levels. Integers of 64 bits and doubles are kept as they were
/// written; the order of its fields is not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Metadata(Map<String, Value>);

impl Metadata {
    /// The fields.
    #[must_use]
    pub fn fields(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The value at a path of field names; `None` if there is no such field.
    #[must_use]
    pub fn at<'m>(&'m self, path: &[String]) -> Option<&'m Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.0.get(first)?, |value, name| value.as_object()?.get(name))
    }

    /// The object as JSON, without spaces.
    #[must_use]
    pub fn to_json(&self) -> String {
        // A map with text keys always has a JSON form.
        serde_json::to_string(&self.0).unwrap_or_default()
    }

    /// Reads [`Self::to_json`] back; `None` for any other text.
    #[must_use]
    pub fn from_json(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    /// The texts among its values, at any depth.
    #[must_use]
    pub fn texts(&self) -> Vec<&str> {
        let mut texts = Vec::new();
        add_texts(self.0.values(), &mut texts);
        texts
    }

    /// Checks size and depth.
    ///
    /// # Errors
    /// [`FieldError`] names `metadata`.
    pub fn check(&self) -> Result<(), FieldError> {
        if depth_exceeds(self.0.values(), MAX_METADATA_DEPTH - 1) {
            let problem = format!("more than {MAX_METADATA_DEPTH} levels of objects and arrays");
            return Err(FieldError::new("metadata", problem, "nest it less, or keep the inner part as a text"));
        }
        let bytes = self.to_json().len();
        if bytes > MAX_METADATA_BYTES {
            let problem = format!("{bytes} bytes of JSON, more than {MAX_METADATA_BYTES}");
            return Err(FieldError::new("metadata", problem, "store the rest elsewhere and keep its address here"));
        }
        Ok(())
    }
}

impl From<Map<String, Value>> for Metadata {
    fn from(fields: Map<String, Value>) -> Self {
        Self(fields)
    }
}

fn add_texts<'v>(values: impl Iterator<Item = &'v Value>, texts: &mut Vec<&'v str>) {
    for value in values {
        match value {
            Value::String(text) => texts.push(text),
            Value::Array(items) => add_texts(items.iter(), texts),
            Value::Object(fields) => add_texts(fields.values(), texts),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Whether any of the values has more than `levels` levels of objects and arrays.
fn depth_exceeds<'v>(mut values: impl Iterator<Item = &'v Value>, levels: usize) -> bool {
    values.any(|value| match value {
        Value::Array(items) => levels == 0 || depth_exceeds(items.iter(), levels - 1),
        Value::Object(fields) => levels == 0 || depth_exceeds(fields.values(), levels - 1),
        _ => false,
    })
}

impl JsonSchema for Metadata {
    fn schema_name() -> Cow<'static, str> {
        "Metadata".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A JSON object; at most 65,536 bytes of JSON and 32 levels.",
            "type": "object",
            "additionalProperties": true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(json: &str) -> Metadata {
        Metadata::from_json(json).expect(json)
    }

    #[test]
    fn what_is_read_is_written_again_with_its_numbers() {
        for json in [
            "{}",
            r#"{"a":1,"b":1.0,"c":-0.0,"d":18446744073709551615,"e":-9223372036854775808,"f":0.1,"g":5e-324}"#,
            r#"{"":{"a.b":[null,true,"é\n",[],{}]},"z":""}"#,
        ] {
            assert_eq!(metadata(json).to_json(), json);
            assert_eq!(metadata(&metadata(json).to_json()), metadata(json));
        }
        assert!(["[]", "1", "null", "{", "\"a\""].iter().all(|json| Metadata::from_json(json).is_none()));
        assert_ne!(metadata(r#"{"a":1}"#), metadata(r#"{"a":1.0}"#), "each is kept as it was written");
    }

    #[test]
    fn texts_are_found_at_any_depth() {
        assert_eq!(metadata(r#"{"a":"x","b":[1,["y",null]],"c":{"d":{"e":"z"}}}"#).texts(), ["x", "y", "z"]);
    }

    #[test]
    fn size_and_depth_are_limited_and_a_path_leads_through_objects_alone() {
        let of_bytes = |bytes: usize| metadata(&format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - r#"{"a":""}"#.len())));
        of_bytes(MAX_METADATA_BYTES).check().expect("it fits");
        let refused = of_bytes(MAX_METADATA_BYTES + 1).check().expect_err("too long").to_string();
        assert!(refused.starts_with("metadata: 65537 bytes"), "{refused}");
        let nested = |levels: usize| {
            let inner = levels - 1;
            metadata(&format!(r#"{{"a":{}{}}}"#, "[".repeat(inner), "]".repeat(inner)))
        };
        nested(MAX_METADATA_DEPTH).check().expect("it fits");
        assert!(nested(MAX_METADATA_DEPTH + 1).check().is_err());
        let path = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let found = metadata(r#"{"a":{"b":[1],"":null}}"#);
        assert_eq!(found.at(&path(&["a", "b"])), Some(&Value::from(vec![1])));
        assert_eq!(found.at(&path(&["a", ""])), Some(&Value::Null));
        for none in [&["b"][..], &["a", "b", "0"], &["a", "c"], &[]] {
            assert_eq!(found.at(&path(none)), None, "{none:?}");
        }
    }
}
