//! What a unit says, packed: a memory holds all units of all banks, each with about twenty texts.
//!
//! In: a unit. Out: the same texts, borrowed from one piece of memory. A text that occurs in an earlier one takes no
//! space, because a restatement repeats most of what was said and who said it. Where each text is, and when each part
//! was said, is in a second piece, in as few bytes as it needs. The [fields](UnitFields) are the form with a separate
//! piece of memory for each text, and the JSON form.

use memchr::memmem;
use serde::{Deserialize, Serialize};

use crate::index::memory_footprint::COUNTS_BYTES;
use types::model::{
    Cues, EventTime, Excerpt, Interval, Language, SpeakerKind, TextFeatures, TextRange, Unit, UnitId, UnitPart,
};

/// The texts of a part: its turn, its speaker and its words.
const OF_PART: usize = 3;
/// Most characters of a label.
const LABEL: usize = 80;
/// The texts before the participants: restatement and session.
const HEAD: usize = 2;

/// The text of a unit: what an answer shows. Shared, never copied.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "UnitFields", into = "UnitFields")]
pub struct UnitBody {
    /// Which unit.
    pub id: UnitId,
    /// When it was said.
    pub said_at: EventTime,
    /// The interval of its event; absent if it is not grounded, as in most units.
    pub time: Option<Box<Interval>>,
    /// Ordinal of its first source.
    pub ordinal: u32,
    participants: u32,
    locations: u32,
    sources: u32,
    /// Whether its parts are passages, each with a range.
    by_passages: bool,
    /// The texts, without those that occur in an earlier one.
    texts: Box<str>,
    /// Where each text begins and ends, in bytes: restatement, session, participants, locations and sources, then the
    /// texts of each part. Each place takes as many bytes as the length of the texts requires. The [facts](PartFacts)
    /// of each part and the range of each passage follow.
    table: Box<[u8]>,
}

/// What is known of a part besides its texts.
#[derive(Debug, Clone, Copy)]
struct PartFacts {
    said_at: EventTime,
    ordinal: u32,
    marks: TextFeatures,
    kind: Option<SpeakerKind>,
}

/// Bytes of the facts of a part.
const FACTS_BYTES: usize = 19;
/// Bytes of the range of a passage.
const RANGE_BYTES: usize = 12;

/// Means that a part has no range: it is not a passage, but other parts of the unit are.
const NO_RANGE: TextRange = TextRange { start: u32::MAX, end: u32::MAX, total: u32::MAX };

impl PartFacts {
    fn to_bytes(self) -> [u8; FACTS_BYTES] {
        let Self { said_at: EventTime { unix_ms, offset_seconds }, ordinal, marks, kind } = self;
        let mut bytes = [0; FACTS_BYTES];
        bytes[..8].copy_from_slice(&unix_ms.to_le_bytes());
        bytes[8..12].copy_from_slice(&offset_seconds.to_le_bytes());
        bytes[12..16].copy_from_slice(&ordinal.to_le_bytes());
        bytes[16] = marks.times;
        let kind = SpeakerKind::ALL.iter().position(|one| Some(*one) == kind).map_or(0, |at| at as u8 + 1);
        bytes[17] = u8::from(marks.asks) | u8::from(marks.quotes) << 1 | kind << 2;
        bytes[18] = marks.language.number();
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let said_at = EventTime { unix_ms: number(&bytes[..8]), offset_seconds: number(&bytes[8..12]) as i32 };
        let marks = TextFeatures {
            times: bytes[16],
            asks: bytes[17] & 1 == 1,
            quotes: bytes[17] & 2 == 2,
            language: Language::of_number(bytes[18]),
        };
        let kind = usize::from(bytes[17] >> 2).checked_sub(1).and_then(|at| SpeakerKind::ALL.get(at).copied());
        Self { said_at, ordinal: number(&bytes[12..16]) as u32, marks, kind }
    }
}

