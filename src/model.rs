//! The nouns of the whole system, and the limits of what may enter it.
//!
//! In: nothing but plain values. Out: types that every room shares, each with one
//! JSON form (the schemas in `schemas/topics` are generated from here). This module
//! imports no room, reads no clock and opens no file.

use std::{fmt, ops::Range, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use jiff::{Timestamp, fmt::temporal::Pieces, tz::Offset};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, de};

/// The version that every record of every topic carries in `schema`.
pub const SCHEMA_VERSION: u32 = 1;
/// Longest text of a turn, in bytes of UTF-8.
pub const MAX_TEXT_BYTES: usize = 65_536;
/// Longest turn id, speaker, session or thread name, in bytes of UTF-8.
pub const MAX_NAME_BYTES: usize = 256;
/// First year in which a turn may have been said.
pub const FIRST_YEAR: i16 = 1900;
/// Last year in which a turn may have been said.
pub const LAST_YEAR: i16 = 2199;

/// What is wrong with a value, with the field's name and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}; {remedy}")]
pub struct Invalid {
    /// The field of the record, as it is spelled in the JSON form.
    pub field: &'static str,
    /// What was found.
    pub problem: String,
    /// What to write instead.
    pub remedy: &'static str,
}

impl Invalid {
    fn new(field: &'static str, problem: impl Into<String>, remedy: &'static str) -> Self {
        Self { field, problem: problem.into(), remedy }
    }
}

// ---------------------------------------------------------------- banks

/// A tenant: 1 to 128 characters, segments of `[A-Za-z0-9._-]` joined by `/`.
///
/// No segment is empty, `.` or `..`, so that a prefix always matches whole segments.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("pattern" = "^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$", "minLength" = 1, "maxLength" = 128))]
pub struct Bank(String);

impl Bank {
    /// Checks a bank's name.
    ///
    /// # Errors
    /// [`Invalid`] that names the offending segment.
    pub fn parse(name: &str) -> Result<Self, Invalid> {
        const REMEDY: &str = "use 1 to 128 characters: segments of letters, digits, '.', '_' or '-', joined by '/'";
        if name.is_empty() || name.len() > 128 {
            return Err(Invalid::new("bank", format!("{} characters long", name.chars().count()), REMEDY));
        }
        for segment in name.split('/') {
            let plain = segment.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
            if segment.is_empty() || segment == "." || segment == ".." || !plain {
                return Err(Invalid::new("bank", format!("segment {segment:?} of {name:?} is not allowed"), REMEDY));
            }
        }
        Ok(Self(name.to_owned()))
    }

    /// The name as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The bank's identity in the dataflow: 128 bits of BLAKE3 of its name.
    #[must_use]
    pub fn key(&self) -> BankKey {
        let hash = blake3::hash(self.0.as_bytes());
        let mut low = [0u8; 16];
        low.copy_from_slice(&hash.as_bytes()[..16]);
        BankKey(u128::from_le_bytes(low))
    }
}

impl fmt::Display for Bank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Bank {
    type Error = Invalid;
    fn try_from(name: String) -> Result<Self, Invalid> {
        Self::parse(&name)
    }
}

impl From<Bank> for String {
    fn from(bank: Bank) -> Self {
        bank.0
    }
}

/// A bank inside the dataflow. Wide enough that two tenants never meet by collision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BankKey(pub u128);

// ---------------------------------------------------------------- time

/// A moment with the offset at which it was said; RFC 3339 in JSON.
///
/// Ordered by the moment, then by the offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventTime {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub unix_ms: i64,
    /// Offset east of UTC in seconds.
    pub offset_seconds: i32,
}

