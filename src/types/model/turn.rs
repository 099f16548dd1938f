//! Turns: the records of the turns topic, and windows of turns.
//!
//! In: JSON records. Out: checked events, or a message that names the field.

use std::sync::Arc;

use schemars::{JsonSchema, Schema};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::value::{Error as ValueError, StrDeserializer},
};
use serde_json::{Map, Value, error::Category, json};

use super::{
    Bank, EventTime, FieldError, MAX_ATTACHMENTS, MAX_METADATA_BYTES, MAX_NAME_BYTES, MAX_TEXT_BYTES, MAX_TURN_BYTES,
    MAX_URL_BYTES, Metadata, SCHEMA_VERSION, UniqueJson, WriteCondition, WriteVerdict,
    dead_letter::without_byte_order_mark, write_condition::MAX_GROUP,
};
use crate::{lone_surrogates::replace_lone_surrogates, null_fields::null_as_default};

/// Something attached to a turn. Its caption counts as text of the turn.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// Its kind, such as `image`; at most 256 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub kind: Option<String>,
    /// Words that describe it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caption: Option<String>,
    /// Its address; at most 8,192 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8_192))]
    pub url: Option<String>,
}

/// One message by one speaker; at most 1,048,576 bytes of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// The tenant that it belongs to.
    pub bank: Bank,
    /// Id, unique in the bank: another record with the same id is the same turn.
    pub turn: String,
    /// The platform's edit time or counter; the higher one wins. 0 when never edited.
    #[serde(default, deserialize_with = "null_as_default")]
    pub version: u64,
    /// Who said it.
    pub speaker: String,
    /// What the speaker is, where the source knows; `role` is another name of it.
    #[serde(default, alias = "role", skip_serializing_if = "Option::is_none")]
    pub kind: Option<SpeakerKind>,
    /// What was said. May be empty only when an attachment has a caption.
    pub text: String,
    /// When it was said, with its offset.
    pub time: EventTime,
    /// The conversation that it belongs to, where the platform has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The thread that it belongs to, where the platform has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The id of the turn that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// What was attached to it; at most 100.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub attachments: Vec<Attachment>,
    /// What a program keeps beside the words: a JSON object, at most 65,536 bytes of JSON. It is returned as it was sent
    /// and selected by, and never embedded or quoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// Whether it can be recalled. False: it is kept, listed, exported and forgotten as any turn is, but no answer
    /// quotes it, and nothing is learned from it.
    #[serde(default = "is_recalled", deserialize_with = "null_as_recalled", skip_serializing_if = "Clone::clone")]
    pub recall: bool,
}

fn is_recalled() -> bool {
    true
}

fn null_as_recalled<'de, D: Deserializer<'de>>(recall: D) -> Result<bool, D::Error> {
    Ok(Option::deserialize(recall)?.unwrap_or_else(is_recalled))
}

/// What a speaker is. The roles of OpenAI's messages are other names of the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpeakerKind {
    /// A person: the role `user`.
    #[serde(alias = "user", alias = "human")]
    Person,
    /// An assistant that a language model speaks for.
    #[serde(alias = "ai", alias = "model")]
    Assistant,
    /// What a tool gave back: also the role `function`.
    #[serde(alias = "function")]
    Tool,
    /// A program that posts into a chat: also the roles `system` and `developer`.
    #[serde(alias = "system", alias = "developer")]
    Bot,
}

/// The names that a kind is also read by.
const OTHER_KIND_NAMES: [&str; 7] = ["user", "human", "ai", "model", "function", "system", "developer"];

impl SpeakerKind {
    /// All kinds, in their order.
    pub const ALL: [Self; 4] = [Self::Person, Self::Assistant, Self::Tool, Self::Bot];

    /// The kind that a role names, in upper or lower case; `None` for any other name.
    #[must_use]
    pub fn of_role(role: &str) -> Option<Self> {
        let role = role.to_lowercase();
        Self::deserialize(StrDeserializer::<ValueError>::new(&role)).ok()
    }

    /// Its name in a record.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Bot => "bot",
        }
    }
}

impl Turn {
    /// A turn without session, thread or attachments, in its first version. `turn` is its id, unique in the bank.
    #[must_use]
    pub fn new(bank: Bank, turn: &str, speaker: &str, text: &str, time: EventTime) -> Self {
        let (turn, speaker, text) = (turn.to_owned(), speaker.to_owned(), text.to_owned());
        Self {
            bank,
            turn,
            version: 0,
            speaker,
            kind: None,
            text,
            time,
            session: None,
            thread: None,
            reply_to: None,
            attachments: Vec::new(),
            metadata: None,
            recall: true,
        }
    }