/// The number in at most eight bytes, the lowest first.
fn number(bytes: &[u8]) -> i64 {
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(whole)
}

/// How many bytes a place takes in texts of this length.
fn place_bytes(texts: usize) -> usize {
    if texts <= usize::from(u16::MAX) { 2 } else { 4 }
}

/// A piece of a unit without its vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartBody<'u> {
    /// The turn that it was taken from.
    pub turn: &'u str,
    /// Ordinal, in its session, of that turn.
    pub ordinal: u32,
    /// Who said it.
    pub speaker: &'u str,
    /// What the speaker is.
    pub kind: Option<SpeakerKind>,
    /// When it was said.
    pub said_at: EventTime,
    /// The words, captions included.
    pub text: &'u str,
    /// Where a passage is in the text of its turn.
    pub range: Option<TextRange>,
    /// Features of the words that the familiarity score uses.
    pub marks: TextFeatures,
}

/// The text of a unit, field by field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitFields {
    /// Which unit.
    pub id: UnitId,
    /// What it says.
    pub restatement: String,
    /// What it is cued by.
    pub cues: Cues,
    /// When it was said.
    pub said_at: EventTime,
    /// The session of its sources.
    pub session: String,
    /// Ordinal of its first source.
    pub ordinal: u32,
    /// The turns that it was made from.
    pub sources: Vec<String>,
    /// Its pieces: turn, speaker, time, words.
    pub parts: Vec<PartFields>,
}

/// A [piece](PartBody) of a unit, field by field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartFields {
    /// The turn that it was taken from.
    pub turn: String,
    /// Ordinal, in its session, of that turn.
    pub ordinal: u32,
    /// Who said it.
    pub speaker: String,
    /// What the speaker is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<SpeakerKind>,
    /// When it was said.
    pub said_at: EventTime,
    /// The words, captions included.
    pub text: String,
    /// Where a passage is in the text of its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<TextRange>,
    /// Features of the words that the familiarity score uses.
    pub marks: TextFeatures,
}

impl UnitBody {
    /// The text of a unit of a session.
    #[must_use]
    pub fn of(unit: &Unit, session: &str) -> Self {
        let Unit { id, restatement, cues, said_at, ordinal, sources, parts, .. } = unit;
        let parts = parts.iter().map(|part| {
            let UnitPart { turn, ordinal, speaker, kind, said_at, text, range, marks, .. } = part;
            let (ordinal, kind, said_at, range, marks) = (*ordinal, *kind, *said_at, *range, *marks);
            PartBody { turn, ordinal, speaker, kind, said_at, text, range, marks }
        });
        Self::pack(*id, *said_at, *ordinal, [restatement, session], cues, sources, parts)
    }

    fn pack<'u>(
        id: UnitId,
        said_at: EventTime,
        ordinal: u32,
        head: [&'u str; HEAD],
        cues: &'u Cues,
        sources: &'u [String],
        parts: impl Iterator<Item = PartBody<'u>> + Clone,
    ) -> Self {
        let names = cues.participants.iter().chain(&cues.locations).chain(sources).map(String::as_str);
        let of_parts = parts.clone().flat_map(|part| [part.turn, part.speaker, part.text]);
        let texts = head.into_iter().chain(names).chain(of_parts);
        let mut held = String::new();
        let mut places = Vec::new();
        for text in texts {
            let start = memmem::find(held.as_bytes(), text.as_bytes()).unwrap_or(held.len());
            if start == held.len() {
                held.push_str(text);
            }
            // A record, which holds all of them, is much smaller than four gigabytes.
            places.extend([start as u32, (start + text.len()) as u32]);
        }
        let place_bytes = place_bytes(held.len());
        let mut table = Vec::with_capacity(places.len() * place_bytes + parts.clone().count() * FACTS_BYTES);
        places.iter().for_each(|place| table.extend(&place.to_le_bytes()[..place_bytes]));
        let by_passages = parts.clone().any(|part| part.range.is_some());
        for PartBody { said_at, ordinal, marks, kind, .. } in parts.clone() {
            table.extend(PartFacts { said_at, ordinal, marks, kind }.to_bytes());
        }
        for range in parts.map(|part| part.range.unwrap_or(NO_RANGE)).filter(|_| by_passages) {
            table.extend([range.start, range.end, range.total].map(u32::to_le_bytes).as_flattened());
        }
        Self {
            id,
            said_at,
            time: cues.time.map(Box::new),
            ordinal,
            participants: cues.participants.len() as u32,
            locations: cues.locations.len() as u32,
            sources: sources.len() as u32,
            by_passages,
            texts: held.into_boxed_str(),
            table: table.into_boxed_slice(),
        }
    }

