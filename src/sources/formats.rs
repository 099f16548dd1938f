//! The list of formats, used to open sources and to write the help.
//!
//! In: the name of a format, or `auto`, and the settings of a source. Out: an open source, or an error that names the
//! key. To add a format, write a file with a `FORMAT`, its `mod` line, and its line here.

use std::path::Path;

use super::{
    chat::{ChatSource, FileSample, first_names},
    discord,
    error::SourceError,
    format::{FormatOpener, SourceFormat},
    gitter, imessage, irc, jsonl, matrix, mattermost, mbox, messenger, signal, slack, teams, telegram, transcripts,
    turn_source::TurnSource,
    whatsapp,
    zone::Zone,
    zulip,
};
use types::{config::SourceSettings, model::Bank};

/// Every format of turns, in the order in which the help lists them.
pub const FORMATS: &[SourceFormat] = &[
    jsonl::FORMAT,
    slack::FORMAT,
    discord::FORMAT,
    telegram::FORMAT,
    whatsapp::FORMAT,
    signal::FORMAT,
    imessage::FORMAT,
    mattermost::FORMAT,
    zulip::FORMAT,
    teams::FORMAT,
    mbox::FORMAT,
    gitter::FORMAT,
    irc::FORMAT,
    matrix::FORMAT,
    messenger::FORMAT,
    transcripts::AGENTS,
    transcripts::CLAUDE_CODE,
    transcripts::CODEX,
    transcripts::GEMINI_CLI,
    transcripts::COPILOT_CLI,
    transcripts::OPENCODE,
    transcripts::QWEN_CODE,
    transcripts::PI,
    transcripts::CLINE,
    transcripts::CONTINUE_DEV,
    transcripts::AIDER,
    transcripts::CHATGPT,
    transcripts::CLAUDE_AI,
    transcripts::OPEN_WEBUI,
    transcripts::LIBRECHAT,
    transcripts::SILLYTAVERN,
    transcripts::CURSOR,
    transcripts::GOOSE,
    transcripts::ZED,
];

/// The name that stands for recognising the format from the file.
pub const AUTO: &str = "auto";

/// The name of the format of a home directory with agents' transcripts.
pub const AGENTS: &str = transcripts::AGENTS.name;

/// The format with this name.
///
/// # Errors
/// [`SourceError::Settings`], which lists the known names.
pub fn format(name: &str) -> Result<SourceFormat, SourceError> {
    FORMATS.iter().find(|format| format.name == name).copied().ok_or_else(|| SourceError::Settings {
        key: "format",
        problem: format!("{name:?} is not known; write one of {}, or {AUTO}", format_names(", ")),
    })
}

/// The names of all formats: separated by commas, the last two by `last_separator`.
#[must_use]
pub fn format_names(last_separator: &str) -> String {
    join(&FORMATS.iter().map(|format| format.name).collect::<Vec<_>>(), last_separator)
}

/// Opens the source that the settings name.
///
/// A record that names no bank gets `settings.bank`. If a file holds several conversations, `settings.bank` is the
/// first part of each conversation's bank; for chat exports, it is a bank template.
///
/// # Errors
/// [`SourceError`] when the file cannot be opened or does not have the format, or when a setting does not fit the
/// format.
pub fn open(settings: &SourceSettings) -> Result<Box<dyn TurnSource>, SourceError> {
    let named = if settings.format == AUTO { None } else { Some(format(&settings.format)?) };
    open_named(named, settings)
}

/// Opens a source of a format that need not be in [`FORMATS`].
///
/// # Errors
/// As [`open`].
pub fn open_as(format: &SourceFormat, settings: &SourceSettings) -> Result<Box<dyn TurnSource>, SourceError> {
    open_named(Some(*format), settings)
}

fn open_named(named: Option<SourceFormat>, settings: &SourceSettings) -> Result<Box<dyn TurnSource>, SourceError> {
    Zone::parse(&settings.zone)?;
    let (format, is_recognised, archives) = format_of(named, settings)?;
    let name = format.name;
    if format.only.is_none() && !settings.only.is_empty() {
        let problem = format!("{name} holds no conversations to choose from; leave it out");
        return Err(SourceError::Settings { key: "only", problem });
    }
    match format.open {
        FormatOpener::Turns(open) => {
            refuse_chat_settings(name, settings)?;
            let bank = Some(&settings.bank).filter(|bank| !bank.is_empty()).map(|bank| Bank::parse(bank)).transpose();
            let bank = bank.map_err(|e| SourceError::Settings { key: "bank", problem: e.to_string() })?;
            open(settings, bank.as_ref())
        }
        FormatOpener::Chat(open) => {
            let reader = open(settings).map_err(|error| beside_archives(error, &archives))?;
            let source = ChatSource::open(reader, settings, name)?.beside_archives(&settings.path, &archives);
            let nothing = || beside_archives(not_of(&format, &settings.path), &archives);
            Ok(Box::new(if is_recognised { source } else { source.expecting_items(nothing()) }))
        }
    }
}

