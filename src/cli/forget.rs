//! `ripplemem forget`.
//!
//! In: turns of a bank, by their ids or by a selector. Out: they are deleted durably, and answers reflect it. With the
//! log on Kafka, the deletions are only written to the turns topic; a running service reads them, and writes the
//! receipts. Turns that are not named by ids are first counted and shown, and only deleted once the user agrees.

use std::{
    collections::HashSet,
    io::{BufRead, IsTerminal},
    process::ExitCode,
};

use anyhow::{Result, bail, ensure};
use clap::Args;
use erasure::{
    DurableDeletion, Receipt, empty_letters, forget_turns, letters_with, stored_dead_letters, stored_receipts,
};
use pipeline::{Cancellation, selected_turns};
use server::api::{ForgetTurnsRequest, ForgetTurnsResponse, TurnView};
use terminal::{print, say};
use types::{
    config::{LogKind, Pipeline},
    model::{Bank, MetadataCondition, Selector, ValueTest},
};

use super::{
    forget_receipts::{erase_now, print_receipts, receipt_line},
    forget_verification::verified,
    memory_access::{MemoryAccess, open_or_reach},
    memory_args::MemoryArgs,
    selector_args::SelectorArgs,
    turn_ids::{whole_id, whole_id_on_kafka, whole_id_there},
    turns::{listed_on_kafka, table_line},
};

/// How many milliseconds a service may wait at most.
const WAIT_MS: u64 = 600_000;
/// Most turns that are shown before they are deleted.
const SHOWN: usize = 20;

/// Delete turns: afterwards no answer uses them, and no redelivery or older export brings them back.
#[derive(Args)]
pub(crate) struct ForgetArgs {
    /// The ids of the turns. Without ids, select the turns with the options below.
    turns: Vec<String>,
    /// The bank of the turns.
    #[arg(long, required_unless_present_any = ["list", "erase_now", "verify"])]
    bank: Option<String>,
    #[command(flatten)]
    select: SelectorArgs,
    /// Turns of this project, as coding agents' transcripts name it, such as kite-44d4fb.
    #[arg(long)]
    project: Option<String>,
    /// Every turn of the bank.
    #[arg(long)]
    all: bool,
    /// Only count the turns and show the latest; delete nothing.
    #[arg(long)]
    dry_run: bool,
    /// Delete without asking.
    #[arg(long)]
    yes: bool,
    /// Say what became of each operation that forgot turns; with --bank, of those of this bank.
    #[arg(long, conflicts_with_all = ["turns", "speakers", "mentions", "since", "until", "session", "thread", "project", "all",
        "dry_run", "erase_now"])]
    list: bool,
    /// Erase the words of all turns that were deleted from every stored byte, now; with turns, after deleting those
    /// that are left.
    #[arg(long)]
    erase_now: bool,
    /// Read every stored byte, and say whether --words are gone (exit code 0), still to be erased by a stated time (3),
    /// or stored although they should not be (1). Without --words, look for the fingerprints of each operation.
    #[arg(long, conflicts_with_all = ["turns", "bank", "speakers", "mentions", "since", "until", "session", "thread",
        "project", "all", "dry_run", "erase_now", "list"])]
    verify: bool,
    /// Words to look for with --verify; - reads them from standard input, one a line. May be given several times.
    #[arg(long, requires = "verify", allow_hyphen_values = true)]
    words: Vec<String>,
    /// Print receipts as JSON, one a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl ForgetArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let pipeline = self.memory.pipeline()?;
        let bank = self.bank.as_deref().map(Bank::parse).transpose()?;
        if self.verify {
            return verified(&pipeline, self.words);
        }
        if self.list {
            return print_receipts(&pipeline, bank.as_ref(), self.json);
        }
        let metadata = self.project.map(|project| MetadataCondition::Field {
            path: vec!["project".to_owned()],
            test: ValueTest::Eq(project.into()),
        });
        let select = Selector { all: self.all, metadata, ..self.select.selector()? };
        let turns = self.turns;
        let names_turns = !turns.is_empty() || !select.is_empty();
        let Some(bank) = bank.filter(|_| names_turns || !self.erase_now) else {
            ensure!(!names_turns, "--bank: missing; name the bank of the turns");
            return erase_now(&pipeline, self.json);
        };
        let asks = ForgetOptions { dry_run: self.dry_run, yes: self.yes, json: self.json };
        let code = if turns.is_empty() {
            if forget_selected(&pipeline, &bank, select, &asks)? == ForgetDecision::Keep {
                return Ok(ExitCode::SUCCESS);
            }
            ExitCode::SUCCESS
        } else {
            ensure!(
                select.is_empty() && !self.dry_run,
                "ids of turns exclude --dry-run and options such as --speaker; use one or the other"
            );
            forget_ids(&pipeline, &bank, &turns, self.json)?
        };
        if self.erase_now {
            erase_now(&pipeline, self.json)?;
        }
        Ok(code)
    }
}

