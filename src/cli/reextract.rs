//! `ripplemem reextract`.
//!
//! In: a bank. Out: its closed windows, read again by the language model. If a service extracts the bank, the service
//! does it.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use server::{
    MemoryHttpClient,
    api::{self, ReextractBankResponse},
};
use terminal::{REJECTED, open_memory, print, with_progress};
use types::{
    config::{LLM, LogKind, Pipeline},
    model::Bank,
};

use super::{
    digest::{digest_of, digest_text},
    memory_access::{lock_holder, service_on_kafka},
    memory_args::MemoryArgs,
    reading_report::print_reading,
};

/// Have the language model read a bank's closed windows again, which is paid for again. If a service has the memory,
/// the service does it; on Kafka, that is the last service that was started with this log.directory. A window that is
/// not read again keeps its units.
#[derive(Args)]
pub(crate) struct ReextractArgs {
    /// The bank.
    #[arg(long)]
    bank: String,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl ReextractArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let (pipeline, bank) = (self.memory.pipeline()?, Bank::parse(&self.bank)?);
        if pipeline.extract.extractor != LLM {
            anyhow::bail!(
                "extract.extractor is {:?}; set it to \"llm\" and add a section [llm], so that a language model reads \
                 the windows",
                pipeline.extract.extractor
            );
        }
        if pipeline.log.kind == LogKind::Kafka {
            let service = service_on_kafka(&pipeline)?.with_context(|| {
                let directory = pipeline.log.directory.display();
                format!(
                    "{directory}: no service that was started with this log.directory answers; start the one that \
                         extracts the bank's partition, with http.listen"
                )
            })?;
            return ask_service(&service, &bank);
        }
        match reextract(&pipeline, &bank) {
            Err(error) => match error.downcast_ref().and_then(lock_holder) {
                Some(holder) => ask_service(&holder, &bank),
                None => Err(error),
            },
            done => done,
        }
    }
}

fn ask_service(service: &MemoryHttpClient, bank: &Bank) -> Result<ExitCode> {
    let ReextractBankResponse { bank, windows } =
        service.post("/v1/admin/reextract", &api::ReextractBankRequest { bank: bank.clone() })?;
    print(&format!(
        "bank {bank}: {windows} windows are read again; the service's metric ripplemem_llm_windows_waiting says how many \
         are left\n"
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn reextract(pipeline: &Pipeline, bank: &Bank) -> Result<ExitCode> {
    let mut service = open_memory(pipeline)?;
    let finished = with_progress(|progress| service.reextract(bank, progress));
    service.replica().snapshot()?;
    let finished = finished?;
    let all_usable =
        print_reading(pipeline, &finished, "the windows that are left keep their units; run reextract again")?;
    print(&digest_text(&digest_of(&service, Some(bank))?, false))?;
    Ok(if all_usable && finished.left == 0 { ExitCode::SUCCESS } else { ExitCode::from(REJECTED) })
}
