//! `[[source]]`: the chat platforms that a service follows while people talk.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use toml::Value;

use super::{
    error::with_nearest_key,
    source::{PrivateConversationKind, SourceSettings},
};

/// A platform that a service follows. The tables of a file are `[[source]]`; a single `[source]` names
/// a file instead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LiveSettings")]
pub struct LiveSourceSettings {
    /// The source's name, 1 to 64 of `[A-Za-z0-9._-]`. Its position is kept under this name, and a
    /// webhook's path is `/sources/NAME`.
    pub name: String,
    /// Where people talk.
    pub platform: ChatPlatform,
    /// How messages come.
    #[serde(default)]
    pub delivery: MessageDelivery,
    /// Name of the environment variable that holds the platform's token: that of the bot, or of the
    /// account on Matrix.
    #[serde(default)]
    pub token_env: String,
    /// Slack's Socket Mode: name of the environment variable that holds the app-level token.
    #[serde(default)]
    pub app_token_env: String,
    /// Webhooks: name of the environment variable that holds the secret by which requests are
    /// recognised.
    #[serde(default)]
    pub secret_env: String,
    /// Base address of the platform's API; empty: the platform's own. Matrix needs the address of the
    /// homeserver.
    #[serde(default)]
    pub endpoint: String,
    /// Transcripts: the home directory in which agents keep them, relative to the pipeline file;
    /// absent: that of the user who runs the process.
    #[serde(default)]
    pub home: Option<PathBuf>,
    // The next seven fields are also in `SourceSettings`. If one struct of them were flattened into both, errors would
    // lose their line, their key and the nearest known key.
    /// As in `[source]`: a template of banks. Empty puts each conversation into a bank of its own,
    /// behind the platform's name. A signed webhook needs the plain name of a bank.
    #[serde(default)]
    pub bank: String,
    /// As in `[source]`: the zone in which times are written.
    #[serde(default = "utc")]
    pub zone: String,
    /// As in `[source]`: reads only the conversations with these ids or names.
    #[serde(default)]
    pub only: Vec<String>,
    /// As in `[source]`: leaves out the conversations with these ids or names.
    #[serde(default)]
    pub except: Vec<String>,
    /// As in `[source]`: also reads the private channels (`private`) or the direct messages
    /// (`direct`).
    #[serde(default)]
    pub include: Vec<PrivateConversationKind>,
    /// As in `[source]`: a TOML file that gives accounts other names.
    #[serde(default)]
    pub aliases: Option<PathBuf>,
    /// As in `[source]`: what is replaced in texts before anything is stored.
    #[serde(default)]
    pub redact: Vec<String>,
}

/// A platform that can be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Platform")]
pub enum ChatPlatform {
    /// A bot of Telegram.
    Telegram,
    /// An app of Slack.
    Slack,
    /// A bot of Discord.
    Discord,
    /// An account on a Matrix homeserver.
    Matrix,
    /// Anything that can sign a request: turns as JSON.
    Webhook,
    /// Coding agents on this machine: the transcripts that their programs keep in a home directory.
    Transcripts,
}

/// How messages come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Delivery")]
pub enum MessageDelivery {
    /// This service asks the platform, or keeps a connection to it.
    #[default]
    Pull,
    /// The platform sends requests below `/sources/NAME`: to `http.listen` with an embedded log, to
    /// `metrics.listen` on Kafka.
    Webhook,
}

impl ChatPlatform {
    /// Its name in a pipeline file, which is also the name of its export's format.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Telegram => "telegram",
            Self::Slack => "slack",
            Self::Discord => "discord",
            Self::Matrix => "matrix",
            Self::Webhook => "webhook",
            Self::Transcripts => "transcripts",
        }
    }
}

impl LiveSourceSettings {
    /// Whether the platform sends its messages as HTTP requests.
    #[must_use]
    pub fn has_webhook(&self) -> bool {
        self.platform == ChatPlatform::Webhook || self.delivery == MessageDelivery::Webhook
    }

    /// The settings that a live source shares with an export of its platform.
    #[must_use]
    pub fn as_export(&self) -> SourceSettings {
        SourceSettings {
            bank: self.bank.clone(),
            zone: self.zone.clone(),
            only: self.only.clone(),
            except: self.except.clone(),
            include: self.include.clone(),
            aliases: self.aliases.clone(),
            redact: self.redact.clone(),
            ..SourceSettings::new(self.platform.name(), "")
        }
    }

