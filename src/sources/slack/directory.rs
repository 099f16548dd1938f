//! The channels and users of an export.
//!
//! In: `channels.json`, `groups.json`, `dms.json`, `mpims.json` and `users.json`, as far as they exist. Out: the
//! conversation of a folder, and the account with an id. A folder that is in no list is direct or private if its name
//! or the lists show it. Memory grows with users and channels, never with messages.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::Value;

use super::mrkdwn::SlackNames;
use crate::{
    SourceError,
    chat::{Account, Conversation, ConversationPrivacy, ExportTree, JsonElements},
};
use types::model::DeadLetter;

/// Slack's own account, which is in no list.
const SLACKBOT: &str = "USLACKBOT";

/// What an export says about its channels and users.
#[derive(Default)]
pub(super) struct SlackDirectory {
    accounts: HashMap<String, Account>,
    /// The names of integrations by the id of their bot.
    bots: HashMap<String, String>,
    channel_names: HashMap<String, String>,
    /// Conversations by the folder that contains the lists and the conversation's folder name.
    conversations: BTreeMap<(String, String), Arc<Conversation>>,
    /// The folders that contain a list of open channels.
    lists_channels: BTreeSet<String>,
    team: Option<String>,
}

/// An account, in `users.json` and in the reply of `users.info`.
#[derive(Deserialize)]
pub(super) struct SlackUser {
    id: String,
    #[serde(default)]
    team_id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    real_name: Option<String>,
    #[serde(default)]
    is_bot: Option<bool>,
    #[serde(default)]
    profile: Option<SlackProfile>,
}

/// The names of a user, in `users.json` and in messages.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct SlackProfile {
    display_name: Option<String>,
    real_name: Option<String>,
    name: Option<String>,
}

/// A conversation, in the lists and in the reply of `conversations.info`.
#[derive(Deserialize)]
pub(super) struct SlackChannel {
    id: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    members: Option<Vec<String>>,
    #[serde(default)]
    is_private: Option<bool>,
    #[serde(default)]
    user: Option<String>,
}

impl SlackDirectory {
    /// Reads the lists of an export. A record in them that cannot be read becomes a reject.
    pub(super) fn read(tree: &ExportTree) -> Result<(Self, Vec<DeadLetter>), SourceError> {
        let mut directory = Self::default();
        let mut rejects = Vec::new();
        let lists = |names: &[&str]| {
            let found: Vec<&str> =
                tree.entries().iter().map(|e| e.name.as_str()).filter(|n| names.contains(&split(n).1)).collect();
            found
        };
        // Users come first, because the names of direct conversations are made from theirs.
        for file in lists(&["users.json", "org_users.json"]) {
            for_each(tree, file, &mut rejects, |user: SlackUser| directory.user(user))?;
        }
        for file in lists(&["channels.json", "groups.json", "dms.json", "mpims.json"]) {
            let (around, name) = split(file);
            let privacy = match name {
                "channels.json" => ConversationPrivacy::Open,
                "groups.json" => ConversationPrivacy::Private,
                _ => ConversationPrivacy::Direct,
            };
            if privacy == ConversationPrivacy::Open {
                directory.lists_channels.insert(around.to_owned());
            }
            for_each(tree, file, &mut rejects, |channel: SlackChannel| {
                directory.list_channel(around, channel, privacy)
            })?;
        }
        Ok((directory, rejects))
    }

    /// An empty directory for a team.
    pub(super) fn of_team(team: &str) -> Self {
        Self { team: Some(team.to_owned()), ..Self::default() }
    }

    /// Adds an account, or gives it another name.
    pub(super) fn user(&mut self, user: SlackUser) {
        let profile = user.profile.unwrap_or_default();
        let handle = user.name.filter(|name| !name.trim().is_empty());
        let real_name = SlackProfile { real_name: profile.real_name.or(user.real_name), ..profile };
        let name = real_name.name().or_else(|| handle.clone()).unwrap_or_else(|| user.id.clone());
        let bot = user.is_bot == Some(true) || user.id == SLACKBOT;
        self.team = self.team.take().or(user.team_id);
        self.accounts.insert(user.id.clone(), Account { id: user.id, name, handle, bot });
    }

    /// Adds a conversation of a list.
    pub(super) fn list_channel(&mut self, around: &str, channel: SlackChannel, listed: ConversationPrivacy) {
        let privacy = match channel.is_private {
            Some(true) if listed == ConversationPrivacy::Open => ConversationPrivacy::Private,
            _ => listed,
        };
        let name = match listed {
            ConversationPrivacy::Direct => {
                let members = channel.members.unwrap_or_else(|| channel.user.into_iter().collect());
                let mut names: Vec<String> = members.iter().map(|id| self.account(id, None).name).collect();
                names.sort_unstable();
                Some(names.join(", ")).filter(|names| !names.is_empty())
            }
            _ => None,
        };
        let listed_name = channel.name.filter(|name| !name.trim().is_empty());
        let shown = name.or_else(|| listed_name.clone()).unwrap_or_else(|| channel.id.clone());
        let conversation = Arc::new(Conversation {
            workspace: self.workspace(around),
            id: channel.id.clone(),
            name: shown.clone(),
            privacy,
        });
        if listed != ConversationPrivacy::Direct {
            self.channel_names.insert(channel.id.clone(), shown);
        }
        // Slack names the folder of a direct conversation after its id, and other folders after the conversation's
        // name; slackdump may use ids for all folders.
        for folder in listed_name.into_iter().chain([channel.id]) {
            self.conversations.entry((around.to_owned(), folder)).or_insert_with(|| conversation.clone());
        }
    }