impl EventTime {
    /// Reads RFC 3339 with an offset (`2023-05-08T13:56:00+02:00` or `…Z`).
    ///
    /// # Errors
    /// [`Invalid`] when it is not a time, names no offset, or lies outside
    /// [`FIRST_YEAR`] to [`LAST_YEAR`].
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        const REMEDY: &str = "write RFC 3339 with an offset, such as 2023-05-08T13:56:00Z, in a year from 1900 to 2199";
        let bad = |problem: String| Invalid::new("time", problem, REMEDY);
        let pieces = Pieces::parse(text).map_err(|_| bad(format!("{text:?} is not a time")))?;
        let time = pieces.time().ok_or_else(|| bad(format!("{text:?} has no time of day")))?;
        let offset = pieces.to_numeric_offset().ok_or_else(|| bad(format!("{text:?} has no zone")))?;
        let moment = offset.to_timestamp(pieces.date().to_datetime(time)).map_err(|e| bad(format!("{text:?}: {e}")))?;
        Self::new(moment.as_millisecond(), offset.seconds()).map_err(|_| bad(format!("{text:?} is out of range")))
    }

    /// A moment from its parts.
    ///
    /// # Errors
    /// [`Invalid`] when the year or the offset is out of range.
    pub fn new(unix_ms: i64, offset_seconds: i32) -> Result<Self, Invalid> {
        const REMEDY: &str = "use a year from 1900 to 2199 and an offset of whole minutes, less than 26 hours";
        let bad = || Invalid::new("time", format!("{unix_ms} ms at offset {offset_seconds} s"), REMEDY);
        let moment = Timestamp::from_millisecond(unix_ms).map_err(|_| bad())?;
        let offset = Offset::from_seconds(offset_seconds).map_err(|_| bad())?;
        let year = offset.to_datetime(moment).year();
        // RFC 3339 writes whole minutes: a finer offset would not read back.
        if !(FIRST_YEAR..=LAST_YEAR).contains(&year) || offset_seconds % 60 != 0 {
            return Err(bad());
        }
        Ok(Self { unix_ms, offset_seconds })
    }

    /// The civil date and time where it was said.
    #[must_use]
    pub fn local(&self) -> jiff::civil::DateTime {
        // Both parts were checked by `new`; the fallbacks keep this total.
        let offset = Offset::from_seconds(self.offset_seconds).unwrap_or(Offset::UTC);
        offset.to_datetime(Timestamp::from_millisecond(self.unix_ms).unwrap_or(Timestamp::UNIX_EPOCH))
    }
}

impl fmt::Display for EventTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = Offset::from_seconds(self.offset_seconds).unwrap_or(Offset::UTC);
        let moment = Timestamp::from_millisecond(self.unix_ms).unwrap_or(Timestamp::UNIX_EPOCH);
        if offset == Offset::UTC { write!(f, "{moment}") } else { write!(f, "{}", moment.display_with_offset(offset)) }
    }
}

impl Serialize for EventTime {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EventTime {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(d)?).map_err(de::Error::custom)
    }
}

impl JsonSchema for EventTime {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "EventTime".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time",
            "description": "RFC 3339 with an offset, in a year from 1900 to 2199." })
    }
}

/// A closed interval of moments, `start ≤ end`; a pair of RFC 3339 times in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "(EventTime, EventTime)", into = "(EventTime, EventTime)")]
pub struct Interval {
    /// First moment, as milliseconds since 1970.
    pub start_ms: i64,
    /// Last moment, as milliseconds since 1970.
    pub end_ms: i64,
    /// Offset east of UTC, in seconds, at which the interval was meant.
    pub offset_seconds: i32,
}

impl Interval {
    /// The single moment `[t, t]`.
    #[must_use]
    pub fn at(time: EventTime) -> Self {
        Self { start_ms: time.unix_ms, end_ms: time.unix_ms, offset_seconds: time.offset_seconds }
    }

    /// Milliseconds between two intervals; 0 when they meet.
    #[must_use]
    pub fn gap_ms(&self, other: &Self) -> i64 {
        (other.start_ms.saturating_sub(self.end_ms)).max(self.start_ms.saturating_sub(other.end_ms)).max(0)
    }
}

impl TryFrom<(EventTime, EventTime)> for Interval {
    type Error = Invalid;
    fn try_from((start, end): (EventTime, EventTime)) -> Result<Self, Invalid> {
        if start.unix_ms > end.unix_ms {
            return Err(Invalid::new("time", format!("{start} is after {end}"), "write the earlier moment first"));
        }
        Ok(Self { start_ms: start.unix_ms, end_ms: end.unix_ms, offset_seconds: start.offset_seconds })
    }
}

impl From<Interval> for (EventTime, EventTime) {
    fn from(i: Interval) -> Self {
        let at = |unix_ms| EventTime { unix_ms, offset_seconds: i.offset_seconds };
        (at(i.start_ms), at(i.end_ms))
    }
}

// ---------------------------------------------------------------- turns

/// Something shared with a turn. Its caption counts as part of what was said.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// What kind of thing it is, such as `image`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Words that describe it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caption: Option<String>,
    /// Where it can be found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// One thing said by one speaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// The tenant that it belongs to.
    pub bank: Bank,
    /// Identity inside the bank: the same id again is the same turn.
    pub turn: String,
    /// The platform's edit time or counter; the higher one wins. 0 when never edited.
    #[serde(default)]
    pub version: u64,
    /// Who said it.
    pub speaker: String,
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
    /// What was shared with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

