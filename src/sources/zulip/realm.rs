//! The accounts, channels and groups of a Zulip organization.
//!
//! In: `realm.json`. Out: the account with an id, and the conversation of a recipient. The file is read twice, because
//! the kind of a recipient must be known before its members are kept; subscriptions to channels, of which there may be
//! millions, are never held.

use std::collections::{BTreeSet, HashMap};

use serde::Deserialize;

use crate::{
    SourceError,
    chat::{Account, Conversation, ConversationPrivacy, ExportTree, JsonElements},
};

const TABLES: &[&str] = &[
    "zerver_realm/*",
    "zerver_userprofile/*",
    "zerver_userprofile_mirrordummy/*",
    "zerver_userprofile_crossrealm/*",
    "zerver_stream/*",
    "zerver_recipient/*",
];

/// The content of `realm.json`.
#[derive(Default)]
pub(super) struct ZulipRealm {
    /// The organization's name in its URL.
    workspace: Option<String>,
    users: HashMap<i64, Account>,
    /// The account with each name; `None` if several have it.
    by_name: HashMap<String, Option<i64>>,
    /// The accounts of Zulip itself, which write notices.
    system: BTreeSet<i64>,
    channels: HashMap<i64, ZulipChannel>,
    recipients: HashMap<i64, ZulipRecipient>,
    /// The members of groups, by recipient.
    members: HashMap<i64, BTreeSet<i64>>,
    read: bool,
}

#[derive(Deserialize)]
struct ZulipRealmRow {
    string_id: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct ZulipUserRow {
    id: i64,
    full_name: Option<String>,
    email: Option<String>,
    #[serde(default)]
    is_bot: bool,
}

#[derive(Deserialize)]
struct ZulipChannel {
    id: i64,
    name: String,
    #[serde(default)]
    invite_only: bool,
}

#[derive(Deserialize, Clone, Copy)]
struct ZulipRecipient {
    id: i64,
    /// 1 is one person, 2 a channel, 3 a group.
    #[serde(rename = "type")]
    kind: u8,
    type_id: i64,
}

#[derive(Deserialize)]
struct ZulipSubscription {
    user_profile: i64,
    recipient: i64,
}

impl ZulipRealm {
    /// Reads `realm.json`. A damaged row is ignored: what it would have named is named by its id.
    ///
    /// # Errors
    /// [`SourceError`] when the file cannot be read.
    pub(super) fn read(tree: &ExportTree, name: &str) -> Result<Self, SourceError> {
        let mut realm = Self { read: true, ..Self::default() };
        let mut rows = JsonElements::new(tree.read(name)?, TABLES);
        while let Some(row) = rows.next().map_err(|e| tree.unreadable(name, 0, e))? {
            match row.path {
                0 => {
                    if let Ok(row) = serde_json::from_slice::<ZulipRealmRow>(&row.bytes) {
                        realm.workspace = row.string_id.filter(|id| !id.is_empty()).or(row.name);
                    }
                }
                1..=3 => {
                    if let Ok(user) = serde_json::from_slice::<ZulipUserRow>(&row.bytes) {
                        realm.user(user, row.path == 3);
                    }
                }
                4 => {
                    if let Ok(channel) = serde_json::from_slice::<ZulipChannel>(&row.bytes) {
                        realm.channels.insert(channel.id, channel);
                    }
                }
                5 => {
                    if let Ok(recipient) = serde_json::from_slice::<ZulipRecipient>(&row.bytes) {
                        realm.recipients.insert(recipient.id, recipient);
                    }
                }
                _ => {}
            }
        }
        let mut rows = JsonElements::new(tree.read(name)?, &["zerver_subscription/*"]);
        while let Some(row) = rows.next().map_err(|e| tree.unreadable(name, 0, e))? {
            let Ok(row) = serde_json::from_slice::<ZulipSubscription>(&row.bytes) else { continue };
            if realm.recipients.get(&row.recipient).is_some_and(|r| r.kind == 3) {
                realm.members.entry(row.recipient).or_default().insert(row.user_profile);
            }
        }
        Ok(realm)
    }