/// The error for a file in which a reader found nothing of its format.
fn not_of(format: &SourceFormat, path: &Path) -> SourceError {
    SourceError::Format {
        path: path.to_owned(),
        line: 1,
        column: 1,
        problem: format!("it holds nothing in the format {} ({})", format.name, format.about),
        remedy: "name such an export, or the format that it has",
    }
}

/// The error for an export that cannot be read, with the archives in it, which may hold what is missing.
fn beside_archives(error: SourceError, archives: &[String]) -> SourceError {
    match error {
        SourceError::Format { path, line, column, problem, remedy } => {
            let problem = format!("{problem}{}", unopened(archives));
            SourceError::Format { path, line, column, problem, remedy }
        }
        error => error,
    }
}

/// An addition to a message that names the archives inside an export; empty if there are none.
fn unopened(archives: &[String]) -> String {
    if archives.is_empty() {
        return String::new();
    }
    format!(" (archives inside it are not opened: {}; unpack them and name the folder)", first_names(archives))
}

/// The named format, if the file may have it; if none is named, the format that the file looks like. Also returns
/// whether the file looks like that format (if it does not, the reader has to find something in it), and the names of
/// the archives inside it.
fn format_of(
    named: Option<SourceFormat>,
    settings: &SourceSettings,
) -> Result<(SourceFormat, bool, Vec<String>), SourceError> {
    if settings.path == Path::new("-") {
        return match named {
            Some(named) if named.standard_input => Ok((named, true, Vec::new())),
            Some(SourceFormat { name, .. }) => {
                Err(SourceError::Settings { key: "path", problem: format!("{name} is read from a file; name it") })
            }
            None => {
                let problem = format!("the format of standard input cannot be recognised; name it instead of {AUTO}");
                Err(SourceError::Settings { key: "format", problem })
            }
        };
    }
    if let Some(named) = named
        && named.name == AGENTS
    {
        // A home directory is not walked to recognise it.
        return Ok((named, true, Vec::new()));
    }
    let sample = FileSample::of(&settings.path)?;
    let archives = sample.archives();
    if let Some(named) = named
        && (named.looks_like)(&sample)
    {
        return Ok((named, true, archives));
    }
    let likely: Vec<SourceFormat> = FORMATS.iter().filter(|format| (format.looks_like)(&sample)).copied().collect();
    let names: Vec<&str> = likely.iter().map(|format| format.name).collect();
    let path = settings.path.display();
    let problem = match (named, &likely[..]) {
        // A file that no format recognises is read in the named format: the reader says what is wrong with it.
        (Some(named), []) => return Ok((named, false, archives)),
        (None, [one]) => return Ok((*one, true, archives)),
        (Some(named), _) => {
            format!("{path} is not {}; it looks like {}: name that format, or {AUTO}", named.name, join(&names, " or "))
        }
        (None, []) => {
            format!("{path} has no known format{}; write one of {}", unopened(&archives), format_names(", "))
        }
        (None, _) => format!("{path} may be {}; name one of them", join(&names, " or ")),
    };
    Err(SourceError::Settings { key: "format", problem })
}

/// Refuses settings that only chat exports have.
fn refuse_chat_settings(name: &str, settings: &SourceSettings) -> Result<(), SourceError> {
    let given = [
        ("except", !settings.except.is_empty()),
        ("include", !settings.include.is_empty()),
        ("aliases", settings.aliases.is_some()),
        ("redact", !settings.redact.is_empty()),
        ("date_order", settings.date_order.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((key, _)) => {
            Err(SourceError::Settings { key, problem: format!("{name} is not a chat export; leave it out") })
        }
    }
}

fn join(names: &[&str], last_separator: &str) -> String {
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{}{last_separator}{last}", others.join(", ")),
        _ => names.concat(),
    }
}