impl Turn {
    /// Checks lengths and emptiness; times and banks are checked when they are read.
    ///
    /// # Errors
    /// [`Invalid`] for the first field that is empty or too long.
    pub fn check(&self) -> Result<(), Invalid> {
        check_name("turn", &self.turn)?;
        check_name("speaker", &self.speaker)?;
        for (field, name) in [("session", &self.session), ("thread", &self.thread), ("reply_to", &self.reply_to)] {
            if let Some(name) = name {
                check_name(field, name)?;
            }
        }
        let captions: usize = self.captions().map(str::len).sum();
        if self.text.trim().is_empty() && captions == 0 {
            return Err(Invalid::new("text", "empty", "write what was said, or leave the turn out"));
        }
        let bytes = self.text.len() + captions;
        if bytes > MAX_TEXT_BYTES {
            let problem = format!("{bytes} bytes with captions, more than {MAX_TEXT_BYTES}");
            return Err(Invalid::new("text", problem, "split it into several turns"));
        }
        Ok(())
    }

    /// The captions of its attachments, blank ones left out.
    pub fn captions(&self) -> impl Iterator<Item = &str> {
        self.attachments.iter().filter_map(|a| a.caption.as_deref()).filter(|c| !c.trim().is_empty())
    }
}

fn check_name(field: &'static str, name: &str) -> Result<(), Invalid> {
    if name.trim().is_empty() {
        return Err(Invalid::new(field, "empty", "give it a name"));
    }
    if name.len() > MAX_NAME_BYTES {
        return Err(Invalid::new(field, format!("{} bytes long", name.len()), "use at most 256 bytes"));
    }
    if name.chars().any(char::is_control) {
        return Err(Invalid::new(field, "holds a control character", "use printable characters only"));
    }
    Ok(())
}

/// One record of the turns topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TurnEvent {
    /// Something was said, or said differently (a higher version).
    Turn(Turn),
    /// A turn was taken back.
    Deletion(Deletion),
    /// A conversation is over: its open window closes.
    SessionEnd(SessionEnd),
    /// The source has been silent: windows whose last turn is older than the gap close.
    Idle(Idle),
}

/// A turn taken back. It wins over a turn of the same version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Deletion {
    /// The tenant.
    pub bank: Bank,
    /// The turn that is gone.
    pub turn: String,
    /// The platform's time of deletion; left out, nothing revives the turn.
    #[serde(default = "final_version")]
    pub version: u64,
}

fn final_version() -> u64 {
    u64::MAX
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

/// Silence, as seen by the source: never by a clock of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Idle {
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

    /// Reads one record. A record without `type` is a turn.
    ///
    /// # Errors
    /// A message that names the field, or the column of malformed JSON.
    pub fn from_json(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes)
            .map_err(|e| format!("not UTF-8 after byte {}; re-encode the file as UTF-8", e.valid_up_to()))?;
        let mut value: serde_json::Value =
            serde_json::from_str(text).map_err(|e| format!("not JSON: {e}; write one JSON object a record"))?;
        let Some(object) = value.as_object_mut() else {
            return Err("not a JSON object; write one object a record".to_owned());
        };
        object.entry("type").or_insert_with(|| "turn".into());
        let event: Self = serde_json::from_value(value).map_err(|e| e.to_string())?;
        match &event {
            Self::Turn(turn) => turn.check(),
            Self::Deletion(d) => check_name("turn", &d.turn),
            Self::SessionEnd(s) => check_name("session", &s.session),
            Self::Idle(_) => Ok(()),
        }
        .map_err(|e| e.to_string())?;
        Ok(event)
    }
}

/// A record that could not be taken, on its way to the dead-letter topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeadLetter {
    /// [`SCHEMA_VERSION`].
    pub schema: u32,
    /// Where it came from: a file and line, or a topic, partition and offset.
    pub origin: String,
    /// What was wrong and what to do.
    pub reason: String,
    /// The record itself, cut to 4,096 bytes, invalid UTF-8 replaced.
    pub payload: String,
}

impl DeadLetter {
    /// A dead letter for a raw record.
    #[must_use]
    pub fn new(origin: String, reason: String, payload: &[u8]) -> Self {
        let cut = &payload[..payload.len().min(4096)];
        Self { schema: SCHEMA_VERSION, origin, reason, payload: String::from_utf8_lossy(cut).into_owned() }
    }
}

