//! Follows one Slack workspace.
//!
//! In: what Slack's API returns about accounts and conversations, and messages from events and histories. Out: the same
//! chat items as from an export of the workspace, and which accounts and conversations have to be requested first.
//! Memory grows with users and channels, never with messages.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use serde_json::Value;

use super::{
    directory::{SlackChannel, SlackDirectory, SlackUser},
    message::{FORM, SlackMessage, item},
};
use crate::{
    chat::{ChatItem, Conversation, ConversationPrivacy, UnreadCounts},
    zone::Zone,
};

/// What is known about a workspace.
pub(crate) struct SlackWorkspace {
    directory: SlackDirectory,
    conversations: HashMap<String, Arc<Conversation>>,
    asked: HashSet<String>,
    zone: Zone,
    /// Fields that were not read.
    pub(crate) unread: UnreadCounts,
}

impl SlackWorkspace {
    /// A workspace with this team id.
    pub(crate) fn new(team: &str, zone: Zone) -> Self {
        let directory = SlackDirectory::of_team(team);
        Self { directory, conversations: HashMap::new(), asked: HashSet::new(), zone, unread: UnreadCounts::default() }
    }

    /// Whether a conversation is known.
    pub(crate) fn knows(&self, conversation: &str) -> bool {
        self.conversations.contains_key(conversation)
    }

    /// The accounts in a message that were not requested yet, its author first.
    pub(crate) fn unasked(&self, message: &Value) -> Vec<String> {
        let mut found = Vec::new();
        let inner = message.get("message").unwrap_or(message);
        found.extend(inner.get("user").and_then(Value::as_str).map(str::to_owned));
        let text = inner.get("text").and_then(Value::as_str).unwrap_or_default();
        found.extend(text.split("<@").skip(1).filter_map(|rest| rest.split(['>', '|']).next()).map(str::to_owned));
        let is_account = |id: &String| id.len() >= 2 && id.bytes().all(|b| b.is_ascii_alphanumeric());
        let mut seen = BTreeSet::new();
        found.retain(|id| is_account(id) && !self.asked.contains(id) && seen.insert(id.clone()));
        found
    }

    /// Keeps what `users.info` returns for an account; null if Slack does not know it.
    pub(crate) fn learn_account(&mut self, id: &str, user: Value) {
        self.asked.insert(id.to_owned());
        if let Ok(user) = serde_json::from_value::<SlackUser>(user) {
            self.directory.user(user);
        }
    }

    /// Notes that an account has a new name, so that it is requested again. Speakers keep their names.
    pub(crate) fn renamed(&mut self, id: &str) {
        self.asked.remove(id);
    }

    /// Keeps what `conversations.info` returns for a conversation, with its members if it is direct.
    pub(crate) fn learn_conversation(&mut self, id: &str, mut info: Value, members: Vec<String>) {
        let is = |key: &str| info.get(key).and_then(Value::as_bool) == Some(true);
        let is_direct = is("is_im") || is("is_mpim");
        let privacy = match (is_direct, is("is_private")) {
            (true, _) => ConversationPrivacy::Direct,
            (_, true) => ConversationPrivacy::Private,
            _ => ConversationPrivacy::Open,
        };
        if let Some(info) = info.as_object_mut() {
            info.insert("id".to_owned(), id.into());
            if is_direct {
                info.insert("members".to_owned(), members.into());
            }
        }
        if let Ok(channel) = serde_json::from_value::<SlackChannel>(info) {
            self.directory.list_channel("", channel, privacy);
            self.conversations.insert(id.to_owned(), self.directory.conversation("", id));
        }
    }

