//! The reference of a pipeline file, generated from the settings: a page and a JSON Schema.
//!
//! In: the types of the settings with their doc comments, and the profiles. Out: the text of
//! `docs/configuration.md` and of `schemas/pipeline.v1.json`. The beginning of the page is
//! `page.md`, written by hand; tests fail when a file drifts from this.

use std::fmt::Write;

use schemars::Schema;
use serde_json::{Value as Json, json};
use toml::{Table, Value};

use super::{
    number_ranges,
    pipeline::{LIVE_KEY, SCHEMA},
    profile,
};

const HEAD: &str = include_str!("page.md");

/// The schema of a pipeline file (`schemas/pipeline.v1.json`). Only `version` is required: a profile
/// has every other key.
#[must_use]
pub fn schema() -> Schema {
    let mut schema = SCHEMA.clone();
    fill(&mut schema, &Value::Table(defaults()));
    schema["properties"]["version"] = json!({ "const": 1, "description": text(&schema["properties"]["version"]) });
    schema["required"] = json!(["version"]);
    join_sources(&mut schema);
    schema["description"] = "A pipeline file. Keys are laid over those of its profile.".into();
    Schema::try_from(schema).unwrap_or_default()
}

/// A file writes both `[source]` and `[[source]]` under `source`.
fn join_sources(schema: &mut Json) {
    let Some(properties) = schema.get_mut("properties").and_then(Json::as_object_mut) else { return };
    let Some(mut tables) = properties.remove(LIVE_KEY) else { return };
    let Some(table) = properties.get_mut("source") else { return };
    if let Some(tables) = tables.as_object_mut() {
        tables.remove("default");
    }
    *table = json!({ "anyOf": [table.take(), tables] });
}

fn defaults() -> Table {
    profile::settings(profile::names()[0]).unwrap_or_default()
}

/// Adds the default of each key that has one; such a key is not required.
fn fill(schema: &mut Json, default: &Value) {
    let Value::Table(table) = default else {
        if let Ok(value) = serde_json::to_value(default) {
            schema["default"] = value;
        }
        return;
    };
    if let Some(required) = schema.get_mut("required").and_then(Json::as_array_mut) {
        required.retain(|key| key.as_str().is_none_or(|key| !table.contains_key(key)));
    }
    for (key, value) in table {
        if let Some(below) = schema.get_mut("properties").and_then(|properties| properties.get_mut(key)) {
            fill(below, value);
        } else if let Some(entry) = schema.get_mut("additionalProperties").and_then(Json::as_object_mut) {
            // An entry of the file may be laid over a built-in one.
            entry.remove("required");
        }
    }
}

/// The text of `docs/configuration.md`.
#[must_use]
pub fn reference_page() -> String {
    let mut page = HEAD.to_owned();
    let defaults = defaults();
    table(&mut page, "", &SCHEMA, Some(&defaults));
    profiles(&mut page, &defaults);
    page
}

/// The keys of a table, then the tables below it.
fn table(page: &mut String, path: &str, schema: &Json, defaults: Option<&Table>) {
    let (tables, keys): (Vec<_>, Vec<_>) =
        properties(schema).into_iter().partition(|(_, property)| entries(property).is_some());
    if !keys.is_empty() {
        page.push_str("\n| key | type | default | unit | what it does |\n|---|---|---|---|---|\n");
    }
    for (name, property) in keys {
        let default = defaults.and_then(|d| d.get(name)).map(ToString::to_string).or_else(|| own_default(property));
        let default = default.map_or_else(|| required_or_unset(schema, name).to_owned(), |value| format!("`{value}`"));
        let what = [text(property), choices(property)].join(" ");
        let row = [format!("`{name}`"), kind(property), default, unit_suffix(name).to_owned(), what];
        let _ = writeln!(page, "| {} |", row.map(|cell| cell.trim().replace('|', "\\|")).join(" | "));
    }
    let mut before: Vec<(&str, &Json)> = Vec::new();
    for (name, property) in tables {
        let below = defaults.and_then(|d| d.get(name)).and_then(Value::as_table);
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let depth = "#".repeat(2 + path.matches('.').count().min(2));
        let of_each = property["additionalProperties"].is_object();
        let heading = if of_each { format!("{path}.NAME") } else { path.clone() };
        // The key of the live sources has its brackets in its name.
        let is_list = property["type"] == "array" && name != LIVE_KEY;
        let shown = if is_list { format!("[{heading}]") } else { heading.clone() };
        let _ = writeln!(page, "\n{depth} `[{shown}]`\n\n{}", text(property));
        let Some(entry) = entries(property) else { continue };
        if let Some((twin, _)) = before.iter().find(|(_, other)| other["properties"] == entry["properties"]) {
            let _ = writeln!(
                page,
                "\nThe keys are those of `{twin}`, with these defaults:\n\n| key | default |\n|---|---|"
            );
            let keys = properties(entry).into_iter().filter_map(|(key, _)| Some((key, below?.get(key)?)));
            for (key, value) in keys {
                let _ = writeln!(page, "| `{key}` | `{value}` |");
            }
            continue;
        }
        before.push((name, entry));
        table(page, &heading, entry, below.filter(|_| !of_each));
        if let Some(built_in) = below.filter(|_| of_each) {
            let nested = path.rsplit('.').fold(Value::Table(built_in.clone()), |inner, key| {
                Value::Table(Table::from_iter([(key.to_owned(), inner)]))
            });
            let toml = toml::to_string(&nested).unwrap_or_default();
            let _ = writeln!(page, "\nBuilt-in entries:\n\n```toml\n{}\n```", toml.trim());
        }
    }
}

