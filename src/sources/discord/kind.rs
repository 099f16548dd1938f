//! The meaning of each kind of message, as DiscordChatExporter names or numbers it.
//!
//! In: the `type` of a message. Out: whether it is somebody's words, a notice from the platform, or a copy.
//! DiscordChatExporter names the kinds that it knows and writes Discord's number in quotes for the others; related
//! exporters name more of them.

use crate::chat::Skip;

/// What a kind of message means for its reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Somebody's words.
    Words {
        /// Whether `reference` names the message that it answers.
        is_reply: bool,
    },
    /// Not a turn, with the reason.
    No(Skip),
    /// Not known here: treated as words if it holds any.
    Unknown,
}

/// The meaning of a kind.
pub(super) fn meaning(kind: &str) -> Meaning {
    match kind {
        "" | "Default" | "0" | "ChatInputCommand" | "ApplicationCommand" | "20" | "ContextMenuCommand" | "23" => {
            Meaning::Words { is_reply: false }
        }
        "Reply" | "19" => Meaning::Words { is_reply: true },
        // The first message of a thread, which is in the channel too.
        "ThreadStarterMessage" | "21" => Meaning::No(Skip::Copy),
        "RecipientAdd"
        | "RecipientRemove"
        | "Call"
        | "ChannelNameChange"
        | "ChannelIconChange"
        | "ChannelPinnedMessage"
        | "GuildMemberJoin"
        | "ThreadCreated"
        | "UserJoin"
        | "AutoModerationAction" => Meaning::No(Skip::ServiceMessage),
        // From joins to threads; reminders, moderation, subscriptions, stages, incidents, purchases,
        // and the result of a poll.
        _ => match kind.parse::<u32>() {
            Ok(1..=18 | 22 | 24..=32 | 36..=39 | 44 | 46) => Meaning::No(Skip::ServiceMessage),
            _ => Meaning::Unknown,
        },
    }
}
