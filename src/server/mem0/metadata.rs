//! The metadata that a client attaches to a memory, as an attachment of its turn.
//!
//! In: a JSON object. Out: an attachment without words, whose URL holds the object; and back. It changes no answer.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde_json::Value;

use super::mem0_failure::Mem0Failure;
use types::model::{Attachment, MAX_URL_BYTES, Turn};

const KIND: &str = "metadata";
const PREFIX: &str = "data:application/json;base64,";

/// The attachment of an object.
pub(super) fn metadata_attachment(metadata: &Value) -> Result<Attachment, Mem0Failure> {
    if !metadata.is_object() {
        return Err(Mem0Failure::invalid("metadata: not an object"));
    }
    let url = format!("{PREFIX}{}", BASE64.encode(metadata.to_string()));
    if url.len() > MAX_URL_BYTES {
        return Err(Mem0Failure::invalid("metadata: too large; at most about 6,000 bytes of JSON fit"));
    }
    Ok(Attachment { kind: Some(KIND.to_owned()), caption: None, url: Some(url) })
}

/// Whether an attachment is one of [`metadata_attachment`].
pub(super) fn is_metadata(attachment: &Attachment) -> bool {
    attachment.kind.as_deref() == Some(KIND) && attachment.url.as_ref().is_some_and(|url| url.starts_with(PREFIX))
}

/// The object of a turn; null if it has none.
pub(super) fn turn_metadata(turn: &Turn) -> Value {
    let url = turn.attachments.iter().find(|attachment| is_metadata(attachment)).and_then(|found| found.url.as_ref());
    let json = url.and_then(|url| BASE64.decode(url.strip_prefix(PREFIX)?).ok());
    json.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or(Value::Null)
}
