//! The commands that a language model has a part in.
//!
//! In: a pipeline with `[llm]`. Out: windows that are read, or read again; what was spent.

use std::process::ExitCode;

use anyhow::Result;
use ripplemem::{
    config::{LLM, LogKind, Pipeline, SourceSettings},
    llm::{Contract, Llm},
    model::{Bank, Usage},
    pipeline::{self, Finished},
    source,
};

use super::{Bar, REJECTED, WORK, digest, open, print, request, say};

/// What the model read, and what is left, of which `next` says who reads it; false when
/// something could not be used.
pub(crate) fn finished(pipeline: &Pipeline, finished: &Finished, next: &str) -> Result<bool> {
    let Finished { read, refused, left, problem } = finished;
    if *read + *refused + *left > 0 {
        print(&format!("{}: {read} windows read, {refused} not usable, {left} left to read\n", pipeline.llm.model))?;
    }
    if let Some(problem) = problem {
        say(&format!("{problem}; {next}"));
    }
    Ok(*refused == 0)
}

pub(crate) fn reextract(pipeline: &Pipeline, bank: &Bank) -> Result<ExitCode> {
    if pipeline.extract.extractor != LLM {
        anyhow::bail!(
            "extract.extractor is {:?}; write \"llm\", and [llm], to have windows read by a model",
            pipeline.extract.extractor
        );
    }
    if pipeline.log.kind == LogKind::Kafka {
        // The service that extracts the bank's partition reads them, and goes on by itself.
        let listen = &pipeline.metrics.listen;
        if listen.is_empty() {
            anyhow::bail!("metrics.listen: empty; name the address of the service that extracts the bank's partition");
        }
        let told = request("POST", &format!("http://{listen}/reextract"), bank.as_str(), WORK)?;
        print(&format!("{told}; ripplemem_llm_windows_waiting at http://{listen}/metrics says how many are left\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut service = open(pipeline)?;
    let bar = Bar::new();
    let done = service.reextract(bank, &mut |p| bar.show(p));
    bar.clear();
    service.take_warnings().iter().for_each(|w| say(w));
    service.snapshot()?;
    let done = done?;
    let whole = finished(pipeline, &done, "what was not read again stays as it was; run reextract once more")?;
    print(&digest(&service, Some(bank), false)?)?;
    Ok(if whole && done.left == 0 { ExitCode::SUCCESS } else { ExitCode::from(REJECTED) })
}

pub(crate) fn estimate(
    pipeline: &Pipeline,
    settings: &SourceSettings,
    bank: Option<&Bank>,
    json: bool,
) -> Result<ExitCode> {
    let mut source = source::open(settings, bank)?;
    let bar = Bar::new();
    let estimates = pipeline::estimate(pipeline, &mut *source, &mut |p| bar.show(p));
    bar.clear();
    let estimates = estimates?;
    let lines = estimates.iter().map(|e| (e.usage, Contract::Extract.name(), e.bank.as_str()));
    let done = shown(pipeline, &estimates, &lines.collect::<Vec<_>>(), json)?;
    if !json {
        say("prompts are counted; of what comes back, as much as the turns have is assumed, and no repair");
    }
    Ok(done)
}

pub(crate) fn cost(pipeline: &Pipeline, bank: Option<&Bank>, windows: bool, json: bool) -> Result<ExitCode> {
    let llm = Llm::open(&pipeline.llm, Some(pipeline.llm_directory()))?;
    let ours = |of: &str| bank.is_none_or(|bank| bank.as_str() == of);
    if windows {
        let mut expenses = llm.window_expenses()?;
        expenses.retain(|e| ours(&e.bank));
        let places: Vec<String> =
            expenses.iter().map(|e| format!("{} {} {}", e.bank, e.window.session.0, e.window.start)).collect();
        let lines = expenses.iter().zip(&places).map(|(e, place)| (e.usage, Contract::Extract.name(), place.as_str()));
        return shown(pipeline, &expenses, &lines.collect::<Vec<_>>(), json);
    }
    let mut expenses = llm.expenses()?;
    expenses.retain(|e| ours(&e.bank));
    let lines = expenses.iter().map(|e| (e.usage, e.contract.name(), e.bank.as_str()));
    shown(pipeline, &expenses, &lines.collect::<Vec<_>>(), json)
}

fn shown(
    pipeline: &Pipeline,
    expenses: &impl serde::Serialize,
    lines: &[(Usage, &str, &str)],
    json: bool,
) -> Result<ExitCode> {
    if json {
        print(&format!("{}\n", serde_json::to_string(expenses)?))?;
    } else {
        table(pipeline, lines)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Says which language model a pipeline names, where it does; its key must be there.
pub(crate) fn validate(pipeline: &Pipeline) -> Result<()> {
    if pipeline.llm.is_set() {
        let llm = Llm::open(&pipeline.llm, None)?;
        llm.check_key()?;
        print(&format!("language model: {} at {} (not asked)\n", pipeline.llm.model, llm.url()))?;
    }
    Ok(())
}

/// Usage, what for and of which bank, with a sum.
fn table(pipeline: &Pipeline, lines: &[(Usage, &str, &str)]) -> Result<()> {
    print("    calls       prompt   completion      seconds         cost  for      bank\n")?;
    let mut all = Usage::default();
    lines.iter().for_each(|(usage, ..)| all += *usage);
    for (usage, purpose, bank) in lines.iter().copied().chain([(all, "all", "")]) {
        print(&format!(
            "{:>9} {:>12} {:>12} {:>12.1} {:>12.4}  {purpose:<8} {bank}\n",
            usage.calls,
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.milliseconds as f64 / 1_000.0,
            pipeline.llm.cost(usage.prompt_tokens, usage.completion_tokens),
        ))?;
    }
    Ok(())
}
