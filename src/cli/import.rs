//! `ripplemem import`.
//!
//! In: a file that `export` wrote. Out: its bank in this log, and whether its digest is the same.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::Args;
use ripplemem::ImportReport;
use terminal::{print, say, with_progress};

use super::{export::export_digest_text, memory_args::MemoryArgs};

/// Write an exported bank into a log of either kind, even while a service runs on it. After an interruption, run it
/// again: it continues.
#[derive(Args)]
pub(crate) struct ImportArgs {
    /// The file that `export` wrote.
    file: PathBuf,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl ImportArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let pipeline = self.memory.pipeline()?;
        let ImportReport { header, written, already_there, digest, exported, differing, is_recognised } =
            with_progress(|progress| ripplemem::import(&pipeline, &self.file, progress))?;
        print(&format!(
            "bank {}: {written} records written, {already_there} were already there; {}\n",
            header.bank,
            export_digest_text(&digest)
        ))?;
        if !is_recognised {
            say(
                "phone numbers and mail addresses in the ids of this bank are hidden with another salt than this log's: a \
                 chat export that is read into the bank again is stored a second time; read it where the bank comes from",
            );
        }
        if digest == exported {
            print("the same digest as in the log that it comes from\n")?;
            return Ok(ExitCode::SUCCESS);
        }
        let number = |value: Option<f64>| value.map_or_else(|| "unknown".to_owned(), |value| value.to_string());
        let settings: Vec<String> = differing
            .iter()
            .map(|(name, there, here)| format!("{name} ({} there, {} here)", number(*there), number(*here)))
            .collect();
        print(&format!(
            "the same units (hash {}); its edges depend on settings that differ: {}. In the other log it was: {}\n",
            digest.units_hash,
            settings.join(", "),
            export_digest_text(&exported)
        ))?;
        Ok(ExitCode::SUCCESS)
    }
}