    /// The kind of speaker: as the source says, or else judged by the names `user` and `assistant`.
    #[must_use]
    pub fn speaker_kind(&self) -> Option<SpeakerKind> {
        let is = |name: &str| self.speaker.eq_ignore_ascii_case(name);
        let named = || [("user", SpeakerKind::Person), ("assistant", SpeakerKind::Assistant)];
        self.kind.or_else(|| named().into_iter().find_map(|(name, kind)| is(name).then_some(kind)))
    }

    /// Checks lengths, emptiness and the offset of the time. The rest of times, and banks, are checked when they are
    /// read.
    ///
    /// # Errors
    /// [`FieldError`] for the first field that is empty, too long or out of range.
    pub fn check(&self) -> Result<(), FieldError> {
        self.time.check_offset("time")?;
        self.check_lengths()
    }

    fn check_lengths(&self) -> Result<(), FieldError> {
        check_name("turn", &self.turn)?;
        check_name("speaker", &self.speaker)?;
        for (field, name) in [("session", &self.session), ("thread", &self.thread), ("reply_to", &self.reply_to)] {
            if let Some(name) = name {
                check_name(field, name)?;
            }
        }
        let captions: usize = self.captions().map(str::len).sum();
        if self.text.trim().is_empty() && captions == 0 {
            return Err(FieldError::new("text", "empty", "write what was said, or leave the turn out"));
        }
        let bytes = self.text.len() + captions;
        if bytes > MAX_TEXT_BYTES {
            let problem = format!("{bytes} bytes with captions, more than {MAX_TEXT_BYTES}");
            return Err(FieldError::new("text", problem, "split it into several turns"));
        }
        self.check_attachments()?;
        self.metadata.as_ref().map_or(Ok(()), Metadata::check)?;
        self.check_size()
    }

    fn check_attachments(&self) -> Result<(), FieldError> {
        let count = self.attachments.len();
        if count > MAX_ATTACHMENTS {
            let problem = format!("{count}, more than {MAX_ATTACHMENTS}");
            return Err(FieldError::new("attachments", problem, "divide them among several turns"));
        }
        for Attachment { kind, url, .. } in &self.attachments {
            if let Some(bytes) = kind.as_ref().map(String::len).filter(|bytes| *bytes > MAX_NAME_BYTES) {
                let problem = format!("{bytes} bytes long");
                return Err(FieldError::new("attachments.kind", problem, "use at most 256 bytes, such as image"));
            }
            if let Some(bytes) = url.as_ref().map(String::len).filter(|bytes| *bytes > MAX_URL_BYTES) {
                let problem = format!("{bytes} bytes long, more than {MAX_URL_BYTES}");
                return Err(FieldError::new(
                    "attachments.url",
                    problem,
                    "store the file elsewhere and write its address",
                ));
            }
        }
        Ok(())
    }

    /// Checks the size in JSON. Escapes make a text up to six times as long, and there may be many attachments, so a
    /// turn whose fields all fit may still be too large.
    fn check_size(&self) -> Result<(), FieldError> {
        let names = [&self.session, &self.thread, &self.reply_to].map(|name| name.as_ref().map_or(0, String::len));
        let attached = |a: &Attachment| [&a.kind, &a.caption, &a.url].map(|s| s.as_ref().map_or(0, String::len));
        let attached: usize = self.attachments.iter().flat_map(attached).sum();
        let fields = self.turn.len() + self.speaker.len() + self.text.len() + names.iter().sum::<usize>() + attached;
        // Its JSON form, whose size was checked, is not longer than that.
        let metadata = if self.metadata.is_some() { MAX_METADATA_BYTES } else { 0 };
        // Most turns are so small that this bound decides, without writing the JSON.
        if metadata + 6 * fields + 64 * self.attachments.len() + 1_024 <= MAX_TURN_BYTES {
            return Ok(());
        }
        let bytes = serde_json::to_vec(self).map_or(usize::MAX, |json| json.len());
        if bytes <= MAX_TURN_BYTES {
            return Ok(());
        }
        let problem = format!("{bytes} bytes of JSON, more than {MAX_TURN_BYTES}");
        Err(FieldError::new("turn", problem, "split it into several turns"))
    }

