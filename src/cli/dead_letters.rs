//! `ripplemem dead-letters`.
//!
//! In: a selection of dead letters, by words, senders, reasons, sources or bank. Out: their number and the latest ones;
//! with `--remove`, once the user agrees, they are removed from every stored byte. On Kafka they are only listed; the
//! topic's retention removes them.

use std::{
    io::{BufRead as _, IsTerminal as _},
    process::ExitCode,
};

use anyhow::{Result, ensure};
use clap::Args;
use erasure::{DeadLetterList, ErasureReport, LetterSelector, empty_letters, stored_dead_letters};
use memory::recall::one_line;
use server::api::{self, DeadLetterView, DeadLettersRequest};
use terminal::{print, say};
use types::{
    config::{LogKind, Pipeline},
    model::Bank,
};

use super::{
    forget_receipts::{ensure_embedded, erased_line},
    memory_access::{MemoryAccess, open_or_reach},
    memory_args::MemoryArgs,
};

/// The number of characters of a record that its line shows.
const BEGINNING: usize = 80;

/// List the records that were rejected (dead letters), or remove them.
#[derive(Args)]
pub(crate) struct DeadLettersArgs {
    /// Letters that hold these words, in whatever form they are typed; - reads them from standard input, one a line.
    /// May be given several times.
    #[arg(long, allow_hyphen_values = true)]
    words: Vec<String>,
    /// Letters whose record states this whole name as its sender. May be given several times.
    #[arg(long = "sender", value_name = "NAME")]
    senders: Vec<String>,
    /// Letters whose reason holds this text. May be given several times.
    #[arg(long = "reason", value_name = "TEXT")]
    reasons: Vec<String>,
    /// Letters whose source holds this text, such as the name of a file. May be given several times.
    #[arg(long = "source", value_name = "TEXT")]
    sources: Vec<String>,
    /// Letters of this bank.
    #[arg(long)]
    bank: Option<String>,
    /// With --bank: also those whose bank cannot be read.
    #[arg(long, requires = "bank")]
    bankless: bool,
    /// Every letter.
    #[arg(long)]
    all: bool,
    /// Remove them from every stored byte.
    #[arg(long)]
    remove: bool,
    /// With --remove: without asking.
    #[arg(long, requires = "remove")]
    yes: bool,
    /// Most letters that are shown, the latest.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(0..=1_000))]
    limit: u64,
    /// Print letters as JSON, one a line, with their records.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl DeadLettersArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let pipeline = self.memory.pipeline()?;
        let mut words = Vec::new();
        for word in self.words {
            if word == "-" {
                let lines = std::io::stdin().lock().lines().collect::<std::io::Result<Vec<String>>>()?;
                words.extend(lines.into_iter().filter(|line| !line.trim().is_empty()));
            } else {
                words.push(word);
            }
        }
        let mut select = LetterSelector {
            words,
            senders: self.senders,
            reasons: self.reasons,
            sources: self.sources,
            bank: self.bank.as_deref().map(Bank::parse).transpose()?,
            bankless: self.bankless,
            all: self.all,
        };
        if !self.remove && select == LetterSelector::default() {
            // A list of everything shows no more than `ripplemem tap dead-letters` does.
            select.all = true;
        }
        select.check()?;
        if self.remove {
            ensure_embedded(&pipeline)?;
        }
        let asked =
            DeadLetterOptions { limit: self.limit as usize, json: self.json, remove: self.remove, yes: self.yes };
        asked.carry_out(&pipeline, select)
    }
}

/// How the selected dead letters are shown, and whether they are removed.
struct DeadLetterOptions {
    limit: usize,
    json: bool,
    remove: bool,
    yes: bool,
}

impl DeadLetterOptions {
    fn carry_out(&self, pipeline: &Pipeline, select: LetterSelector) -> Result<ExitCode> {
        let listed = |DeadLetterList { count, latest }: DeadLetterList| -> (u64, Vec<DeadLetterView>) {
            (count, latest.into_iter().map(DeadLetterView::of).collect())
        };
        if pipeline.log.kind == LogKind::Kafka {
            let (count, shown) = listed(stored_dead_letters(&*logs::open(&pipeline.log)?, &select, self.limit)?);
            return self.show(count, &shown).map(|()| ExitCode::SUCCESS);
        }
        let (removed, erased): (u64, Option<ErasureReport>) = match open_or_reach(pipeline)? {
            MemoryAccess::Here(mut service) => {
                let (count, shown) = listed(stored_dead_letters(service.log(), &select, self.limit)?);
                self.show(count, &shown)?;
                if !self.is_agreed(count)? {
                    return Ok(ExitCode::SUCCESS);
                }
                service.pause_model();
                service.catch_up()?;
                let removed = empty_letters(service.log(), &pipeline.forget, &select, None)?;
                (removed, if removed > 0 { Some(service.erase()?) } else { None })
            }
            MemoryAccess::There(reached) => {
                let list = DeadLettersRequest { select, remove: false, limit: Some(self.limit) };
                let api::DeadLettersResponse { letters, shown, .. } = reached.post("/v1/admin/dead-letters", &list)?;
                self.show(letters, &shown)?;
                if !self.is_agreed(letters)? {
                    return Ok(ExitCode::SUCCESS);
                }
                let remove = DeadLettersRequest { remove: true, limit: Some(0), ..list };
                let api::DeadLettersResponse { removed, erased, .. } =
                    reached.post("/v1/admin/dead-letters", &remove)?;
                (removed.unwrap_or_default(), erased)
            }
        };
        if let Some(erased) = erased {
            say(&erased_line(erased));
        }
        print(&format!("{removed} dead letters removed\n"))?;
        Ok(ExitCode::SUCCESS)
    }

    fn show(&self, count: u64, shown: &[DeadLetterView]) -> Result<()> {
        for letter in shown {
            let line = if self.json {
                serde_json::to_string(letter)?
            } else {
                let DeadLetterView { offset, at, bank, origin, reason, payload } = letter;
                let beginning: String = one_line(payload).chars().take(BEGINNING).collect();
                let bank = bank.as_ref().map(|bank| format!(", bank {bank}")).unwrap_or_default();
                let (origin, reason) = (one_line(origin), one_line(reason));
                format!("{offset}\t{at:.0}\t{origin}{bank}\t{reason}\t{beginning}")
            };
            print(&format!("{line}\n"))?;
        }
        say(&format!("{count} dead letters"));
        Ok(())
    }

    /// Whether the dead letters are to be removed; asks the user without `--yes`.
    fn is_agreed(&self, count: u64) -> Result<bool> {
        if !self.remove || count == 0 || self.yes {
            return Ok(self.remove && count > 0);
        }
        let input = std::io::stdin();
        ensure!(input.is_terminal(), "nothing was removed; --yes removes these {count} dead letters");
        say(&format!("remove these {count} dead letters for good? Type yes."));
        let mut answer = String::new();
        input.lock().read_line(&mut answer)?;
        Ok(answer.trim() == "yes")
    }
}
