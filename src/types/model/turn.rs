//! Turns: the records of the turns topic, windows of turns, and dead letters.
//!
//! In: JSON records. Out: checked events, or a message that names the field; dead letters for
//! rejected records.

use std::sync::Arc;

use schemars::{JsonSchema, Schema};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::value::{Error as ValueError, StrDeserializer},
};
use serde_json::{Value, error::Category, json};

use super::{
    Bank, EventTime, FieldError, MAX_ATTACHMENTS, MAX_NAME_BYTES, MAX_TEXT_BYTES, MAX_TURN_BYTES, MAX_URL_BYTES,
    SCHEMA_VERSION, UniqueJson, limits::MAX_REASON_BYTES,
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
        let (kind, session, thread, reply_to) = (None, None, None, None);
        Self { bank, turn, version: 0, speaker, kind, text, time, session, thread, reply_to, attachments: Vec::new() }
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
        // Most turns are so small that this bound decides, without writing the JSON.
        if 6 * fields + 64 * self.attachments.len() + 1_024 <= MAX_TURN_BYTES {
            return Ok(());
        }
        let bytes = serde_json::to_vec(self).map_or(usize::MAX, |json| json.len());
        if bytes <= MAX_TURN_BYTES {
            return Ok(());
        }
        let problem = format!("{bytes} bytes of JSON, more than {MAX_TURN_BYTES}");
        Err(FieldError::new("turn", problem, "split it into several turns"))
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
}

/// Makes the schema allow what [`TurnEvent::from_json`] reads besides what it writes: a turn without `type`, with a
/// `schema`, or with a `role`, and null in fields that may be absent. A version has no default there: a generator would
/// make it a field that every client must send, and a JavaScript number cannot hold that of a deletion.
fn allow_other_names(schema: &mut Schema) {
    let mut variants = schema.get_mut("oneOf").and_then(Value::as_array_mut);
    let versions = variants.iter_mut().flat_map(|variants| variants.iter_mut());
    for version in versions.filter_map(|variant| variant.pointer_mut("/properties/version")?.as_object_mut()) {
        version.remove("default");
    }
    for field in ["/properties/version/type", "/properties/attachments/type"] {
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
        }
    }

    /// Reads one record from outside. A record without `type` is a turn. A byte order mark may stand in front.
    ///
    /// # Errors
    /// A message that names the field, or the column of malformed JSON.
    pub fn from_json(bytes: &[u8]) -> Result<Self, String> {
        let event = Self::from_log(bytes)?;
        event.check_offset().map_err(|e| e.to_string())?;
        Ok(event)
    }

    /// Reads one record of the turns log, which may hold a time with an offset that [`Self::from_json`] refuses.
    ///
    /// # Errors
    /// As [`Self::from_json`].
    pub fn from_log(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(without_byte_order_mark(bytes))
            .map_err(|e| format!("not UTF-8 after byte {}; re-encode the record as JSON in UTF-8", e.valid_up_to()))?;
        let UniqueJson(mut value) =
            serde_json::from_slice(&replace_lone_surrogates(text.as_bytes())).map_err(|e| match e.classify() {
                Category::Data => format!("{e}; write each field once"),
                _ => format!("not JSON: {e}; write one JSON object per record"),
            })?;
        let Some(object) = value.as_object_mut() else {
            return Err("not a JSON object; write one object per record".to_owned());
        };
        if let Some(version) = object.remove("schema").filter(|v| v.as_u64() != Some(SCHEMA_VERSION.into())) {
            return Err(format!("schema: {version} is not known; this build reads {SCHEMA_VERSION}"));
        }
        object.entry("type").or_insert_with(|| "turn".into());
        let event: Self = serde_json::from_value(value).map_err(|e| e.to_string())?;
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
            Self::Deletion(_) | Self::SessionEnd(_) => Ok(()),
        }
    }

    fn check_lengths(&self) -> Result<(), FieldError> {
        match self {
            Self::Turn(turn) => turn.check_lengths(),
            Self::Deletion(d) => check_name("turn", &d.turn),
            Self::SessionEnd(s) => check_name("session", &s.session),
            Self::Idle(_) => Ok(()),
        }
    }
}

impl From<Turn> for TurnEvent {
    fn from(turn: Turn) -> Self {
        Self::Turn(turn)
    }
}

/// A rejected record, for the dead-letter topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeadLetter {
    /// Version of this schema: 1.
    pub schema: u32,
    /// Its origin: a file and line, or a topic, partition and offset; cut to 4,096 bytes.
    pub origin: String,
    /// What was wrong and what to do; cut to 4,096 bytes.
    pub reason: String,
    /// The record itself, cut to 4,096 bytes, invalid UTF-8 replaced.
    pub payload: String,
    /// Its position in the turns topic, if it was read from there.
    #[serde(default, rename = "place", skip_serializing_if = "Option::is_none")]
    pub position: Option<InputPosition>,
    /// The bank that it was for; absent where that could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bank: Option<Bank>,
}

/// A record of the turns topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Place")]
pub struct InputPosition {
    /// The partition.
    pub partition: u32,
    /// The offset.
    pub offset: u64,
}

impl DeadLetter {
    /// A dead letter for a raw record.
    #[must_use]
    pub fn new(origin: String, reason: String, payload: &[u8]) -> Self {
        let cut = &payload[..payload.len().min(4096)];
        let payload = String::from_utf8_lossy(cut).into_owned();
        // An error may quote a field's name, which may have any length.
        let short = |mut text: String| {
            text.truncate(text.floor_char_boundary(MAX_REASON_BYTES));
            text
        };
        let (origin, reason) = (short(origin), short(reason));
        Self { schema: SCHEMA_VERSION, origin, reason, payload, position: None, bank: None }
    }

    /// A dead letter for a record of the turns topic.
    #[must_use]
    pub fn of_turn(position: InputPosition, reason: String, payload: &[u8]) -> Self {
        let origin = format!("turns partition {}, offset {}", position.partition, position.offset);
        Self { position: Some(position), ..Self::new(origin, reason, payload) }.in_bank(stated_bank(payload))
    }

    /// The same, for this bank.
    #[must_use]
    pub fn in_bank(self, bank: Option<Bank>) -> Self {
        Self { bank, ..self }
    }
}

/// The bank that a rejected record of turns states, if that can be read. Not for records of other forms: there a field
/// of this name may be anyone's words.
#[must_use]
pub fn stated_bank(record: &[u8]) -> Option<Bank> {
    #[derive(Deserialize)]
    struct StatedBank {
        bank: Bank,
    }
    serde_json::from_slice(without_byte_order_mark(record)).ok().map(|StatedBank { bank }| bank)
}

/// The bytes without the mark that some programs write in front of UTF-8.
fn without_byte_order_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
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
    /// Hash of what the extractor depends on: ids, versions and contents, in order.
    #[must_use]
    pub fn turns_hash(&self) -> String {
        let mut hash = blake3::Hasher::new();
        for t in &self.turns {
            let json = serde_json::to_vec(t).unwrap_or_default();
            hash.update(&(json.len() as u64).to_le_bytes()).update(&json);
        }
        hash.finalize().to_hex()[..32].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
