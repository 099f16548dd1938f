//! The arguments that say where turns come from.
//!
//! In: a format, a path and their options. Out: settings of a source, and a bank.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use ripplemem::{
    config::SourceSettings,
    model::Bank,
    source::{self, FORMATS},
};

/// Where turns come from.
#[derive(Args)]
pub(crate) struct SourceArguments {
    #[arg(help = format_help("The format"), long_help = format_long_help())]
    format: String,
    /// The file, or - for standard input where the format allows it.
    path: PathBuf,
    /// The bank of records that name none. For the datasets, the prefix of each conversation's bank.
    #[arg(long)]
    bank: Option<String>,
    /// The UTC offset of times that name none, such as +02:00.
    #[arg(long, default_value = "+00:00")]
    zone: String,
    #[arg(long, value_delimiter = ',', help = only_help())]
    only: Vec<String>,
}

impl SourceArguments {
    /// The settings of the source, and the bank of `--bank`.
    pub(crate) fn settings(self) -> Result<(SourceSettings, Option<Bank>)> {
        let bank = self.bank.as_deref().map(Bank::parse).transpose()?;
        Ok((SourceSettings { format: self.format, path: self.path, zone: self.zone, only: self.only }, bank))
    }
}

/// Names every format after `what`.
pub(crate) fn format_help(what: &str) -> String {
    format!("{what}: {}", source::format_names(" or "))
}

/// One line for each format.
fn format_long_help() -> String {
    let lines = FORMATS.iter().map(|format| format!("\n  {:<14}{}", format.name, format.about));
    format!("The format:{}", lines.collect::<String>())
}

/// What `--only` chooses in each format that can be divided.
fn only_help() -> String {
    let parts: Vec<String> =
        FORMATS.iter().filter_map(|format| Some(format!("{} ({})", format.only?, format.name))).collect();
    format!("Only these {}", parts.join(", "))
}
