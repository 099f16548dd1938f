//! The description of a table in `schemas/tables`, which a test compares with the code.

use arrow_schema::DataType;
use serde::Serialize;

/// Version of the tables.
const VERSION: u32 = 1;

/// The description of a table: pretty JSON with a newline at the end.
pub(super) fn table_description(table: &str, description: &str, columns: Vec<ColumnDescription>) -> String {
    #[derive(Serialize)]
    struct TableDescription<'s> {
        table: &'s str,
        version: u32,
        description: &'s str,
        columns: Vec<ColumnDescription>,
    }
    let statement = TableDescription { table, version: VERSION, description, columns };
    let mut text = serde_json::to_string_pretty(&statement).unwrap_or_default();
    text.push('\n');
    text
}

/// The description of a column.
#[derive(Serialize)]
pub(super) struct ColumnDescription {
    name: &'static str,
    r#type: String,
    nullable: bool,
    description: &'static str,
}

impl ColumnDescription {
    pub(super) fn new(name: &'static str, kind: &DataType, nullable: bool, description: &'static str) -> Self {
        Self { name, r#type: kind.to_string(), nullable, description }
    }
}
