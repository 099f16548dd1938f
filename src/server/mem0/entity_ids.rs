//! Maps the ids of Mem0's entities to a bank, and a memory's id to its bank and turn. The mapping is reversible and
//! needs no table.
//!
//! In: ids as a client writes them, or a bank, or a memory's id. Out: the other form. Different ids, of any characters,
//! have different banks, and no id reaches a bank outside [`ROOT`].

use std::fmt::Write as _;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};

use super::mem0_failure::Mem0Failure;
use types::model::{Bank, MAX_BANK_CHARACTERS};

/// What every bank of these routes begins with.
pub(super) const ROOT: &str = "mem0";
/// The kinds of entities, in the order of a bank's segments.
pub(super) const KINDS: [&str; 4] = ["user", "agent", "app", "run"];
/// The fields that name them.
pub(super) const FIELDS: [&str; 4] = ["user_id", "agent_id", "app_id", "run_id"];

/// The entities that memories belong to: at most one of each kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct EntityIds([Option<String>; 4]);

impl EntityIds {
    /// Adds the id of a field of [`FIELDS`]. Returns false for any other field.
    pub(super) fn set(&mut self, field: &str, id: &str) -> Result<bool, Mem0Failure> {
        let Some(place) = FIELDS.iter().position(|known| *known == field).and_then(|at| self.0.get_mut(at)) else {
            return Ok(false);
        };
        if id.is_empty() {
            return Err(Mem0Failure::invalid(format!("{field}: empty; name whose memories they are")));
        }
        if place.as_deref().is_some_and(|before| before != id) {
            return Err(Mem0Failure::unsupported(format!("{field}: two of them at once")));
        }
        *place = Some(id.to_owned());
        Ok(true)
    }

    /// The kind of an entity that is named `*`, which means every id in Mem0's filters.
    pub(super) fn every(&self) -> Option<&'static str> {
        self.each().find(|(_, id)| *id == "*").map(|(kind, _)| kind)
    }

    /// The id of one entity.
    pub(super) fn one(kind: &str, id: &str) -> Result<Self, Mem0Failure> {
        let mut ids = Self::default();
        if ids.set(&format!("{kind}_id"), id)? {
            Ok(ids)
        } else {
            Err(Mem0Failure::not_found(format!("{kind}: no entity")))
        }
    }

    /// The ids with their kinds.
    pub(super) fn each(&self) -> impl Iterator<Item = (&'static str, &str)> {
        KINDS.into_iter().zip(&self.0).filter_map(|(kind, id)| Some((kind, id.as_deref()?)))
    }

    /// The id for each field of [`FIELDS`], or `None`.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&'static str, Option<&str>)> {
        FIELDS.into_iter().zip(self.0.iter().map(Option::as_deref))
    }

    /// Whether memories of `other` belong to all of these entities.
    pub(super) fn is_subset_of(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(mine, theirs)| mine.is_none() || mine == theirs)
    }

    /// The bank of the memories that belong to exactly these entities.
    pub(super) fn bank(&self) -> Result<Bank, Mem0Failure> {
        if self.each().next().is_none() {
            let fields = FIELDS.join(", ");
            return Err(Mem0Failure::invalid(format!(
                "none of {fields}: say whose memories you mean; nothing was done"
            )));
        }
        let name = |written: fn(&str) -> String| {
            let segments = self.each().map(|(kind, id)| format!("/{kind}-{}", written(id)));
            format!("{ROOT}{}", segments.collect::<String>())
        };
        let name = match name(escaped) {
            fits if fits.len() <= MAX_BANK_CHARACTERS => fits,
            _ => name(shortened),
        };
        Bank::parse(&name).map_err(|_| {
            let problem = format!("the ids are too long: as a bank's name they have {} characters", name.len());
            let rule = "other than letters, digits, '_' and '-' count three, UUIDs 24";
            Mem0Failure::invalid(format!("{problem}, but at most {MAX_BANK_CHARACTERS} fit; {rule}"))
        })
    }

    /// The entities of a bank; `None` for a bank that these routes did not name.
    pub(super) fn of(bank: &Bank) -> Option<Self> {
        let mut ids = Self::default();
        for segment in bank.as_str().strip_prefix(ROOT)?.strip_prefix('/')?.split('/') {
            let (kind, id) = segment.split_once('-')?;
            ids.set(&format!("{kind}_id"), &unescaped(id)?).ok().filter(|known| *known)?;
        }
        // If the order were different, it would be another bank with the same ids.
        (ids.bank().ok().as_ref() == Some(bank)).then_some(ids)
    }
}

