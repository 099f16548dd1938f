//! Memory units, their parts and cues, and the records of the memory topic.
//!
//! In: results of the extractor and the embedder. Out: values with one JSON form, and keys with one
//! form in bytes.

use std::{fmt, ops::Range};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, de};

use super::{
    Bank, EventTime, FieldError, Interval, Language, RecordStatements, SessionId, SpeakerKind, Vector, WindowId,
    WindowTurn,
};

/// The model that made a vector. Vectors of different hashes are never compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelRef {
    /// Its name in the configuration.
    pub name: String,
    /// Hash of its weights and of every setting that changes a vector.
    pub hash: String,
}

/// A piece of a unit with its own vectors: a turn, or a passage of a long one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Part")]
pub struct UnitPart {
    /// The turn that it was taken from.
    pub turn: String,
    /// Ordinal, in its session, of that turn.
    pub ordinal: u32,
    /// Who said it.
    pub speaker: String,
    /// What the speaker is, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<SpeakerKind>,
    /// When it was said.
    pub said_at: EventTime,
    /// The words, captions included. A passage that continues a table or code begins with the table's header
    /// or the line that opens the code, which lie outside its range.
    pub text: String,
    /// Where a passage lies in the text of its turn; absent where the part is the whole turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<TextRange>,
    /// Features of the words that the familiarity score uses.
    #[serde(default, skip_serializing_if = "TextFeatures::is_empty")]
    pub marks: TextFeatures,
    /// Vectors of its own: one a sentence, or one of the whole part; empty where the
    /// unit's own vector serves: the unit has no other part, or the passage is code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vectors: Vec<Vector>,
    /// The vector of the turn before it in the session and this part together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<Vector>,
}

/// Where a passage lies in the text of its turn, behind which stands what was shared, a line each; in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextRange {
    /// Its first byte.
    pub start: u32,
    /// The byte after its last.
    pub end: u32,
    /// The bytes of the whole text.
    pub total: u32,
}

impl TextRange {
    /// How many bytes the passage has.
    #[must_use]
    pub fn bytes(self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }
}

/// Features of the words of a part that the familiarity score uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Marks")]
pub struct TextFeatures {
    /// Expressions of time.
    #[serde(default)]
    pub times: u8,
    /// Whether it ends by asking something.
    #[serde(default)]
    pub asks: bool,
    /// Whether it quotes something between double quotation marks, such as a title.
    #[serde(default)]
    pub quotes: bool,
    /// The language that it is read in; absent where that is English.
    #[serde(default, skip_serializing_if = "Language::is_english")]
    pub language: Language,
}

impl TextFeatures {
    /// True when it has none of the features.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A memory unit `m = (r, v, P, L, T)` with its sources and parts (paper, section 3.2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    /// Hash of bank, window, sources, restatement and cues.
    pub id: UnitId,
    /// A text that can be understood without its context.
    pub restatement: String,
    /// What the edges compare. Only its direction counts: in bytes, its length may differ from one.
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
    pub parts: Vec<UnitPart>,
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
    /// True when there is no cue.
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
    /// The id that decision 8 defines: the same content in the same window is the same unit.
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
        text.parse().map_err(de::Error::custom)
    }
}

impl std::str::FromStr for UnitId {
    type Err = &'static str;

    /// The id in its one form, as [`fmt::Display`] writes it.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_id = text.len() == 16 && text.bytes().all(is_digit);
        let number = u64::from_str_radix(text, 16).ok().filter(|_| is_id);
        number.map(Self).ok_or("a unit has 16 hexadecimal digits, 0 to f; copy the id from an answer")
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

/// Whether a record holds a whole window or one turn of an open one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WindowState {
    /// One turn of a window that has not closed.
    Open,
    /// A closed window.
    Final,
}

/// One record of the memory topic: a window, or one turn of an open window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryRecord {
    /// Version of this schema: 1.
    pub schema: u32,
    /// The tenant.
    pub bank: Bank,
    /// The window.
    pub window: WindowId,
    /// Whether it replaces the records of the window's turns.
    pub state: WindowState,
    /// Hash of the turns that the units were made from.
    pub turns_hash: String,
    /// Who made the units, with a version: `rules/6`, `plain/3`. It ends with ` in part` where units are missing until
    /// the window is extracted again.
    pub extractor: String,
    /// What cut its long turns into passages, with a version: `passages/1`; absent where no unit has passages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cutter: Option<String>,
    /// Who made the vectors.
    pub model: ModelRef,
    /// The turns.
    pub turns: Vec<WindowTurn>,
    /// The units.
    pub units: Vec<Unit>,
    /// What its turns state that lasts; absent in a record that was never searched for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statements: Option<RecordStatements>,
}

