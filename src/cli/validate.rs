//! `ripplemem validate`.
//!
//! In: a pipeline file. Out: whether it is valid, its models can be loaded, the key of its language model is set, the
//! files of `[forget]` are as they must be, and under which settings words of deleted turns never leave Kafka's topics.
//! Sends nothing to a language model.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::Args;
use models::llm::Llm;
use nouns::config::LogKind;
use ripplemem::{log, pipeline};
use terminal::{print, read_pipeline};

const HOUR_MS: u64 = 3_600_000;

/// Check a pipeline file, and that its model can be loaded.
#[derive(Args)]
pub(crate) struct Validate {
    /// The pipeline file.
    pipeline: PathBuf,
    /// Check only the file.
    #[arg(long, conflicts_with = "topics")]
    file_only: bool,
    /// Also ask the Kafka cluster when words of deleted turns leave the topics that exist.
    #[arg(long)]
    topics: bool,
}

impl Validate {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let pipeline = read_pipeline(&self.pipeline)?;
        print(&format!("{}: valid (profile {})\n", self.pipeline.display(), pipeline.profile))?;
        for setting in pipeline.log.unbounded() {
            print(&format!("forgetting: {setting}\n"))?;
        }
        if self.file_only {
            return Ok(ExitCode::SUCCESS);
        }
        if self.topics && pipeline.log.kind == LogKind::Kafka {
            let leaving = log::topics_leaving(&pipeline.log)?;
            for topic in &leaving.never {
                print(&format!("forgetting: {topic}\n"))?;
            }
            if leaving.never.is_empty() {
                let hours = leaving.within_ms.div_ceil(HOUR_MS);
                print(&format!("forgetting: words of deleted turns leave the topics within {hours} hours\n"))?;
            }
        }
        pipeline::check_forgetting(&pipeline)?;
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