    /// What it says.
    #[must_use]
    pub fn restatement(&self) -> &str {
        self.text(0)
    }

    /// The session of its sources.
    #[must_use]
    pub fn session(&self) -> &str {
        self.text(1)
    }

    /// The people that it is cued by.
    pub fn participants(&self) -> impl ExactSizeIterator<Item = &str> {
        self.texts_from(HEAD, self.participants)
    }

    /// The places that it is cued by.
    pub fn locations(&self) -> impl ExactSizeIterator<Item = &str> {
        self.texts_from(HEAD + self.participants as usize, self.locations)
    }

    /// What it says, cut to 80 characters.
    #[must_use]
    pub fn label(&self) -> &str {
        let said = self.restatement();
        let end = said.char_indices().nth(LABEL).map_or(said.len(), |(end, _)| end);
        &said[..end]
    }

    /// What it is cued by.
    #[must_use]
    pub fn cues(&self) -> Cues {
        Cues {
            participants: self.participants().map(str::to_owned).collect(),
            locations: self.locations().map(str::to_owned).collect(),
            time: self.time.as_deref().copied(),
        }
    }

    /// The turns that it was made from.
    pub fn sources(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        self.texts_from(HEAD + (self.participants + self.locations) as usize, self.sources)
    }

    /// Its pieces.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = PartBody<'_>> {
        let count = self.part_count();
        (0..count).map(move |at| self.piece(at, count))
    }

    /// One of its pieces.
    #[must_use]
    pub fn part(&self, at: usize) -> Option<PartBody<'_>> {
        let count = self.part_count();
        (at < count).then(|| self.piece(at, count))
    }

    /// Whether a piece was taken from a turn. A piece that only repeats the restatement was taken from every source.
    #[must_use]
    pub fn is_of_turn(&self, at: usize, turn: &str) -> bool {
        self.part(at).is_some_and(|part| part.turn == turn)
            || (self.is_restated() && self.sources().any(|source| source == turn))
    }

    /// When one of its pieces was said; when it was said itself, if there is no such piece.
    pub(crate) fn part_said_at(&self, at: usize) -> EventTime {
        let count = self.part_count();
        // This does not read the texts, which are elsewhere in memory, because it is called for every candidate.
        if at < count { self.facts(at, count).said_at } else { self.said_at }
    }

    /// Bytes in memory of what it says.
    pub(in crate::index) fn text_bytes(&self) -> usize {
        let time = self.time.as_deref().map_or(0, size_of_val);
        COUNTS_BYTES + size_of::<Self>() + time + self.texts.len() + self.table.len()
    }

    /// The language that it is read in: that of its first part.
    #[must_use]
    pub fn language(&self) -> Language {
        let count = self.part_count();
        if count > 0 { self.facts(0, count).marks.language } else { Language::default() }
    }

    /// Whether its only part repeats the restatement, not the words of a turn.
    #[must_use]
    pub fn is_restated(&self) -> bool {
        self.part_count() == 1 && self.part(0).is_some_and(|only| only.text == self.restatement())
    }

    /// Texts that do not belong to a part.
    fn unit_text_count(&self) -> usize {
        HEAD + (self.participants + self.locations + self.sources) as usize
    }

    fn part_count(&self) -> usize {
        let of_text = 2 * place_bytes(self.texts.len());
        (self.table.len() - self.unit_text_count() * of_text) / (OF_PART * of_text + FACTS_BYTES + self.range_bytes())
    }

    /// Bytes of the range of each part.
    fn range_bytes(&self) -> usize {
        if self.by_passages { RANGE_BYTES } else { 0 }
    }

    /// The facts of a piece, out of `count`.
    fn facts(&self, at: usize, count: usize) -> PartFacts {
        let end = self.table.len() - count * self.range_bytes();
        PartFacts::from_bytes(&self.table[end - (count - at) * FACTS_BYTES..][..FACTS_BYTES])
    }

    /// The range of a piece, out of `count`.
    fn range(&self, at: usize, count: usize) -> Option<TextRange> {
        let bytes = self.by_passages.then(|| &self.table[self.table.len() - (count - at) * RANGE_BYTES..])?;
        let [start, end, total] = [0, 4, 8].map(|at| number(&bytes[at..at + 4]) as u32);
        Some(TextRange { start, end, total }).filter(|range| *range != NO_RANGE)
    }

    /// A piece, out of `count`.
    fn piece(&self, at: usize, count: usize) -> PartBody<'_> {
        let first = self.unit_text_count() + OF_PART * at;
        let [turn, speaker, text] = [0, 1, 2].map(|of_part| self.text(first + of_part));
        let PartFacts { said_at, ordinal, marks, kind } = self.facts(at, count);
        PartBody { turn, ordinal, speaker, kind, said_at, text, range: self.range(at, count), marks }
    }

    fn text(&self, at: usize) -> &str {
        let place_bytes = place_bytes(self.texts.len());
        let place = |at: usize| number(&self.table[at * place_bytes..][..place_bytes]) as usize;
        &self.texts[place(2 * at)..place(2 * at + 1)]
    }

    fn texts_from(&self, first: usize, count: u32) -> impl ExactSizeIterator<Item = &str> + Clone {
        (first..first + count as usize).map(|at| self.text(at))
    }
}