    /// The workspace: the team's id, which stays the same in later exports. In an export of several workspaces, the
    /// folder's name.
    fn workspace(&self, around: &str) -> Option<String> {
        let in_teams = around.split_once("teams/").map(|(_, team)| team.to_owned());
        in_teams.or_else(|| self.team.clone())
    }

    /// The conversation of a folder.
    pub(super) fn conversation(&self, around: &str, folder: &str) -> Arc<Conversation> {
        let key = (around.to_owned(), folder.to_owned());
        if let Some(conversation) = self.conversations.get(&key) {
            return conversation.clone();
        }
        let privacy = if is_id(folder, 'D') || folder.starts_with("mpdm-") {
            ConversationPrivacy::Direct
        } else if is_id(folder, 'G') || self.lists_channels.contains(around) {
            // A channel that is missing from the list of open channels is not open.
            ConversationPrivacy::Private
        } else {
            ConversationPrivacy::Open
        };
        Arc::new(Conversation {
            workspace: self.workspace(around),
            id: folder.to_owned(),
            name: folder.to_owned(),
            privacy,
        })
    }

    /// The account of a user who wrote a message. A user in no list is named by the profile in the first message.
    pub(super) fn author(&mut self, id: &str, profile: Option<SlackProfile>, bot: bool) -> Account {
        if let Some(account) = self.accounts.get(id) {
            return account.clone();
        }
        let account = self.account(id, profile.as_ref().and_then(SlackProfile::name).as_deref());
        let handle = profile.and_then(|profile| profile.name).filter(|handle| !handle.trim().is_empty());
        let account = Account { bot: bot || account.bot, handle, ..account };
        self.accounts.insert(id.to_owned(), account.clone());
        account
    }

    /// The account of an integration that writes without a user. An integration that writes under several names counts
    /// as several accounts.
    pub(super) fn bot(&self, id: &str, username: Option<&str>) -> Account {
        let username = username.map(str::trim).filter(|name| !name.is_empty());
        let name = username.or_else(|| self.bots.get(id).map(String::as_str)).unwrap_or(id);
        Account {
            id: username.map_or_else(|| id.to_owned(), |username| format!("{id}/{username}")),
            name: name.to_owned(),
            handle: Some(id.to_owned()).filter(|id| !id.is_empty()),
            bot: true,
        }
    }

    /// Keeps the name of an integration.
    pub(super) fn name_bot(&mut self, id: &str, name: &str) {
        self.bots.entry(id.to_owned()).or_insert_with(|| name.to_owned());
    }

    /// Whether an account with this id is known.
    pub(super) fn is_known(&self, id: &str) -> bool {
        self.accounts.contains_key(id)
    }
}

impl SlackNames for SlackDirectory {
    fn account(&self, id: &str, label: Option<&str>) -> Account {
        if let Some(account) = self.accounts.get(id) {
            return account.clone();
        }
        let name = if id == SLACKBOT { "Slackbot" } else { label.unwrap_or(id) };
        Account { id: id.to_owned(), name: name.to_owned(), handle: None, bot: id == SLACKBOT }
    }

    fn channel(&self, id: &str) -> Option<String> {
        self.channel_names.get(id).cloned()
    }
}

impl SlackProfile {
    /// The name that people see: the display name, else the real one.
    fn name(&self) -> Option<String> {
        let names = [&self.display_name, &self.real_name, &self.name];
        names.into_iter().flatten().map(|name| name.trim()).find(|name| !name.is_empty()).map(str::to_owned)
    }
}

/// The folder that contains a file, and the file's own name.
pub(super) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Whether a folder's name is an id such as `D024BE91L`.
fn is_id(folder: &str, kind: char) -> bool {
    let is_rest = |rest: &str| rest.len() >= 8 && rest.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    folder.strip_prefix(kind).is_some_and(is_rest)
}

/// Reads the records of a list, which may also be one that the API returned (`{"ok": true, "members": […]}`).
fn for_each<T: for<'de> Deserialize<'de>>(
    tree: &ExportTree,
    file: &str,
    rejects: &mut Vec<DeadLetter>,
    mut take: impl FnMut(T),
) -> Result<(), SourceError> {
    let mut elements = JsonElements::new(tree.read(file)?, &["*", "members/*", "channels/*", "groups/*", "ims/*"]);
    while let Some(element) = elements.next().map_err(|e| tree.unreadable(file, 0, e))? {
        // A list without entries may be `null`.
        match element.parse::<Value>(&tree.origin(file)) {
            Ok(Value::Null) => {}
            Ok(value) => match serde_json::from_value(value) {
                Ok(record) => take(record),
                Err(e) => {
                    rejects.push(element.reject(&tree.origin(file), format!("{e}; correct the list, or export again")))
                }
            },
            Err(letter) => rejects.push(letter),
        }
    }
    Ok(())
}
