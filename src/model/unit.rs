//! Memory units, their vectors and cues, and the records of the memory topic.
//!
//! In: results of the extractor and the embedder. Out: values with one JSON form, and keys with one
//! form in bytes.

use std::{fmt, ops::Range, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, de};

use super::{Bank, EventTime, Interval, Invalid, SessionId, WindowId, WindowTurn};

/// A dense vector of 32-bit floats. In JSON a string: `i8/400:` and the base64 of a signed
/// byte for each component, which is that byte over 400; or, where a component is no such
/// fraction, the base64 of its little-endian bytes alone. Either reads back bit for bit.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector(pub Arc<[f32]>);

/// Prefix of a vector that is stored as bytes.
const BYTES: &str = "i8/";

impl Vector {
    /// The nearest vector whose components are each at most 127 steps of one size, 1/400 for
    /// 384 components: a quarter of the memory, and the same arithmetic everywhere.
    #[must_use]
    pub fn in_steps(&self) -> Self {
        let steps = steps(self.0.len());
        Self(self.0.iter().map(|x| f32::from(step(*x, steps)) / f32::from(steps)).collect())
    }

    /// Its components as whole numbers of steps, where each is exactly that and there is one.
    #[must_use]
    pub fn as_steps(&self) -> Option<Vec<i8>> {
        let steps = f32::from(steps(self.0.len()));
        // The nearest number, but for a fraction of a half, which is no whole number anyway. Every vector of
        // a memory that starts comes by here, and rounding as `step` does calls a function for each component.
        let near = |x: f32| (x * steps + 0.5_f32.copysign(x)).clamp(-127.0, 127.0) as i8;
        let bytes: Vec<i8> = self.0.iter().map(|x| near(*x)).collect();
        let same = |(step, x): (&i8, &f32)| (f32::from(*step) / steps).to_bits() == x.to_bits();
        (!bytes.is_empty() && bytes.iter().zip(self.0.iter()).all(same)).then_some(bytes)
    }

    /// The components of the vector of which [`Self::as_steps`] gives these numbers of steps.
    pub fn components_of_steps(bytes: &[i8]) -> impl ExactSizeIterator<Item = f32> + Clone {
        let steps = f32::from(steps(bytes.len()));
        bytes.iter().map(move |step| f32::from(*step) / steps)
    }
}

/// Steps of a length of one, by the number of components: 400 for 384 of them, so that 127
/// steps are six times the usual size of a unit vector's component.
fn steps(components: usize) -> u16 {
    // Never near the bounds of the type: a vector has at most some thousand components.
    (20.412 * (components as f64).sqrt()).round().clamp(1.0, f64::from(u16::MAX)) as u16
}

fn step(x: f32, steps: u16) -> i8 {
    (f64::from(x) * f64::from(steps)).round().clamp(-127.0, 127.0) as i8
}

impl Serialize for Vector {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.as_steps() {
            Some(bytes) => {
                let bytes: Vec<u8> = bytes.iter().map(|step| step.to_le_bytes()[0]).collect();
                s.serialize_str(&format!("{BYTES}{}:{}", steps(self.0.len()), BASE64.encode(bytes)))
            }
            None => {
                let bytes: Vec<u8> = self.0.iter().flat_map(|x| x.to_le_bytes()).collect();
                s.serialize_str(&BASE64.encode(bytes))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Vector {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        if let Some((steps, bytes)) = text.strip_prefix(BYTES).and_then(|rest| rest.split_once(':')) {
            let steps = steps.parse::<u16>().ok().filter(|steps| *steps > 0);
            let steps = steps.ok_or_else(|| de::Error::custom("vector: i8/ and no whole number of steps"))?;
            let bytes = BASE64.decode(bytes.as_bytes()).map_err(de::Error::custom)?;
            return Ok(Self(bytes.iter().map(|b| f32::from(i8::from_le_bytes([*b])) / f32::from(steps)).collect()));
        }
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
        json_schema!({ "type": "string", "pattern": "^(i8/[1-9][0-9]*:)?[A-Za-z0-9+/]*=*$",
            "description": "`i8/N:` and the base64 of signed bytes, each component a byte over N; \
                or the base64 of little-endian 32-bit floats." })
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

/// A piece of a unit with its own vectors: a turn, or a sentence of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The turn that it was taken from.
    pub turn: String,
    /// Ordinal, in its session, of that turn.
    pub ordinal: u32,
    /// Who said it.
    pub speaker: String,
    /// When it was said.
    pub said_at: EventTime,
    /// The words, captions included.
    pub text: String,
    /// Features of the words that the familiarity score uses.
    #[serde(default, skip_serializing_if = "Marks::is_empty")]
    pub marks: Marks,
    /// Vectors of its own: one a sentence, or one of the whole part; empty where the
    /// unit's own vector serves, because the unit has no other part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vectors: Vec<Vector>,
    /// The vector of the turn before it in the session and this part together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<Vector>,
}

/// Features of the words of a part that the familiarity score uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Marks {
    /// Expressions of time.
    #[serde(default)]
    pub times: u8,
    /// Whether it ends by asking something.
    #[serde(default)]
    pub asks: bool,
    /// Whether it quotes something between double quotation marks, such as a title.
    #[serde(default)]
    pub quotes: bool,
}

impl Marks {
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
    /// Who made the units, with a version: `rules/3`, `plain/1`.
    pub extractor: String,
    /// Who made the vectors.
    pub model: ModelRef,
    /// The turns.
    pub turns: Vec<WindowTurn>,
    /// The units.
    pub units: Vec<Unit>,
}

impl MemoryRecord {
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
    /// Length-prefixed bytes: bank, session, start; then the turn of an open window, or,
    /// after an empty field, a part that is not the first. All keys of a bank share a prefix.
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
        } else if self.part > 0 {
            put(b"");
            put(&self.part.to_be_bytes());
        }
        out
    }