    /// Checks that each of a file's tables can be read. `tables` are those of `text`.
    ///
    /// # Errors
    /// The line, the source, the key, and what is wrong.
    pub(super) fn check_tables(text: &str, tables: &[Value]) -> Result<(), String> {
        #[derive(Deserialize)]
        struct SourceTables {
            #[serde(rename = "source")]
            _source: Vec<LiveSourceSettings>,
        }
        let Err(mut error) = toml::from_str::<SourceTables>(text) else { return Ok(()) };
        let at = tables.iter().position(|table| table.clone().try_into::<Self>().is_err()).unwrap_or(0);
        let name = tables.get(at).and_then(|table| table.get("name")).and_then(Value::as_str);
        let source = name.map_or_else(|| format!("source number {}", at + 1), |name| format!("source {name:?}"));
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        // Without its input, the error names the keys instead of quoting a line, which may hold a token.
        error.set_input(None);
        let shown = error.to_string();
        let path = shown.lines().last().and_then(|last| last.strip_prefix("in `source.")?.strip_suffix('`'));
        let key = path.map(|path| format!("{path}: ")).unwrap_or_default();
        Err(format!("line {line}: {source}: {key}{}", with_nearest_key(&error)))
    }

    /// Checks that the keys fit each other and the platform.
    pub(super) fn check(&self) -> Result<(), String> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let name = &self.name;
        if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
            return Err(format!("source.name: {name:?} is not a valid name; use 1 to 64 of [A-Za-z0-9._-]"));
        }
        let key = |key: &str| format!("source {name:?}: {key}");
        let platform = self.platform.name();
        let has_token = !matches!(self.platform, ChatPlatform::Webhook | ChatPlatform::Transcripts);
        let needs_token = has_token && !(self.platform == ChatPlatform::Telegram && self.has_webhook());
        let needs_app_token = self.platform == ChatPlatform::Slack && !self.has_webhook();
        let needed = [
            ("token_env", &self.token_env, needs_token),
            ("app_token_env", &self.app_token_env, needs_app_token),
            ("secret_env", &self.secret_env, self.has_webhook()),
        ];
        for (name, value, needed) in needed {
            if needed && value.is_empty() {
                return Err(format!(
                    "{}: missing; write the name of the environment variable that holds it ({platform} needs it)",
                    key(name)
                ));
            }
            // A user who writes the token itself here must not find it in a log.
            if !value.is_empty() && !is_variable(value) {
                return Err(format!(
                    "{}: the value is not the name of an environment variable; write a name of letters, digits and \
                     _, and put the token itself into that variable",
                    key(name)
                ));
            }
        }
        let is_pushed = self.delivery == MessageDelivery::Webhook;
        let refused = [
            ("delivery", is_pushed && matches!(self.platform, ChatPlatform::Discord | ChatPlatform::Matrix)),
            ("delivery", is_pushed && self.platform == ChatPlatform::Transcripts),
            ("home", self.home.is_some() && self.platform != ChatPlatform::Transcripts),
            ("token_env", !self.token_env.is_empty() && self.platform == ChatPlatform::Transcripts),
            ("endpoint", !self.endpoint.is_empty() && self.platform == ChatPlatform::Transcripts),
            ("app_token_env", !self.app_token_env.is_empty() && self.platform != ChatPlatform::Slack),
            ("secret_env", !self.secret_env.is_empty() && !self.has_webhook()),
        ];
        if let Some((name, _)) = refused.iter().find(|(_, refused)| *refused) {
            return Err(format!("{}: {platform} does not use it with these settings; leave it out", key(name)));
        }
        if self.platform == ChatPlatform::Webhook && self.bank.is_empty() {
            return Err(format!("{}: missing; write the bank for turns that name none", key("bank")));
        }
        if self.platform == ChatPlatform::Matrix && self.endpoint.is_empty() {
            return Err(format!("{}: missing; write the address of the homeserver", key("endpoint")));
        }
        if !self.endpoint.is_empty() && !["http://", "https://"].iter().any(|scheme| self.endpoint.starts_with(scheme))
        {
            return Err(format!("{}: {:?} is not an address; begin it with https://", key("endpoint"), self.endpoint));
        }
        Ok(())
    }
}

/// Whether an environment variable can have this name in every shell.
fn is_variable(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn utc() -> String {
    "+00:00".to_owned()
}

#[cfg(test)]
mod tests {
    use schemars::schema_for;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_a_live_source_shares_with_an_export_has_the_same_form_there() {
        let of_keys = |schema: schemars::Schema| schema.as_value()["properties"].clone();
        let (live, export) = (of_keys(schema_for!(LiveSourceSettings)), of_keys(schema_for!(SourceSettings)));
        let form = |of: &Value, key: &str| ["type", "items", "anyOf", "default"].map(|part| of[key][part].clone());
        let mut shared = Vec::new();
        for key in live.as_object().unwrap().keys().filter(|key| export.get(key).is_some()) {
            assert_eq!(form(&live, key), form(&export, key), "{key}");
            shared.push(key.as_str());
        }
        assert_eq!(shared, ["aliases", "bank", "except", "include", "only", "redact", "zone"]);
        // Every shared setting is passed on.
        let set = json!({"name": "a", "platform": "slack", "bank": "b", "zone": "Z", "only": ["c"], "except": ["d"],
            "include": ["direct"], "aliases": "e", "redact": ["secrets"]});
        let export =
            serde_json::to_value(serde_json::from_value::<LiveSourceSettings>(set.clone()).unwrap().as_export());
        let export = export.unwrap();
        assert!(shared.iter().all(|key| export[key] == set[key]), "{export}");
    }
}
