//! `ripplemem-eval schema`.
//!
//! In: the name of a file that an evaluation writes. Out: its JSON Schema.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use terminal::print;
use types::schema::schema_text;

/// Print the JSON Schema of a result or of a file of --report.
#[derive(Args)]
pub(crate) struct EvalSchemaArgs {
    /// What --json prints, or report.json or a file of questions/ in a report.
    of: EvalSchemaKind,
}

/// What has a schema.
#[derive(Clone, Copy, ValueEnum)]
enum EvalSchemaKind {
    /// What --json prints.
    Eval,
    /// report.json.
    Report,
    /// A file of questions/.
    ReportQuestion,
}

impl EvalSchemaArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let schema = match self.of {
            EvalSchemaKind::Eval => eval::schema(),
            EvalSchemaKind::Report => eval::report_schema(),
            EvalSchemaKind::ReportQuestion => eval::question_report_schema(),
        };
        print(&schema_text(&schema))?;
        Ok(ExitCode::SUCCESS)
    }
}
