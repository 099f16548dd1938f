//! Units before they are embedded.
//!
//! Out: what an extractor makes, a unit without its vectors and id, which are derived from it later.

use types::model::{Cues, EventTime, SpeakerKind, TextFeatures, TextRange};

/// A unit before it is embedded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftUnit {
    /// A self-contained text.
    pub restatement: String,
    /// Its retrieval cues; names are canonical, sorted and unique.
    pub cues: Cues,
    /// The time of its last source.
    pub said_at: EventTime,
    /// The turns that it was made from, in ordinal order; never empty.
    pub sources: Vec<String>,
    /// The ordinal of its first source.
    pub ordinal: u32,
    /// The turn before its first source in the session, if the window holds it and it is short.
    pub before: Option<DraftPart>,
    /// Its parts, in ordinal order; never empty. The parts are embedded.
    pub parts: Vec<DraftPart>,
    /// Whether its one part holds the restatement instead of a speaker's words. The restatement
    /// is embedded unchanged, without the template that names the speaker.
    pub restated: bool,
}

/// A part of a unit before it is embedded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftPart {
    /// The turn that it was taken from.
    pub turn: String,
    /// That turn's ordinal in its session.
    pub ordinal: u32,
    /// The speaker.
    pub speaker: String,
    /// The kind of speaker, such as a person or an assistant.
    pub kind: Option<SpeakerKind>,
    /// When it was said.
    pub said_at: EventTime,
    /// The words, with captions.
    pub text: String,
    /// Where a passage is in the text of its long turn.
    pub range: Option<TextRange>,
    /// Times, questions and quotes in the words.
    pub marks: TextFeatures,
}
