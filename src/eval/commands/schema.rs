//! `ripplemem-eval schema`.
//!
//! In: the name of a file that an evaluation writes. Out: its JSON Schema.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use nouns::schema::text;
use terminal::print;

/// Print the JSON Schema of a result or of a file of --report.
#[derive(Args)]
pub(crate) struct Schema {
    /// What --json prints, or report.json or a file of questions/ in a report.
    of: File,
}

/// What has a schema.
#[derive(Clone, Copy, ValueEnum)]
enum File {
    /// What --json prints.
    Eval,
    /// report.json.
    Report,
    /// A file of questions/.
    ReportQuestion,
}

impl Schema {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let schema = match self.of {
            File::Eval => eval::schema(),
            File::Report => eval::report_schema(),
            File::ReportQuestion => eval::question_report_schema(),
        };
        print(&text(&schema))?;
        Ok(ExitCode::SUCCESS)
    }
}
