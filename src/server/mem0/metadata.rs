//! The metadata that a client attaches to a memory.
//!
//! In: a JSON object, or a turn. Out: the turn's metadata, and the object that the client reads. Earlier builds kept
//! the object in the address of an attachment, which is still read.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde_json::Value;

use super::mem0_failure::Mem0Failure;
use types::model::{Attachment, Metadata, Turn};

const KIND: &str = "metadata";
const PREFIX: &str = "data:application/json;base64,";

/// The metadata of an object.
pub(super) fn parse_metadata(metadata: Value) -> Result<Metadata, Mem0Failure> {
    let Value::Object(fields) = metadata else { return Err(Mem0Failure::invalid("metadata: not an object")) };
    let metadata = Metadata::from(fields);
    metadata.check().map_err(|problem| Mem0Failure::invalid(problem.to_string()))?;
    Ok(metadata)
}

/// Whether an attachment holds metadata, as earlier builds kept them.
pub(super) fn is_metadata(attachment: &Attachment) -> bool {
    attachment.kind.as_deref() == Some(KIND) && attachment.url.as_ref().is_some_and(|url| url.starts_with(PREFIX))
}

/// The object of a turn; null if it has none.
pub(super) fn turn_metadata(turn: &Turn) -> Value {
    if let Some(metadata) = &turn.metadata {
        return Value::Object(metadata.fields().clone());
    }
    let url = turn.attachments.iter().find(|attachment| is_metadata(attachment)).and_then(|found| found.url.as_ref());
    let json = url.and_then(|url| BASE64.decode(url.strip_prefix(PREFIX)?).ok());
    json.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use types::model::{Bank, EventTime};

    #[test]
    fn what_earlier_builds_kept_in_an_attachment_is_still_read() {
        let time = EventTime::parse("2024-05-06T09:00:00Z").unwrap();
        let plain = Turn::new(Bank::parse("b").unwrap(), "t", "Ann", "hi", time);
        assert_eq!(turn_metadata(&plain), Value::Null);
        let url = format!("{PREFIX}{}", BASE64.encode(r#"{"a":1}"#));
        let old = Attachment { kind: Some(KIND.to_owned()), caption: None, url: Some(url) };
        assert!(is_metadata(&old));
        let of_attachment = Turn { attachments: vec![old], ..plain };
        assert_eq!(turn_metadata(&of_attachment), json!({"a": 1}));
        let metadata = parse_metadata(json!({"b": 2.0})).ok();
        assert_eq!(turn_metadata(&Turn { metadata, ..of_attachment }), json!({"b": 2.0}));
        assert!(parse_metadata(json!([])).is_err());
    }
}
