//! The exit codes that have a name, and how a program ends.
//!
//! 0 is success, 1 is a failure, and 2 is wrong usage (from clap). They never change, because scripts depend on them.

use std::{io, process::ExitCode};

use types::config::ConfigError;

use super::output::say;

/// The command is done, but some input was rejected, or some records could not be read.
pub const REJECTED: u8 = 3;
/// The pipeline file is not valid (`EX_CONFIG` of sysexits).
pub const INVALID_PIPELINE: u8 = 78;

/// The code of a program that has ended. Says why it failed, unless the reader of stdout closed it, as `head` does.
#[must_use]
pub fn exit_code(ended: anyhow::Result<ExitCode>) -> ExitCode {
    match ended {
        Ok(code) => code,
        Err(error) => {
            if !is_closed_pipe(&error) {
                say(&format!("{error:#}"));
            }
            ExitCode::from(if error.is::<ConfigError>() { INVALID_PIPELINE } else { 1 })
        }
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}
