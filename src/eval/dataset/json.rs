//! Benchmark files as JSON.
//!
//! In: a path, and the name of its format. Out: the file's value, or its items one at a time. A file that is not one
//! whole JSON value is an error with line and column.

use std::path::Path;

use serde_json::Value;

use super::error::DatasetError;

/// A file that is one JSON list.
pub(super) fn list(format: &'static str, path: &Path) -> Result<Vec<Value>, DatasetError> {
    match value(format, path)? {
        Value::Array(items) => Ok(items),
        _ => Err(DatasetError::Format {
            path: path.to_owned(),
            line: 1,
            column: 1,
            problem: "not a list".to_owned(),
            format,
        }),
    }
}

/// Calls `take` for each item of a file that is one JSON list, with its index, because the larger files do not fit into
/// memory as values.
pub(super) fn each(format: &'static str, path: &Path, mut take: impl FnMut(usize, Value)) -> Result<(), DatasetError> {
    struct JsonListVisitor<F>(F);
    impl<'de, F: FnMut(usize, Value)> serde::de::Visitor<'de> for JsonListVisitor<F> {
        type Value = ();
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a list of questions")
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
            let mut index = 0;
            while let Some(item) = items.next_element()? {
                (self.0)(index, item);
                index += 1;
            }
            Ok(())
        }
    }
    let bytes = read_bytes(path)?;
    let mut reader = serde_json::Deserializer::from_slice(&bytes);
    let read =
        serde::Deserializer::deserialize_seq(&mut reader, JsonListVisitor(&mut take)).and_then(|()| reader.end());
    read.map_err(|e| not_of(format, path, &e))
}

/// A file that is one JSON value.
pub(crate) fn value(format: &'static str, path: &Path) -> Result<Value, DatasetError> {
    serde_json::from_slice(&read_bytes(path)?).map_err(|e| not_of(format, path, &e))
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, DatasetError> {
    std::fs::read(path).map_err(|source| DatasetError::Read { path: path.to_owned(), source })
}

fn not_of(format: &'static str, path: &Path, error: &serde_json::Error) -> DatasetError {
    DatasetError::Format {
        path: path.to_owned(),
        line: error.line(),
        column: error.column(),
        problem: error.to_string(),
        format,
    }
}

/// A string, or a number or boolean as a string; `None` if empty.
pub(super) fn words(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.trim().to_owned()).filter(|t| !t.is_empty()),
        Value::Number(n) => Some(n.to_string()),
        Value::Bool(b) => Some(b.to_string()),
        _ => None,
    }
}