    /// Everything in it that may hold words: its text, its captions, and the texts of its metadata.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let metadata = self.metadata.as_ref().map(Metadata::texts).unwrap_or_default();
        std::iter::once(self.text.as_str()).chain(self.captions()).chain(metadata)
    }

    /// The captions of its attachments, without blank ones.
    pub fn captions(&self) -> impl Iterator<Item = &str> {
        self.attachments.iter().filter_map(|a| a.caption.as_deref()).filter(|c| !c.trim().is_empty())
    }
}

fn check_name(field: &'static str, name: &str) -> Result<(), FieldError> {
    if name.trim().is_empty() {
        return Err(FieldError::new(field, "empty", "give it a name"));
    }
    if name.len() > MAX_NAME_BYTES {
        return Err(FieldError::new(field, format!("{} bytes long", name.len()), "use at most 256 bytes"));
    }
    if name.chars().any(char::is_control) {
        return Err(FieldError::new(field, "holds a control character", "use printable characters only"));
    }
    Ok(())
}

/// One record of the turns topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schemars(transform = allow_other_names)]
pub enum TurnEvent {
    /// A new turn, or a new version of one.
    Turn(Turn),
    /// A turn was deleted.
    Deletion(TurnDeletion),
    /// A conversation has ended: its open window closes.
    SessionEnd(SessionEnd),
    /// The source has been silent: windows whose last turn is older than the gap close.
    Idle(IdleMark),
    /// The title of a conversation, or another one.
    SessionTitle(SessionTitle),
    /// A turn or a deletion that is written only if a condition holds when it is read. The service writes it.
    Conditional(Box<ConditionalWrite>),
    /// What became of the conditional records of a request. The service writes it.
    Verdict(WriteVerdict),
}

/// A turn or a deletion that is written only if a condition holds when it is read, and only with its group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Conditional")]
pub struct ConditionalWrite {
    /// The tenant.
    pub bank: Bank,
    /// The request that waits for the verdict; at most 64 bytes.
    #[schemars(length(min = 1, max = 64))]
    pub request: String,
    /// Its place in the group of the request, from 0.
    #[serde(default)]
    pub index: u32,
    /// How many records the group has, at most 1,000.
    #[schemars(range(min = 1, max = 1_000))]
    pub count: u32,
    /// The version that must stand; 0 if the turn must be absent or deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<u64>,
    /// Whether the version is chosen when the record is read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chooses_version: bool,
    /// What is written.
    pub change: TurnChange,
}

/// A turn or the deletion of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TurnChange {
    /// A new turn, or a new version of one.
    Turn(Turn),
    /// A turn was deleted.
    Deletion(TurnDeletion),
}

/// The title of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionTitle {
    /// The tenant.
    pub bank: Bank,
    /// The session, as its turns name it.
    pub session: String,
    /// The title, at most 1,024 bytes; empty removes it.
    #[schemars(length(max = 1_024))]
    pub title: String,
}

/// Longest title of a session, in bytes of UTF-8.
const MAX_TITLE_BYTES: usize = 1_024;
/// Longest name of a request that waits for a verdict, in bytes.
const MAX_REQUEST_BYTES: usize = 64;

impl TurnChange {
    /// The turn that it writes or deletes.
    #[must_use]
    pub fn turn_id(&self) -> &str {
        match self {
            Self::Turn(turn) => &turn.turn,
            Self::Deletion(deletion) => &deletion.turn,
        }
    }

