//! `ripplemem snapshot`.
//!
//! In: a memory. Out: a snapshot of it. If a service has the memory, the service writes the snapshot, since two writers
//! in one place would disturb each other.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use server::{
    MemoryHttpClient,
    api::{ServiceStatus, SnapshotList},
};
use terminal::{print, say, with_progress};
use types::config::{LogKind, Pipeline};

use super::{
    memory_access::{lock_holder, service_on_kafka, status_of},
    memory_args::MemoryArgs,
    service_request::{HEALTH_TIMEOUT, request},
};

/// Write a snapshot of the memory to the place that the pipeline names. If a service has the memory, the service writes
/// it, to the place that its own pipeline names; on Kafka, that is the last service that was started with this
/// log.directory, if it answers.
#[derive(Args)]
pub(crate) struct SnapshotArgs {
    #[command(flatten)]
    memory: MemoryArgs,
}

impl SnapshotArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let pipeline = self.memory.pipeline()?;
        let directory = &pipeline.snapshot.directory;
        if directory.is_empty() {
            anyhow::bail!("snapshot.directory: empty; name a place in the pipeline file, or with --snapshots");
        }
        if let Some(service) = of_service(&pipeline)? {
            print(&format!("{}\n", written_by(&service)?))?;
            return Ok(ExitCode::SUCCESS);
        }
        let taken = with_progress(|progress| ripplemem::take_snapshot(&pipeline, progress));
        let text = match taken {
            Ok(taken) => format!("{directory}: {}", taken.summary()),
            Err(error) => match lock_holder(&error) {
                Some(holder) => written_by(&holder)?,
                None => return Err(error.into()),
            },
        };
        print(&format!("{text}\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The snapshots that a service writes.
fn written_by(service: &MemoryHttpClient) -> Result<String> {
    const PATH: &str = "/v1/admin/snapshots";
    let written: SnapshotList = service.post(PATH, &())?;
    // If nothing has changed since the last snapshots, none is written.
    let list = if written.snapshots.is_empty() { service.get(PATH, &[])? } else { written };
    let ServiceStatus { behind, .. } = status_of(service)?;
    if behind > 0 {
        say(&format!("{behind} turns are not extracted yet, so they are not in the snapshot; write another one later"));
    }
    let units: u64 = list.snapshots.iter().map(|shard| shard.units).sum();
    let megabytes = list.snapshots.iter().map(|shard| shard.bytes).sum::<u64>() as f64 / 1e6;
    Ok(format!("{} shard(s): {units} units; {megabytes:.1} MB in all", list.snapshots.len()))
}

/// The service on Kafka that writes the snapshots, if one answers.
fn of_service(pipeline: &Pipeline) -> Result<Option<MemoryHttpClient>> {
    if pipeline.log.kind != LogKind::Kafka {
        return Ok(None);
    }
    if let Some(service) = service_on_kafka(pipeline)? {
        return Ok(Some(service));
    }
    let listen = &pipeline.metrics.listen;
    if !listen.is_empty() && request("GET", &format!("http://{listen}/health"), HEALTH_TIMEOUT).is_ok() {
        anyhow::bail!(
            "http.listen: a service answers at {listen} but takes no orders, and two writers would disturb each other; \
             set http.listen in its pipeline file, so that it can be asked, or stop it"
        );
    }
    say("no service answers; this process writes the snapshot");
    Ok(None)
}
