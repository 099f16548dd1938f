//! `ripplemem run`.
//!
//! In: a pipeline file. Out: with an embedded log, its source read to the end; with `http.listen` or a
//! `[[source]]`, or with the log on Kafka, a service that runs until it is stopped.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::Args;
use terminal::read_pipeline;
use types::config::LogKind;

use super::{
    ingest::ingest,
    serve::{serve, serve_embedded},
};

/// Run a pipeline. With an embedded log, read its source to the end, then print what the memory holds. With
/// http.listen, a [[source]] or the log on Kafka, run until stopped.
#[derive(Args)]
pub(crate) struct RunArgs {
    /// The pipeline file.
    pipeline: PathBuf,
}

impl RunArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let pipeline = read_pipeline(&self.pipeline)?;
        if pipeline.log.kind == LogKind::Kafka {
            return serve(&pipeline);
        }
        if !pipeline.http.listen.is_empty() || !pipeline.live.is_empty() {
            return serve_embedded(pipeline);
        }
        let settings = pipeline.source.clone().context(
            "source: missing; add a [source] or a [[source]], or use `ingest`; or set http.listen, to run until \
             stopped",
        )?;
        ingest(&pipeline, &settings)
    }
}