    /// The same, in another version.
    #[must_use]
    pub fn in_version(self, version: u64) -> Self {
        match self {
            Self::Turn(turn) => Self::Turn(Turn { version, ..turn }),
            Self::Deletion(deletion) => Self::Deletion(TurnDeletion { version, ..deletion }),
        }
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> u64 {
        match self {
            Self::Turn(turn) => turn.version,
            Self::Deletion(deletion) => deletion.version,
        }
    }
}

impl TurnEvent {
    /// The turn or the deletion; `None` for any other event.
    #[must_use]
    pub fn into_change(self) -> Option<TurnChange> {
        match self {
            Self::Turn(turn) => Some(TurnChange::Turn(turn)),
            Self::Deletion(deletion) => Some(TurnChange::Deletion(deletion)),
            _ => None,
        }
    }
}

impl From<TurnChange> for TurnEvent {
    fn from(change: TurnChange) -> Self {
        match change {
            TurnChange::Turn(turn) => Self::Turn(turn),
            TurnChange::Deletion(deletion) => Self::Deletion(deletion),
        }
    }
}

/// Makes the schema allow what [`TurnEvent::from_json`] reads besides what it writes: a turn without `type`, with a
/// `schema`, or with a `role`, and null in fields that may be absent. A version has no default there: a generator would
/// make it a field that every client must send, and a JavaScript number cannot hold that of a deletion.
fn allow_other_names(schema: &mut Schema) {
    let mut variants = schema.get_mut("oneOf").and_then(Value::as_array_mut);
    let versions = variants.iter_mut().flat_map(|variants| variants.iter_mut());
    for variant in versions {
        for field in ["/properties/version", "/properties/recall"] {
            variant.pointer_mut(field).and_then(Value::as_object_mut).and_then(|field| field.remove("default"));
        }
    }
    for field in ["/properties/version/type", "/properties/attachments/type", "/properties/recall/type"] {
        let variants = variants.iter_mut().flat_map(|variants| variants.iter_mut());
        for kind in variants.filter_map(|variant| variant.pointer_mut(field)) {
            *kind = json!([kind.take(), "null"]);
        }
    }
    let is_turn = |variant: &&mut Value| variant.pointer("/properties/type/const") == Some(&json!("turn"));
    let Some(turn) = variants.and_then(|variants| variants.iter_mut().find(is_turn)) else { return };
    if let Some(required) = turn.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|field| field != "type");
    }
    if let Some(fields) = turn.get_mut("properties").and_then(Value::as_object_mut) {
        let names = SpeakerKind::ALL.iter().map(|kind| kind.name()).chain(OTHER_KIND_NAMES);
        let names: Vec<Value> = names.map(Value::from).chain([Value::Null]).collect();
        let about = "Another name of `kind`.";
        fields.insert("role".to_owned(), json!({ "description": about, "type": ["string", "null"], "enum": names }));
        if let Some(kind) = fields.get_mut("kind").and_then(Value::as_object_mut) {
            kind.remove("anyOf");
            kind.insert("type".to_owned(), json!(["string", "null"]));
            kind.insert("enum".to_owned(), names.into());
        }
        let about = "The version of this schema.";
        fields.insert("schema".to_owned(), json!({ "description": about, "type": "integer", "const": SCHEMA_VERSION }));
    }
}

/// The deletion of a turn. It wins over a turn of the same version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Deletion")]
pub struct TurnDeletion {
    /// The tenant.
    pub bank: Bank,
    /// The deleted turn.
    pub turn: String,
    /// The platform's time of deletion. Without it, no later version restores the turn.
    #[serde(default = "final_version", deserialize_with = "null_as_final")]
    pub version: u64,
}

impl TurnDeletion {
    /// A deletion for good: no later version restores the turn.
    #[must_use]
    pub fn permanent(bank: Bank, turn: String) -> Self {
        Self { bank, turn, version: final_version() }
    }
}

fn final_version() -> u64 {
    u64::MAX
}

fn null_as_final<'de, D: Deserializer<'de>>(version: D) -> Result<u64, D::Error> {
    Ok(Option::deserialize(version)?.unwrap_or_else(final_version))
}

/// The end of a conversation named by the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionEnd {
    /// The tenant.
    pub bank: Bank,
    /// The session, or the thread, as the turns name it.
    pub session: String,
}

/// Silence, as the source reports it: no clock of this process decides it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Idle")]
pub struct IdleMark {
    /// The tenant.
    pub bank: Bank,
    /// The source's time.
    pub time: EventTime,
}

impl TurnEvent {
    /// The bank that the event belongs to.
    #[must_use]
    pub fn bank(&self) -> &Bank {
        match self {
            Self::Turn(e) => &e.bank,
            Self::Deletion(e) => &e.bank,
            Self::SessionEnd(e) => &e.bank,
            Self::Idle(e) => &e.bank,
            Self::SessionTitle(e) => &e.bank,
            Self::Conditional(e) => &e.bank,
            Self::Verdict(e) => &e.bank,
        }
    }

