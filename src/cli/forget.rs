//! `ripplemem forget`.
//!
//! In: turns of a bank. Out: their deletion, durable and reflected; with the log on Kafka, in the turns
//! topic, from which a running service takes it.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use nouns::{
    config::LogKind,
    model::{Bank, Deletion, TurnEvent},
};
use ripplemem::log;
use server::api::Forgotten;

use super::{
    memory_arguments::MemoryArguments,
    output::print,
    reached::{Memory, open_or_reach},
};

/// Delete turns: no answer reflects them afterwards, and no redelivery or older export brings them back.
#[derive(Args)]
pub(crate) struct Forget {
    /// The ids of the turns.
    #[arg(required = true)]
    turns: Vec<String>,
    /// Their bank.
    #[arg(long)]
    bank: String,
    #[command(flatten)]
    memory: MemoryArguments,
}

impl Forget {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let (pipeline, bank) = (self.memory.pipeline()?, Bank::parse(&self.bank)?);
        let deletion = |turn: &String| Deletion { bank: bank.clone(), turn: turn.clone(), version: u64::MAX };
        let events: Vec<TurnEvent> = self.turns.iter().map(|turn| TurnEvent::Deletion(deletion(turn))).collect();
        for event in &events {
            event.check()?;
        }
        let count = events.len();
        if pipeline.log.kind == LogKind::Kafka {
            let written = log::open(&pipeline.log)?.append_turns(&events)?;
            print(&format!(
                "bank {bank}: {count} deletions in the turns topic; ask --after {written} reflects them\n"
            ))?;
            return Ok(ExitCode::SUCCESS);
        }
        match open_or_reach(&pipeline)? {
            Memory::Here(mut service) => {
                service.pause_model();
                service.log().append_turns(&events)?;
                service.catch_up()?;
            }
            Memory::There(reached) => {
                for turn in &self.turns {
                    let of = [("bank", Some(bank.as_str())), ("turn", Some(turn)), ("wait_ms", Some("600000"))];
                    let forgotten: Forgotten = reached.delete("/v1/turns", &of)?;
                    if !forgotten.gone {
                        anyhow::bail!("turn {turn:?}: the deletion is durable, and answers do not reflect it yet");
                    }
                }
            }
        }
        print(&format!("bank {bank}: {count} turns deleted\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}