/// Deletes the turns that a selector takes, if the user agrees; returns the decision.
fn forget_selected(pipeline: &Pipeline, bank: &Bank, select: Selector, asks: &ForgetOptions) -> Result<ForgetDecision> {
    ensure!(
        !select.is_empty(),
        "nothing is named: give ids of turns, or --speaker, --since, --until, --session, --thread, --mentions, --project or --all"
    );
    select.check()?;
    if pipeline.log.kind == LogKind::Kafka {
        let log = logs::open(&pipeline.log)?;
        let held = listed_on_kafka(&*log, bank, &select)?;
        let latest: Vec<TurnView> = held.iter().rev().take(SHOWN).map(TurnView::of).collect();
        let decision = asks.decide(bank, held.len() as u64, 0, &latest)?;
        if decision == ForgetDecision::Delete {
            let ids = held.iter().map(|held| held.turn.turn.clone());
            let deleted = forget_turns(&*log, &pipeline.forget, bank, ids)?;
            show_on_kafka(pipeline, &deleted, asks.json)?;
        }
        return Ok(decision);
    }
    let (deleted, letters, receipt) = match open_or_reach(pipeline)? {
        MemoryAccess::Here(mut service) => {
            service.pause_model();
            service.catch_up()?;
            let held = selected_turns(service.log(), bank, &select, &Cancellation::default())?;
            let latest: Vec<TurnView> = held.iter().rev().take(SHOWN).map(TurnView::of).collect();
            let letters = letters_with(bank, &select, true);
            let count = letters
                .as_ref()
                .map_or(Ok(0), |of| stored_dead_letters(service.log(), of, 0).map(|held| held.count))?;
            let decision = asks.decide(bank, held.len() as u64, count, &latest)?;
            if decision != ForgetDecision::Delete {
                return Ok(decision);
            }
            let ids: Vec<String> = held.iter().map(|held| held.turn.turn.clone()).collect();
            let deleted = match ids.is_empty() {
                true => None,
                false => Some(forget_turns(service.log(), &pipeline.forget, bank, ids)?),
            };
            let emptied = |of| empty_letters(service.log(), &pipeline.forget, of, deleted.as_ref());
            let letters = letters.as_ref().map_or(Ok(0), emptied)?;
            service.catch_up()?;
            let of_this = |receipt: &Receipt| {
                deleted.as_ref().is_some_and(|deleted| receipt.operation == deleted.operation.operation)
            };
            (held.len() as u64, letters, service.receipts()?.into_iter().find(of_this))
        }
        MemoryAccess::There(reached) => {
            let (bank, wait_ms) = (bank.clone(), Some(WAIT_MS));
            let request = ForgetTurnsRequest { bank, select, confirm: None, unheld: false, dry_run: true, wait_ms };
            let meant: ForgetTurnsResponse = reached.post("/v1/forget", &request)?;
            let turns = meant.turns.unwrap_or_default();
            let decision = asks.decide(&request.bank, turns, meant.dead_letters, &meant.shown)?;
            if decision != ForgetDecision::Delete {
                return Ok(decision);
            }
            let request = ForgetTurnsRequest { confirm: meant.confirm, dry_run: false, ..request };
            let forgotten: ForgetTurnsResponse = reached.post("/v1/forget", &request)?;
            if !forgotten.gone {
                bail!("bank {}: the deletions are durable, but answers do not reflect them yet", request.bank);
            }
            (forgotten.turns.unwrap_or_default(), forgotten.dead_letters, forgotten.receipt)
        }
    };
    show(bank, deleted, receipt.as_ref(), asks.json)?;
    if letters > 0 {
        tell(&format!("bank {bank}: {letters} dead letters removed"), asks.json)?;
    }
    Ok(ForgetDecision::Delete)
}

/// Prints a line about turns: to stdout, or with `json` to stderr, since stdout then has the receipts.
fn tell(line: &str, json: bool) -> Result<()> {
    if json {
        say(line);
        return Ok(());
    }
    print(&format!("{line}\n"))
}

/// Prints how many turns were deleted, and the receipt.
fn show(bank: &Bank, deleted: u64, receipt: Option<&Receipt>, json: bool) -> Result<()> {
    match receipt {
        Some(receipt) if json => print(&format!("{}\n", serde_json::to_string(receipt)?)),
        _ => {
            receipt.iter().for_each(|receipt| say(&receipt_line(receipt)));
            tell(&format!("bank {bank}: {deleted} turns deleted"), json)
        }
    }
}

/// Prints how many deletions were written to the turns topic, and the receipt.
fn show_on_kafka(pipeline: &Pipeline, deleted: &DurableDeletion, json: bool) -> Result<()> {
    let DurableDeletion { written, operation } = deleted;
    let of_this = |receipt: &Receipt| receipt.operation == operation.operation;
    match stored_receipts(pipeline)?.into_iter().find(of_this) {
        Some(receipt) if json => print(&format!("{}\n", serde_json::to_string(&receipt)?)),
        receipt => {
            receipt.iter().for_each(|receipt| say(&receipt_line(receipt)));
            let (bank, turns) = (&operation.bank, operation.turns);
            let line = format!(
                "bank {bank}: {turns} deletions are in the turns topic; ask with --after {written} for an answer that \
                 reflects them"
            );
            tell(&line, json)
        }
    }
}

