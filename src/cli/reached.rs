//! The memory that a command works on: opened here, or reached in the process that has it open.
//!
//! In: a pipeline with an embedded log. Out: its service, or the process that holds the directory's lock
//! and serves it; likewise one topic of a log. If the holder serves nothing, the result is the lock's error.

use anyhow::Result;
use nouns::{
    config::{LogKind, LogSettings, Pipeline},
    model::Bank,
};
use ripplemem::{
    log::{LogError, TopicView, Written},
    pipeline::{PipelineError, Service},
};
use server::{Reached, address_of, api::Status, reached_topic, running_address};
use terminal::{open_memory, say};

use super::service_request::{HEALTH_TIMEOUT, Unreachable, request};

/// A memory that was opened here, or reached in another process.
pub(crate) enum Memory {
    Here(Box<Service>),
    There(Reached),
}

/// Opens the memory, or reaches the process that has it open.
pub(crate) fn open_or_reach(pipeline: &Pipeline) -> Result<Memory> {
    let error = match open_memory(pipeline) {
        Ok(service) => return Ok(Memory::Here(Box::new(service))),
        Err(error) => error,
    };
    match error.downcast_ref().and_then(holder_of) {
        Some(holder) => Ok(Memory::There(holder)),
        None => Err(error),
    }
}

/// Who may write to a topic while a command reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nobody: the command has the directory open.
    Alone,
    /// The process that has the directory open, or a cluster's writers.
    Shared,
}

/// Opens a topic to read it, or reaches the process that has its directory open.
pub(crate) fn open_topic(settings: &LogSettings, topic: &str) -> Result<(TopicView, Place)> {
    let error = match TopicView::open(settings, topic) {
        Ok(view) => {
            let is_alone = settings.kind == LogKind::Embedded;
            return Ok((view, if is_alone { Place::Alone } else { Place::Shared }));
        }
        Err(error) => PipelineError::from(error),
    };
    let Some(process) = holder_of(&error) else { return Err(error.into()) };
    Ok((reached_topic(process, &settings.directory, topic)?, Place::Shared))
}

/// The process that has the directory open, if that is why a memory cannot be opened and if the process serves it.
pub(crate) fn holder_of(error: &PipelineError) -> Option<Reached> {
    let PipelineError::Log(LogError::InUse { directory, holder }) = error else { return None };
    let address = address_of(directory, holder)?;
    say(&format!("{holder} has {} open; asking it at http://{}", directory.display(), address.address));
    Some(Reached::new(address))
}

/// The last service on Kafka that was started with this `log.directory`, if it answers.
pub(crate) fn service_on_kafka(pipeline: &Pipeline) -> Result<Option<Reached>> {
    let Some(address) = running_address(&pipeline.log.directory) else { return Ok(None) };
    let health = format!("http://{}/health", address.address);
    match request("GET", &health, HEALTH_TIMEOUT) {
        Ok(_) => Ok(Some(Reached::new(address))),
        Err(error) if error.is::<Unreachable>() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The status of the memory of a process.
pub(crate) fn status_of(reached: &Reached) -> Result<Status> {
    Ok(reached.get("/v1/status", &[])?)
}

/// The last turn of a bank's partition that is durable now; an answer after it reflects all turns up to it.
pub(crate) fn end_of(reached: &Reached, bank: &Bank) -> Result<Option<String>> {
    let status = status_of(reached)?;
    let end = Written::parse(&status.after, status.partitions).and_then(|end| end.of(bank));
    Ok(end.map(|(partition, next)| format!("{partition}:{}", next - 1)))
}
