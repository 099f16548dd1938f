//! Recognises which of Discord's exports a path holds, and opens it.
//!
//! In: a path. Out: a reader of DiscordChatExporter's JSON or of a data package; if it is neither, an error that names
//! the right export.

use super::{exporter::DiscordExporterReader, package::DiscordPackageReader};
use crate::{
    SourceError,
    chat::{ChatReader, ExportTree, FileSample, TimeOrderedReader, has_json_keys},
    format::{FormatOpener, SourceFormat},
};
use types::config::SourceSettings;

/// Discord.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "discord",
    about: "DiscordChatExporter's JSON, or Discord's data package",
    standard_input: false,
    only: Some("channels"),
    looks_like,
    open: FormatOpener::Chat(open),
};

const REMEDY: &str = "export the channels with DiscordChatExporter as JSON (--format Json), or name the data package";

fn looks_like(sample: &FileSample) -> bool {
    if sample.is_file() {
        return is_export(sample.head()) || is_table(sample.head());
    }
    let is_json = |name: &&str| name.ends_with(".json");
    DiscordPackageReader::is_one(sample.entries())
        || sample.entries().filter(is_json).take(20).any(|name| is_export(&sample.head_of(name)))
}

fn open(settings: &SourceSettings) -> Result<Box<dyn ChatReader>, SourceError> {
    let tree = ExportTree::open(&settings.path)?;
    let unknown = |problem: &str| SourceError::Format {
        path: settings.path.clone(),
        line: 1,
        column: 1,
        problem: problem.to_owned(),
        remedy: REMEDY,
    };
    if tree.is_file() {
        let sample = FileSample::of(&settings.path)?;
        if is_table(sample.head()) {
            let is_csv = !sample.head().trim_start().starts_with('[');
            return Ok(Box::new(TimeOrderedReader::new(DiscordPackageReader::open_table(tree, is_csv))));
        }
        if !is_export(sample.head()) {
            return Err(unknown("not an export of Discord as JSON"));
        }
    } else if DiscordPackageReader::is_one(tree.entries().iter().map(|entry| entry.name.as_str())) {
        let package = DiscordPackageReader::open(tree)?.ok_or_else(|| unknown("a data package without messages"))?;
        return Ok(Box::new(TimeOrderedReader::new(package)));
    }
    let is_single = tree.is_file();
    let names = tree.entries().iter().map(|entry| entry.name.clone());
    let names: Vec<String> = names.filter(|name| is_single || name.ends_with(".json")).collect();
    DiscordExporterReader::open(tree, &names)?.ok_or_else(|| unknown("holds no export of Discord as JSON"))
}

/// Whether a file begins like one of DiscordChatExporter.
fn is_export(head: &str) -> bool {
    has_json_keys(head, &["guild", "channel", "messages"])
}

/// Whether a file begins like a channel's table in a data package.
fn is_table(head: &str) -> bool {
    has_json_keys(head, &["ID", "Timestamp", "Contents"]) || head.starts_with("ID,Timestamp,Contents")
}
