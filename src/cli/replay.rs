//! `ripplemem replay`.
//!
//! In: a topic of the log. Out: Parquet files with its records, which continue where the last run into the directory
//! ended.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::Args;
use pipeline::Progress;
use ripplemem::{ReplayRequest, TopicReplay as RunningReplay};
use snapshots::ArchiveTable;
use terminal::{print, say, with_progress};

use super::{memory_access::open_topic, memory_args::MemoryArgs};

/// Write a topic of the log as Parquet, continuing where the last run into the directory ended.
#[derive(Args)]
pub(crate) struct ReplayArgs {
    /// The directory. Each topic gets a directory inside it.
    #[arg(long)]
    to: PathBuf,
    /// Where a new directory begins: earliest, an offset of each partition, or a time of appending in
    /// RFC 3339. A directory that holds a replay continues where it ended.
    #[arg(long)]
    from: Option<String>,
    /// turns, memory or dead-letters.
    #[arg(long, default_value = "turns")]
    topic: String,
    /// Only this partition.
    #[arg(long)]
    partition: Option<u32>,
    /// Make a directory for each bank.
    #[arg(long)]
    by_bank: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl ReplayArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let table = ArchiveTable::parse(&self.topic).with_context(|| {
            let known: Vec<&str> = ArchiveTable::ALL.iter().map(|t| t.name()).collect();
            format!("--topic {:?} cannot be replayed; write one of {}", self.topic, known.join(", "))
        })?;
        let (to, from) = (&*self.to, self.from.as_deref());
        let request = ReplayRequest { table, to, partition: self.partition, from, by_bank: self.by_bank };
        let log = self.memory.pipeline()?.log;
        let (view, _) = open_topic(&log, table.name())?;
        let mut replay = RunningReplay::of(view, log.kafka.expired, &request)?;
        if let Some(notice) = replay.notice() {
            say(notice);
        }
        let (total, files_before) = (replay.left(), replay.index().files.len());
        let mut rows = 0;
        with_progress(|progress| -> Result<()> {
            loop {
                let read = replay.step(false)?;
                if read == 0 {
                    break;
                }
                rows += read;
                let done = total.saturating_sub(replay.left());
                progress(Progress { doing: "replaying", done, total: Some(total), unit: "offsets" });
            }
            Ok(replay.finish()?)
        })?;
        let held = replay.index();
        let next: Vec<String> = held.next.iter().map(|(partition, next)| format!("{partition}:{next}")).collect();
        print(&format!(
            "{}: {rows} records read, {} files more, {} rows in {} files in all; goes on at {}\n",
            held.topic,
            held.files.len() - files_before,
            held.files.iter().map(|file| file.rows).sum::<u64>(),
            held.files.len(),
            next.join(", ")
        ))?;
        Ok(ExitCode::SUCCESS)
    }
}