    /// Reads one record from outside, with the condition that its caller sets.
    ///
    /// # Errors
    /// As [`Self::from_json`].
    pub fn from_json_with_condition(bytes: &[u8]) -> Result<(Self, WriteCondition), String> {
        let mut object = read_object(bytes)?;
        let mut condition = WriteCondition::default();
        if let Some(expected) = object.remove("expected_version").filter(|expected| !expected.is_null()) {
            let expected = expected.as_u64().ok_or("expected_version: not a version; send a whole number")?;
            condition.expected_version = Some(expected);
        }
        // A condition on a turn without a version has the version chosen: 0 would lose to what is expected.
        let is_deletion = object.get("type").is_some_and(|kind| kind == "deletion");
        let has_none = object.get("version").is_none_or(Value::is_null) && condition.expected_version.is_some();
        if object.get("version").is_some_and(|version| version == "next") || has_none && !is_deletion {
            object.remove("version");
            condition.chooses_version = true;
        }
        let event = Self::from_object(object)?.if_sent_from_outside()?;
        if !condition.is_none() && !matches!(event, Self::Turn(_) | Self::Deletion(_)) {
            return Err("expected_version: only a turn and a deletion have a version; leave it out".to_owned());
        }
        Ok((event, condition))
    }

    /// The event, if it is one that comes from outside.
    fn if_sent_from_outside(self) -> Result<Self, String> {
        if matches!(self, Self::Conditional(_) | Self::Verdict(_)) {
            return Err("type: the service alone writes such records; send a turn, with `expected_version`, to \
                        POST /v1/turns"
                .to_owned());
        }
        self.check_offset().map_err(|e| e.to_string())?;
        Ok(self)
    }

    /// Reads one record from outside. A record without `type` is a turn. A byte order mark may stand in front.
    ///
    /// # Errors
    /// A message that names the field, or the column of malformed JSON.
    pub fn from_json(bytes: &[u8]) -> Result<Self, String> {
        Self::from_log(bytes)?.if_sent_from_outside()
    }

    /// Reads one record of the turns log, which may hold a time with an offset that [`Self::from_json`] refuses.
    ///
    /// # Errors
    /// As [`Self::from_json`].
    pub fn from_log(bytes: &[u8]) -> Result<Self, String> {
        let object = read_object(bytes)?;
        let is_plain = object.get("type").is_none_or(|kind| kind != "conditional");
        let is_next = object.get("version").is_some_and(|version| version == "next");
        if is_plain && (is_next || object.contains_key("expected_version")) {
            return Err("expected_version, version: a record of the log has no condition, since nobody waits for its \
                        verdict; send it to POST /v1/turns"
                .to_owned());
        }
        Self::from_object(object)
    }

    fn from_object(mut object: Map<String, Value>) -> Result<Self, String> {
        if let Some(version) = object.remove("schema").filter(|v| v.as_u64() != Some(SCHEMA_VERSION.into())) {
            return Err(format!("schema: {version} is not known; this build reads {SCHEMA_VERSION}"));
        }
        object.entry("type").or_insert_with(|| "turn".into());
        let event: Self = serde_json::from_value(Value::Object(object)).map_err(|e| e.to_string())?;
        event.check_lengths().map_err(|e| e.to_string())?;
        Ok(event)
    }

    /// Checks lengths, emptiness and the offset of the time.
    ///
    /// # Errors
    /// [`FieldError`] for the first field that is empty, too long or out of range.
    pub fn check(&self) -> Result<(), FieldError> {
        self.check_offset()?;
        self.check_lengths()
    }

    fn check_offset(&self) -> Result<(), FieldError> {
        match self {
            Self::Turn(Turn { time, .. }) | Self::Idle(IdleMark { time, .. }) => time.check_offset("time"),
            Self::Conditional(write) => match &write.change {
                TurnChange::Turn(turn) => turn.time.check_offset("time"),
                TurnChange::Deletion(_) => Ok(()),
            },
            Self::Deletion(_) | Self::SessionEnd(_) | Self::SessionTitle(_) | Self::Verdict(_) => Ok(()),
        }
    }

    fn check_lengths(&self) -> Result<(), FieldError> {
        match self {
            Self::Turn(turn) => turn.check_lengths(),
            Self::Deletion(d) => check_name("turn", &d.turn),
            Self::SessionEnd(s) => check_name("session", &s.session),
            Self::SessionTitle(s) => s.check_lengths(),
            Self::Conditional(write) => write.check_lengths(),
            Self::Idle(_) | Self::Verdict(_) => Ok(()),
        }
    }
}

