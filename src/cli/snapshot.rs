//! `ripplemem snapshot`.
//!
//! In: a memory. Out: a snapshot of it. With the log on Kafka a running service writes it,
//! since two writers into one place would disturb each other.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ripplemem::{config::LogKind, pipeline};

use super::{
    memory_arguments::MemoryArguments,
    output::{print, say},
    progress_bar::with_progress,
    service_request::{Unreachable, WORK_TIMEOUT, request},
};

/// Write a snapshot of the memory to the place that the pipeline names. With the log on Kafka,
/// the service at metrics.listen writes it, if one answers there.
#[derive(Args)]
pub(crate) struct Snapshot {
    #[command(flatten)]
    memory: MemoryArguments,
}

impl Snapshot {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let pipeline = self.memory.pipeline()?;
        let directory = &pipeline.snapshot.directory;
        if directory.is_empty() {
            anyhow::bail!("snapshot.directory: empty; name a place in the pipeline file, or with --snapshots");
        }
        let listen = &pipeline.metrics.listen;
        if pipeline.log.kind == LogKind::Kafka && !listen.is_empty() {
            match request("POST", &format!("http://{listen}/snapshot"), "", WORK_TIMEOUT) {
                Err(error) if error.is::<Unreachable>() => {
                    say(&format!("{error:#}; this process writes the snapshot instead"));
                }
                response => {
                    print(&format!("{}\n", response?))?;
                    return Ok(ExitCode::SUCCESS);
                }
            }
        }
        let taken = with_progress(|progress| pipeline::take_snapshot(&pipeline, &mut |what| say(what), progress))?;
        print(&format!("{directory}: {}\n", taken.summary()))?;
        Ok(ExitCode::SUCCESS)
    }
}