// ---------------------------------------------------------------- windows

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
    /// Place in the session, from 0, in the order first seen in the log.
    pub ordinal: u32,
    /// True in the leading overlap: context, and no unit of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub context: bool,
    /// True once a deletion won. The hole keeps its ordinal.
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

// ---------------------------------------------------------------- units and memory records

/// A dense vector of 32-bit floats; base64 of little-endian bytes in JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector(pub Arc<[f32]>);

impl Serialize for Vector {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = self.0.iter().flat_map(|x| x.to_le_bytes()).collect();
        s.serialize_str(&BASE64.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for Vector {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        let bytes = BASE64.decode(text.as_bytes()).map_err(de::Error::custom)?;
        if bytes.len() % 4 != 0 {
            return Err(de::Error::custom("vector: not a whole number of 32-bit floats"));
        }
        let floats: Arc<[f32]> = bytes.chunks_exact(4).map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
        if floats.iter().any(|x| !x.is_finite()) {
            return Err(de::Error::custom("vector: holds a value that is not finite"));
        }
        Ok(Self(floats))
    }
}

impl JsonSchema for Vector {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Vector".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "contentEncoding": "base64",
            "description": "Little-endian 32-bit floats, base64." })
    }
}

/// The model that made a vector. Vectors of different hashes are never compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelRef {
    /// Its name in the configuration.
    pub name: String,
    /// Hash of its weights and of every setting that changes a vector.
    pub hash: String,
}

/// A piece of a unit, with a vector of its own: a turn, or a sentence of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The turn that it was taken from.
    pub turn: String,
    /// Who said it.
    pub speaker: String,
    /// When it was said.
    pub said_at: EventTime,
    /// The words, captions included.
    pub text: String,
    /// Its vector; absent when the unit has this part only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector: Option<Vector>,
}

/// A memory unit `m = (r, v, P, L, T)` with its sources and parts (paper, section 3.2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    /// Hash of bank, window, sources, restatement and cues.
    pub id: UnitId,
    /// A text that stands alone.
    pub restatement: String,
    /// Unit length; what the edges compare.
    pub vector: Vector,
    /// What it can be cued by.
    #[serde(flatten)]
    pub cues: Cues,
    /// When it was said: the time of its last source.
    pub said_at: EventTime,
    /// The turns that it was made from, in ordinal order; never empty.
    pub sources: Vec<String>,
    /// Ordinal, in its session, of its first source.
    pub ordinal: u32,
    /// Its pieces, in ordinal order; never empty.
    pub parts: Vec<Part>,
}

/// What a unit, or a question, can be cued by (paper, section 3.2).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
pub struct Cues {
    /// Canonical names of people, sorted, without repetition.
    #[serde(default)]
    pub participants: Vec<String>,
    /// Canonical names of places, sorted, without repetition.
    #[serde(default)]
    pub locations: Vec<String>,
    /// The interval of the event; absent when it is not grounded.
    #[serde(default)]
    pub time: Option<Interval>,
}

impl Cues {
    /// True when there is nothing to match by.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.participants.is_empty() && self.locations.is_empty() && self.time.is_none()
    }
}

/// The form of a name in which it is compared: trimmed, single spaces, lower case.
#[must_use]
pub fn canonical_name(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Identity of a unit inside its bank; 16 hexadecimal digits in JSON.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitId(pub u64);

impl UnitId {
    /// The identity by decision 8: the same content in the same window is the same unit.
    #[must_use]
    pub fn of(bank: &Bank, window: &WindowId, sources: &[String], restatement: &str, cues: &Cues) -> Self {
        let json = serde_json::to_vec(&(bank, window, sources, restatement, cues)).unwrap_or_default();
        let hash = blake3::hash(&json);
        let mut low = [0u8; 8];
        low.copy_from_slice(&hash.as_bytes()[..8]);
        Self(u64::from_le_bytes(low))
    }
}

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for UnitId {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UnitId {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        u64::from_str_radix(&text, 16).map(Self).map_err(de::Error::custom)
    }
}

impl JsonSchema for UnitId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "UnitId".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9a-f]{16}$" })
    }
}

/// Whether a record stands for a whole window or for one turn of an open one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WindowState {
    /// One turn of a window that has not closed.
    Open,
    /// A closed window.
    Final,
}

