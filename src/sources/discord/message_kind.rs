//! The meaning of each kind of message, as DiscordChatExporter names or numbers it.
//!
//! In: the `type` of a message. Out: whether it is somebody's words, a notice from the platform, or a copy.
//! DiscordChatExporter names the kinds that it knows and writes Discord's number in quotes for the others; related
//! exporters name more of them.

use crate::chat::SkipReason;

/// What a kind of message means for its reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DiscordMessageKind {
    /// Somebody's words.
    Words {
        /// Whether `reference` names the message that it answers.
        is_reply: bool,
    },
    /// Not a turn, with the reason.
    No(SkipReason),
    /// Not known here: treated as words if it holds any.
    Unknown,
}

/// The meaning of a kind.
pub(super) fn message_kind(kind: &str) -> DiscordMessageKind {
    match kind {
        "" | "Default" | "0" | "ChatInputCommand" | "ApplicationCommand" | "20" | "ContextMenuCommand" | "23" => {
            DiscordMessageKind::Words { is_reply: false }
        }
        "Reply" | "19" => DiscordMessageKind::Words { is_reply: true },
        // The first message of a thread, which is in the channel too.
        "ThreadStarterMessage" | "21" => DiscordMessageKind::No(SkipReason::Copy),
        "RecipientAdd"
        | "RecipientRemove"
        | "Call"
        | "ChannelNameChange"
        | "ChannelIconChange"
        | "ChannelPinnedMessage"
        | "GuildMemberJoin"
        | "ThreadCreated"
        | "UserJoin"
        | "AutoModerationAction" => DiscordMessageKind::No(SkipReason::ServiceMessage),
        // From joins to threads; reminders, moderation, subscriptions, stages, incidents, purchases,
        // and the result of a poll.
        _ => match kind.parse::<u32>() {
            Ok(1..=18 | 22 | 24..=32 | 36..=39 | 44 | 46) => DiscordMessageKind::No(SkipReason::ServiceMessage),
            _ => DiscordMessageKind::Unknown,
        },
    }
}