/// What follows the extractor's name in a record that lacks units: turns of its window were forgotten, and the window
/// is to be extracted again.
pub const IN_PART: &str = " in part";

impl MemoryRecord {
    /// Whether it lacks units until its window is extracted again.
    #[must_use]
    pub fn is_in_part(&self) -> bool {
        self.extractor.ends_with(IN_PART)
    }

    /// Whether it has a turn that is not deleted, or a unit.
    #[must_use]
    pub fn is_filled(&self) -> bool {
        !self.units.is_empty() || self.turns.iter().any(|turn| !turn.deleted)
    }
}

/// The key of a memory record: (bank, window), with the turn while the window is open.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryKey {
    /// The tenant.
    pub bank: Bank,
    /// The window.
    pub window: WindowId,
    /// The turn, for the record of a turn in an open window.
    pub turn: Option<String>,
    /// Which part, where a window's record is too large for one: from 0.
    pub part: u32,
}

impl MemoryKey {
    /// Length-prefixed bytes: bank, session, start; then the turn of an open window, which is empty
    /// in front of a part that is not the first of a closed one. All keys of a bank share a prefix.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        let mut put = |field: &[u8]| {
            // Every field has been checked: it has at most 256 bytes after a prefix such as `caller:`.
            out.extend_from_slice(&(field.len() as u16).to_be_bytes());
            out.extend_from_slice(field);
        };
        put(self.bank.as_str().as_bytes());
        put(self.window.session.0.as_bytes());
        put(&self.window.start.to_be_bytes());
        if self.turn.is_some() || self.part > 0 {
            put(self.turn.as_deref().unwrap_or_default().as_bytes());
        }
        if self.part > 0 {
            put(&self.part.to_be_bytes());
        }
        out
    }

    /// The bytes with which all keys of a bank begin, and no key of another bank.
    #[must_use]
    pub fn prefix(bank: &Bank) -> Vec<u8> {
        // A bank has at most 128 bytes.
        [&(bank.as_str().len() as u16).to_be_bytes()[..], bank.as_str().as_bytes()].concat()
    }

    /// Reads [`Self::to_bytes`] back.
    ///
    /// # Errors
    /// [`FieldError`] when the bytes are not such a key.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FieldError> {
        let bad =
            || FieldError::new("key", format!("{} bytes that are not a memory key", bytes.len()), "check the topic");
        let mut fields: Vec<&[u8]> = Vec::with_capacity(5);
        let mut rest = bytes;
        while let Some((length, tail)) = rest.split_first_chunk::<2>() {
            let (field, tail) = tail.split_at_checked(usize::from(u16::from_be_bytes(*length))).ok_or_else(bad)?;
            fields.push(field);
            rest = tail;
        }
        let text = |b: &[u8]| std::str::from_utf8(b).map(str::to_owned).map_err(|_| bad());
        let number = |b: &[u8]| b.try_into().map(u32::from_be_bytes).map_err(|_| bad());
        let (&[bank, session, start], more) = fields.split_first_chunk::<3>().ok_or_else(bad)?;
        let (turn, part) = match more {
            [] => (None, 0),
            [turn] => (Some(text(turn)?), 0),
            [turn, part] => (Some(text(turn)?).filter(|turn| !turn.is_empty()), number(part)?),
            _ => return Err(bad()),
        };
        if !rest.is_empty() {
            return Err(bad());
        }
        let window = WindowId { session: SessionId(text(session)?), start: number(start)? };
        Ok(Self { bank: Bank::parse(&text(bank)?)?, window, turn, part })
    }
}

/// A text with the byte ranges that each get a vector.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SpannedText {
    /// The whole text.
    pub text: String,
    /// Byte ranges at character boundaries; empty for a plain text.
    pub spans: Vec<Range<usize>>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Keys read back equal, and keys of one bank share a prefix that no other bank has.
        #[test]
        fn keys_read_back_equal(bank in "[a-z]{1,5}(/[a-z]{1,5})?", session in "\\PC{0,20}", start: u32, turn in proptest::option::of("\\PC{1,20}"), part in 0u32..3) {
            let window = WindowId { session: SessionId(session), start };
            let key = MemoryKey { bank: Bank::parse(&bank).expect("a good name"), window, turn, part };
            let bytes = key.to_bytes();
            prop_assert_eq!(MemoryKey::from_bytes(&bytes), Ok(key));
            let prefix = [&(bank.len() as u16).to_be_bytes()[..], bank.as_bytes()].concat();
            prop_assert!(bytes.starts_with(&prefix));
            prop_assert!(MemoryKey::from_bytes(&bytes[..bytes.len() - 1]).is_err());
        }

        #[test]
        fn bytes_that_are_no_key_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            drop(MemoryKey::from_bytes(&bytes));
        }
    }
}
