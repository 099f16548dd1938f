//! Checks that every number is in the range that its key declares.
//!
//! In: the schema of a pipeline file and a file's table. Out: the first key whose number does not
//! fit. A range is declared once, beside its field (`#[schemars(range(…))]`), and the configuration
//! page shows it.

use serde_json::Value as Json;
use toml::Value;

/// Checks a value of a key, and what is below it.
pub(super) fn check(schema: &Json, value: &Value, key: &str) -> Result<(), String> {
    match value {
        Value::Table(table) => table.iter().try_for_each(|(name, value)| {
            let below = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
            let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
            check(below, value, &key)
        }),
        Value::Array(values) => values.iter().try_for_each(|value| check(&schema["items"], value, key)),
        Value::Integer(number) => check_number(schema, *number as f64, value, key),
        Value::Float(number) => check_number(schema, *number, value, key),
        _ => Ok(()),
    }
}

fn check_number(schema: &Json, number: f64, value: &Value, key: &str) -> Result<(), String> {
    let Some((low, high)) = declared_range(schema) else { return Ok(()) };
    if (low..=high).contains(&number) { Ok(()) } else { Err(format!("{key}: {value} is not within {low} to {high}")) }
}

/// The range that the schema of a key declares.
pub(super) fn declared_range(schema: &Json) -> Option<(f64, f64)> {
    Some((schema["minimum"].as_f64()?, schema["maximum"].as_f64()?))
}
