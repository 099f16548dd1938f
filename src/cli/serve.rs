//! `ripplemem serve`.
//!
//! In: a directory, or a pipeline file with an embedded log. Out: a service that takes turns and answers
//! questions over HTTP until it is stopped.

use std::{
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::{Context, Result};
use clap::Args;
use nouns::config::{LogKind, Pipeline};

use tracing::info;

use super::{logs::name_banks_of, memory_arguments::MemoryArguments, progress_bar::with_progress};

/// The address at which a memory is served if none is named.
pub(super) const LISTEN: &str = "127.0.0.1:8321";

/// Keep a memory open: take turns and answer questions over HTTP (docs/http.md) until stopped, and follow
/// the [[source]]s of its pipeline. Other commands on the same directory reach this process.
#[derive(Args)]
pub(crate) struct Serve {
    /// Address and port, instead of the pipeline's http.listen. Without both, 127.0.0.1:8321.
    #[arg(long)]
    listen: Option<String>,
    #[command(flatten)]
    memory: MemoryArguments,
}

impl Serve {
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

/// A flag that a signal to end sets.
pub(super) fn stop_by_signal() -> Result<&'static AtomicBool> {
    let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    ctrlc::set_handler(|| stop.store(true, Ordering::Relaxed)).context("signals cannot be handled")?;
    Ok(stop)
}
