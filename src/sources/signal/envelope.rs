//! The types of signal-cli's JSON.
//!
//! In: what `signal-cli -o json receive`, its JSON-RPC daemon and its REST interface print. Out: typed values. Every
//! field may be absent, and unknown fields are ignored: each version of the program adds some.

use serde::Deserialize;
use serde_json::Value;

use crate::chat::{LIST, NUMBER, OBJECT, RecordForm, TEXT};

/// The fields of a record, inside the JSON-RPC wrappers.
pub(super) const FORM: RecordForm = RecordForm {
    needed: &[
        ("account", TEXT),
        ("envelope", OBJECT),
        ("envelope/source", TEXT),
        ("envelope/sourceNumber", TEXT),
        ("envelope/sourceUuid", TEXT),
        ("envelope/sourceName", TEXT),
        ("envelope/timestamp", NUMBER),
        ("envelope/dataMessage", OBJECT),
        ("envelope/dataMessage/timestamp", NUMBER),
        ("envelope/dataMessage/message", TEXT),
        ("envelope/dataMessage/groupInfo", OBJECT),
        ("envelope/dataMessage/groupInfo/groupId", TEXT),
        ("envelope/editMessage", OBJECT),
        ("envelope/editMessage/targetSentTimestamp", NUMBER),
        ("envelope/editMessage/dataMessage", OBJECT),
        ("envelope/editMessage/dataMessage/timestamp", NUMBER),
        ("envelope/editMessage/dataMessage/message", TEXT),
        ("envelope/syncMessage", OBJECT),
        ("envelope/syncMessage/sentMessage", OBJECT),
        ("envelope/syncMessage/sentMessage/timestamp", NUMBER),
        ("envelope/syncMessage/sentMessage/message", TEXT),
        ("envelope/syncMessage/sentMessage/destinationUuid", TEXT),
        ("envelope/syncMessage/sentMessage/destinationNumber", TEXT),
        ("envelope/syncMessage/sentMessage/groupInfo", OBJECT),
    ],
    other: &[
        ("envelope/dataMessage/groupInfo/groupName", TEXT),
        ("envelope/dataMessage/quote", OBJECT),
        ("envelope/dataMessage/quote/id", NUMBER),
        ("envelope/dataMessage/mentions", LIST),
        ("envelope/dataMessage/mentions[]", OBJECT),
        ("envelope/dataMessage/attachments", LIST),
        ("envelope/dataMessage/attachments[]", OBJECT),
        ("envelope/dataMessage/attachments[]/contentType", TEXT),
        ("envelope/dataMessage/attachments[]/filename", TEXT),
        ("envelope/dataMessage/attachments[]/caption", TEXT),
        ("envelope/dataMessage/sticker", OBJECT),
        ("envelope/dataMessage/sticker/emoji", TEXT),
        ("envelope/dataMessage/contacts", LIST),
        ("envelope/syncMessage/sentMessage/quote", OBJECT),
        ("envelope/syncMessage/sentMessage/mentions", LIST),
        ("envelope/syncMessage/sentMessage/attachments", LIST),
        ("envelope/syncMessage/sentMessage/attachments[]", OBJECT),
        ("envelope/syncMessage/sentMessage/attachments[]/contentType", TEXT),
        ("envelope/syncMessage/sentMessage/attachments[]/filename", TEXT),
        ("envelope/syncMessage/sentMessage/attachments[]/caption", TEXT),
        ("envelope/editMessage/dataMessage/attachments[]/contentType", TEXT),
        ("envelope/editMessage/dataMessage/attachments[]/filename", TEXT),
        ("envelope/editMessage/dataMessage/attachments[]/caption", TEXT),
        ("envelope/dataMessage/pollCreate", OBJECT),
        ("envelope/syncMessage/sentMessage/pollCreate", OBJECT),
        ("envelope/editMessage/dataMessage/pollCreate", OBJECT),
        ("envelope/editMessage/dataMessage/attachments", LIST),
        ("envelope/editMessage/dataMessage/attachments[]", OBJECT),
    ],
    known: &[
        "account",
        "envelope/source",
        "envelope/sourceNumber",
        "envelope/sourceUuid",
        "envelope/sourceName",
        "envelope/receiptMessage",
        "envelope/typingMessage",
        "envelope/callMessage",
        "envelope/storyMessage",
        "envelope/syncMessage/readMessages",
        "envelope/syncMessage/viewedMessages",
        "envelope/syncMessage/sentStoryMessage",
        "envelope/syncMessage/type",
        "envelope/syncMessage/blockedNumbers",
        "envelope/syncMessage/contacts",
        "envelope/syncMessage/groups",
        "exception",
        "error",
        "method",
        "jsonrpc",
        "subscription",
        "envelope/dataMessage/expiresInSeconds",
        "envelope/dataMessage/isExpirationUpdate",
        "envelope/dataMessage/viewOnce",
        "envelope/dataMessage/reaction",
        "envelope/dataMessage/quote",
        "envelope/dataMessage/remoteDelete",
        "envelope/dataMessage/adminDelete",
        "envelope/dataMessage/mentions",
        "envelope/dataMessage/previews",
        "envelope/dataMessage/sticker",
        "envelope/dataMessage/textStyles",
        "envelope/dataMessage/groupInfo",
        "envelope/dataMessage/storyContext",
        "envelope/dataMessage/payment",
        "envelope/dataMessage/pollVote",
        "envelope/dataMessage/pollTerminate",
        "envelope/dataMessage/profileKey",
        "envelope/dataMessage/pinMessage",
        "envelope/dataMessage/unpinMessage",
        "envelope/dataMessage/groupCallUpdate",
        "envelope/dataMessage/contacts",
        "envelope/syncMessage/sentMessage/expiresInSeconds",
        "envelope/syncMessage/sentMessage/isExpirationUpdate",
        "envelope/syncMessage/sentMessage/viewOnce",
        "envelope/syncMessage/sentMessage/reaction",
        "envelope/syncMessage/sentMessage/quote",
        "envelope/syncMessage/sentMessage/remoteDelete",
        "envelope/syncMessage/sentMessage/adminDelete",
        "envelope/syncMessage/sentMessage/mentions",
        "envelope/syncMessage/sentMessage/previews",
        "envelope/syncMessage/sentMessage/sticker",
        "envelope/syncMessage/sentMessage/textStyles",
        "envelope/syncMessage/sentMessage/groupInfo",
        "envelope/syncMessage/sentMessage/storyContext",
        "envelope/syncMessage/sentMessage/payment",
        "envelope/syncMessage/sentMessage/pollVote",
        "envelope/syncMessage/sentMessage/pollTerminate",
        "envelope/syncMessage/sentMessage/profileKey",
        "envelope/syncMessage/sentMessage/pinMessage",
        "envelope/syncMessage/sentMessage/unpinMessage",
        "envelope/syncMessage/sentMessage/groupCallUpdate",
        "envelope/syncMessage/sentMessage/contacts",
        "envelope/editMessage/dataMessage/expiresInSeconds",
        "envelope/editMessage/dataMessage/isExpirationUpdate",
        "envelope/editMessage/dataMessage/viewOnce",
        "envelope/editMessage/dataMessage/reaction",
        "envelope/editMessage/dataMessage/quote",
        "envelope/editMessage/dataMessage/remoteDelete",
        "envelope/editMessage/dataMessage/adminDelete",
        "envelope/editMessage/dataMessage/mentions",
        "envelope/editMessage/dataMessage/previews",
        "envelope/editMessage/dataMessage/sticker",
        "envelope/editMessage/dataMessage/textStyles",
        "envelope/editMessage/dataMessage/groupInfo",
        "envelope/editMessage/dataMessage/storyContext",
        "envelope/editMessage/dataMessage/payment",
        "envelope/editMessage/dataMessage/pollVote",
        "envelope/editMessage/dataMessage/pollTerminate",
        "envelope/editMessage/dataMessage/profileKey",
        "envelope/editMessage/dataMessage/pinMessage",
        "envelope/editMessage/dataMessage/unpinMessage",
        "envelope/editMessage/dataMessage/groupCallUpdate",
        "envelope/editMessage/dataMessage/contacts",
        "envelope/syncMessage/sentMessage/destination",
        "envelope/syncMessage/sentMessage/destinationNumber",
        "envelope/syncMessage/sentMessage/destinationUuid",
        "envelope/syncMessage/sentMessage/editMessage",
        "**/uploadTimestamp",
        "**/blurhash",
    ],
    remedy: "write it as signal-cli does",
};

