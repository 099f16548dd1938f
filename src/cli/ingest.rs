//! `ripplemem ingest`.
//!
//! In: a source. Out: its turns in the memory; with the log on Kafka, in the turns topic, from
//! which a running service takes them. Exit code 3 when something was rejected.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use ripplemem::{
    config::{LogKind, Pipeline, SourceSettings},
    log::{KafkaLog, Log, Topic},
    model::Bank,
    pipeline::{Finished, Ingested, Progress},
    source::{self, Source},
};

use super::{
    digest::digest_text,
    exit_code::REJECTED,
    memory_arguments::MemoryArguments,
    model_reading::print_reading,
    open_memory::{open_memory, print_warnings},
    output::{print, say},
    progress_bar::with_progress,
    source_arguments::SourceArguments,
};

/// Read turns from a file or from standard input into the memory.
#[derive(Args)]
pub(crate) struct Ingest {
    #[command(flatten)]
    source: SourceArguments,
    #[command(flatten)]
    memory: MemoryArguments,
}

impl Ingest {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let (source, bank) = self.source.settings()?;
        ingest(&self.memory.pipeline()?, &source, bank.as_ref())
    }
}

/// Reads a source to its end.
pub(crate) fn ingest(pipeline: &Pipeline, settings: &SourceSettings, bank: Option<&Bank>) -> Result<ExitCode> {
    let mut source = source::open(settings, bank)?;
    if let Some(notice) = source.notice() {
        say(&notice);
    }
    if pipeline.log.kind == LogKind::Kafka {
        return append_to_kafka(pipeline, &mut *source);
    }
    let mut service = open_memory(pipeline)?;
    let ingested = with_progress(|progress| service.ingest(&mut *source, progress));
    print_warnings(&mut service);
    let Ingested { events, rejects, windows, units, by_model, refused } =
        ingested.with_context(|| source.describe())?;
    print(&format!(
        "{}: {events} events, {windows} windows closed, {units} units written, {rejects} rejected\n",
        source.describe()
    ))?;
    let finished = with_progress(|progress| service.finish(progress));
    print_warnings(&mut service);
    service.snapshot()?;
    let finished = finished?;
    let finished = Finished { read: finished.read + by_model, refused: finished.refused + refused, ..finished };
    let all_usable = print_reading(pipeline, &finished, "these windows keep the rules' units; the next run continues")?;
    print(&digest_text(&service, None, false)?)?;
    if !all_usable {
        say("some responses of the language model could not be used; the dead-letter topic says why");
    }
    if rejects > 0 {
        say(&format!(
            "{rejects} records were rejected; the dead-letter topic in {} says why",
            pipeline.log.directory.display()
        ));
        return Ok(ExitCode::from(REJECTED));
    }
    Ok(if all_usable { ExitCode::SUCCESS } else { ExitCode::from(REJECTED) })
}

/// Appends a source to the turns topic.
fn append_to_kafka(pipeline: &Pipeline, source: &mut dyn Source) -> Result<ExitCode> {
    let log = KafkaLog::open(&pipeline.log)?;
    let (mut events, mut rejects) = (0, 0);
    with_progress(|progress| -> Result<()> {
        while let Some(batch) = source.next(pipeline.embed.read_turns).with_context(|| source.describe())? {
            log.append_dead_letters(&batch.rejects)?;
            log.append_turns(&batch.events)?;
            events += batch.events.len();
            rejects += batch.rejects.len();
            let at = source.progress();
            progress(Progress { doing: "loading", done: at.done, total: at.total, unit: at.unit });
        }
        Ok(())
    })?;
    print(&format!("{}: {events} events in the turns topic, {rejects} rejected\n", source.describe()))?;
    for partition in 0..log.partitions() {
        if let Some(last) = log.end(Topic::Turns, partition)?.checked_sub(1) {
            say(&format!("an answer includes all of partition {partition} with: ask --after {partition}:{last}"));
        }
    }
    if rejects > 0 {
        say(&format!("{rejects} records were rejected; `ripplemem tap dead-letters` says why"));
        return Ok(ExitCode::from(REJECTED));
    }
    Ok(ExitCode::SUCCESS)
}