impl From<UnitFields> for UnitBody {
    fn from(fields: UnitFields) -> Self {
        let UnitFields { id, restatement, cues, said_at, session, ordinal, sources, parts } = &fields;
        let parts = parts.iter().map(|part| {
            let PartFields { turn, ordinal, speaker, kind, said_at, text, range, marks } = part;
            let (ordinal, kind, said_at, range, marks) = (*ordinal, *kind, *said_at, *range, *marks);
            PartBody { turn, ordinal, speaker, kind, said_at, text, range, marks }
        });
        Self::pack(*id, *said_at, *ordinal, [restatement, session], cues, sources, parts)
    }
}

impl From<UnitBody> for UnitFields {
    fn from(body: UnitBody) -> Self {
        Self {
            id: body.id,
            restatement: body.restatement().to_owned(),
            cues: body.cues(),
            said_at: body.said_at,
            session: body.session().to_owned(),
            ordinal: body.ordinal,
            sources: body.sources().map(str::to_owned).collect(),
            parts: body.parts().map(PartFields::from).collect(),
        }
    }
}

impl From<PartBody<'_>> for PartFields {
    fn from(part: PartBody<'_>) -> Self {
        let PartBody { turn, ordinal, speaker, kind, said_at, text, range, marks } = part;
        let [turn, speaker, text] = [turn, speaker, text].map(str::to_owned);
        Self { turn, ordinal, speaker, kind, said_at, text, range, marks }
    }
}

impl From<PartBody<'_>> for Excerpt {
    fn from(part: PartBody<'_>) -> Self {
        let PartFields { turn, speaker, said_at, text, range, .. } = part.into();
        Self { turn, speaker, said_at, text, range, metadata: None }
    }
}

/// About how many bytes of English dialogue make a token of the o200k vocabulary.
const BYTES_A_TOKEN: f64 = 4.2;
/// The tokens of a line in addition to its words and its speaker.
const LINE_TOKENS: f64 = 2.0;

