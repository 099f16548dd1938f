//! `ripplemem snapshot`.
//!
//! In: a memory. Out: a snapshot of it. With the log on Kafka a running service writes it,
//! since two writers into one place would disturb each other.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ripplemem::{
    config::{LogKind, Pipeline},
    pipeline,
    serve::{AdminError, admin_access},
};

use super::{
    memory_arguments::MemoryArguments,
    output::{print, say},
    progress_bar::with_progress,
    service_request::{HEALTH_TIMEOUT, Unreachable, administer, request},
};

/// Write a snapshot of the memory to the place that the pipeline names. With the log on Kafka,
/// the service at admin.listen writes it, if one answers there.
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
        let taken = with_progress(|progress| pipeline::take_snapshot(&pipeline, &mut |what| say(what), progress))?;
        print(&format!("{directory}: {}\n", taken.summary()))?;
        Ok(ExitCode::SUCCESS)
    }
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