impl SessionTitle {
    /// The reserved session of the records that hold titles.
    pub const RESERVED: &str = "title:";

    fn check_lengths(&self) -> Result<(), FieldError> {
        check_name("session", &self.session)?;
        let bytes = self.title.len();
        if bytes > MAX_TITLE_BYTES {
            return Err(FieldError::new("title", format!("{bytes} bytes long"), "use at most 1,024 bytes"));
        }
        if self.title.chars().any(char::is_control) {
            return Err(FieldError::new("title", "holds a control character", "use printable characters only"));
        }
        Ok(())
    }
}

impl ConditionalWrite {
    fn check_lengths(&self) -> Result<(), FieldError> {
        let Self { bank, request, index, count, change, .. } = self;
        if request.is_empty() || request.len() > MAX_REQUEST_BYTES {
            let problem = format!("{} bytes long", request.len());
            return Err(FieldError::new("request", problem, "name the request that waits, in 1 to 64 bytes"));
        }
        if index >= count || *count as usize > MAX_GROUP {
            let problem = format!("record {index} of {count}");
            return Err(FieldError::new("count", problem, "a group has 1 to 1,000 records, counted from 0"));
        }
        let of = match change {
            TurnChange::Turn(turn) => &turn.bank,
            TurnChange::Deletion(deletion) => &deletion.bank,
        };
        if of != bank {
            return Err(FieldError::new("bank", "another one than that of the change", "name the same bank in both"));
        }
        match change {
            TurnChange::Turn(turn) => turn.check_lengths(),
            TurnChange::Deletion(deletion) => check_name("turn", &deletion.turn),
        }
    }
}

/// One JSON object, in which no field appears twice. A byte order mark may stand in front.
fn read_object(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let text = std::str::from_utf8(without_byte_order_mark(bytes))
        .map_err(|e| format!("not UTF-8 after byte {}; re-encode the record as JSON in UTF-8", e.valid_up_to()))?;
    let UniqueJson(value) =
        serde_json::from_slice(&replace_lone_surrogates(text.as_bytes())).map_err(|e| match e.classify() {
            Category::Data => format!("{e}; write each field once"),
            _ => format!("not JSON: {e}; write one JSON object per record"),
        })?;
    match value {
        Value::Object(object) => Ok(object),
        _ => Err("not a JSON object; write one object per record".to_owned()),
    }
}

impl From<Turn> for TurnEvent {
    fn from(turn: Turn) -> Self {
        Self::Turn(turn)
    }
}

/// A session of a bank: `caller:NAME`, `thread:NAME`, `auto:N` or `bank`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SessionId(pub String);

/// A window: the turns of a session from ordinal `start` until it closed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowId {
    /// The session that it lies in.
    pub session: SessionId,
    /// Ordinal, in the session, of its first turn that is not context.
    pub start: u32,
}

/// A turn as a window holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WindowTurn {
    /// The turn; its text is empty once it is deleted.
    #[serde(flatten)]
    pub turn: Arc<Turn>,
    /// Position in the session, from 0, in the order first read from the log.
    pub ordinal: u32,
    /// True in the leading overlap: context only, without its own unit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub context: bool,
    /// True once it is deleted. Its ordinal is not used again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// Offset in the turns topic of the version held here.
    pub source_offset: u64,
    /// When it was stored; absent in records of earlier builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoredTimes>,
}

/// When a turn was appended to the turns topic, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoredTimes {
    /// The version held here.
    pub ms: i64,
    /// Its first version.
    pub first_ms: i64,
}

impl WindowTurn {
    /// Whether units may be made of it: it is not deleted, and its `recall` is not false.
    #[must_use]
    pub fn is_recalled(&self) -> bool {
        !self.deleted && self.turn.recall
    }
}

/// A window as the extractor sees it: turns in ordinal order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The tenant.
    pub bank: Bank,
    /// Which window.
    pub id: WindowId,
    /// Its turns, leading context first, deleted ones included.
    pub turns: Vec<WindowTurn>,
}

