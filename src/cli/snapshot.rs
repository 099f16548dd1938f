//! `ripplemem snapshot`.
//!
//! In: a memory. Out: a snapshot of it. Where a process has the memory open, that process writes it; with the
//! log on Kafka a running service does, since two writers into one place would disturb each other.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use nouns::config::{LogKind, Pipeline};
use ripplemem::pipeline;
use server::{AdminError, Reached, admin_access, api::SnapshotList};

use super::{
    memory_arguments::MemoryArguments,
    output::{print, say},
    progress_bar::with_progress,
    reached::holder_of,
    service_request::{HEALTH_TIMEOUT, Unreachable, administer, request},
};

/// Write a snapshot of the memory to the place that the pipeline names. Where a service has the memory open,
/// the service writes it, to the place that its own pipeline names; on Kafka that is the service at
/// admin.listen, if one answers there.
#[derive(Args)]
pub(crate) struct Snapshot {
    #[command(flatten)]
    memory: MemoryArguments,
}

impl Snapshot {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let pipeline = self.memory.pipeline()?;
        let directory = &pipeline.snapshot.directory;
        if directory.is_empty() {
            anyhow::bail!("snapshot.directory: empty; name a place in the pipeline file, or with --snapshots");
        }
        if pipeline.log.kind == LogKind::Kafka {
            match of_service(&pipeline) {
                Err(error) if error.is::<Unreachable>() => {
                    say(&format!("{error:#}; this process writes the snapshot instead"));
                }
                taken => {
                    if let Some(taken) = taken? {
                        print(&format!("{taken}\n"))?;
                        return Ok(ExitCode::SUCCESS);
                    }
                }
            }
        }
        let taken = with_progress(|progress| pipeline::take_snapshot(&pipeline, &mut |what| say(what), progress));
        let text = match taken {
            Ok(taken) => format!("{directory}: {}", taken.summary()),
            Err(error) => match holder_of(&error) {
                Some(holder) => of_holder(&holder)?,
                None => return Err(error.into()),
            },
        };
        print(&format!("{text}\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The snapshots that the process writes that has the memory open.
fn of_holder(holder: &Reached) -> Result<String> {
    const PATH: &str = "/v1/admin/snapshots";
    let written: SnapshotList = holder.post(PATH, &())?;
    // Where nothing has changed since the last ones, none is written.
    let list = if written.snapshots.is_empty() { holder.get(PATH, &[])? } else { written };
    let units: u64 = list.snapshots.iter().map(|shard| shard.units).sum();
    let megabytes = list.snapshots.iter().map(|shard| shard.bytes).sum::<u64>() as f64 / 1e6;
    Ok(format!("{} shard(s): {units} units; {megabytes:.1} MB in all", list.snapshots.len()))
}

/// The snapshot that the running service writes; none where no service can be asked or is in the way.
fn of_service(pipeline: &Pipeline) -> Result<Option<String>> {
    let access = match admin_access(pipeline) {
        Ok(Some(access)) => access,
        Err(AdminError::NotStarted { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
        Ok(None) => {
            let listen = &pipeline.metrics.listen;
            let health = format!("http://{listen}/health");
            if !listen.is_empty() && request("GET", &health, None, "", HEALTH_TIMEOUT).is_ok() {
                anyhow::bail!(
                    "admin.listen: empty, and a service answers at {listen}: two writers would disturb each other; set \
                     admin.listen in its pipeline file, so that it can be asked, or stop it"
                );
            }
            return Ok(None);
        }
    };
    administer(&access, "snapshot", "").map(Some)
}