/// The values, in each profile, of the keys that differ from the defaults.
fn profiles(page: &mut String, defaults: &Table) {
    let of = |name| flat_keys(&profile::settings(name).unwrap_or_default());
    let all = profile::names().map(of);
    page.push_str(
        "\n## Profiles\n\nWhere a profile differs from `default`. Every other key has the default above.\n\n",
    );
    let _ = writeln!(page, "| key | {} |", profile::names().map(|name| format!("`{name}`")).join(" | "));
    let _ = writeln!(page, "|---|{}", "---|".repeat(all.len()));
    for (key, value) in flat_keys(defaults).iter().filter(|(key, _)| key != "profile") {
        let values = all.each_ref().map(|of| of.iter().find(|(k, _)| k == key).map_or(value, |(_, v)| v));
        if values.iter().any(|v| *v != value) {
            let _ = writeln!(page, "| `{key}` | {} |", values.map(|v| format!("`{v}`")).join(" | "));
        }
    }
}

/// Every key with its path.
fn flat_keys(table: &Table) -> Vec<(String, String)> {
    let below = |(key, value): (&String, &Value)| match value {
        Value::Table(table) => flat_keys(table).into_iter().map(|(k, v)| (format!("{key}.{k}"), v)).collect(),
        value => vec![(key.clone(), value.to_string())],
    };
    table.iter().flat_map(below).collect()
}

/// The properties of a table: required keys in the order of their fields, then the others.
fn properties(schema: &Json) -> Vec<(&str, &Json)> {
    let Some(all) = schema["properties"].as_object() else { return Vec::new() };
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    let others = all.keys().map(String::as_str).filter(|key| !required.contains(key));
    required.iter().copied().chain(others).filter_map(|key| Some((key, all.get(key)?))).collect()
}

/// The schema of the keys of a table, or of each entry of a table of tables.
fn entries(schema: &Json) -> Option<&Json> {
    let schema = without_null(schema);
    [schema, &schema["additionalProperties"], &schema["items"]].into_iter().find(|s| s["properties"].is_object())
}

/// The schema without the alternative of null.
fn without_null(schema: &Json) -> &Json {
    schema["anyOf"].as_array().and_then(|any| any.iter().find(|s| s["type"] != "null")).unwrap_or(schema)
}

/// The description on one line.
fn text(schema: &Json) -> String {
    schema["description"].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What each value means, if only certain values are allowed.
fn choices(schema: &Json) -> String {
    let each = |choice: &Json| Some(format!("`{}`: {}", choice["const"], text(choice)));
    variants(schema).iter().filter_map(each).collect::<Vec<_>>().join(" ")
}

fn variants(schema: &Json) -> &[Json] {
    let schema = without_null(schema);
    let of = |schema: &Json| schema["oneOf"].as_array().is_some();
    let schema = if of(&schema["items"]) { &schema["items"] } else { schema };
    schema["oneOf"].as_array().map_or(&[], Vec::as_slice)
}

/// The type in words, with its range.
fn kind(schema: &Json) -> String {
    let schema = without_null(schema);
    let name = match &schema["type"] {
        Json::Array(types) => types.iter().filter_map(Json::as_str).find(|t| *t != "null"),
        name => name.as_str(),
    };
    match name {
        Some("array") => "list of strings".to_owned(),
        Some("object") => "table of strings".to_owned(),
        Some(name @ ("integer" | "number")) => match number_ranges::declared_range(schema) {
            Some((low, high)) => format!("{name}, {low} to {high}"),
            None => name.to_owned(),
        },
        Some(name) => name.to_owned(),
        None => "string".to_owned(),
    }
}

/// The default that serde fills in.
fn own_default(schema: &Json) -> Option<String> {
    schema.get("default").filter(|value| !value.is_null()).map(ToString::to_string)
}

fn required_or_unset(table: &Json, key: &str) -> &'static str {
    let required = table["required"].as_array().is_some_and(|r| r.iter().any(|k| k == key));
    if required { "required" } else { "not set" }
}

/// The unit that a key's name ends in.
fn unit_suffix(key: &str) -> &'static str {
    match key.rsplit('_').next().unwrap_or(key) {
        "ms" => "milliseconds",
        "seconds" => "seconds",
        "minutes" => "minutes",
        "hours" => "hours",
        "days" => "days",
        "minute" => "tokens per minute",
        "tokens" => "tokens",
        "turns" | "overlap" => "turns",
        "words" if key.contains('_') => "words",
        "parts" => "parts",
        "edges" if key.contains('_') => "edges",
        "price" => "currency per million tokens",
        "cost" => "currency",
        "budget" => "units",
        _ => "",
    }
}
