//! The arguments, and the order of the lines.
//!
//! In: which memory. Out: the findings on stdout; exit code 1 if something must be fixed.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use terminal::print;
use types::config::{LogKind, Pipeline};

use super::{
    broker::broker,
    coding_agents::coding_agents,
    disk_and_network::{addresses, directory},
    finding::{DoctorFinding, FindingState},
    machine::{open_files, processor, program},
    models::{embedding_model, language_model},
};
use crate::cli::memory_args::MemoryArgs;

/// Check what a service needs here: models, processor, disk, limits, addresses and the cluster.
///
/// If something must be fixed, its line says what to do, and the exit code is 1.
#[derive(Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl DoctorArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let findings = findings(&self.memory.pipeline()?);
        let sick = findings.iter().any(|finding| finding.state == FindingState::Mend);
        if self.json {
            print(&format!("{}\n", serde_json::to_string_pretty(&findings)?))?;
        } else {
            findings.iter().try_for_each(|finding| print(&format!("{}\n", finding.line())))?;
        }
        Ok(if sick { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

fn findings(pipeline: &Pipeline) -> Vec<DoctorFinding> {
    let mut findings = vec![program(), processor(), open_files()];
    findings.extend(embedding_model(pipeline));
    findings.extend(language_model(pipeline));
    findings.extend(directory(&pipeline.log.directory));
    findings.extend(addresses(pipeline));
    findings.extend(coding_agents());
    if pipeline.log.kind == LogKind::Kafka {
        findings.push(broker(pipeline));
    }
    findings
}
