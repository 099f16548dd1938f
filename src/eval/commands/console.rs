//! `ripplemem-eval console`.
//!
//! In: the directory of a report. Out: the console with that report and without a memory, at an address of this machine
//! that is printed, until a signal.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, sync::atomic::Ordering, thread, time::Duration};

use anyhow::Result;
use clap::Args;
use server::{ReportServer, ReportServerError, serve_report};
use terminal::{LISTEN, print, stop_by_signal};

/// Where a report is served if a memory is served at the usual address.
const ANY_PORT: &str = "127.0.0.1:0";
/// Time between two checks whether a signal came.
const POLL: Duration = Duration::from_millis(100);

/// Show the report of an evaluation in a browser: recall plotted against tokens and, for each question, the path
/// through the graph with the evidence that was found or missed.
#[derive(Args)]
pub(crate) struct ConsoleArgs {
    /// The directory that `--report` of an evaluation wrote.
    #[arg(long, value_name = "DIRECTORY")]
    report: PathBuf,
    /// Address and port of this machine alone. Without it, 127.0.0.1:8321, or another port where that is taken.
    #[arg(long)]
    listen: Option<SocketAddr>,
}

impl ConsoleArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let stop = stop_by_signal()?;
        let server = self.serve()?;
        print(&format!("Open http://{}/\nCtrl-C ends it.\n", server.address()))?;
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(POLL);
        }
        Ok(ExitCode::SUCCESS)
    }

    fn serve(&self) -> Result<ReportServer> {
        if let Some(address) = self.listen {
            return Ok(serve_report(&self.report, address)?);
        }
        match serve_report(&self.report, LISTEN.parse()?) {
            Err(ReportServerError::Listen(_)) => Ok(serve_report(&self.report, ANY_PORT.parse()?)?),
            served => Ok(served?),
        }
    }
}
