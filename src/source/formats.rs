//! The list of formats, from which sources are opened and the help is made.
//!
//! In: the name of a format and the settings of a source. Out: an open source, or an error that
//! names the key. A new format is a file with a `FORMAT`, its `mod` line, and its line here.

use std::path::Path;

use super::{error::SourceError, evermembench, format::SourceFormat, jsonl, locomo, longmemeval, turn_source::Source};
use crate::{config::SourceSettings, model::Bank};

/// Every format of turns, in the order of the help.
pub const FORMATS: [SourceFormat; 4] = [jsonl::FORMAT, locomo::FORMAT, longmemeval::FORMAT, evermembench::FORMAT];

/// The format of a name.
///
/// # Errors
/// [`SourceError::Settings`] with the names that are known.
pub fn format(name: &str) -> Result<SourceFormat, SourceError> {
    FORMATS.into_iter().find(|format| format.name == name).ok_or_else(|| SourceError::Settings {
        key: "format",
        problem: format!("{name:?} is not known; write one of {}", format_names(", ")),
    })
}

/// The names of all formats: separated by commas, the last two by `last_separator`.
#[must_use]
pub fn format_names(last_separator: &str) -> String {
    let names = FORMATS.map(|format| format.name);
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{}{last_separator}{last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// Opens the source that the settings name.
///
/// A record that names no bank gets `bank`. Where a file holds several conversations, `bank` is
/// the first part of each conversation's bank.
///
/// # Errors
/// [`SourceError`] when the file cannot be opened, is not of its format, or a setting
/// does not fit the format.
pub fn open(settings: &SourceSettings, bank: Option<&Bank>) -> Result<Box<dyn Source>, SourceError> {
    let format = format(&settings.format)?;
    let name = format.name;
    if !format.standard_input && settings.path == Path::new("-") {
        return Err(SourceError::Settings { key: "path", problem: format!("{name} is read from a file; name it") });
    }
    if format.only.is_none() && !settings.only.is_empty() {
        let problem = format!("{name} holds no conversations to choose from; leave it out");
        return Err(SourceError::Settings { key: "only", problem });
    }
    (format.open)(settings, bank)
}
