//! `ripplemem turns`.
//!
//! In: a bank, and a selection of its turns. Out: the turns as the memory holds them, the latest first, as a table for
//! people or as JSON lines. It also works while a service has the directory open, and beside the services on Kafka.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use clap::Args;
use logs::Log;
use memory::recall::one_line;
use pipeline::{Cancellation, StoredTurn, selected_turns, wait_until_listed};
use server::api::{self, TurnView};
use terminal::{print, say};
use types::{
    config::LogKind,
    model::{Bank, Selector},
};

use super::{
    memory_access::{MemoryAccess, open_or_reach},
    memory_args::MemoryArgs,
    selector_args::SelectorArgs,
};

/// Most characters of a turn's text in the table.
const BEGINNING: usize = 100;
/// Most turns that a service lists at once.
const AT_ONCE: usize = 1_000;
/// How long the services on Kafka may take to extract what is durable.
const EXTRACTED: Duration = Duration::from_secs(60);

/// List turns that a bank holds, the latest first.
#[derive(Args)]
pub(crate) struct TurnsArgs {
    /// The bank.
    #[arg(long)]
    bank: String,
    #[command(flatten)]
    select: SelectorArgs,
    /// List at most this many turns.
    #[arg(long, default_value_t = 20)]
    limit: usize,
    /// Print a line of JSON for each turn, with its whole text.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl TurnsArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let (pipeline, bank) = (self.memory.pipeline()?, Bank::parse(&self.bank)?);
        let select = self.select.selector()?;
        if !select.is_empty() {
            select.check()?;
        }
        let latest = |held: &[StoredTurn]| -> (Vec<TurnView>, u64) {
            let more = held.len().saturating_sub(self.limit) as u64;
            (held.iter().rev().take(self.limit).map(TurnView::of).collect(), more)
        };
        let (turns, more) = match pipeline.log.kind {
            LogKind::Kafka => latest(&listed_on_kafka(&*logs::open(&pipeline.log)?, &bank, &select)?),
            LogKind::Embedded => match open_or_reach(&pipeline)? {
                MemoryAccess::Here(mut service) => {
                    service.pause_model();
                    service.catch_up()?;
                    latest(&selected_turns(service.log(), &bank, &select, &Cancellation::default())?)
                }
                MemoryAccess::There(reached) => {
                    let (mut turns, mut before, mut more) = (Vec::new(), None::<String>, 0);
                    while turns.len() < self.limit {
                        let list = api::SelectTurnsRequest {
                            bank: bank.clone(),
                            select: Some(select.clone()).filter(|select| !select.is_empty()),
                            order: None,
                            limit: Some((self.limit - turns.len()).min(AT_ONCE)),
                            before: before.take(),
                        };
                        let listed: api::TurnList = reached.post("/v1/turns/list", &list)?;
                        turns.extend(listed.turns);
                        (before, more) = (listed.next, listed.more);
                        if before.is_none() {
                            break;
                        }
                    }
                    (turns, more)
                }
            },
        };
        for turn in &turns {
            print(&if self.json { format!("{}\n", serde_json::to_string(turn)?) } else { table_line(turn) })?;
        }
        if more > 0 {
            say(&format!("bank {bank}: {more} earlier turns are not listed; --limit lists more"));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The turns of a bank that a selector takes, of a log on Kafka, once the services have extracted all that are durable.
pub(crate) fn listed_on_kafka(log: &dyn Log, bank: &Bank, select: &Selector) -> Result<Vec<StoredTurn>> {
    wait_until_read(log, bank)?;
    Ok(selected_turns(log, bank, select, &Cancellation::default())?)
}

/// Waits until the services on Kafka have extracted all turns of a bank that are durable.
pub(crate) fn wait_until_read(log: &dyn Log, bank: &Bank) -> Result<()> {
    let until = Instant::now() + EXTRACTED;
    ensure!(
        wait_until_listed(log, bank, &|| Instant::now() < until)?,
        "bank {bank}: some durable turns are not extracted yet; start `ripplemem run FILE` with the role \"extract\", \
         or try again in a moment"
    );
    Ok(())
}

/// A turn on one line: its id, its time, its speaker, and the beginning of its text.
pub(crate) fn table_line(turn: &TurnView) -> String {
    let text: String = one_line(&turn.text).chars().take(BEGINNING).collect();
    format!("{}\t{}\t{}: {text}\n", turn.turn, turn.time, one_line(&turn.speaker))
}