/// The id of a memory.
pub(super) fn memory_id(bank: &Bank, turn: &str) -> String {
    let segments = bank.as_str().strip_prefix(ROOT).unwrap_or_default().trim_start_matches('/').replace('/', "~");
    format!("{segments}~{}", escaped(turn))
}

/// The bank and the turn of a memory's id.
pub(super) fn bank_and_turn(id: &str) -> Result<(Bank, String), Mem0Failure> {
    let parse = || {
        let (segments, turn) = id.rsplit_once('~').filter(|_| !id.contains('/'))?;
        let bank = Bank::parse(&format!("{ROOT}/{}", segments.replace('~', "/"))).ok()?;
        EntityIds::of(&bank)?;
        Some((bank, unescaped(turn).filter(|turn| !turn.is_empty())?))
    };
    parse().ok_or_else(|| Mem0Failure::not_found("memory: no such id; `add`, `search` and `get_all` return the ids"))
}

/// Letters, digits, `_` and `-` stay unchanged; every other byte becomes `.` and two digits.
fn escaped(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut escaped, byte| {
        if is_plain(byte) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(escaped, ".{byte:02x}");
        }
        escaped
    })
}

/// A UUID in 24 characters, for ids that would not fit: its 128 bits in base64 after a mark that [`escaped`] never
/// writes. Other ids are written as by [`escaped`].
fn shortened(id: &str) -> String {
    let bits = |digits: &str| u128::from_str_radix(digits, 16).ok();
    let packed = |mark: &str, bits: u128| format!("{mark}{}", BASE64.encode(bits.to_be_bytes()));
    let found = MARKS.into_iter().find_map(|(mark, written)| {
        let bits = bits(&id.replace('-', "")).filter(|_| id.len() <= 36)?;
        (written(bits) == id).then(|| packed(mark, bits))
    });
    found.unwrap_or_else(|| escaped(id))
}

/// The marks of shortened ids, and how each was written: a UUID, and the same without its hyphens.
const MARKS: [(&str, IdFormatter); 2] = [(".u", uuid), (".x", |bits| format!("{bits:032x}"))];

/// Writes the bits of an id as the client did.
type IdFormatter = fn(u128) -> String;

fn uuid(bits: u128) -> String {
    let digits = format!("{bits:032x}");
    let part = |range: std::ops::Range<usize>| digits.get(range).unwrap_or_default();
    [part(0..8), part(8..12), part(12..16), part(16..20), part(20..32)].join("-")
}

