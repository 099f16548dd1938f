//! `ripplemem health`.
//!
//! In: the address of a running service. Out: exit code 0 when it says that it is ready.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use terminal::print;

use super::service_request::{HEALTH_TIMEOUT, request};

/// Ask a running service whether it is ready; for health checks.
#[derive(Args)]
pub(crate) struct HealthArgs {
    /// The address of its health check.
    #[arg(long, default_value = "http://127.0.0.1:9464/ready")]
    url: String,
}

impl HealthArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        print(&format!("{}\n", request("GET", &self.url, HEALTH_TIMEOUT)?))?;
        Ok(ExitCode::SUCCESS)
    }
}
