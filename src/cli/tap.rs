//! `ripplemem tap`.
//!
//! In: a topic of the log. Out: its records as JSON, one per line, without vectors.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use terminal::print;
use types::config::LogKind;

use super::{
    memory_access::{TopicAccess, open_topic},
    memory_args::MemoryArgs,
};

/// Print the records of a topic of the log: one JSON object per record, without vectors.
#[derive(Args)]
pub(crate) struct TapArgs {
    /// turns, memory or dead-letters; on Kafka also questions, answers or edges.
    topic: String,
    /// Only the last LAST offsets of each partition. On Kafka, transaction markers count as offsets.
    #[arg(long)]
    last: Option<usize>,
    /// Continue with new records until stopped, if a service writes the log.
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl TapArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let (pipeline, topic) = (self.memory.pipeline()?, self.topic.as_str());
        let known = if pipeline.log.kind == LogKind::Kafka { &server::TOPICS[..] } else { &server::TOPICS[..3] };
        if !known.contains(&topic) {
            anyhow::bail!("{topic:?} is not a topic of this log; write one of {}", known.join(", "));
        }
        let (view, place) = open_topic(&pipeline.log, topic)?;
        // Nobody writes to a directory while this command has it open.
        let follow = self.follow && place == TopicAccess::Shared;
        let mut printed = Ok(());
        server::tap(view, topic, self.last, follow, &mut |record| {
            printed = serde_json::to_string(record).map_err(Into::into).and_then(|line| print(&format!("{line}\n")));
            printed.is_ok()
        })?;
        printed.map(|()| ExitCode::SUCCESS)
    }
}
