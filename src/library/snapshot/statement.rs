//! The description of a table in `schemas/tables`, which a test compares with the code.

use arrow_schema::DataType;
use serde::Serialize;

/// Version of the tables.
const VERSION: u32 = 1;

/// The description of a table: pretty JSON with a newline at the end.
pub(super) fn statement(table: &str, description: &str, columns: Vec<StatedColumn>) -> String {
    #[derive(Serialize)]
    struct Statement<'s> {
        table: &'s str,
        version: u32,
        description: &'s str,
        columns: Vec<StatedColumn>,
    }
    let statement = Statement { table, version: VERSION, description, columns };
    let mut text = serde_json::to_string_pretty(&statement).unwrap_or_default();
    text.push('\n');
    text
}

/// The description of a column.
#[derive(Serialize)]
pub(super) struct StatedColumn {
    name: &'static str,
    r#type: String,
    nullable: bool,
    description: &'static str,
}

impl StatedColumn {
    pub(super) fn new(name: &'static str, kind: &DataType, nullable: bool, description: &'static str) -> Self {
        Self { name, r#type: kind.to_string(), nullable, description }
    }
}
