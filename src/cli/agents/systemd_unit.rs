//! The unit of systemd that runs the service for the user.
//!
//! In: our program. Out: a unit that is written, started and enabled, or stopped and removed; or that this user has no
//! systemd. Only the user's own systemd is called, never the system's.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};

/// The unit's name.
pub(super) const NAME: &str = "ripplemem-agents.service";

/// Whether a systemd runs for this user.
pub(super) fn is_here() -> bool {
    let run = std::env::var_os("XDG_RUNTIME_DIR").filter(|run| !run.is_empty());
    cfg!(target_os = "linux") && run.is_some_and(|run| Path::new(&run).join("systemd/private").exists())
}

/// The unit, which runs the program with these environment variables.
pub(super) fn text(program: &Path, variables: &BTreeMap<String, String>) -> String {
    let program = quoted(&program.display().to_string());
    let lines = variables.iter().map(|(name, value)| format!("Environment={}\n", quoted(&format!("{name}={value}"))));
    let variables: String = lines.collect();
    format!(
        "# Written by `ripplemem agents install`, taken away by `ripplemem agents remove`.\n\
         [Unit]\nDescription=RippleMem, the memory of coding agents\n\n\
         [Service]\nType=notify\nExecStart={program} agents serve\n{variables}\
         # It ends by itself when its program was replaced.\nRestart=always\nRestartSec=2\n\
         TimeoutStartSec=infinity\nTimeoutStopSec=60\nUMask=0077\n\n\
         [Install]\nWantedBy=default.target\n"
    )
}

/// A word of a unit.
fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('%', "%%").replace('\\', "\\\\").replace('"', "\\\""))
}

/// Starts the unit now and at each login.
///
/// # Errors
/// When systemd refuses.
pub(super) fn start() -> Result<()> {
    call(&["daemon-reload"])?;
    call(&["enable", NAME])?;
    call(&["restart", NAME])
}

/// Starts the unit if it does not run, such as after a start that failed.
///
/// # Errors
/// When systemd refuses.
pub(super) fn start_again() -> Result<()> {
    call(&["enable", NAME])?;
    call(&["start", NAME])
}

/// Stops the unit and removes it.
///
/// # Errors
/// When systemd refuses.
pub(super) fn stop(unit: &Path) -> Result<()> {
    call(&["disable", "--now", NAME])?;
    fs::remove_file(unit).with_context(|| format!("{}: cannot be removed", unit.display()))?;
    call(&["daemon-reload"])
}

fn call(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("systemctl");
    command.arg("--user").args(arguments).stdin(Stdio::null());
    let output = command.output().context("systemctl cannot be started")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "systemctl --user {}: {}", arguments.join(" "), said.trim());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_has_the_variables_as_systemd_reads_them() {
        let variables = [("CODEX_HOME".to_owned(), "/a b/50%\\\"c\"".to_owned())].into();
        let unit = text(Path::new("/opt/ripple mem"), &variables);
        assert!(unit.contains("\nExecStart=\"/opt/ripple mem\" agents serve\n"), "{unit}");
        assert!(unit.contains("\nEnvironment=\"CODEX_HOME=/a b/50%%\\\\\\\"c\\\"\"\n"), "{unit}");
    }
}
