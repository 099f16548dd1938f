//! `ripplemem agents mcp PROGRAM`: the tools of the memory, for a program that starts them itself.
//!
//! In: the messages of the Model Context Protocol on stdin. Out: the answers on stdout. The bank of calls that name none
//! is that of the directory in which the program started it. A program whose talk is read from its transcripts gets no
//! tools that write, so that nothing is remembered twice.

use std::{
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use agents::AgentProgram;
use anyhow::{Context, Result};
use server::{McpOptions, serve_stdio};
use sources::{DirectoryBank, bank_of_directory};
use terminal::{name_banks_of, pipeline_or_defaults};
use tokio::sync::Notify;

use super::{
    places::AgentPlaces,
    service::{AgentServiceState, state},
    service_file::ServiceFile,
    service_start::start_service,
};

/// How long a service that starts is waited for. Programs wait for their servers some ten seconds.
const START: Duration = Duration::from_secs(8);

/// Serves the tools until stdin ends.
pub(super) fn serve_tools(program: AgentProgram) -> Result<ExitCode> {
    let places = AgentPlaces::of_user()?;
    let service = ServiceFile::read(&places);
    let service = service.with_context(|| format!("run `ripplemem agents install {}`", program.name()))?;
    let directory = std::env::current_dir().context("the system does not say which directory this is")?;
    let bank = match bank_of_directory(&directory.to_string_lossy(), &service.bank)? {
        // A program of the desktop is started in no project.
        _ if directory == places.home || directory.parent().is_none() => None,
        DirectoryBank::Stored(bank) => Some(bank),
        DirectoryBank::KeptOut => None,
    };
    wait_for_service(&places, &service);
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    ctrlc::set_handler(move || stopped.notify_one()).context("signals cannot be handled")?;
    let pipeline = pipeline_or_defaults(Some(&places.pipeline()))?;
    name_banks_of(&pipeline);
    serve_stdio(McpOptions { pipeline, bank, read_only: program.has_transcripts() }, &stop)?;
    Ok(ExitCode::SUCCESS)
}

/// Starts the service and waits for it: this process would open the memory itself otherwise, and keep the service out.
fn wait_for_service(places: &AgentPlaces, service: &ServiceFile) {
    let began = Instant::now();
    while !matches!(state(places), AgentServiceState::Answers(_)) && began.elapsed() < START {
        start_service(places, service);
        std::thread::sleep(Duration::from_millis(50));
    }
}