/// One record of the memory topic: what is known of a window, or of one turn of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryRecord {
    /// [`SCHEMA_VERSION`].
    pub schema: u32,
    /// The tenant.
    pub bank: Bank,
    /// The window.
    pub window: WindowId,
    /// Whether it replaces the records of the window's turns.
    pub state: WindowState,
    /// Hash of the turns that the units were made from ([`Window::turns_hash`]).
    pub turns_hash: String,
    /// Who made the units, with a version: `rules/1`, `plain/1`.
    pub extractor: String,
    /// Who made the vectors.
    pub model: ModelRef,
    /// The turns.
    pub turns: Vec<WindowTurn>,
    /// The units.
    pub units: Vec<Unit>,
}

/// The key of a memory record: (bank, window), with the turn while the window is open.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MemoryKey {
    /// The tenant.
    pub bank: Bank,
    /// The window.
    pub window: WindowId,
    /// The turn, for the record of a turn in an open window.
    pub turn: Option<String>,
}

impl MemoryKey {
    /// Length-prefixed bytes: bank, session, start, turn. All keys of a bank share a prefix.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        let mut put = |field: &[u8]| {
            // Every field was checked to be at most 256 bytes and a prefix of `caller:`.
            out.extend_from_slice(&(field.len() as u16).to_be_bytes());
            out.extend_from_slice(field);
        };
        put(self.bank.as_str().as_bytes());
        put(self.window.session.0.as_bytes());
        put(&self.window.start.to_be_bytes());
        if let Some(turn) = &self.turn {
            put(turn.as_bytes());
        }
        out
    }

    /// Reads [`Self::to_bytes`] back.
    ///
    /// # Errors
    /// [`Invalid`] when the bytes are not such a key.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Invalid> {
        let bad = || Invalid::new("key", format!("{} bytes that are not a memory key", bytes.len()), "check the topic");
        let mut fields: Vec<&[u8]> = Vec::with_capacity(4);
        let mut rest = bytes;
        while let Some((length, tail)) = rest.split_first_chunk::<2>() {
            let (field, tail) = tail.split_at_checked(usize::from(u16::from_be_bytes(*length))).ok_or_else(bad)?;
            fields.push(field);
            rest = tail;
        }
        let text = |b: &[u8]| std::str::from_utf8(b).map(str::to_owned).map_err(|_| bad());
        let (&[bank, session, start], turn) = fields.split_first_chunk::<3>().ok_or_else(bad)?;
        if !rest.is_empty() || turn.len() > 1 {
            return Err(bad());
        }
        let window = WindowId {
            session: SessionId(text(session)?),
            start: u32::from_be_bytes(start.try_into().map_err(|_| bad())?),
        };
        Ok(Self { bank: Bank::parse(&text(bank)?)?, window, turn: turn.first().map(|t| text(t)).transpose()? })
    }
}

// ---------------------------------------------------------------- scores and edges

/// A score in fixed point, so that no processor or summation order changes a comparison.
///
/// [`Score::ONE`] is 1.0: the square of the largest 16-bit component, so that the
/// integer product of two quantised unit vectors is their cosine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Score(pub i32);

impl Score {
    /// 1.0.
    pub const ONE: Self = Self(32_767 * 32_767);
    /// 0.0.
    pub const ZERO: Self = Self(0);

    /// The nearest fixed-point value; saturates outside ±2.
    #[must_use]
    pub fn from_f64(value: f64) -> Self {
        Self((value * f64::from(Self::ONE.0)).round() as i32)
    }

    /// The value as a float, for display and for the evidence formula.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(Self::ONE.0)
    }
}

/// What joins two units, or a question and a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// Nearness of meaning: cosine of vectors.
    Semantic,
    /// Shared participants, places and times (called `cue` in the first hop).
    Structural,
    /// Shared words: BM25. Makes no edges.
    Lexical,
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Semantic => "semantic",
            Self::Structural => "structural",
            Self::Lexical => "lexical",
        })
    }
}

/// One step along an edge of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// Where it starts.
    pub from: UnitId,
    /// Where it ends.
    pub to: UnitId,
    /// Which kind of edge.
    pub channel: Channel,
    /// The edge's weight: its association score.
    pub weight: f64,
}

// ---------------------------------------------------------------- questions and evidence

/// A question to one bank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The tenant that is asked.
    pub bank: Bank,
    /// The question as put.
    pub text: String,
    /// When it is asked; "yesterday" means nothing without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<EventTime>,
}

