//! The arguments that say which memory a command works on.
//!
//! In: `--pipeline`, `--data` and `--snapshots`. Out: a pipeline. Without any of them, the log is in the user's own
//! data directory, so that a command finds the same memory wherever it is called; a `ripplemem-data` in the working
//! directory takes precedence.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use models::embed::asset_paths;
use terminal::pipeline_or_defaults;
use types::config::{Pipeline, SnapshotSettings};

/// Which memory a command works on.
#[derive(Args)]
pub(crate) struct MemoryArgs {
    /// A pipeline file. Without it, the defaults.
    #[arg(long)]
    pipeline: Option<PathBuf>,
    /// The directory of the log, instead of the pipeline's. Without both, ripplemem-data in the working directory if
    /// that exists, otherwise $XDG_DATA_HOME/ripplemem/memory (~/.local/share/ripplemem/memory).
    #[arg(long)]
    data: Option<PathBuf>,
    /// The place of the snapshots, instead of the pipeline's: a directory, or s3://BUCKET/PREFIX, gs://… or az://….
    #[arg(long)]
    snapshots: Option<String>,
}

impl MemoryArgs {
    /// The pipeline that the arguments describe.
    pub(crate) fn pipeline(&self) -> Result<Pipeline> {
        let mut pipeline = pipeline_or_defaults(self.pipeline.as_deref())?;
        match &self.data {
            Some(data) => pipeline.log.directory.clone_from(data),
            None if self.pipeline.is_none() => pipeline.log.directory = own_directory(pipeline.log.directory),
            None => {}
        }
        if let Some(snapshots) = &self.snapshots {
            SnapshotSettings::check(snapshots).map_err(|problem| anyhow::anyhow!("--snapshots: {problem}"))?;
            pipeline.snapshot.directory.clone_from(snapshots);
        }
        Ok(pipeline)
    }
}

/// The log's directory if none is named: `here` in the working directory if it exists, otherwise the user's.
fn own_directory(here: PathBuf) -> PathBuf {
    match asset_paths::of_user() {
        Some(user) if !here.is_dir() => user.join("memory"),
        _ => here,
    }
}
