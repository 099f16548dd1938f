//! `ripplemem validate`.
//!
//! In: a pipeline file. Out: whether it is valid, its models can be loaded, and the key of its
//! language model is set. Sends nothing to a language model.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::Args;
use models::llm::Llm;
use ripplemem::pipeline;

use super::{output::print, pipeline_file::read_pipeline};

/// Check a pipeline file, and that its model can be loaded.
#[derive(Args)]
pub(crate) struct Validate {
    /// The pipeline file.
    pipeline: PathBuf,
    /// Check only the file.
    #[arg(long)]
    file_only: bool,
}

impl Validate {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let pipeline = read_pipeline(&self.pipeline)?;
        print(&format!("{}: valid (profile {})\n", self.pipeline.display(), pipeline.profile))?;
        if self.file_only {
            return Ok(ExitCode::SUCCESS);
        }
        print(&format!("model: {}\n", pipeline::check_model(&pipeline)?))?;
        if let Some(reranker) = pipeline::check_reranker(&pipeline)? {
            print(&format!("reranker: {reranker}\n"))?;
        }
        if pipeline.llm.is_set() {
            let llm = Llm::open(&pipeline.llm, None)?;
            llm.check_key()?;
            print(&format!("language model: {} at {} (not asked)\n", pipeline.llm.model, llm.url()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
