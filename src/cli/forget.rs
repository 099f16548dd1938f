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
use ripplemem::{log, pipeline::held_turns};
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
                "bank {bank}: {count} deletions in the turns topic, whether the turns are there or not; ask --after \
                 {written} reflects them\n"
            ))?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut unknown = Vec::new();
        match open_or_reach(&pipeline)? {
            Memory::Here(mut service) => {
                service.pause_model();
                service.catch_up()?;
                let held = held_turns(service.log(), &bank, &|turn| self.turns.iter().any(|id| id == turn), count)?;
                let is_held = |id: &String| held.iter().any(|held| held.turn.turn == *id);
                unknown.extend(self.turns.iter().filter(|id| !is_held(id)).cloned());
                service.log().append_turns(&events)?;
                service.catch_up()?;
            }
            Memory::There(reached) => {
                for turn in &self.turns {
                    let of = [("bank", Some(bank.as_str())), ("turn", Some(turn)), ("wait_ms", Some("600000"))];
                    let forgotten: Forgotten = reached.delete("/v1/turns", &of)?;
                    if forgotten.held == Some(false) {
                        unknown.push(turn.clone());
                    }
                    if !forgotten.gone {
                        anyhow::bail!("turn {turn:?}: the deletion is durable, and answers do not reflect it yet");
                    }
                }
            }
        }
        for turn in &unknown {
            print(&format!(
                "bank {bank}: it holds no turn {turn:?}; one with this id that comes later is not taken\n"
            ))?;
        }
        print(&format!("bank {bank}: {} turns deleted\n", count - unknown.len()))?;
        Ok(if unknown.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
