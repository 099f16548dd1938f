//! The arguments that say where turns come from.
//!
//! In: a format, a path and their options. Out: settings of a source.

use std::path::PathBuf;

use clap::Args;
use sources::{AUTO, FORMATS};
use terminal::format_help;
use types::config::{DateOrder, PrivateConversationKind, SourceSettings};

/// Where turns come from.
#[derive(Args)]
pub(crate) struct SourceArgs {
    #[arg(help = format_help("The format"), long_help = format_long_help())]
    format: String,
    /// The file, or - for standard input if the format allows it. For chat exports, a directory or an archive is
    /// possible, too.
    path: PathBuf,
    /// The bank for records that do not name one. For chat exports, a template such as acme/{channel}; the placeholders
    /// are {workspace}, {channel}, {channel_id} and {participants}.
    #[arg(long, default_value = "", hide_default_value = true)]
    bank: String,
    /// The time zone to assume for times without one, such as +02:00 or Europe/Berlin.
    #[arg(long, default_value = "+00:00", allow_hyphen_values = true, value_parser = no_option)]
    zone: String,
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true, value_parser = no_option, help = only_help())]
    only: Vec<String>,
    /// Chat exports: leave out these conversations, by name or id.
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true, value_parser = no_option)]
    except: Vec<String>,
    /// Chat exports: also read private channels (private) or direct messages (direct).
    #[arg(long, value_delimiter = ',')]
    include: Vec<PrivateConversationKind>,
    /// Chat exports: a TOML file with names for accounts, in lines of the form "id, handle or name" = "Name".
    #[arg(long)]
    aliases: Option<PathBuf>,
    /// Chat exports: what to replace in texts before anything is stored: secrets (e-mail addresses, cards, keys, phone
    /// numbers), or matches of a regular expression. May be given several times.
    #[arg(long)]
    redact: Vec<String>,
    /// Chat exports: the order of day and month if the format leaves it open: dmy, mdy or ymd.
    #[arg(long)]
    date_order: Option<DateOrder>,
}

impl SourceArgs {
    /// The settings of the source.
    pub(crate) fn settings(self) -> SourceSettings {
        let Self { format, path, bank, zone, only, except, include, aliases, redact, date_order } = self;
        SourceSettings { format, path, bank, zone, only, except, include, aliases, redact, date_order }
    }
}

/// A value that may begin with a hyphen, such as `-05:00` or an id. The name of another option is refused: then the
/// value was forgotten.
fn no_option(value: &str) -> Result<String, String> {
    if value.starts_with("--") {
        return Err(format!("{value} is an option; write a value in front of it"));
    }
    Ok(value.to_owned())
}

/// One line for each format.
fn format_long_help() -> String {
    let lines = FORMATS.iter().map(|format| format!("\n  {:<14}{}", format.name, format.about));
    format!("The format:{}\n  {AUTO:<14}the one that the file looks like", lines.collect::<String>())
}

/// What `--only` selects in each format that has parts.
fn only_help() -> String {
    let mut parts: Vec<(&str, Vec<&str>)> = Vec::new();
    for (what, name) in FORMATS.iter().filter_map(|format| Some((format.only?, format.name))) {
        match parts.iter_mut().find(|(known, _)| *known == what) {
            Some((_, names)) => names.push(name),
            None => parts.push((what, vec![name])),
        }
    }
    let parts: Vec<String> = parts.iter().map(|(what, names)| format!("{what} ({})", names.join(", "))).collect();
    format!("Only these {}, by name or id", parts.join(", "))
}