/// The inverse of [`escaped`] and of [`shortened`]; `None` for a text that neither of them makes.
fn unescaped(text: &str) -> Option<String> {
    for (mark, written) in MARKS {
        if let Some(packed) = text.strip_prefix(mark) {
            let bits = u128::from_be_bytes(BASE64.decode(packed).ok()?.try_into().ok()?);
            return Some(written(bits)).filter(|id| shortened(id) == text);
        }
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'.' {
            let digits = [rest.next()?, rest.next()?];
            let value = u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?;
            bytes.push(value);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok().filter(|plain| escaped(plain) == text)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(fields: &[(&str, &str)]) -> EntityIds {
        let mut ids = EntityIds::default();
        fields.iter().for_each(|(field, id)| assert_eq!(ids.set(field, id).ok(), Some(true)));
        ids
    }

    #[test]
    fn ids_and_memories_are_read_back_whatever_their_characters() {
        for id in ["ann", "ann@example.org", "a/b", "..", ".", "~", "a~b", "Ä ü", "a-b_c", "%2F", ".2e", "*"] {
            for fields in [&["user_id"][..], &["agent_id"], &["user_id", "run_id"], &FIELDS] {
                let ids = ids(&fields.iter().map(|field| (*field, id)).collect::<Vec<_>>());
                let bank = ids.bank().expect("it fits");
                assert_eq!(EntityIds::of(&bank).as_ref(), Some(&ids), "{bank}");
                let memory = memory_id(&bank, id);
                assert!(memory.bytes().all(|b| is_plain(b) || matches!(b, b'.' | b'~')), "{memory}");
                assert_eq!(bank_and_turn(&memory).ok(), Some((bank, id.to_owned())));
            }
        }
        let (one, other) = (ids(&[("user_id", "a/run-b")]), ids(&[("user_id", "a"), ("run_id", "b")]));
        assert_ne!(one.bank().ok(), other.bank().ok());
        assert_eq!(other.bank().ok().map(String::from).as_deref(), Some("mem0/user-a/run-b"));
        assert!(ids(&[("run_id", "b")]).is_subset_of(&other) && !other.is_subset_of(&one));
    }

    #[test]
    fn four_uuids_fit_and_are_read_back() {
        let uuid = "0189e6e1-27a7-7cc0-9b1c-3f2f0b9d4e5a";
        let bare = uuid.replace('-', "");
        for id in [uuid, &bare] {
            for fields in [&["user_id", "agent_id", "run_id"][..], &FIELDS] {
                let ids = ids(&fields.iter().map(|field| (*field, id)).collect::<Vec<_>>());
                let bank = ids.bank().expect("it fits");
                assert_eq!(EntityIds::of(&bank).as_ref(), Some(&ids), "{bank}");
                assert_eq!(bank_and_turn(&memory_id(&bank, uuid)).ok(), Some((bank, uuid.to_owned())));
            }
        }
        // An id that fits keeps its name, and an id in capital letters is a different id.
        let two = ids(&[("user_id", uuid), ("run_id", uuid)]).bank().expect("it fits");
        assert_eq!(two.as_str(), format!("mem0/user-{uuid}/run-{uuid}"));
        let capital = uuid.to_uppercase();
        let mixed = ids(&[("user_id", uuid), ("agent_id", &capital), ("run_id", uuid)]);
        let bank = mixed.bank().expect("it fits");
        assert_eq!(EntityIds::of(&bank), Some(mixed), "{bank}");
    }

    #[test]
    fn what_no_id_makes_is_refused() {
        for bank in
            ["mem0", "mem0/a", "mem0/user-", "mem0/run-b/user-a", "mem0/user-.61", "mem1/user-a", "mem0/user-a.A"]
        {
            assert_eq!(EntityIds::of(&Bank::parse(bank).expect("a bank")), None, "{bank}");
        }
        for memory in ["", "x", "~", "user-a~", "user-a", "../a~1", "user-a~.", "user-a~.zz", "user-a/run-b~1"] {
            assert!(bank_and_turn(memory).is_err(), "{memory:?}");
        }
        assert!(EntityIds::default().bank().is_err() && EntityIds::default().set("user_id", "").is_err());
        for bank in ["mem0/user-.u", "mem0/user-.uAAAA", "mem0/user-.uAAAAAAAAAAAAAAAAAAAAAA"] {
            assert_eq!(EntityIds::of(&Bank::parse(bank).expect("a bank")), None, "{bank}: it fits as it is");
        }
        assert!(ids(&[("user_id", &"@".repeat(60))]).bank().is_err(), "too long");
        let mut twice = ids(&[("user_id", "a")]);
        assert!(twice.set("user_id", "b").is_err() && !twice.set("name", "b").unwrap_or(true));
    }
}