    /// What the bytes of all keys of a bank begin with, and those of no other bank.
    #[must_use]
    pub fn prefix(bank: &Bank) -> Vec<u8> {
        // A bank has at most 128 bytes.
        [&(bank.as_str().len() as u16).to_be_bytes()[..], bank.as_str().as_bytes()].concat()
    }

    /// Reads [`Self::to_bytes`] back.
    ///
    /// # Errors
    /// [`Invalid`] when the bytes are not such a key.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Invalid> {
        let bad = || Invalid::new("key", format!("{} bytes that are not a memory key", bytes.len()), "check the topic");
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
            [b"", part] => (None, number(part)?),
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
            let part = if turn.is_some() { 0 } else { part };
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

    #[test]
    fn a_vector_reads_back_bit_for_bit() {
        let vector = Vector(vec![1.0, -0.25, f32::MIN_POSITIVE, 1e-20].into());
        let json = serde_json::to_string(&vector).expect("a string");
        assert_eq!(serde_json::from_str::<Vector>(&json).expect("a vector"), vector);
        for bad in ["\"AAA=\"", "\"!!\"", "\"AACAfw==\"", "\"i8/0:AA==\"", "\"i8/x:AA==\"", "\"i8/400:!\"", "\"i8/4\""]
        {
            assert!(serde_json::from_str::<Vector>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_vector_in_steps_takes_a_byte_a_component() {
        let vector = Vector((0..384).map(|i| (i as f32 - 190.0) / 600.0).collect());
        let stepped = vector.in_steps();
        assert_eq!(stepped.in_steps(), stepped);
        let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 0.5 / 400.0 + 1e-6 || a.abs() >= 127.0 / 400.0;
        assert!(vector.0.iter().zip(stepped.0.iter()).all(near));
        assert_eq!((stepped.0[190], stepped.0[383]), (0.0, 127.0 / 400.0));
        let json = serde_json::to_string(&stepped).expect("a string");
        assert!(json.starts_with("\"i8/400:") && json.len() == 8 + 512 + 1, "{json}");
        assert_eq!(serde_json::from_str::<Vector>(&json).expect("a vector"), stepped);
        let other = Vector(stepped.0.iter().map(|x| x + 1e-4).collect());
        assert!(!serde_json::to_string(&other).expect("a string").contains(':'));
    }

    proptest! {
        #[test]
        fn every_vector_reads_back_bit_for_bit(bits in proptest::collection::vec(any::<u32>(), 0..9), stepped: bool) {
            let floats = bits.iter().map(|b| if stepped { *b as f32 / 2e10 } else { f32::from_bits(*b) });
            let vector = Vector(floats.map(|x| if x.is_finite() { x } else { -0.0 }).collect());
            let vector = if stepped { vector.in_steps() } else { vector };
            let json = serde_json::to_string(&vector).expect("a string");
            let read: Vector = serde_json::from_str(&json).expect("a vector");
            let bits = |v: &Vector| v.0.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&read), bits(&vector));
        }
    }
}
