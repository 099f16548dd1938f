//! `ripplemem repair`.
//!
//! In: a log on Kafka, and for a change the record and what is to stand there. Out: the records of its own topics that
//! say where it is and cannot be read, each with what may be written instead; or the new record. Exit code 3 while
//! there is such a record.

use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use nouns::config::LogKind;
use ripplemem::log::kafka::{UnreadableRecord, replace, unreadable_records};
use serde_json::json;

use super::{
    exit_code::REJECTED,
    memory_arguments::MemoryArguments,
    output::{print, say},
};

/// Show the records on Kafka at which a partition stands still because they cannot be read, and write what is to
/// stand there.
#[derive(Args)]
pub(crate) struct Repair {
    /// The record to replace, as the list names it: TOPIC/PARTITION/OFFSET.
    #[arg(long)]
    record: Option<String>,
    /// Remove it.
    #[arg(long, requires = "record", conflicts_with = "value")]
    remove: bool,
    /// Write this in its place.
    #[arg(long, requires = "record")]
    value: Option<String>,
    /// Print JSON, one record a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    memory: MemoryArguments,
}

impl Repair {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let log = self.memory.pipeline()?.log;
        if log.kind != LogKind::Kafka {
            bail!(
                "log.kind is \"embedded\": only this program writes there; where bytes were damaged, put back a copy of {}",
                log.directory.display()
            );
        }
        let mut found = unreadable_records(&log)?;
        if let Some(name) = &self.record {
            let record = found.iter().find(|record| name_of(record) == *name);
            let record = record.with_context(|| {
                format!("{name}: no record of this name waits to be replaced; `ripplemem repair` lists those that do")
            })?;
            ensure!(
                self.remove || self.value.is_some(),
                "{name}: say what is to stand there with --value, or --remove it; {}",
                record.remedy
            );
            replace(&log, record, self.value.as_deref().map(str::as_bytes))?;
            let done = if self.remove { "is removed" } else { "is replaced" };
            say(&format!("{name} {done}; a running service goes on within some seconds"));
            found.retain(|record| name_of(record) != *name);
        }
        for record in &found {
            print(&format!("{}\n", if self.json { in_json(record) } else { in_words(record) }))?;
        }
        Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(REJECTED) })
    }
}

fn name_of(UnreadableRecord { topic, partition, offset, .. }: &UnreadableRecord) -> String {
    format!("{topic}/{partition}/{offset}")
}

fn in_json(record: &UnreadableRecord) -> String {
    let UnreadableRecord { topic, partition, offset, key, value, what, problem, remedy } = record;
    let value = value.as_deref().map(readable);
    json!({
        "record": name_of(record), "topic": topic, "partition": partition, "offset": offset, "key": readable(key),
        "value": value, "what": what, "problem": problem, "remedy": remedy,
    })
    .to_string()
}

fn in_words(record: &UnreadableRecord) -> String {
    let UnreadableRecord { key, value, what, problem, remedy, .. } = record;
    let value = value.as_deref().map_or_else(|| "none".to_owned(), readable);
    format!("{}: {what}\n  key: {}\n  value: {value}\n  {problem}\n  {remedy}", name_of(record), readable(key))
}

/// Text as it stands, anything else in hexadecimal digits.
fn readable(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}
