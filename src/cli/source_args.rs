//! The arguments that say where turns come from.
//!
//! In: a format, a path and their options. Out: settings of a source.

use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use sources::{AGENTS, AUTO, FORMATS};
use terminal::format_help;
use types::config::{DateOrder, PrivateConversationKind, SourceSettings};

/// Where turns come from.
#[derive(Args)]
pub(crate) struct SourceArgs {
    #[arg(help = format_help("The format"), long_help = format_long_help())]
    format: String,
    /// The file, or - for standard input if the format allows it. For chat exports, a directory or an archive is
    /// possible, too. For agents, a home directory; without it, your own.
    path: Option<PathBuf>,
    /// Agents: the home directory in which the programs keep their transcripts.
    #[arg(long, conflicts_with = "path")]
    home: Option<PathBuf>,
    /// The bank for records that do not name one. For chat exports, a template such as acme/{channel}; the placeholders
    /// are {workspace}, {channel}, {channel_id} and {participants}; for transcripts of agents, {project}.
    #[arg(long, default_value = "", hide_default_value = true)]
    bank: String,
    /// The time zone to assume for times without one, such as +02:00 or Europe/Berlin.
    #[arg(long, default_value = "+00:00", allow_hyphen_values = true, value_parser = no_option)]
    zone: String,
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true, value_parser = no_option, help = only_help())]
    only: Vec<String>,
    /// Chat exports: leave out these conversations, by name or id; transcripts of agents: these programs, projects and
    /// directories.
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true, value_parser = no_option)]
    except: Vec<String>,
    /// Chat exports: also read private channels (private) or direct messages (direct).
    #[arg(long, value_delimiter = ',')]
    include: Vec<PrivateConversationKind>,
    /// Chat exports: a TOML file with names for accounts, in lines of the form "id, handle or name" = "Name".
    #[arg(long)]
    aliases: Option<PathBuf>,
    /// Chat exports: what to replace in texts before anything is stored: keys (keys, tokens, passwords), secrets (these,
    /// e-mail addresses, cards, phone numbers), or matches of a regular expression. May be given several times.
    /// Transcripts of agents are read with keys unless this names something; none replaces nothing.
    #[arg(long)]
    redact: Vec<String>,
    /// Chat exports: the order of day and month if the format leaves it open: dmy, mdy or ymd.
    #[arg(long)]
    date_order: Option<DateOrder>,
}

impl SourceArgs {
    /// The settings of the source.
    ///
    /// # Errors
    /// When the path is missing, or the system does not say where home is.
    pub(crate) fn settings(self) -> Result<SourceSettings> {
        let Self { format, path, home, bank, zone, only, except, include, aliases, redact, date_order } = self;
        let is_home = format == AGENTS;
        ensure!(is_home || home.is_none(), "--home: {format} is read from a path; leave it out");
        let path = match path.or(home) {
            Some(path) => path,
            None if is_home => {
                std::env::home_dir().context("--home: missing, and the system does not say where home is")?
            }
            None => bail!("the path is missing: name the file or the folder with {format}"),
        };
        // A project's directory is a whole path in its transcripts.
        let path = if is_home { std::path::absolute(&path)? } else { path };
        let whole = |names: Vec<String>| names.into_iter().map(|name| if is_home { whole_path(name) } else { name });
        let (only, except) = (whole(only).collect(), whole(except).collect());
        Ok(SourceSettings { format, path, bank, zone, only, except, include, aliases, redact, date_order })
    }
}

/// The whole path of a directory that is written from here, such as `./kite`; any other word as it is.
fn whole_path(word: String) -> String {
    let is_path = word == "." || word == ".." || word.starts_with("./") || word.starts_with("../");
    match std::path::absolute(&word) {
        Ok(path) if is_path => plain(&path).display().to_string(),
        _ => word,
    }
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
        plain
    })
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
