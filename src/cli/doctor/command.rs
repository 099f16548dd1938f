//! The arguments, and the order of the lines.
//!
//! In: which memory. Out: the findings on stdout; exit code 1 if something must be fixed.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use terminal::print;
use types::config::{LogKind, Pipeline};

use super::{
    banks::{ExpectedBanks, banks},
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
    /// Estimate the memory that this many banks take.
    #[arg(long, requires = "turns_per_bank", value_parser = clap::value_parser!(u64).range(1..))]
    banks: Option<u64>,
    /// How many turns each of these banks has.
    #[arg(long, requires = "banks", value_parser = clap::value_parser!(u64).range(1..))]
    turns_per_bank: Option<u64>,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl DoctorArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let expected = self.banks.zip(self.turns_per_bank).map(|(banks, turns)| ExpectedBanks { banks, turns });
        let findings = findings(&self.memory.pipeline()?, expected);
        let sick = findings.iter().any(|finding| finding.state == FindingState::Mend);
        if self.json {
            print(&format!("{}\n", serde_json::to_string_pretty(&findings)?))?;
        } else {
            findings.iter().try_for_each(|finding| print(&format!("{}\n", finding.line())))?;
        }
        Ok(if sick { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

fn findings(pipeline: &Pipeline, expected: Option<ExpectedBanks>) -> Vec<DoctorFinding> {
    let mut findings = vec![program(), processor(), open_files(), banks(pipeline, expected)];
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
