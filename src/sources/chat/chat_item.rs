//! What a chat platform's reader finds, in the words that all platforms share.
//!
//! In: nothing but plain values. Out: messages, deletions, and skips, each with the reason why it is not a turn. Texts
//! are plain: markup, mentions and entities are already rendered as a person reads them.

use std::sync::Arc;

use super::transcript_message::TranscriptMessage;
use types::model::{Attachment, DeadLetter, EventTime};

/// What a reader found next.
#[derive(Debug, Clone, PartialEq)]
pub enum ChatItem {
    /// Something was said, or said differently (a higher version).
    Message(Box<ChatMessage>),
    /// Something was said to an assistant, or by it.
    Transcript {
        /// What it belongs to: the project, which decides the bank.
        project: Arc<Conversation>,
        /// Who said it.
        author: Account,
        /// What was said.
        message: Box<TranscriptMessage>,
    },
    /// The platform says that a message was deleted.
    Deletion {
        /// Where it was said.
        conversation: Arc<Conversation>,
        /// The id of the deleted message, as in [`ChatMessage::id`].
        id: String,
        /// The platform's time of deletion in milliseconds. `None` if the platform states no time: then no later
        /// version revives the message.
        version: Option<u64>,
    },
    /// Something that is not a turn. It is counted, never stored.
    Skip(SkipReason),
    /// A record that could not be read; reading continues after it.
    Reject {
        /// Where it was said, if that is known. It is needed because records of conversations that the user did not
        /// choose must never reach the dead letters.
        conversation: Option<Arc<Conversation>>,
        /// The record, its place and the reason.
        letter: DeadLetter,
    },
}

/// Why something that the export holds is not a turn.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SkipReason {
    /// The platform's own notice: somebody joined, a topic was set, a call ended.
    ServiceMessage,
    /// A message without words and without anything shared.
    Empty,
    /// A second copy of a message: an old version kept as history, or a thread's reply that was also sent to the
    /// channel.
    Copy,
    /// A message whose content is encrypted.
    Encrypted,
    /// A message of a kind that has no text form, such as a poll's vote or a reaction.
    Unsupported,
    /// As `Unsupported`, with the kind that the record names, such as an unknown block of Slack's.
    UnsupportedKind(String),
    /// A message of another workspace than the source's.
    Elsewhere,
    /// A part of a transcript that is neither typed nor answered, with its kind, such as a tool's output.
    NotTalk(&'static str),
}

impl SkipReason {
    /// What a dry run prints.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ServiceMessage => "service message",
            Self::Empty => "empty",
            Self::Copy => "copy",
            Self::Encrypted => "encrypted",
            Self::Unsupported | Self::UnsupportedKind(_) => "unsupported",
            Self::Elsewhere => "of another workspace",
            Self::NotTalk(kind) => kind,
        }
    }

    /// The skip for a record of an unknown kind. The kind is named only if it is a plain word.
    pub fn unsupported(kind: &str) -> Self {
        const MAX_KIND_BYTES: usize = 48;
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
        let is_named = !kind.trim().is_empty() && kind.len() <= MAX_KIND_BYTES && kind.chars().all(is_word);
        if is_named { Self::UnsupportedKind(kind.trim().to_owned()) } else { Self::Unsupported }
    }

    /// Whether it says that a record's kind is not supported.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::Unsupported | Self::UnsupportedKind(_))
    }
}

/// One message as a platform has it.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatMessage {
    /// Where it was said.
    pub conversation: Arc<Conversation>,
    /// Its id, unique inside the conversation and the same in every later export. Platforms without ids use
    /// `PositionalIds`.
    pub id: String,
    /// When it was last edited, in milliseconds since 1970; 0 for never. If a platform marks an edit without its time:
    /// 1.
    pub version: u64,
    /// Who said it.
    pub author: Account,
    /// Its words, without markup; mentions are written as names. May be empty if something is shared.
    pub text: String,
    /// When it was said. Platforms that know the zone keep it.
    pub time: EventTime,
    /// The id of the message that began its thread, if the platform has threads. The root of a thread names itself once
    /// the platform says that it has replies.
    pub thread: Option<String>,
    /// The id of the message that it answers.
    pub reply_to: Option<String>,
    /// What was shared. Each has a caption: the words that came with it, else its title or file name, else its kind, so
    /// that a message that is only a photo is still a turn.
    pub attachments: Vec<Attachment>,
    /// The accounts that `text` mentions, each with [`Account::name`] as it is written in the text, so that aliases are
    /// applied to the text too. Empty if the format does not mark mentions.
    pub mentions: Vec<Account>,
}

impl ChatMessage {
    /// All of its words: its text, what was shared, and the names.
    pub(crate) fn words(&self) -> String {
        let shared = self.attachments.iter().flat_map(|shared| [&shared.kind, &shared.caption, &shared.url]);
        let names = std::iter::once(&self.author).chain(&self.mentions);
        let names = names.flat_map(|account| [Some(&account.name), Some(&account.id), account.handle.as_ref()]);
        let place = [Some(&self.conversation.name), self.thread.as_ref(), Some(&self.text)];
        let parts = shared.map(Option::as_ref).chain(names).chain(place);
        parts.flatten().map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

/// A channel, a group or a private chat.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Conversation {
    /// The workspace, server or account that it belongs to, if the platform names one.
    pub workspace: Option<String>,
    /// The platform's id for it, or the name if the platform has no ids. Never changes.
    pub id: String,
    /// Its name, as people see it, without `#`. For a private chat, the others' names.
    pub name: String,
    /// Who can read it.
    pub privacy: ConversationPrivacy,
}

/// Who can read a conversation. Private ones are read only when the user names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConversationPrivacy {
    /// Everybody in the workspace, or everybody who has this one file: exports of a single chat
    /// are the user's own choice.
    Open,
    /// Members of a closed channel or group.
    Private,
    /// The two or more people of a direct conversation.
    Direct,
}

/// An account of a platform.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Account {
    /// The platform's id for it, or the name if the platform has no ids. Never changes.
    pub id: String,
    /// The name that people see.
    pub name: String,
    /// Its handle without `@`, if the platform has handles besides names.
    pub handle: Option<String>,
    /// Whether the account is a program's.
    pub bot: bool,
}
