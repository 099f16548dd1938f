//! `[source]`: where `ripplemem run` reads turns from, when they are not already in Kafka.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where turns come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceSettings {
    /// The format of the file, such as `jsonl` or `slack`; `auto` recognises it. `ripplemem ingest
    /// --help` lists them.
    // `sources/formats.rs` has the list and checks it.
    pub format: String,
    /// The file, relative to the pipeline file; `-` reads standard input (`jsonl` only). Chat
    /// exports may also be a directory or an archive.
    pub path: PathBuf,
    /// The bank of records that name none. For the datasets, the prefix of each conversation's
    /// bank. For chat exports, a template that may hold `{workspace}`, `{channel}`, `{channel_id}` and
    /// `{participants}`; for agents' transcripts, `{project}`. Empty puts each conversation into a bank of its own,
    /// behind the format's name, and each project of an agent into that of its name.
    #[serde(default)]
    pub bank: String,
    /// The zone of times that name none: a UTC offset such as `+02:00`, or a name such as
    /// `Europe/Berlin`.
    #[serde(default = "utc")]
    pub zone: String,
    /// Reads only the conversations with these ids or names, from a format that holds several; of
    /// agents' transcripts, only these programs, projects and directories. Empty reads all.
    #[serde(default)]
    pub only: Vec<String>,
    /// Chat exports: leaves out the conversations with these ids or names; of agents' transcripts,
    /// these programs, projects and directories.
    #[serde(default)]
    pub except: Vec<String>,
    /// Chat exports: also reads the private channels (`private`) or the direct messages
    /// (`direct`). Without it, they are read only where `only` names them.
    #[serde(default)]
    pub include: Vec<PrivateConversationKind>,
    /// Chat exports: a TOML file, relative to the pipeline file, that gives accounts other names:
    /// lines of `"id, handle or name" = "Name"`.
    #[serde(default)]
    pub aliases: Option<PathBuf>,
    /// Chat exports: what is replaced in texts before anything is stored: `keys` (keys, tokens and
    /// passwords), `secrets` (these, e-mail addresses, card numbers and phone numbers), or regular
    /// expressions. Empty means `keys` for agents' transcripts, where `none` replaces nothing.
    #[serde(default)]
    pub redact: Vec<String>,
    /// Chat exports: the order of day and month where the format leaves it open; empty reads it
    /// from the whole file.
    #[serde(default)]
    pub date_order: Option<DateOrder>,
}

/// A kind of conversation that is read only when the user says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Include")]
pub enum PrivateConversationKind {
    /// Private channels and closed groups.
    Private,
    /// Direct messages, also of groups.
    Direct,
}

/// The order of day, month and year in a date written with numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DateOrder {
    /// Day, month, year.
    Dmy,
    /// Month, day, year.
    Mdy,
    /// Year, month, day.
    Ymd,
}

impl std::str::FromStr for PrivateConversationKind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "private" => Ok(Self::Private),
            "direct" => Ok(Self::Direct),
            _ => Err(format!("{text:?} is not known; write private or direct")),
        }
    }
}

impl std::str::FromStr for DateOrder {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "dmy" => Ok(Self::Dmy),
            "mdy" => Ok(Self::Mdy),
            "ymd" => Ok(Self::Ymd),
            _ => Err(format!("{text:?} is not known; write dmy, mdy or ymd")),
        }
    }
}

impl SourceSettings {
    /// The settings of a file, with every default.
    #[must_use]
    pub fn new(format: &str, path: impl Into<PathBuf>) -> Self {
        Self {
            format: format.to_owned(),
            path: path.into(),
            bank: String::new(),
            zone: utc(),
            only: Vec::new(),
            except: Vec::new(),
            include: Vec::new(),
            aliases: None,
            redact: Vec::new(),
            date_order: None,
        }
    }
}

fn utc() -> String {
    "+00:00".to_owned()
}
