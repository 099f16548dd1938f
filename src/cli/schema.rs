//! `ripplemem schema`.
//!
//! In: a topic's name, or `bank` or `pipeline`. Out: the JSON Schema of its records.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::Args;
use server::api::forget_schemas;
use terminal::print;
use types::schema;

/// Print the JSON Schema of a topic's records.
#[derive(Args)]
pub(crate) struct SchemaArgs {
    /// turns, memory, dead-letters, questions, answers, forgets or forgotten; or bank (an export) or pipeline (a
    /// pipeline file). Without it, the names of all topics.
    topic: Option<String>,
    /// Write the schema of every topic into this directory instead.
    #[arg(long, conflicts_with = "topic")]
    write: Option<PathBuf>,
}

impl SchemaArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let mut schemas = schema::schemas();
        schemas.extend(forget_schemas());
        if let Some(directory) = &self.write {
            for (name, schema) in &schemas {
                let path = directory.join(format!("{name}.v1.json"));
                std::fs::write(&path, schema::schema_text(schema)).with_context(|| path.display().to_string())?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        let names: Vec<&str> = schemas.iter().map(|(name, _)| *name).collect();
        let text = match self.topic.as_deref() {
            None => format!("{}\n", names.join("\n")),
            Some("bank") => schema::schema_text(&schema::bank_schema()),
            Some("pipeline") => schema::schema_text(&schema::pipeline_schema()),
            Some(topic) => {
                let schema = schemas.iter().find(|(name, _)| *name == topic);
                let (_, schema) =
                    schema.with_context(|| format!("{topic:?} is not a topic; write one of {}", names.join(", ")))?;
                schema::schema_text(schema)
            }
        };
        print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}
