//! `ripplemem export`.
//!
//! In: a bank. Out: a file with everything that the memory holds about it; exit code 3 if one of its records cannot be
//! read.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::Args;
use nouns::model::{Bank, ExportDigest};
use ripplemem::pipeline::{self, ExportReport};

use super::{
    exit_code::REJECTED,
    memory_arguments::MemoryArguments,
    output::{print, say, say_unreadable},
    progress_bar::with_progress,
};

/// Write what the memory holds about a bank into a file, to move the bank into another log.
#[derive(Args)]
pub(crate) struct Export {
    /// The bank.
    #[arg(long)]
    bank: String,
    /// The file: JSON Lines (schemas/bank.v1.json), compressed if its name ends in .zst.
    #[arg(long)]
    to: PathBuf,
    #[command(flatten)]
    memory: MemoryArguments,
}

impl Export {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let (pipeline, bank, to) = (self.memory.pipeline()?, Bank::parse(&self.bank)?, &self.to);
        let ExportReport { records, digest, lag, unreadable } =
            with_progress(|progress| pipeline::export(&pipeline, &bank, to, progress))?;
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
                 file: export again once `ripplemem lag` shows 0"
            ));
        }
        Ok(if unreadable.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(REJECTED) })
    }
}

/// The counts and the hash of an export, in words.
pub(crate) fn export_digest_text(digest: &ExportDigest) -> String {
    let ExportDigest { units, semantic_edges, structural_edges, hash, .. } = digest;
    format!("{units} units, {semantic_edges} semantic edges, {structural_edges} structural edges, hash {hash}")
}
