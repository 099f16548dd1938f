//! `ripplemem reembed`.
//!
//! In: a memory whose vectors are of another model. Out: a memory with vectors of the pipeline's
//! model, to which questions are switched at the end; exit code 3 if a record could not be read.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ripplemem::ReembedReport;
use terminal::{REJECTED, print, say, say_unreadable, with_progress};

use super::memory_args::MemoryArgs;

/// Compute the memory's vectors again with the model that the pipeline names, and switch to it.
/// Questions are answered from the old vectors until then. After an interruption, run it again: it continues.
#[derive(Args)]
pub(crate) struct ReembedArgs {
    /// Remove the memory of the old model afterwards, with its snapshots.
    #[arg(long)]
    drop_old: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl ReembedArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let pipeline = self.memory.pipeline()?;
        let ReembedReport { from, to, name, windows, written, dropped, kept, unreadable } =
            with_progress(|progress| ripplemem::reembed(&pipeline, self.drop_old, progress))?;
        say_unreadable(&unreadable, "copied as it is; its bank stays quarantined");
        let unread = match unreadable.len() {
            0 => String::new(),
            unread => format!("; {unread} unreadable records were copied as they are"),
        };
        match from {
            Some(from) => print(&format!(
                "{name}: {windows} records with vectors of {} instead of {}, {written} of them written in this \
                 run{unread}\n",
                to.name, from.name
            ))?,
            None => print(&format!("{name}: nothing to do, no vector is of another model than {}\n", to.name))?,
        }
        for name in dropped {
            print(&format!("{name}: removed\n"))?;
        }
        if kept {
            say(
                "the memory of the old model is kept, and later deletions do not reach it. When you no longer need it, \
                 remove it and its snapshots with `ripplemem reembed --drop-old` and the same pipeline",
            );
        }
        Ok(if unreadable.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(REJECTED) })
    }
}
