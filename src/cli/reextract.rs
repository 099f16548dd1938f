//! `ripplemem reextract`.
//!
//! In: a bank. Out: its closed windows read again by the language model; with the log on Kafka,
//! by the service that extracts the bank's partition.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use nouns::{
    config::{LLM, LogKind, Pipeline},
    model::Bank,
};
use server::admin_access;

use super::{
    digest::{digest_of, digest_text},
    exit_code::REJECTED,
    memory_arguments::MemoryArguments,
    model_reading::print_reading,
    open_memory::{open_memory, print_warnings},
    output::print,
    progress_bar::with_progress,
    service_request::administer,
};

/// Have the language model read a bank's closed windows again, and pay for it again. On Kafka the
/// service at admin.listen does it. A window that is not read again keeps its units.
#[derive(Args)]
pub(crate) struct Reextract {
    /// The bank.
    #[arg(long)]
    bank: String,
    #[command(flatten)]
    memory: MemoryArguments,
}

impl Reextract {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let (pipeline, bank) = (self.memory.pipeline()?, Bank::parse(&self.bank)?);
        if pipeline.extract.extractor != LLM {
            anyhow::bail!(
                "extract.extractor is {:?}; write \"llm\", and [llm], so that a language model reads windows",
                pipeline.extract.extractor
            );
        }
        if pipeline.log.kind == LogKind::Kafka { ask_service(&pipeline, &bank) } else { reextract(&pipeline, &bank) }
    }
}

fn ask_service(pipeline: &Pipeline, bank: &Bank) -> Result<ExitCode> {
    let Some(access) = admin_access(pipeline)? else {
        anyhow::bail!("admin.listen: empty; name the address of the service that extracts the bank's partition");
    };
    let response = administer(&access, "reextract", bank.as_str())?;
    print(&format!("{response}; the service's metric ripplemem_llm_windows_waiting says how many are left\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn reextract(pipeline: &Pipeline, bank: &Bank) -> Result<ExitCode> {
    let mut service = open_memory(pipeline)?;
    let finished = with_progress(|progress| service.reextract(bank, progress));
    print_warnings(&mut service);
    service.replica().snapshot()?;
    let finished = finished?;
    let all_usable =
        print_reading(pipeline, &finished, "the windows that are left keep their units; run reextract again")?;
    print(&digest_text(&digest_of(&service, Some(bank))?, false))?;
    Ok(if all_usable && finished.left == 0 { ExitCode::SUCCESS } else { ExitCode::from(REJECTED) })
}
