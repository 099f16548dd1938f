//! The settings that an evaluation measures.
//!
//! In: a pipeline file, or the name of a profile. Out: a pipeline.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use terminal::read_pipeline;
use types::config::Pipeline;

/// The options of the settings.
#[derive(Args)]
pub(crate) struct PipelineArgs {
    /// A pipeline file. Without it, the defaults. Its log is not touched.
    #[arg(long, conflicts_with = "profile")]
    pipeline: Option<PathBuf>,
    /// The profile: default, paper, paper-longmemeval or paper-evermembench.
    #[arg(long)]
    profile: Option<String>,
}

impl PipelineArgs {
    /// The pipeline of the file, or the defaults of the profile.
    pub(crate) fn read(&self) -> Result<Pipeline> {
        match &self.pipeline {
            Some(path) => Ok(read_pipeline(path)?),
            None => {
                let profile = self.profile.as_deref().unwrap_or("default");
                Pipeline::parse(&format!("version = 1\nprofile = {profile:?}")).map_err(anyhow::Error::msg)
            }
        }
    }
}
