//! `ripplemem validate`.
//!
//! In: a pipeline file. Out: whether it is valid, this build has what it asks for, its models can be loaded, the key of
//! its language model is set, and the files of `[forget]` can be used. Names the settings under which words of deleted
//! turns never leave Kafka's topics. Sends nothing to a language model.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Result, bail};
use clap::Args;
use models::llm::LlmClient;
use terminal::{print, read_pipeline};
use types::config::{LogKind, Pipeline};

const HOUR_MS: u64 = 3_600_000;

/// Check a pipeline file, and that its model can be loaded.
#[derive(Args)]
pub(crate) struct ValidateArgs {
    /// The pipeline file.
    pipeline: PathBuf,
    /// Check only the file.
    #[arg(long, conflicts_with = "topics")]
    file_only: bool,
    /// Also ask the Kafka cluster when words of deleted turns leave the topics that exist.
    #[arg(long)]
    topics: bool,
}

impl ValidateArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let pipeline = read_pipeline(&self.pipeline)?;
        print(&format!("{}: valid (profile {})\n", self.pipeline.display(), pipeline.profile))?;
        for setting in pipeline.log.unbounded_topic_warnings() {
            print(&format!("forgetting: {setting}\n"))?;
        }
        let lacking = lacking(&pipeline, &BUILT);
        for lack in &lacking {
            print(&format!("this build: {lack}\n"))?;
        }
        // A file may be checked here and run elsewhere.
        if self.file_only {
            return Ok(ExitCode::SUCCESS);
        }
        if let [first, ..] = &lacking[..] {
            bail!("{}: this build cannot run it: {first}", self.pipeline.display());
        }
        if self.topics && pipeline.log.kind == LogKind::Kafka {
            let leaving = logs::topic_retention(&pipeline.log)?;
            for topic in &leaving.never {
                print(&format!("forgetting: {topic}\n"))?;
            }
            if leaving.never.is_empty() {
                let hours = leaving.within_ms.div_ceil(HOUR_MS);
                print(&format!("forgetting: words of deleted turns leave the topics within {hours} hours\n"))?;
            }
        }
        erasure::check_forgetting(&pipeline)?;
        print(&format!("model: {}\n", ripplemem::check_model(&pipeline)?))?;
        if let Some(reranker) = ripplemem::check_reranker(&pipeline)? {
            print(&format!("reranker: {reranker}\n"))?;
        }
        if pipeline.llm.is_set() {
            let llm = LlmClient::open(&pipeline.llm, None)?;
            llm.check_key()?;
            print(&format!("language model: {} at {} (not asked)\n", pipeline.llm.model, llm.url()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The features of this build that a pipeline file may ask for.
const BUILT: BuildFeatures =
    BuildFeatures { kafka: cfg!(feature = "kafka"), buckets: cfg!(feature = "buckets"), llm: cfg!(feature = "llm") };

struct BuildFeatures {
    kafka: bool,
    buckets: bool,
    llm: bool,
}

/// What a pipeline file asks for and this build lacks, each with the builds that have it.
fn lacking(pipeline: &Pipeline, built: &BuildFeatures) -> Vec<String> {
    let asked = [
        (pipeline.log.kind == LogKind::Kafka, built.kafka, "log.kind: no Kafka"),
        (pipeline.snapshot.directory.contains("://"), built.buckets, "snapshot.directory: no buckets"),
        (pipeline.llm.is_set(), built.llm, "[llm]: no language models"),
    ];
    let lacks = asked.into_iter().filter(|(asked, built, _)| *asked && !built);
    let others = "`cargo build` and the packages have it, the program of `make demo` has not (docs/install.md)";
    lacks.map(|(_, _, what)| format!("{what}; {others}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_says_what_it_lacks_of_a_file() {
        let none = BuildFeatures { kafka: false, buckets: false, llm: false };
        let all = BuildFeatures { kafka: true, buckets: true, llm: true };
        for (file, named) in [
            ("version = 1", None),
            (
                "version = 1\nlog.kind = \"kafka\"\nlog.kafka.brokers = \"a:9092\"",
                Some("log.kind: no Kafka; `cargo build"),
            ),
            ("version = 1\nsnapshot.directory = \"s3://b/x\"", Some("snapshot.directory")),
            ("version = 1\nllm.endpoint = \"http://a/v1\"\nllm.model = \"m\"", Some("[llm]")),
        ] {
            let pipeline = Pipeline::parse(file).unwrap();
            let lacks = lacking(&pipeline, &none);
            assert_eq!(lacks.len(), usize::from(named.is_some()), "{lacks:?}");
            assert!(named.is_none_or(|word| lacks[0].starts_with(word)), "{lacks:?}");
            assert!(lacking(&pipeline, &all).is_empty());
        }
    }
}
