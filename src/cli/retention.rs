//! `ripplemem retention`.
//!
//! In: a pipeline file with rules of retention, and a directory that no service has open; or a log on Kafka, beside its
//! services. Out: how many turns no rule keeps, by bank and rule; they are deleted, except in a dry run. Exit code 3 if
//! a bank is quarantined; it is named, and no rule is applied to it. A running service applies its rules itself.

use std::process::ExitCode;

use anyhow::{Result, bail, ensure};
use clap::Args;
use erasure::{ExpiredTurns, RetentionRule, RetentionRunner as Rules, RetentionScan};
use logs::Log;
use terminal::{REJECTED, print, say};
use types::config::{LogKind, Pipeline};

use super::{
    memory_access::{MemoryAccess, open_or_reach},
    memory_args::MemoryArgs,
};

/// Delete the turns that no rule of retention in the pipeline file keeps, once. A running service does so every day.
#[derive(Args)]
pub(crate) struct RetentionArgs {
    /// Only count them, by bank and rule; delete nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON, a line for each bank and rule.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl RetentionArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let pipeline = self.memory.pipeline()?;
        ensure!(
            !pipeline.retention.is_empty(),
            "retention: the pipeline file has no rule; add a table [[retention]] with bank and keep"
        );
        if pipeline.log.kind == LogKind::Kafka {
            return self.show(&self.applied(&pipeline, &*logs::open(&pipeline.log)?)?);
        }
        let MemoryAccess::Here(mut service) = open_or_reach(&pipeline)? else {
            bail!(
                "a service has {} open, and applies the rules that it was started with itself: `retention` of GET \
                 /v1/status says what it deleted; stop it to count or to delete here",
                pipeline.log.directory.display()
            );
        };
        service.pause_model();
        service.catch_up()?;
        let look = self.applied(&pipeline, service.log())?;
        if !self.dry_run {
            service.catch_up()?;
            // Records the stages that the operations have reached.
            service.receipts()?;
        }
        self.show(&look)
    }

    /// The turns that no rule keeps now; deletes them, except in a dry run.
    fn applied(&self, pipeline: &Pipeline, log: &dyn Log) -> Result<RetentionScan> {
        let (rules, now_ms) = (Rules::of(pipeline, log), jiff::Timestamp::now().as_millisecond());
        let look = rules.scan(now_ms)?;
        if !self.dry_run {
            look.outlived.iter().try_for_each(|of_bank| rules.delete(of_bank, now_ms))?;
        }
        Ok(look)
    }

    fn show(&self, RetentionScan { outlived, quarantined }: &RetentionScan) -> Result<ExitCode> {
        let done = if self.dry_run { "would go" } else { "deleted" };
        for ExpiredTurns { bank, by_rule } in outlived {
            for (RetentionRule { rule, .. }, turns) in by_rule {
                let turns = turns.len();
                let line = if self.json {
                    let deleted = !self.dry_run;
                    serde_json::json!({"bank": bank, "rule": rule, "turns": turns, "deleted": deleted}).to_string()
                } else {
                    format!("bank {bank}: {turns} turns {done} by rule {rule}")
                };
                print(&format!("{line}\n"))?;
            }
        }
        for problem in quarantined {
            say(&format!("{problem}; no rule was applied to it"));
        }
        if !quarantined.is_empty() {
            return Ok(ExitCode::from(REJECTED));
        }
        if outlived.is_empty() && !self.json {
            print("every turn is kept\n")?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
