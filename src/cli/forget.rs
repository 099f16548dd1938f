//! `ripplemem forget`.
//!
//! In: turns of a bank, by their ids or by what they have in common. Out: their deletion, which is durable and which
//! answers reflect. With the log on Kafka, the deletions are only written to the turns topic; a running service reads
//! them. Turns that are not named by ids are first counted and shown, and only deleted once the user agrees.

use std::{
    io::{BufRead, IsTerminal},
    process::ExitCode,
};

use anyhow::{Result, bail, ensure};
use clap::Args;
use nouns::{
    config::{LogKind, Pipeline},
    model::{Bank, Selector},
};
use ripplemem::{
    log,
    pipeline::{delete_turns, held_turns, selected_turns},
};
use server::api::{ForgetTurns, Forgotten, ForgottenTurns, TurnView};

use super::{
    memory_arguments::MemoryArguments,
    output::{print, say},
    reached::{Memory, open_or_reach},
    selector_arguments::SelectorArguments,
    turns::table_line,
};

/// How many milliseconds a service may wait at most.
const WAIT_MS: u64 = 600_000;
/// Most turns that are shown before they are deleted.
const SHOWN: usize = 20;

/// Delete turns: afterwards no answer uses them, and no redelivery or older export brings them back.
#[derive(Args)]
pub(crate) struct Forget {
    /// The ids of the turns. Without ids, select the turns with the options below.
    turns: Vec<String>,
    /// The bank of the turns.
    #[arg(long)]
    bank: String,
    #[command(flatten)]
    select: SelectorArguments,
    /// Turns whose words contain this name; with --speaker, turns that fit either. May be given several times.
    #[arg(long, value_name = "NAME")]
    mentions: Vec<String>,
    /// Every turn of the bank.
    #[arg(long)]
    all: bool,
    /// Only count the turns and show the latest; delete nothing.
    #[arg(long)]
    dry_run: bool,
    /// Delete without asking.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    memory: MemoryArguments,
}

impl Forget {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let (pipeline, bank) = (self.memory.pipeline()?, Bank::parse(&self.bank)?);
        let select = Selector { mentions: self.mentions, all: self.all, ..self.select.selector()? };
        if !self.turns.is_empty() {
            ensure!(
                select.is_empty() && !self.dry_run,
                "ids of turns exclude --dry-run and options such as --speaker; use one or the other"
            );
            return forget_ids(&pipeline, &bank, &self.turns);
        }
        ensure!(
            !select.is_empty(),
            "nothing is named: give ids of turns, or --speaker, --since, --until, --session, --thread, --mentions or \
             --all"
        );
        select.check()?;
        ensure!(
            pipeline.log.kind != LogKind::Kafka,
            "options such as --speaker need a log in a directory; this log is on Kafka: name turns by their ids"
        );
        let asks = Asks { dry_run: self.dry_run, yes: self.yes };
        let deleted = match open_or_reach(&pipeline)? {
            Memory::Here(mut service) => {
                service.pause_model();
                service.catch_up()?;
                let held = selected_turns(service.log(), &bank, &select)?;
                let latest: Vec<TurnView> = held.iter().rev().take(SHOWN).map(TurnView::of).collect();
                if !asks.agree(&bank, held.len() as u64, &latest)? {
                    return Ok(ExitCode::SUCCESS);
                }
                delete_turns(service.log(), &bank, held.iter().map(|held| held.turn.turn.clone()))?;
                service.catch_up()?;
                held.len() as u64
            }
            Memory::There(reached) => {
                let wait_ms = Some(WAIT_MS);
                let request = ForgetTurns { bank: bank.clone(), select, confirm: None, dry_run: true, wait_ms };
                let meant: ForgottenTurns = reached.post("/v1/forget", &request)?;
                if !asks.agree(&bank, meant.turns.unwrap_or_default(), &meant.shown)? {
                    return Ok(ExitCode::SUCCESS);
                }
                let request = ForgetTurns { confirm: meant.confirm, dry_run: false, ..request };
                let forgotten: ForgottenTurns = reached.post("/v1/forget", &request)?;
                if !forgotten.gone {
                    bail!("bank {bank}: the deletions are durable, but answers do not reflect them yet");
                }
                forgotten.turns.unwrap_or_default()
            }
        };
        print(&format!("bank {bank}: {deleted} turns deleted\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The options that decide whether the user is asked before turns are deleted.
struct Asks {
    dry_run: bool,
    yes: bool,
}

impl Asks {
    /// Shows the turns, and returns whether to delete them.
    fn agree(&self, bank: &Bank, count: u64, latest: &[TurnView]) -> Result<bool> {
        if count == 0 {
            print(&format!("bank {bank}: no turn fits the selection\n"))?;
            return Ok(false);
        }
        if self.yes && !self.dry_run {
            return Ok(true);
        }
        print(&format!("bank {bank}: {count} turns, the latest of them:\n"))?;
        for turn in latest {
            print(&table_line(turn))?;
        }
        if self.dry_run {
            return Ok(false);
        }
        let input = std::io::stdin();
        ensure!(input.is_terminal(), "bank {bank}: nothing was deleted; --yes deletes these {count} turns");
        say(&format!("bank {bank}: delete these {count} turns for good? Type yes."));
        let mut answer = String::new();
        input.lock().read_line(&mut answer)?;
        let agreed = answer.trim() == "yes";
        if !agreed {
            print(&format!("bank {bank}: nothing was deleted\n"))?;
        }
        Ok(agreed)
    }
}

/// Deletes turns by their ids, whether the memory holds them or not.
fn forget_ids(pipeline: &Pipeline, bank: &Bank, turns: &[String]) -> Result<ExitCode> {
    let count = turns.len();
    if pipeline.log.kind == LogKind::Kafka {
        let written = delete_turns(&*log::open(&pipeline.log)?, bank, turns.to_vec())?;
        print(&format!(
            "bank {bank}: {count} deletions are in the turns topic, whether the turns exist or not; ask with \
             --after {written} for an answer that reflects them\n"
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut unknown = Vec::new();
    match open_or_reach(pipeline)? {
        Memory::Here(mut service) => {
            service.pause_model();
            service.catch_up()?;
            let held = held_turns(service.log(), bank, &|turn| turns.iter().any(|id| id == turn), count)?;
            let is_held = |id: &String| held.iter().any(|held| held.turn.turn == *id);
            unknown.extend(turns.iter().filter(|id| !is_held(id)).cloned());
            delete_turns(service.log(), bank, turns.to_vec())?;
            service.catch_up()?;
        }
        Memory::There(reached) => {
            let wait_ms = WAIT_MS.to_string();
            for turn in turns {
                let of = [("bank", Some(bank.as_str())), ("turn", Some(turn)), ("wait_ms", Some(&*wait_ms))];
                let forgotten: Forgotten = reached.delete("/v1/turns", &of)?;
                if forgotten.held == Some(false) {
                    unknown.push(turn.clone());
                }
                if !forgotten.gone {
                    bail!("turn {turn:?}: the deletion is durable, but answers do not reflect it yet");
                }
            }
        }
    }
    for turn in &unknown {
        print(&format!("bank {bank}: it holds no turn {turn:?}; a turn with this id that comes later is not kept\n"))?;
    }
    print(&format!("bank {bank}: {} turns deleted\n", count - unknown.len()))?;
    Ok(if unknown.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
