//! Remembers a conversation, asks about it, forgets a part of it, and asks again.
//!
//! In: a directory, and optionally the name of an embedding model. Out: what was asked and recalled, and
//! how the graph changed. Needs no network with the model `fixed`, which compares words, not meanings:
//! `cargo run --example remember_and_ask -- /tmp/memory`. For the default model of `ripplemem`,
//! add `all-MiniLM-L6-v2-int8`.

#![allow(clippy::print_stdout)]

use std::{
    error::Error,
    path::Path,
    time::{Duration, Instant},
};

use replica::QueryRequest;
use ripplemem::{Memory, MemoryOptions};
use types::{
    config::Pipeline,
    model::{Bank, EventTime, Question, Turn},
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("usage: remember_and_ask DIRECTORY [MODEL]")?;
    let model = arguments.next().unwrap_or_else(|| "fixed".to_owned());
    remember_and_ask(Path::new(&directory), &model, &mut |line| println!("{line}"))
}

/// The whole example; `show` takes each line of its output.
pub(crate) fn remember_and_ask(
    directory: &Path,
    model: &str,
    show: &mut dyn FnMut(String),
) -> Result<(), Box<dyn Error>> {
    let mut pipeline = Pipeline::parse(&format!("version = 1\nembed.model = {model:?}"))?;
    pipeline.log.directory = directory.to_owned();
    let (edges, edge_changes) = crossbeam_channel::unbounded();
    let options = MemoryOptions { edges: Some(edges), tell: Box::new(|_| {}), progress: &mut |_| {} };
    let memory = Memory::open_with(&pipeline, options)?;

    let bank = Bank::parse("acme/support")?;
    let at = |minute: u32| EventTime::parse(&format!("2024-05-06T09:{minute:02}:00+01:00"));
    let written = memory.put([
        Turn::new(bank.clone(), "1", "Ann", "I moved to Lisbon last week.", at(0)?),
        Turn::new(bank.clone(), "2", "Bo", "How is Lisbon? Is your piano there already?", at(1)?),
        Turn::new(bank.clone(), "3", "Ann", "The piano arrives in Lisbon on Friday, with the red sofa.", at(2)?),
    ])?;
    show(format!("durable: {written}"));

    let ask = |text: &str, after| {
        let question = Question::new(bank.clone(), text);
        memory.ask_and_wait(QueryRequest::now(question).after(after))
    };
    // The answer reflects the turns above: it waits for them.
    let evidence = ask("When does the piano arrive?", &written)?;
    show(evidence.context);

    let forgotten = memory.forget(&bank, "3")?.written;
    // Gone from every answer, index and statistic.
    if !memory.wait_for(&forgotten, Instant::now() + Duration::from_secs(60)) {
        return Err(memory.problem().unwrap_or_else(|| "the deletion takes long".to_owned()).into());
    }
    let evidence = ask("When does the piano arrive?", &forgotten)?;
    show(format!("after forgetting turn 3:\n{}", evidence.context));

    let names: Vec<String> = memory.banks().iter().map(ToString::to_string).collect();
    let counts = memory.replica().digest(Some(&bank))?.value;
    show(format!("banks: {}; {} units in {bank}", names.join(", "), counts.units));
    memory.close()?;
    let (added, removed) = edge_changes
        .iter()
        .fold((0, 0), |(added, removed), changes| (added + changes.added.len(), removed + changes.removed.len()));
    show(format!("edges: {added} added, {removed} removed"));
    Ok(())
}