    /// The item of a message.
    ///
    /// # Errors
    /// The conversation, and why the message cannot be read.
    pub(crate) fn item(
        &mut self,
        conversation: &str,
        message: &Value,
    ) -> Result<ChatItem, (Option<Arc<Conversation>>, String)> {
        let Some(conversation) = self.conversations.get(conversation).cloned() else {
            return Err((None, format!("channel: {conversation:?} is not known; give the app access to it")));
        };
        let failed = |reason: String| (Some(conversation.clone()), reason);
        let (raw, odd) = FORM.read::<SlackMessage>(message.clone()).map_err(failed)?;
        let item = item(raw, &conversation, &mut self.directory, &self.zone, &mut self.unread);
        item.and_then(|item| odd.judge(item, &mut self.unread)).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chat::{Account, ChatMessage};

    fn workspace() -> SlackWorkspace {
        let mut workspace = SlackWorkspace::new("T1", Zone::parse("Z").unwrap());
        let user = json!({"id": "U1", "name": "ann", "profile": {"display_name": "Ann", "real_name": "Ann Bell"}});
        workspace.learn_account("U1", user);
        workspace.learn_account("U2", json!({"id": "U2", "name": "bo", "profile": {"real_name": "Bo Day"}}));
        workspace.learn_conversation("C1", json!({"name": "general", "is_private": false}), Vec::new());
        workspace
    }

    fn said(workspace: &mut SlackWorkspace, message: Value) -> ChatMessage {
        match workspace.item("C1", &message).unwrap() {
            ChatItem::Message(message) => *message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_live_message_is_the_message_of_the_export() {
        let mut workspace = workspace();
        let message = json!({"type": "message", "channel": "C1", "user": "U1", "text": "hi <@U2>",
            "ts": "1714557600.000100", "thread_ts": "1714557000.000200", "event_ts": "1714557600.000100"});
        let found = said(&mut workspace, message);
        let general = Conversation {
            workspace: Some("T1".to_owned()),
            id: "C1".to_owned(),
            name: "general".to_owned(),
            privacy: ConversationPrivacy::Open,
        };
        let ann = Account { id: "U1".to_owned(), name: "Ann".to_owned(), handle: Some("ann".to_owned()), bot: false };
        assert_eq!((&*found.conversation, &found.author), (&general, &ann));
        assert_eq!((found.id.as_str(), found.text.as_str(), found.version), ("1714557600.000100", "hi @Bo Day", 0));
        assert_eq!(found.thread.as_deref(), Some("1714557000.000200"));
    }

    #[test]
    fn an_edit_a_preview_and_a_deletion_keep_the_id() {
        let mut workspace = workspace();
        let mut inner = json!({"type": "message", "user": "U1", "text": "hello", "ts": "1714557600.000100",
            "edited": {"user": "U1", "ts": "1714557660.000000"}});
        let changed = |inner: &Value| json!({"type": "message", "subtype": "message_changed", "channel": "C1", "ts": "1714557660.000200", "message": inner});
        let edit = said(&mut workspace, changed(&inner));
        assert_eq!((edit.id.as_str(), edit.version), ("1714557600.000100", 1_714_557_660_000));
        inner.as_object_mut().unwrap().remove("edited");
        inner["attachments"] = json!([{"title": "A page", "from_url": "https://a.example"}]);
        let preview = said(&mut workspace, changed(&inner));
        assert_eq!((preview.version, preview.attachments.len()), (0, 1));
        let deletion = json!({"type": "message", "subtype": "message_deleted", "channel": "C1",
            "deleted_ts": "1714557600.000100", "ts": "1714557700.000000"});
        let Ok(ChatItem::Deletion { id, version, .. }) = workspace.item("C1", &deletion) else { panic!() };
        assert_eq!((id.as_str(), version), ("1714557600.000100", None));
    }

    #[test]
    fn accounts_are_asked_for_once() {
        let mut workspace = workspace();
        let message = json!({"user": "U9", "text": "hi <@U2> <@U8|eve> <@U9> <@>"});
        assert_eq!(workspace.unasked(&message), ["U9", "U8"]);
        assert_eq!(workspace.unasked(&json!({"message": message})), ["U9", "U8"]);
        workspace.learn_account("U9", Value::Null);
        assert_eq!(workspace.unasked(&message), ["U8"]);
        workspace.renamed("U9");
        assert_eq!(workspace.unasked(&message), ["U9", "U8"]);
    }

    #[test]
    fn conversations_have_the_privacy_and_the_names_of_an_export() {
        let mut workspace = workspace();
        for (id, info, members, name, privacy) in [
            ("G1", json!({"name": "board", "is_private": true}), vec![], "board", ConversationPrivacy::Private),
            ("D1", json!({"is_im": true, "user": "U2"}), vec!["U2", "U1"], "Ann, Bo Day", ConversationPrivacy::Direct),
            (
                "G2",
                json!({"name": "mpdm-x", "is_mpim": true, "is_private": true}),
                vec!["U1"],
                "Ann",
                ConversationPrivacy::Direct,
            ),
        ] {
            workspace.learn_conversation(id, info, members.into_iter().map(str::to_owned).collect());
            let message = json!({"type": "message", "user": "U1", "text": "a", "ts": "1714557600.000100"});
            let Ok(ChatItem::Message(found)) = workspace.item(id, &message) else { panic!() };
            assert_eq!((found.conversation.name.as_str(), found.conversation.privacy), (name, privacy));
        }
        assert!(workspace.item("C9", &json!({})).is_err());
        assert!(workspace.item("C1", &json!({"ts": 5})).is_err());
        assert!(workspace.item("C1", &json!(5)).is_err());
    }
}