/// The fields that identify a message's conversation, at any depth.
const PLACE: [&str; 16] = [
    "envelope",
    "source",
    "sourceNumber",
    "sourceUuid",
    "sourceName",
    "dataMessage",
    "editMessage",
    "syncMessage",
    "sentMessage",
    "destination",
    "destinationNumber",
    "destinationUuid",
    "groupInfo",
    "groupId",
    "groupName",
    "name",
];

/// The record inside the JSON-RPC wrappers.
pub(super) fn innermost(mut record: Value) -> Value {
    while let Some(inner) = ["params", "result"]
        .into_iter()
        .find_map(|key| record.get_mut(key).filter(|inner| inner.is_object()).map(Value::take))
    {
        record = inner;
    }
    record
}

/// Whether a record is of a group.
pub(super) fn is_of_group(record: &Value) -> bool {
    let messages = ["dataMessage", "editMessage/dataMessage", "syncMessage/sentMessage"];
    let group = |message: &&str| record.pointer(&format!("/envelope/{message}/groupInfo")).is_some();
    messages.iter().any(group)
}

/// Only the fields of an unreadable record that identify its conversation; `None` if they are unreadable, too.
pub(super) fn placed(record: Value) -> Option<SignalEnvelopeLine> {
    fn keep(value: &mut Value) {
        if let Value::Object(fields) = value {
            fields.retain(|key, _| PLACE.contains(&key.as_str()));
            fields.values_mut().for_each(keep);
        }
    }
    let mut place = innermost(record);
    keep(&mut place);
    serde_json::from_value(place).ok()
}

