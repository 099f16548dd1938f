//! Our table in settings in TOML, with everything else as it is.
//!
//! In: the text, and a table with its name below another one. Out: the text with it, or without it.

use serde_json::Value;
use toml_edit::{DocumentMut, Item, Table};

use crate::settings_error::SettingsError;

/// A table of ours, `[PARENT.NAME]`, whose whole content is ours.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TomlTable {
    pub(crate) parent: &'static str,
    pub(crate) name: &'static str,
    /// Texts and lists of texts.
    pub(crate) values: Vec<(&'static str, Value)>,
}

/// The text with the table; the same text if it has it.
pub(crate) fn with_table(text: &str, own: &TomlTable) -> Result<String, SettingsError> {
    let mut document = parse(text)?;
    let parent = document.entry(own.parent).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let parent = parent.as_table_like_mut().ok_or(SettingsError::Form("a table in it is none"))?;
    let mut table = Table::new();
    for (name, value) in &own.values {
        table.insert(name, Item::Value(toml_value(value)));
    }
    if parent.get(own.name).is_some_and(|old| is_same(old, own)) {
        return Ok(text.to_owned());
    }
    parent.insert(own.name, Item::Table(table));
    let ends_with_line = text.is_empty() || text.ends_with('\n');
    let written = document.to_string();
    // The editor puts a table behind the last line, which may have no end.
    Ok(if ends_with_line { written } else { with_table(&format!("{text}\n"), own)? })
}

/// The text without the table.
pub(crate) fn without_table(text: &str, own: &TomlTable) -> Result<String, SettingsError> {
    let mut document = parse(text)?;
    let Some(parent) = document.get_mut(own.parent).and_then(Item::as_table_like_mut) else {
        return Ok(text.to_owned());
    };
    if parent.remove(own.name).is_none() {
        return Ok(text.to_owned());
    }
    let is_ours_alone =
        document.get(own.parent).and_then(Item::as_table).is_some_and(|table| table.is_empty() && table.is_implicit());
    if is_ours_alone {
        document.remove(own.parent);
    }
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, SettingsError> {
    text.parse().map_err(|error: toml_edit::TomlError| SettingsError::Text(error.message().to_owned()))
}

fn is_same(old: &Item, own: &TomlTable) -> bool {
    let Some(table) = old.as_table_like() else { return false };
    table.len() == own.values.len()
        && own.values.iter().all(|(name, value)| {
            let plain = |value: &toml_edit::Value| value.clone().decorated("", "").to_string();
            table.get(name).and_then(Item::as_value).is_some_and(|old| plain(old) == plain(&toml_value(value)))
        })
}

fn toml_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::Array(values) => values.iter().map(toml_value).collect(),
        Value::String(text) => text.as_str().into(),
        Value::Bool(is) => (*is).into(),
        Value::Number(number) => number.as_i64().unwrap_or_default().into(),
        other => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_table_comes_and_goes_and_the_rest_stays() {
        let own = TomlTable {
            parent: "mcp_servers",
            name: "ripplemem",
            values: vec![("command", json!("/b")), ("args", json!(["agents", "mcp"]))],
        };
        for text in [
            "",
            "# mine\nmodel = \"gpt-5\"  # a\n",
            "model = \"gpt-5\"",
            "[mcp_servers.x]\ncommand = \"y\" # keep\n\n[projects.\"/k\"]\ntrust_level = \"trusted\"\n",
            "mcp_servers = { x = { command = \"y\" } }\n",
        ] {
            let with = with_table(text, &own).unwrap();
            assert!(with.contains("ripplemem") && with.contains("args"), "{with}");
            assert_eq!(with_table(&with, &own).unwrap(), with, "twice is once");
            let without = without_table(&with, &own).unwrap();
            assert_eq!(without.trim_end(), text.trim_end(), "{with}");
        }
        assert!(with_table("a = ", &own).is_err() && with_table("mcp_servers = 7", &own).is_err());
    }
}