impl Window {
    /// Hash of what the extractor depends on: ids, versions and contents, in order. It depends neither on metadata nor on
    /// when turns were stored.
    #[must_use]
    pub fn turns_hash(&self) -> String {
        let mut hash = blake3::Hasher::new();
        for t in &self.turns {
            let mut read = WindowTurn { stored: None, ..t.clone() };
            if t.turn.metadata.is_some() {
                read.turn = Arc::new(Turn { metadata: None, ..(*t.turn).clone() });
            }
            let json = serde_json::to_vec(&read).unwrap_or_default();
            hash.update(&(json.len() as u64).to_le_bytes()).update(&json);
        }
        hash.finalize().to_hex()[..32].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::stated_bank, *};

    /// A record without `type` is a turn, and a kind has other names.
    #[test]
    fn the_schema_of_a_turn_takes_what_is_read() {
        let schema = TurnEvent::json_schema(&mut schemars::SchemaGenerator::default()).to_value();
        let variants = schema["oneOf"].as_array().expect("variants");
        let [turn, others @ ..] = variants.as_slice() else { panic!("{schema}") };
        assert!(!turn["required"].as_array().expect("fields").contains(&json!("type")));
        assert!(others.iter().all(|other| other["required"][0] == "type"), "{others:?}");
        let record = json!({ "schema": 1, "bank": "b", "turn": "t", "speaker": "A", "text": "x", "time": "2024-01-01T00:00:00Z" });
        for name in turn["properties"]["role"]["enum"].as_array().expect("names") {
            for field in ["role", "kind"] {
                let mut record = record.clone();
                record[field] = name.clone();
                let fields = record.as_object().expect("an object").keys();
                assert!(fields.map(|field| &turn["properties"][field]).all(|known| !known.is_null()), "{record}");
                assert!(TurnEvent::from_json(record.to_string().as_bytes()).is_ok(), "{record}");
            }
        }
        assert_eq!(turn["properties"]["kind"]["enum"], turn["properties"]["role"]["enum"]);
    }

    #[test]
    fn a_field_that_is_null_is_absent() {
        let json = r#"{"bank":"b","turn":"t","version":null,"speaker":"A","text":"x","time":"2024-01-01T00:00:00Z","attachments":null}"#;
        let TurnEvent::Turn(turn) = TurnEvent::from_json(json.as_bytes()).expect("a turn") else { panic!("no turn") };
        assert_eq!((turn.version, turn.attachments.len()), (0, 0));
        let json = r#"{"type":"deletion","bank":"b","turn":"t","version":null}"#;
        let bank = Bank::parse("b").expect("a bank");
        let deletion = TurnDeletion::permanent(bank, "t".to_owned());
        assert_eq!(TurnEvent::from_json(json.as_bytes()), Ok(TurnEvent::Deletion(deletion)));
    }

    /// The service writes conditions into records of their own; no other program's record may have one.
    #[test]
    fn a_condition_stands_in_a_record_of_the_service_alone() {
        let turn = json!({ "bank": "b", "turn": "t", "speaker": "A", "text": "x", "time": "2024-01-01T00:00:00Z" });
        let mut sent = turn.clone();
        sent["expected_version"] = 3.into();
        let sent = sent.to_string();
        let (event, condition) = TurnEvent::from_json_with_condition(sent.as_bytes()).expect("a turn");
        assert_eq!(condition, WriteCondition { expected_version: Some(3), chooses_version: true });
        for read in [TurnEvent::from_log, TurnEvent::from_json] {
            assert!(read(sent.as_bytes()).is_err_and(|problem| problem.contains("POST /v1/turns")));
        }
        let WriteCondition { expected_version, chooses_version } = condition;
        let (bank, request) = (event.bank().clone(), "r".to_owned());
        let change = event.into_change().expect("a turn");
        let write = ConditionalWrite { bank, request, index: 0, count: 1, expected_version, chooses_version, change };
        let record = serde_json::to_vec(&TurnEvent::Conditional(Box::new(write.clone()))).expect("JSON");
        assert_eq!(TurnEvent::from_log(&record), Ok(TurnEvent::Conditional(Box::new(write.clone()))));
        assert!(TurnEvent::from_json(&record).is_err_and(|problem| problem.contains("the service alone")));
        let nameless = ConditionalWrite { request: String::new(), ..write };
        let record = serde_json::to_vec(&TurnEvent::Conditional(Box::new(nameless))).expect("JSON");
        assert!(TurnEvent::from_log(&record).is_err(), "nobody waits for it");
    }