/// A line: an envelope, or a JSON-RPC notification that holds one.
#[derive(Debug, Deserialize, Default)]
#[serde(default)]
pub(super) struct SignalEnvelopeLine {
    pub(super) envelope: Option<SignalEnvelope>,
    pub(super) account: Option<String>,
    /// Why the envelope could not be decrypted.
    pub(super) exception: Option<Value>,
    pub(super) params: Option<Box<SignalEnvelopeLine>>,
    pub(super) result: Option<Box<SignalEnvelopeLine>>,
}

impl SignalEnvelopeLine {
    /// The part that holds the envelope.
    pub(super) fn innermost(self) -> Self {
        match (self.params, self.result) {
            (Some(inner), _) | (None, Some(inner)) => inner.innermost(),
            (None, None) => Self { params: None, result: None, ..self },
        }
    }
}

/// What one device sent to another.
#[derive(Debug, Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SignalEnvelope {
    pub(super) source: Option<String>,
    pub(super) source_number: Option<String>,
    pub(super) source_uuid: Option<String>,
    pub(super) source_name: Option<String>,
    pub(super) timestamp: Option<i64>,
    pub(super) data_message: Option<SignalDataMessage>,
    pub(super) edit_message: Option<SignalEdit>,
    pub(super) sync_message: Option<SignalSync>,
    pub(super) story_message: Option<Value>,
}

/// What another device of the account did.
#[derive(Debug, Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SignalSync {
    pub(super) sent_message: Option<SignalSentMessage>,
}

/// What the account said on another device.
#[derive(Debug, Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SignalSentMessage {
    pub(super) destination: Option<String>,
    pub(super) destination_number: Option<String>,
    pub(super) destination_uuid: Option<String>,
    pub(super) edit_message: Option<SignalEdit>,
    #[serde(flatten)]
    pub(super) data: SignalDataMessage,
}

/// New words for a message.
#[derive(Debug, Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SignalEdit {
    /// When the version that this one replaces was sent.
    pub(super) target_sent_timestamp: Option<i64>,
    pub(super) data_message: Option<SignalDataMessage>,
}

/// A message.
#[derive(Debug, Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SignalDataMessage {
    pub(super) timestamp: Option<i64>,
    pub(super) message: Option<String>,
    pub(super) group_info: Option<SignalGroup>,
    pub(super) quote: Option<SignalQuote>,
    pub(super) mentions: Option<Vec<SignalMention>>,
    pub(super) attachments: Option<Vec<SignalFile>>,
    pub(super) sticker: Option<SignalSticker>,
    pub(super) contacts: Option<Vec<Value>>,
    pub(super) remote_delete: Option<SignalDeleteTarget>,
    pub(super) admin_delete: Option<SignalDeleteTarget>,
    pub(super) reaction: Option<Value>,
    pub(super) poll_create: Option<SignalPoll>,
    pub(super) poll_vote: Option<Value>,
}

/// A group.
#[derive(Debug, Clone, Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SignalGroup {
    pub(super) group_id: Option<String>,
    #[serde(alias = "name")]
    pub(super) group_name: Option<String>,
}

/// The message that is answered.
#[derive(Debug, Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SignalQuote {
    pub(super) id: Option<i64>,
    pub(super) author: Option<String>,
    pub(super) author_number: Option<String>,
    pub(super) author_uuid: Option<String>,
}

/// A message that is deleted.
#[derive(Debug, Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SignalDeleteTarget {
    pub(super) timestamp: Option<i64>,
    pub(super) target_sent_timestamp: Option<i64>,
    pub(super) target_author: Option<String>,
    pub(super) target_author_number: Option<String>,
    pub(super) target_author_uuid: Option<String>,
}

/// Somebody who is mentioned in the text, at a position in UTF-16 units.
#[derive(Debug, Deserialize, Default)]
#[serde(default)]
pub(super) struct SignalMention {
    pub(super) name: Option<String>,
    pub(super) number: Option<String>,
    pub(super) uuid: Option<String>,
    pub(super) start: Option<usize>,
    pub(super) length: Option<usize>,
}

/// A file.
#[derive(Debug, Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SignalFile {
    pub(super) content_type: Option<String>,
    pub(super) filename: Option<String>,
    pub(super) caption: Option<String>,
}

/// A sticker.
#[derive(Debug, Deserialize, Default)]
#[serde(default)]
pub(super) struct SignalSticker {
    pub(super) emoji: Option<String>,
}

/// A question with choices.
#[derive(Debug, Deserialize, Default)]
#[serde(default)]
pub(super) struct SignalPoll {
    pub(super) question: Option<String>,
    pub(super) options: Vec<Value>,
}
