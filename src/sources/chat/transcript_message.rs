//! One message of a conversation with an assistant, as the assistant's program wrote it down.
//!
//! In: what a program's reader found. Out: the message, and the key by which every copy of it is known: its own id, or
//! a hash of its place, role and text where the program gives none. Only what a person typed or an assistant answered
//! becomes such a message.

use serde::{Deserialize, Serialize};

use types::model::{EventTime, SpeakerKind};

/// Who says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TranscriptRole {
    /// The person who types.
    Person,
    /// The assistant that answers.
    Assistant,
}

/// A message of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TranscriptMessage {
    /// The program, by the name of its format.
    pub agent: String,
    /// Its own id, the same in every copy that a fork or a resume makes; `None` if the program gives none that stays.
    pub id: Option<String>,
    /// The session or conversation in which it stands.
    pub thread: String,
    /// Without an id: where it stands, in words that are the same in every copy.
    pub place: String,
    /// Who says it.
    pub role: TranscriptRole,
    /// When it was said.
    pub time: EventTime,
    /// What was said.
    pub text: String,
    /// The directory in which the session began, or the name of what the conversation belongs to.
    pub project: Option<String>,
    /// The directory in which it was said.
    pub directory: Option<String>,
    /// The branch of git on which it was said.
    pub branch: Option<String>,
    /// The language model that answered.
    pub model: Option<String>,
    /// The tools that were called for it, each with the beginning of what it was asked. Not masked yet.
    pub calls: Vec<String>,
    /// The speaker's name, where the program names one.
    pub speaker: Option<String>,
    /// Whether it belongs to the branch that the person kept; else it was edited, rewound or undone.
    pub is_on_kept_branch: bool,
}

impl TranscriptMessage {
    /// What every copy of this message has in common.
    pub(crate) fn key(&self) -> String {
        if let Some(id) = &self.id {
            return id.clone();
        }
        let role = self.role.kind().name();
        let whole = format!("{}/{}/{role}/{}", self.place.len(), self.place, self.text);
        blake3::hash(whole.as_bytes()).to_hex().chars().take(32).collect()
    }
}

impl TranscriptRole {
    /// The kind of speaker.
    pub(crate) fn kind(self) -> SpeakerKind {
        match self {
            Self::Person => SpeakerKind::Person,
            Self::Assistant => SpeakerKind::Assistant,
        }
    }
}