/// What a question is looked up by (paper, section 3.4 and the cue contract).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionCues {
    /// The wording, with nothing deleted; what is embedded.
    pub semantic_query: String,
    /// Two to six words or short phrases for the lexical channel.
    pub keywords: Vec<String>,
    /// Persons, places and time that the question names.
    #[serde(flatten)]
    pub cues: Cues,
}

/// How a unit of an answer was reached (invariant 6).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reached_by", rename_all = "snake_case")]
pub enum Provenance {
    /// Recalled by the question itself.
    FirstHop {
        /// Through which index.
        channel: Channel,
        /// Place in that index's answer, from 1.
        rank: u32,
        /// That index's score.
        score: f64,
    },
    /// Found from an anchor, along edges of one channel.
    Expansion {
        /// Along which edges.
        channel: Channel,
        /// Place among that channel's support, from 1.
        rank: u32,
        /// Match with the target, times the path's weight.
        score: f64,
        /// Match with the target alone.
        target_match: f64,
        /// Number of edges walked.
        hops: u32,
        /// The edges, from the anchor on.
        path: Vec<Step>,
        /// Product of their weights.
        path_weight: f64,
    },
}

/// One unit of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceUnit {
    /// Which unit.
    pub id: UnitId,
    /// What it says.
    pub restatement: String,
    /// What it is cued by.
    #[serde(flatten)]
    pub cues: Cues,
    /// When it was said.
    pub said_at: EventTime,
    /// The turns that it was made from.
    pub sources: Vec<String>,
    /// The evidence order ρ (paper, section 3.5).
    pub rho: f64,
    /// Whether the expansion started from it.
    pub anchor: bool,
    /// Every way in which it was reached; never empty.
    pub provenance: Vec<Provenance>,
}

/// How far into a log something reaches: every record before `next_offset` is included.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Position {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: u32,
    /// The first offset that is not included.
    pub next_offset: u64,
}

/// The target of a round: what is missing (paper, section 3.4).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// A short label.
    pub goal: String,
    /// A factual sentence, neither the answer nor the question reworded.
    pub sentence: String,
    /// Who, where and when.
    #[serde(flatten)]
    pub cues: Cues,
}

/// What the planner decided after looking at the evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Whether a round of expansion follows.
    pub proceed: bool,
    /// How well the evidence covers the question, 0 to 1.
    pub sufficiency: f64,
    /// Why it goes on, or why it stops.
    pub reason: String,
    /// Where to expand from: units of the evidence, at most three.
    pub anchors: Vec<UnitId>,
    /// What to look for; absent when it stops.
    pub target: Option<Target>,
}

/// One unit as a round of expansion saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Seen {
    /// Which unit.
    pub id: UnitId,
    /// What it says.
    pub restatement: String,
    /// How it was reached.
    pub provenance: Provenance,
    /// Whether it entered the evidence.
    pub kept: bool,
}

/// One round of planning and expansion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// The plan.
    pub plan: Plan,
    /// How many units the walk reached that were not in the evidence yet.
    pub reached: usize,
    /// The best of them by channel, and which were kept.
    pub support: Vec<Seen>,
    /// The offsets that the walk reflects.
    pub reflects: Vec<Position>,
}

/// Everything that an answer is a function of, and how it came about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trace {
    /// What the question was looked up by.
    pub cues: QuestionCues,
    /// Hash of the question's vector and of its model.
    pub vector_hash: String,
    /// The first hop, in the order of channel and rank.
    pub first_hop: Vec<Seen>,
    /// The rounds, in order.
    pub rounds: Vec<Round>,
}

/// The answer of the memory: evidence, not yet words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// [`SCHEMA_VERSION`].
    pub schema: u32,
    /// The question.
    pub question: Question,
    /// At most the budget of units, best first.
    pub units: Vec<EvidenceUnit>,
    /// The units as an answerer reads them: by time, with dates and names.
    pub context: String,
    /// How well the evidence covers the question, 0 to 1.
    pub sufficiency: f64,
    /// False when nothing supports the question: the agent should know that it does not know.
    pub supported: bool,
    /// Why recollection ended.
    pub stop_reason: String,
    /// The offsets that the first hop reflects.
    pub reflects: Vec<Position>,
    /// How it came about.
    pub trace: Trace,
}

/// A text with the byte ranges that get a vector of their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SpannedText {
    /// The whole text.
    pub text: String,
    /// Byte ranges at character boundaries; empty for a plain text.
    pub spans: Vec<Range<usize>>,
}