    /// Whether there was a `realm.json`.
    pub(super) fn is_known(&self) -> bool {
        self.read
    }

    /// An account by its id; without a row, the id is its name.
    pub(super) fn account(&self, id: i64) -> Account {
        self.users.get(&id).cloned().unwrap_or_else(|| Account {
            id: id.to_string(),
            name: format!("user {id}"),
            handle: None,
            bot: false,
        })
    }

    /// The account with a name, if exactly one has it.
    pub(super) fn named(&self, name: &str) -> Option<&Account> {
        self.users.get(&(*self.by_name.get(name)?)?)
    }

    /// Whether Zulip itself writes under this account.
    pub(super) fn is_system(&self, id: i64) -> bool {
        self.system.contains(&id)
    }

    /// Whether a recipient is one person.
    pub(super) fn is_person(&self, recipient: i64) -> bool {
        self.recipients.get(&recipient).is_some_and(|recipient| recipient.kind == 1)
    }

    /// The conversation in which a message was written; `None` if the recipient has no row, or if it is one person and
    /// the sender is not known.
    pub(super) fn conversation(&self, recipient: i64, sender: Option<i64>) -> Option<Conversation> {
        let ZulipRecipient { kind, type_id, .. } = *self.recipients.get(&recipient)?;
        match kind {
            2 => {
                // A channel without a row may be private.
                let channel = self.channels.get(&type_id);
                Some(Conversation {
                    workspace: self.workspace.clone(),
                    id: type_id.to_string(),
                    name: channel.map_or_else(|| format!("channel {type_id}"), |c| c.name.clone()),
                    privacy: if channel.is_some_and(|c| !c.invite_only) {
                        ConversationPrivacy::Open
                    } else {
                        ConversationPrivacy::Private
                    },
                })
            }
            1 => Some(self.direct(&BTreeSet::from([type_id, sender?]))),
            3 => Some(match self.members.get(&recipient) {
                Some(members) => self.direct(members),
                None => Conversation {
                    workspace: self.workspace.clone(),
                    id: format!("group-{type_id}"),
                    name: format!("group {type_id}"),
                    privacy: ConversationPrivacy::Direct,
                },
            }),
            _ => None,
        }
    }

    /// The conversation of these people, whichever kind of recipient names them.
    fn direct(&self, members: &BTreeSet<i64>) -> Conversation {
        let names: Vec<String> = members.iter().map(|id| self.account(*id).name).collect();
        Conversation { workspace: self.workspace.clone(), ..direct(members, &names) }
    }

    fn user(&mut self, row: ZulipUserRow, crossrealm: bool) {
        let email = row.email.unwrap_or_default();
        let local = email.split('@').next().unwrap_or_default();
        let name = row.full_name.filter(|n| !n.trim().is_empty()).unwrap_or_else(|| words(local));
        let name = if name.is_empty() { format!("user {}", row.id) } else { name };
        if matches!(local, "notification-bot" | "welcome-bot") {
            self.system.insert(row.id);
        }
        let bot = row.is_bot || crossrealm;
        let known = self.by_name.entry(name.clone()).or_insert(Some(row.id));
        if *known != Some(row.id) {
            *known = None;
        }
        self.users.entry(row.id).or_insert(Account { id: row.id.to_string(), name, handle: None, bot });
    }
}

/// A direct conversation, from its members' ids.
pub(super) fn direct(members: &BTreeSet<i64>, names: &[String]) -> Conversation {
    let ids: Vec<String> = members.iter().map(i64::to_string).collect();
    let id = ids.join("-");
    let id = if id.len() > 100 { blake3::hash(id.as_bytes()).to_hex()[..32].to_owned() } else { id };
    Conversation {
        workspace: None,
        id: format!("direct-{id}"),
        name: names.join(", "),
        privacy: ConversationPrivacy::Direct,
    }
}

/// `notification-bot` as `Notification Bot`.
fn words(handle: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>()).unwrap_or_default()
    };
    handle.split(['-', '_', '.']).filter(|w| !w.is_empty()).map(capital).collect::<Vec<_>>().join(" ")
}
