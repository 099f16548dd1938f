//! `ripplemem diff`.
//!
//! In: a bank and two points of its past. Out: the units and edges that were added and removed
//! between them, as lines or as JSON.

use std::{process::ExitCode, sync::Arc};

use anyhow::Result;
use clap::Args;
use memory::index::{GraphEdge, LiveUnit, UnitBody};
use snapshots::{AsOf, BankDiff};
use terminal::{print, say};
use types::model::Bank;

use super::{as_of_argument::parse_as_of, memory_args::MemoryArgs};

/// Show the units and edges of a bank that were added and removed between two points of its past.
/// With the log on Kafka, only as far as the newest snapshot reaches.
#[derive(Args)]
pub(crate) struct DiffArgs {
    /// The bank.
    #[arg(long)]
    bank: String,
    /// The earlier point: an offset of the bank's partition of the memory topic, or a time of appending in RFC 3339.
    #[arg(long)]
    from: String,
    /// The later point, in the same form. Without it, now.
    #[arg(long)]
    to: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl DiffArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let to = self.to.as_deref().map_or(Ok(AsOf::Offset(u64::MAX)), |text| parse_as_of("--to", text))?;
        let (pipeline, bank) = (self.memory.pipeline()?, Bank::parse(&self.bank)?);
        let from = parse_as_of("--from", &self.from)?;
        let difference = ripplemem::diff(&pipeline, &bank, from, to)?;
        if self.json {
            print_json(&bank, &difference)?
        } else {
            print_lines(&difference)?
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn print_json(bank: &Bank, difference: &BankDiff) -> Result<()> {
    let BankDiff { from, to, units_added, units_removed, edges_added, edges_removed, forgotten, .. } = difference;
    let units = |units: &[Arc<LiveUnit>]| units.iter().map(|unit| (*unit.body).clone()).collect::<Vec<UnitBody>>();
    let edge =
        |e: &GraphEdge| serde_json::json!({ "channel": e.channel, "a": e.a, "b": e.b, "weight": e.weight.as_f64() });
    let edges = |edges: &[GraphEdge]| edges.iter().map(edge).collect::<Vec<serde_json::Value>>();
    let mut value = serde_json::json!({
        "bank": bank, "from": from, "to": to,
        "units_came": units(units_added), "units_went": units(units_removed),
        "edges_came": edges(edges_added), "edges_went": edges(edges_removed),
    });
    if *forgotten > 0 {
        value["forgotten"] = (*forgotten).into();
    }
    print(&format!("{}\n", serde_json::to_string_pretty(&value)?))
}

fn print_lines(difference: &BankDiff) -> Result<()> {
    let BankDiff { from, to, units_added, units_removed, edges_added, edges_removed, forgotten, .. } = difference;
    for (sign, units) in [("+", units_added), ("-", units_removed)] {
        for unit in units {
            print(&format!("{sign} unit {} {}\n", unit.id, unit.body.restatement()))?;
        }
    }
    for (sign, edges) in [("+", edges_added), ("-", edges_removed)] {
        for GraphEdge { channel, a, b, weight, .. } in edges {
            print(&format!("{sign} {channel} edge {a} {b} {:.3}\n", weight.as_f64()))?;
        }
    }
    say(&format!(
        "from offset {from} to offset {to}: units +{} -{}, edges +{} -{}",
        units_added.len(),
        units_removed.len(),
        edges_added.len(),
        edges_removed.len()
    ));
    if *forgotten > 0 {
        say(&format!("not shown: {forgotten} turns that the bank held at one of the two points were forgotten since"));
    }
    Ok(())
}