/// The options that decide whether the user is asked before turns are deleted.
struct ForgetOptions {
    dry_run: bool,
    yes: bool,
    json: bool,
}

/// What is done with the turns that a selector takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ForgetDecision {
    Delete,
    /// No turn is selected, for example because the same request was made before.
    NoneLeft,
    /// It is a dry run, or the user said no.
    Keep,
}

impl ForgetOptions {
    /// Shows the turns, says how many dead letters are removed with them, and returns what to do.
    fn decide(&self, bank: &Bank, count: u64, letters: u64, latest: &[TurnView]) -> Result<ForgetDecision> {
        if letters > 0 {
            tell(&format!("bank {bank}: {letters} dead letters of the same speaker or bank"), self.json)?;
        }
        if count == 0 && letters == 0 {
            tell(&format!("bank {bank}: no turn fits the selection"), self.json)?;
            return Ok(if self.dry_run { ForgetDecision::Keep } else { ForgetDecision::NoneLeft });
        }
        if self.yes && !self.dry_run {
            return Ok(ForgetDecision::Delete);
        }
        tell(&format!("bank {bank}: {count} turns, the latest of them:"), self.json)?;
        for turn in latest {
            tell(table_line(turn).trim_end_matches('\n'), self.json)?;
        }
        if self.dry_run {
            return Ok(ForgetDecision::Keep);
        }
        let input = std::io::stdin();
        ensure!(input.is_terminal(), "bank {bank}: nothing was deleted; --yes deletes these {count} turns");
        say(&format!("bank {bank}: delete these {count} turns for good? Type yes."));
        let mut answer = String::new();
        input.lock().read_line(&mut answer)?;
        if answer.trim() == "yes" {
            return Ok(ForgetDecision::Delete);
        }
        tell(&format!("bank {bank}: nothing was deleted"), self.json)?;
        Ok(ForgetDecision::Keep)
    }
}

/// The whole ids of turns, each once.
fn each_once(turns: &[String], mut whole: impl FnMut(String) -> Result<String>) -> Result<Vec<String>> {
    let (mut named, mut ids) = (HashSet::new(), Vec::with_capacity(turns.len()));
    for turn in turns {
        let id = whole(turn.clone())?;
        if named.insert(id.clone()) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// Deletes turns by their ids or short ids. A whole id is deleted even if the memory does not hold the turn.
fn forget_ids(pipeline: &Pipeline, bank: &Bank, turns: &[String], json: bool) -> Result<ExitCode> {
    Selector { turns: turns.to_vec(), ..Selector::default() }.check()?;
    if pipeline.log.kind == LogKind::Kafka {
        let log = logs::open(&pipeline.log)?;
        let turns = each_once(turns, |turn| whole_id_on_kafka(&*log, bank, turn))?;
        let deleted = forget_turns(&*log, &pipeline.forget, bank, turns)?;
        show_on_kafka(pipeline, &deleted, json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (count, unknown, receipt) = match open_or_reach(pipeline)? {
        MemoryAccess::Here(mut service) => {
            service.pause_model();
            service.catch_up()?;
            let turns = each_once(turns, |turn| whole_id(service.log(), bank, turn))?;
            let (count, select) = (turns.len(), Selector { turns: turns.clone(), ..Selector::default() });
            let held = selected_turns(service.log(), bank, &select, &Cancellation::default())?;
            let held: HashSet<&str> = held.iter().map(|held| held.turn.turn.as_str()).collect();
            let unknown: Vec<String> = turns.iter().filter(|id| !held.contains(id.as_str())).cloned().collect();
            let deleted = forget_turns(service.log(), &pipeline.forget, bank, turns)?;
            service.catch_up()?;
            let mut receipts = service.receipts()?.into_iter();
            (count, unknown, receipts.find(|receipt| receipt.operation == deleted.operation.operation))
        }
        MemoryAccess::There(reached) => {
            let turns = each_once(turns, |turn| whole_id_there(&reached, bank, turn))?;
            let (count, select) = (turns.len(), Selector { turns, ..Selector::default() });
            let (bank, wait_ms) = (bank.clone(), Some(WAIT_MS));
            let request = ForgetTurnsRequest { bank, select, confirm: None, unheld: true, dry_run: false, wait_ms };
            let forgotten: ForgetTurnsResponse = reached.post("/v1/forget", &request)?;
            if !forgotten.gone {
                bail!("bank {}: the deletions are durable, but answers do not reflect them yet", request.bank);
            }
            (count, forgotten.not_held, forgotten.receipt)
        }
    };
    for turn in &unknown {
        tell(
            &format!("bank {bank}: it holds no turn {turn:?}; a turn with this id that comes later is not kept"),
            json,
        )?;
    }
    show(bank, (count - unknown.len()) as u64, receipt.as_ref(), json)?;
    Ok(if unknown.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
