//! Starts the service where no systemd does.
//!
//! In: a service that is away. Out: a process of its own, detached from the one that starts it. Hooks of many sessions start
//! one, not many: the start leaves a mark, and the service itself holds a lock.

use std::{
    fs,
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result};

use super::{places::AgentPlaces, service_file::ServiceFile};

/// How long a service that was started has to answer before another one is started.
const START: Duration = Duration::from_secs(20);

/// Starts the service, detached, unless another hook has just done so.
pub(super) fn start_service(places: &AgentPlaces, service: &ServiceFile) {
    let mark = places.service_start();
    let is_starting = fs::metadata(&mark)
        .and_then(|metadata| metadata.modified())
        .is_ok_and(|began| SystemTime::now().duration_since(began).is_ok_and(|age| age < START));
    if service.by_systemd || is_starting || fs::write(&mark, "").is_err() {
        return;
    }
    // A service that runs and does not answer yet writes into it.
    let Ok(log) = fs::File::options().create(true).append(true).open(places.service_log()) else { return };
    let mut command = Command::new(&service.program);
    command.args(["agents", "serve", "--detach"]).current_dir(&places.home).envs(&service.variables);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    // A service that cannot be started is away at the next prompt, too, and `doctor` says why.
    drop(command.spawn());
}

/// Runs the service in a process that belongs to no program: some end every process below their own when they end.
///
/// # Errors
/// When the process cannot be started.
pub(super) fn detach() -> Result<()> {
    let program = std::env::current_exe().context("the system does not say where this program is")?;
    // Fails if it has a session of its own already.
    #[cfg(unix)]
    let _ = nix::unistd::setsid();
    let mut command = Command::new(&program);
    command.args(["agents", "serve"]).stdin(Stdio::null()).stdout(Stdio::null());
    // This process ends now, and the system becomes the parent of the other one.
    command.spawn().map(drop).with_context(|| program.display().to_string())
}
