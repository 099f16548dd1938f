//! `ripplemem repair`.
//!
//! In: a log on Kafka, and for a change the record and its new value. Out: the records of its own topics that cannot be
//! read, each with what may be written instead; or the new record. Exit code 3 while there is such a record.

use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use logs::kafka::UnreadableKafkaRecord;
use ripplemem::{replace_record, unreadable_records};
use serde_json::json;
use terminal::{REJECTED, print, say};
use types::config::LogKind;

use super::memory_args::MemoryArgs;

/// The bytes of a value that are shown.
const SHOWN: usize = 1_000;

/// Show the records on Kafka that block a bank or a partition because they cannot be read, and write new values.
#[derive(Args)]
pub(crate) struct RepairArgs {
    /// The record to replace, as the list names it: TOPIC/PARTITION/OFFSET.
    #[arg(long)]
    record: Option<String>,
    /// Remove it.
    #[arg(long, requires = "record", conflicts_with = "value")]
    remove: bool,
    /// Write this value in its place.
    #[arg(long, requires = "record")]
    value: Option<String>,
    /// Print JSON, one record per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl RepairArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let log = self.memory.pipeline()?.log;
        if log.kind != LogKind::Kafka {
            bail!(
                "log.kind is \"embedded\": only this program writes to this log; if bytes in it were damaged, restore \
                 {} from a copy",
                log.directory.display()
            );
        }
        let mut found = unreadable_records(&log)?;
        if let Some(name) = &self.record {
            let record = found.iter().find(|record| name_of(record) == *name);
            let record = record.with_context(|| {
                format!("{name}: no record of this name has to be replaced; `ripplemem repair` lists those that do")
            })?;
            ensure!(
                self.remove || self.value.is_some(),
                "{name}: give the new value with --value, or remove the record with --remove; {}",
                record.remedy
            );
            replace_record(&log, record, self.value.as_deref().map(str::as_bytes))?;
            let done = if self.remove { "is removed" } else { "is replaced" };
            say(&format!("{name} {done}; a running service continues within a few seconds"));
            found.retain(|record| name_of(record) != *name);
        }
        for record in &found {
            print(&format!("{}\n", if self.json { in_json(record) } else { in_words(record) }))?;
        }
        Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(REJECTED) })
    }
}

fn name_of(UnreadableKafkaRecord { topic, partition, offset, .. }: &UnreadableKafkaRecord) -> String {
    format!("{topic}/{partition}/{offset}")
}

fn in_json(record: &UnreadableKafkaRecord) -> String {
    let UnreadableKafkaRecord { topic, partition, offset, key, value, what, problem, remedy } = record;
    let value = value.as_deref().map(readable);
    json!({
        "record": name_of(record), "topic": topic, "partition": partition, "offset": offset, "key": readable(key),
        "value": value, "what": what, "problem": problem, "remedy": remedy,
    })
    .to_string()
}

fn in_words(record: &UnreadableKafkaRecord) -> String {
    let UnreadableKafkaRecord { key, value, what, problem, remedy, .. } = record;
    let value = value.as_deref().map_or_else(|| "none".to_owned(), beginning);
    format!("{}: {what}\n  key: {}\n  value: {value}\n  {problem}\n  {remedy}", name_of(record), readable(key))
}

/// The beginning of a value as [`readable`], since a record of the memory topic may have megabytes.
fn beginning(bytes: &[u8]) -> String {
    let whole = readable(bytes);
    match whole.get(..whole.floor_char_boundary(SHOWN)).filter(|begin| begin.len() < whole.len()) {
        Some(begin) => format!("{begin}… ({} bytes in all)", bytes.len()),
        None => whole,
    }
}

/// Text unchanged, anything else in hexadecimal digits.
fn readable(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}
