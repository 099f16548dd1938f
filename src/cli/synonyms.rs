//! `ripplemem synonyms`, for developers.
//!
//! In: a model. Out: `src/language/synonyms.txt`, from the model's word vectors.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::Args;
use ripplemem::pipeline;

use super::memory_arguments::pipeline_or_defaults;

/// Generate the table of synonyms from the model's word vectors (for developers).
#[derive(Args)]
#[command(hide = true)]
pub(crate) struct Synonyms {
    /// The file to write: src/language/synonyms.txt.
    #[arg(long)]
    write: PathBuf,
    /// A pipeline file that names the model. Without it, the defaults.
    #[arg(long)]
    pipeline: Option<PathBuf>,
}

impl Synonyms {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let pipeline = pipeline_or_defaults(self.pipeline.as_deref())?;
        let table = pipeline::synonym_table(&pipeline)?;
        std::fs::write(&self.write, table).with_context(|| self.write.display().to_string())?;
        Ok(ExitCode::SUCCESS)
    }
}