impl PartBody<'_> {
    /// The bytes of its speaker and its text.
    pub(in crate::index) fn bytes(&self) -> u64 {
        (self.speaker.len() + self.text.len()) as u64
    }

    /// The tokens that quoting it costs, estimated from its length.
    #[must_use]
    pub fn estimated_tokens(&self) -> f64 {
        estimated_tokens(1, self.bytes())
    }
}

/// The tokens that it costs to quote `parts` parts with `bytes` bytes in total. Bytes are added as integers, so the
/// order of the parts does not change any digit.
pub(in crate::index) fn estimated_tokens(parts: usize, bytes: u64) -> f64 {
    LINE_TOKENS * parts as f64 + bytes as f64 / BYTES_A_TOKEN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_unit_has_the_same_fields() {
        let said_at = EventTime::parse("2024-01-01T00:00:00+01:00").expect("a time");
        let part = |ordinal: u32, speaker: &str, text: &str| PartFields {
            turn: format!("turn {ordinal}"),
            ordinal,
            speaker: speaker.to_owned(),
            kind: (ordinal == 4).then_some(SpeakerKind::Bot),
            said_at,
            text: text.to_owned(),
            range: None,
            marks: TextFeatures { times: 2, ..TextFeatures::default() },
        };
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let full = UnitFields {
            id: UnitId(7),
            restatement: "Zoë said, “Grüße”".to_owned(),
            cues: Cues {
                participants: names(&["ann", "zoë"]),
                locations: names(&["", "lisbon"]),
                time: Some(Interval::at(said_at)),
            },
            said_at,
            session: "auto:0".to_owned(),
            ordinal: 3,
            sources: names(&["turn 3", "turn 4"]),
            parts: vec![part(3, "Zoë", "Grüße"), part(4, "", ""), part(5, "Ann", "thanks")],
        };
        let bare =
            UnitFields {
                cues: Cues::default(), sources: Vec::new(), parts: vec![part(3, "Zoë", "a")], ..full.clone()
            };
        let restated = UnitFields { restatement: "a".to_owned(), ..bare.clone() };
        let nothing = UnitFields { restatement: String::new(), parts: Vec::new(), ..bare.clone() };
        let said_at = EventTime::parse("1960-02-29T23:59:59.999-11:30").expect("a time");
        let marks = TextFeatures { times: 255, asks: true, quotes: false, language: Language::Zh };
        let long = PartFields { said_at, marks, ..part(u32::MAX, "Ann", &"kayaks ".repeat(10_000)) };
        let long = UnitFields { parts: vec![long, part(6, "Zoë", "tents")], ..full.clone() };
        let ranged = |range: Option<(u32, u32)>, part: &PartFields| PartFields {
            range: range.map(|(start, end)| TextRange { start, end, total: 9 }),
            ..part.clone()
        };
        let ranges = [Some((0, 5)), None, Some((5, u32::MAX))];
        let passages = ranges.into_iter().zip(&full.parts).map(|(range, part)| ranged(range, part)).collect();
        let passages = UnitFields { parts: passages, ..full.clone() };
        let all = [(full, false), (bare, false), (restated, true), (nothing, false), (long, false), (passages, false)];
        for (fields, is_restated) in all {
            let packed = UnitBody::from(fields.clone());
            assert_eq!(UnitFields::from(packed.clone()), fields);
            assert!(!packed.texts[fields.restatement.len()..].contains("Grüße"), "held twice: {packed:?}");
            assert_eq!(packed.is_restated(), is_restated);
            assert_eq!(packed.part(fields.parts.len()), None);
            let json = serde_json::to_string(&fields).expect("JSON");
            assert_eq!(serde_json::to_string(&packed).expect("JSON"), json);
            assert_eq!(serde_json::from_str::<UnitBody>(&json).expect("the same form"), packed);
        }
    }
}
