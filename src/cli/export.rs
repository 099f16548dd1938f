//! `ripplemem export`.
//!
//! In: a bank. Out: a file with everything that the memory holds about it, also while a service has the log open; exit
//! code 3 if one of its records cannot be read.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Result;
use clap::Args;
use ripplemem::{ExportReport, TransferError};
use server::{MemoryHttpClient, open_http_bank};
use terminal::{REJECTED, print, say, say_unreadable, with_progress};
use types::{
    config::Pipeline,
    model::{Bank, ExportDigest},
};

use super::{
    memory_access::{lock_holder, status_of},
    memory_args::MemoryArgs,
};

/// How long an export waits for the turns that the service has not extracted yet.
const EXTRACTED: Duration = Duration::from_secs(10);

/// Write what the memory holds about a bank into a file, to move the bank into another log.
#[derive(Args)]
pub(crate) struct ExportArgs {
    /// The bank.
    #[arg(long)]
    bank: String,
    /// The file: JSON Lines (schemas/bank.v1.json), compressed if its name ends in .zst.
    #[arg(long)]
    to: PathBuf,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl ExportArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let (pipeline, bank, to) = (self.memory.pipeline()?, Bank::parse(&self.bank)?, &self.to);
        let exported = with_progress(|progress| ripplemem::export(&pipeline, &bank, to, progress));
        let holder = match &exported {
            Err(TransferError::Pipeline(error)) => lock_holder(error),
            _ => None,
        };
        let ExportReport { records, digest, lag, unreadable } = match holder {
            Some(process) => beside(process, &pipeline, &bank, to)?,
            None => exported?,
        };
        let bytes = std::fs::metadata(to).map_or(0, |file| file.len());
        say_unreadable(&unreadable, "not in the file");
        let lacking = match unreadable.len() {
            0 => String::new(),
            lacking => format!("; {lacking} unreadable records are not in the file"),
        };
        print(&format!(
            "{}: bank {bank}: {records} records, {:.1} MB; {}{lacking}\n",
            to.display(),
            bytes as f64 / 1e6,
            export_digest_text(&digest)
        ))?;
        if lag > 0 {
            say(&format!(
                "up to {lag} turns of the bank's partition are not extracted yet; those of this bank are not in the \
                 file: export again once they are"
            ));
        }
        Ok(if unreadable.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(REJECTED) })
    }
}

/// Exports from a log that another process has open.
fn beside(process: MemoryHttpClient, pipeline: &Pipeline, bank: &Bank, to: &Path) -> Result<ExportReport> {
    let started = Instant::now();
    let lag = loop {
        let behind = status_of(&process)?.behind;
        if behind == 0 || started.elapsed() > EXTRACTED {
            break behind;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let mut reader = open_http_bank(process, &pipeline.log.directory, bank)?;
    Ok(with_progress(|progress| ripplemem::export_online(pipeline, bank, to, &mut reader, lag, progress))?)
}

/// The counts and the hash of an export, in words.
pub(crate) fn export_digest_text(digest: &ExportDigest) -> String {
    let ExportDigest { units, semantic_edges, structural_edges, hash, .. } = digest;
    format!("{units} units, {semantic_edges} semantic edges, {structural_edges} structural edges, hash {hash}")
}
