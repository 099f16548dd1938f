//! `ripplemem serve`.
//!
//! In: a directory, or a pipeline file with an embedded log. Out: a service that takes turns and answers
//! questions over HTTP until it is stopped.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use terminal::{LISTEN, name_banks_of, stop_by_signal, with_progress};
use tracing::info;
use types::config::{LogKind, Pipeline};

use super::memory_args::MemoryArgs;

/// Keep a memory open: take turns and answer questions over HTTP (docs/http.md) until stopped, and follow
/// the [[source]]s of its pipeline. Other commands on the same directory reach this process.
#[derive(Args)]
pub(crate) struct ServeArgs {
    /// Address and port, instead of the pipeline's http.listen. Without both, 127.0.0.1:8321.
    #[arg(long)]
    listen: Option<String>,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl ServeArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let mut pipeline = self.memory.pipeline()?;
        if pipeline.log.kind == LogKind::Kafka {
            anyhow::bail!("log.kind is \"kafka\": start `ripplemem run FILE`, which serves it over its topics");
        }
        if let Some(listen) = self.listen {
            pipeline.http.listen = listen;
            pipeline.http.check(&pipeline.access).map_err(anyhow::Error::msg)?;
        }
        serve_embedded(pipeline)
    }
}

/// Serves an embedded log until a signal stops it.
pub(crate) fn serve_embedded(mut pipeline: Pipeline) -> Result<ExitCode> {
    if pipeline.http.listen.is_empty() {
        LISTEN.clone_into(&mut pipeline.http.listen);
    }
    serve(&pipeline)
}

/// Runs a service until a signal stops it.
pub(crate) fn serve(pipeline: &Pipeline) -> Result<ExitCode> {
    let stop = stop_by_signal()?;
    name_banks_of(pipeline);
    with_progress(|progress| server::run(pipeline, stop, progress))?;
    info!("stopped");
    Ok(ExitCode::SUCCESS)
}