    #[test]
    fn metadata_and_recall_are_kept_as_they_were_sent_and_absent_where_they_were() {
        let record = |fields: &str| {
            format!(r#"{{"bank":"b","turn":"t","speaker":"A","text":"x","time":"2024-01-01T00:00:00Z"{fields}}}"#)
        };
        let read = |json: &str| match TurnEvent::from_json(json.as_bytes()) {
            Ok(TurnEvent::Turn(turn)) => Ok(turn),
            Ok(other) => panic!("{other:?}"),
            Err(problem) => Err(problem),
        };
        let metadata = r#"{"a":1.0,"b":[18446744073709551615,-7,1e-7],"c":{"d":null}}"#;
        let turn = read(&record(&format!(r#","metadata":{metadata},"recall":false"#))).expect("a turn");
        assert_eq!((turn.metadata.as_ref().map(Metadata::to_json).as_deref(), turn.recall), (Some(metadata), false));
        let held = WindowTurn {
            turn: turn.into(),
            ordinal: 0,
            context: false,
            deleted: false,
            source_offset: 0,
            stored: None,
        };
        let json = serde_json::to_string(&held).expect("JSON");
        assert!(json.contains(&format!(r#""metadata":{metadata},"recall":false"#)), "{json}");
        assert_eq!(serde_json::from_str::<WindowTurn>(&json).expect("it is read back"), held);
        for absent in ["", r#","metadata":null,"recall":null"#, r#","recall":true"#] {
            let turn = read(&record(absent)).expect(absent);
            assert_eq!((&turn.metadata, turn.recall), (&None, true));
            let json = serde_json::to_string(&turn).expect("JSON");
            assert!(!json.contains("metadata") && !json.contains("recall"), "{json}");
        }
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(40), "]".repeat(40));
        let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_METADATA_BYTES));
        for refused in [deep.as_str(), &large, "[]", "7", r#"{"a":1,"a":2}"#] {
            read(&record(&format!(r#","metadata":{refused}"#))).expect_err(refused);
        }
        read(&record(r#","recall":"no""#)).expect_err("no truth value");
    }

    #[test]
    fn an_offset_of_24_hours_is_refused_and_read_from_the_log() {
        let turn = r#"{"bank":"b","turn":"t","speaker":"A","text":"x","time":"2024-01-01T00:00:00+25:00"}"#;
        let idle = r#"{"type":"idle","bank":"b","time":"2024-01-01T00:00:00+25:00"}"#;
        for json in [turn, idle] {
            let error = TurnEvent::from_json(json.as_bytes()).expect_err(json);
            assert!(error.starts_with("time: ") && error.contains("-23:59 to +23:59"), "{error}");
            assert!(TurnEvent::from_log(json.as_bytes()).expect(json).check().is_err());
        }
    }

    #[test]
    fn a_byte_order_mark_is_read_over_and_bytes_of_another_form_are_called_a_record() {
        let record = "\u{feff}{\"bank\":\"b\",\"turn\":\"t\",\"speaker\":\"A\",\"text\":\"x\",\"time\":\"2024-01-01T00:00:00Z\"}";
        assert!(TurnEvent::from_json(record.as_bytes()).is_ok(), "{record}");
        assert_eq!(stated_bank(record.as_bytes()), Bank::parse("b").ok());
        let refused = TurnEvent::from_json(b"\x00\x05\x93\x12avro").expect_err("it is no text");
        assert_eq!(refused, "not UTF-8 after byte 2; re-encode the record as JSON in UTF-8");
    }

    #[test]
    fn a_role_names_a_kind_however_it_is_written() {
        use SpeakerKind::{Assistant, Bot, Person, Tool};
        for (role, kind) in [
            ("user", Some(Person)),
            ("human", Some(Person)),
            ("person", Some(Person)),
            ("assistant", Some(Assistant)),
            ("ai", Some(Assistant)),
            ("model", Some(Assistant)),
            ("tool", Some(Tool)),
            ("function", Some(Tool)),
            ("system", Some(Bot)),
            ("developer", Some(Bot)),
            ("bot", Some(Bot)),
            ("USER", Some(Person)),
            ("Assistant", Some(Assistant)),
            ("DeVeLoPer", Some(Bot)),
            ("users", None),
            (" user", None),
            ("", None),
        ] {
            assert_eq!(SpeakerKind::of_role(role), kind, "{role:?}");
        }
        for kind in SpeakerKind::ALL {
            assert_eq!(SpeakerKind::of_role(kind.name()), Some(kind), "what a record holds is read back");
        }
    }
}
