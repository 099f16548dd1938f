//! The receipts of deletions, and erasing at once: parts of `ripplemem forget`.
//!
//! In: a memory that is opened here, or the process that has it open; on Kafka, what the services wrote. Out: receipts,
//! and how much was erased.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use erasure::{ErasureReport, ForgetStage, Receipt, RetentionRule, stored_receipts};
use server::api::ForgetReceipts;
use terminal::print;
use types::{
    config::{LogKind, Pipeline},
    model::Bank,
};

use super::memory_access::{MemoryAccess, open_or_reach};

/// Prints the receipts of all operations, or of those of a bank.
pub(super) fn print_receipts(pipeline: &Pipeline, bank: Option<&Bank>, json: bool) -> Result<ExitCode> {
    let mut receipts = match pipeline.log.kind {
        LogKind::Kafka => stored_receipts(pipeline)?,
        LogKind::Embedded => settled_receipts(pipeline)?,
    };
    receipts.retain(|receipt| bank.is_none_or(|bank| receipt.bank == *bank));
    for receipt in &receipts {
        let line = if json { serde_json::to_string(receipt)? } else { receipt_line(receipt) };
        print(&format!("{line}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The receipts of a memory in a directory.
fn settled_receipts(pipeline: &Pipeline) -> Result<Vec<Receipt>> {
    Ok(match open_or_reach(pipeline)? {
        MemoryAccess::Here(mut service) => {
            service.pause_model();
            service.catch_up()?;
            service.receipts()?
        }
        MemoryAccess::There(reached) => reached.get::<ForgetReceipts>("/v1/forgets", &[])?.forgets,
    })
}

/// A receipt in a line.
pub(super) fn receipt_line(receipt: &Receipt) -> String {
    let Receipt { operation, bank, turns, stage, requested, due, erased, never, retention, dead_letters, .. } = receipt;
    let (stage, at) = match stage {
        ForgetStage::Accepted => ("accepted", None),
        ForgetStage::Hidden => ("hidden", receipt.hidden),
        ForgetStage::Rebuilt => ("rebuilt", receipt.rebuilt),
        ForgetStage::Erased => ("erased", *erased),
    };
    let at = at.map(|at| format!(" at {at:.0}")).unwrap_or_default();
    let due = match due {
        _ if erased.is_some() => String::new(),
        Some(due) => format!(", to be erased by {due:.0}"),
        None if never.is_empty() => ", erased by --erase-now alone".to_owned(),
        None => format!(", its words stay: {}", never.join("; ")),
    };
    let letters = dead_letters.map(|letters| format!(" and {letters} dead letters")).unwrap_or_default();
    let asked = match retention {
        Some(RetentionRule { bank, rule }) => format!("deleted by rule {rule} of retention (bank {bank})"),
        None => "asked for".to_owned(),
    };
    format!("{operation}  bank {bank}: {turns} turns{letters}, {asked} at {requested:.0}, {stage}{at}{due}")
}

/// Erases what was deleted, and prints how much was erased.
pub(super) fn erase_now(pipeline: &Pipeline, json: bool) -> Result<ExitCode> {
    ensure_embedded(pipeline)?;
    let erased = match open_or_reach(pipeline)? {
        MemoryAccess::Here(mut service) => {
            service.pause_model();
            service.catch_up()?;
            service.erase()?
        }
        MemoryAccess::There(reached) => reached.post("/v1/admin/erase", &())?,
    };
    let line = if json { serde_json::to_string(&erased)? } else { erased_line(erased) };
    print(&format!("{line}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// How much was erased, in a line.
pub(super) fn erased_line(erased: ErasureReport) -> String {
    let ErasureReport { turns, dead_letters, rewritten_bytes } = erased;
    let megabytes = rewritten_bytes as f64 / 1e6;
    format!("erased: {turns} records of turns and {dead_letters} dead letters emptied; {megabytes:.1} MB rewritten")
}

/// Returns an error unless the log is in a directory.
pub(super) fn ensure_embedded(pipeline: &Pipeline) -> Result<()> {
    ensure!(
        pipeline.log.kind != LogKind::Kafka,
        "this needs a log in a directory: on Kafka, words leave the topics as their retention and compaction say; see \
         docs/forgetting.md"
    );
    Ok(())
}
