//! Turns: what somebody said, as a record holds it.
//!
//! In: the fields of a record. Out: a checked turn, or an error that names the field.

use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::value::{Error as ValueError, StrDeserializer},
};

use super::{
    Bank, EventTime, FieldError, MAX_ATTACHMENTS, MAX_METADATA_BYTES, MAX_NAME_BYTES, MAX_TEXT_BYTES, MAX_TURN_BYTES,
    MAX_URL_BYTES, Metadata,
};
use crate::null_fields::null_as_default;

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
pub(super) const OTHER_KIND_NAMES: [&str; 7] = ["user", "human", "ai", "model", "function", "system", "developer"];

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

    pub(super) fn check_lengths(&self) -> Result<(), FieldError> {
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

pub(super) fn check_name(field: &'static str, name: &str) -> Result<(), FieldError> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
