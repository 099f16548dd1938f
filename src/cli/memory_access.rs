//! The memory that a command works on: opened here, or reached in the process that has it open.
//!
//! In: a pipeline with an embedded log. Out: its service, or the process that holds the directory's lock and serves it;
//! likewise one topic of a log. If the holder of the lock serves nothing, the result is the lock's error.

use anyhow::Result;
use logs::{LogError, TopicView, WritePosition};
use pipeline::PipelineError;
use ripplemem::PipelineDriver;
use server::{MemoryHttpClient, address_of, api::ServiceStatus, open_http_topic, running_address};
use terminal::{open_memory, say};
use types::{
    config::{LogKind, LogSettings, Pipeline},
    model::Bank,
};

use super::service_request::{HEALTH_TIMEOUT, ServiceUnreachable, request};

/// A memory that was opened here, or reached in another process.
pub(crate) enum MemoryAccess {
    Here(Box<PipelineDriver>),
    There(MemoryHttpClient),
}

/// Opens the memory, or reaches the process that has it open.
pub(crate) fn open_or_reach(pipeline: &Pipeline) -> Result<MemoryAccess> {
    let error = match open_memory(pipeline) {
        Ok(service) => return Ok(MemoryAccess::Here(Box::new(service))),
        Err(error) => error,
    };
    match error.downcast_ref().and_then(lock_holder) {
        Some(holder) => Ok(MemoryAccess::There(holder)),
        None => Err(error),
    }
}

/// Who may write to a topic while a command reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TopicAccess {
    /// Nobody: the command has the directory open.
    Alone,
    /// The process that has the directory open, or a cluster's writers.
    Shared,
}

/// Opens a topic to read it, or reaches the process that has its directory open.
pub(crate) fn open_topic(settings: &LogSettings, topic: &str) -> Result<(TopicView, TopicAccess)> {
    let error = match TopicView::open(settings, topic) {
        Ok(view) => {
            let is_alone = settings.kind == LogKind::Embedded;
            return Ok((view, if is_alone { TopicAccess::Alone } else { TopicAccess::Shared }));
        }
        Err(error) => PipelineError::from(error),
    };
    let Some(process) = lock_holder(&error) else { return Err(error.into()) };
    Ok((open_http_topic(process, &settings.directory, topic)?, TopicAccess::Shared))
}

/// The process that has the directory open, if that is why a memory cannot be opened and if the process serves it.
pub(crate) fn lock_holder(error: &PipelineError) -> Option<MemoryHttpClient> {
    let PipelineError::Log(LogError::InUse { directory, holder }) = error else { return None };
    let address = address_of(directory, holder)?;
    say(&format!("{holder} has {} open; asking it at http://{}", directory.display(), address.address));
    Some(MemoryHttpClient::new(address))
}

/// The last service on Kafka that was started with this `log.directory`, if it answers.
pub(crate) fn service_on_kafka(pipeline: &Pipeline) -> Result<Option<MemoryHttpClient>> {
    let Some(address) = running_address(&pipeline.log.directory) else { return Ok(None) };
    let health = format!("http://{}/health", address.address);
    match request("GET", &health, HEALTH_TIMEOUT) {
        Ok(_) => Ok(Some(MemoryHttpClient::new(address))),
        Err(error) if error.is::<ServiceUnreachable>() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The status of the memory of a process.
pub(crate) fn status_of(reached: &MemoryHttpClient) -> Result<ServiceStatus> {
    Ok(reached.get("/v1/status", &[])?)
}

/// The last turn of a bank's partition that is durable now; an answer after it reflects all turns up to it.
pub(crate) fn durable_end(reached: &MemoryHttpClient, bank: &Bank) -> Result<Option<String>> {
    let status = status_of(reached)?;
    let end = WritePosition::parse(&status.after, status.partitions).and_then(|end| end.of(bank));
    Ok(end.map(|(partition, next)| format!("{partition}:{}", next - 1)))
}
