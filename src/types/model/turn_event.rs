//! The records of the turns topic.
//!
//! In: JSON records. Out: checked events, or a message that names the field.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, error::Category, json};

use super::{
    Bank, EventTime, FieldError, SCHEMA_VERSION, SpeakerKind, Turn, UniqueJson, WriteCondition, WriteVerdict,
    dead_letter::without_byte_order_mark,
    turn::{OTHER_KIND_NAMES, check_name},
    write_condition::MAX_GROUP,
};
use crate::lone_surrogates::replace_lone_surrogates;

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

/// The version of a deletion for good: no version is greater.
pub const PERMANENT_VERSION: u64 = u64::MAX;

impl TurnDeletion {
    /// A deletion for good: no later version restores the turn.
    #[must_use]
    pub fn permanent(bank: Bank, turn: String) -> Self {
        Self { bank, turn, version: final_version() }
    }
}

fn final_version() -> u64 {
    PERMANENT_VERSION
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

#[cfg(test)]
mod tests {
    use super::{
        super::{MAX_METADATA_BYTES, Metadata, WindowTurn, stated_bank},
        *,
    };

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
}
