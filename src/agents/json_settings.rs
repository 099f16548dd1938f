//! Our entries in settings in JSON, with comments and trailing commas as they are.
//!
//! In: the text of the settings, and entries: members of objects, and elements of arrays. Out: the text with them, or
//! without them. What is not ours stays byte for byte; of ours, nothing stays, not even an object that it alone filled.

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstNode, CstObject, CstRootNode},
};
use serde_json::Value;

use crate::settings_error::SettingsError;

/// An entry of ours.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum JsonEntry {
    /// A member of the object at a path, whose whole value is ours.
    Member { path: &'static [&'static str], name: &'static str, value: Value },
    /// An element of the array at a path. Ours are those that hold the mark in any of their texts.
    Element { path: Vec<String>, mark: String, value: Value },
}

/// The text with the entries; the same text if it has them all.
pub(crate) fn with_entries(text: &str, entries: &[JsonEntry]) -> Result<String, SettingsError> {
    let root = parse(text)?;
    // A file without an object would be overwritten: it is somebody's mistake, and stays.
    let object = match root.value() {
        None => root.object_value_or_set(),
        Some(_) => root.object_value().ok_or(SettingsError::Form("it is not an object"))?,
    };
    for entry in entries {
        match entry {
            JsonEntry::Member { path, name, value } => {
                let parent = descend(&object, path)?;
                match parent.get(name) {
                    Some(member) if member.to_serde_value().is_some_and(|old| old == *value) => {}
                    Some(member) => member.set_value(input(value)),
                    None => drop(parent.append(name, input(value))),
                }
            }
            JsonEntry::Element { path, mark, value } => {
                let (name, parents) = path.split_last().ok_or(SettingsError::Form("no place in it is named"))?;
                let parents: Vec<&str> = parents.iter().map(String::as_str).collect();
                let parent = descend(&object, &parents)?;
                let array = match parent.get(name) {
                    Some(member) => member.array_value().ok_or(SettingsError::Form("a list in it is none"))?,
                    None => parent.array_value_or_set(name),
                };
                let own: Vec<CstNode> = array.elements().into_iter().filter(|node| is_own(node, mark)).collect();
                let is_there = own.len() == 1 && own.iter().all(|node| node.to_serde_value().as_ref() == Some(value));
                if !is_there {
                    own.into_iter().for_each(CstNode::remove);
                    array.append(input(value));
                }
            }
        }
    }
    Ok(root.to_string())
}

/// The text without the entries, and without objects and arrays that only they filled.
pub(crate) fn without_entries(text: &str, entries: &[JsonEntry]) -> Result<String, SettingsError> {
    let root = parse(text)?;
    let Some(object) = root.object_value() else { return Ok(text.to_owned()) };
    for entry in entries {
        let (path, is_removed) = match entry {
            JsonEntry::Member { path, name, .. } => {
                let path: Vec<String> = path.iter().map(|part| (*part).to_owned()).collect();
                let member = find(&object, &path).and_then(|parent| parent.get(name));
                let is_there = member.is_some();
                member.into_iter().for_each(|member| member.remove());
                (path, is_there)
            }
            JsonEntry::Element { path, mark, .. } => {
                let Some((name, parents)) = path.split_last() else { continue };
                let member = find(&object, parents).and_then(|parent| parent.get(name));
                let array = member.and_then(|member| member.array_value());
                let own: Vec<CstNode> =
                    array.iter().flat_map(|array| array.elements()).filter(|node| is_own(node, mark)).collect();
                let is_there = !own.is_empty();
                own.into_iter().for_each(CstNode::remove);
                (path.clone(), is_there)
            }
        };
        if is_removed {
            remove_empty(&object, &path);
        }
    }
    Ok(root.to_string())
}

fn parse(text: &str) -> Result<CstRootNode, SettingsError> {
    let options = ParseOptions { allow_missing_commas: false, ..ParseOptions::default() };
    CstRootNode::parse(text, &options).map_err(|error| SettingsError::Text(error.to_string()))
}

/// The object at a path; makes what is missing of it.
fn descend(object: &CstObject, path: &[&str]) -> Result<CstObject, SettingsError> {
    let mut here = object.clone();
    for part in path {
        here = match here.get(part) {
            Some(member) => member.object_value().ok_or(SettingsError::Form("an object in it is none"))?,
            None => here.object_value_or_set(part),
        };
    }
    Ok(here)
}

fn find(object: &CstObject, path: &[String]) -> Option<CstObject> {
    path.iter().try_fold(object.clone(), |here, part| here.object_value(part))
}

/// Removes the member at a path while it is empty, and those around it likewise.
fn remove_empty(object: &CstObject, path: &[String]) {
    for depth in (1..=path.len()).rev() {
        let Some((name, parents)) = path.get(..depth).and_then(<[String]>::split_last) else { return };
        let Some(member) = find(object, parents).and_then(|parent| parent.get(name)) else { return };
        let is_empty = match member.to_serde_value() {
            Some(Value::Object(members)) => members.is_empty(),
            Some(Value::Array(elements)) => elements.is_empty(),
            _ => false,
        };
        if !is_empty {
            return;
        }
        member.remove();
    }
}

fn is_own(node: &CstNode, mark: &str) -> bool {
    fn holds(value: &Value, mark: &str) -> bool {
        match value {
            Value::String(text) => text.contains(mark),
            Value::Array(values) => values.iter().any(|value| holds(value, mark)),
            Value::Object(members) => members.values().any(|value| holds(value, mark)),
            _ => false,
        }
    }
    node.to_serde_value().is_some_and(|value| holds(&value, mark))
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(is) => CstInputValue::Bool(*is),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entries() -> Vec<JsonEntry> {
        vec![
            JsonEntry::Element {
                path: vec!["hooks".to_owned(), "SessionStart".to_owned()],
                mark: "agents hook claude-code".to_owned(),
                value: json!({"hooks": [{"type": "command", "command": "/b agents hook claude-code SessionStart"}]}),
            },
            JsonEntry::Member { path: &["mcpServers"], name: "ripplemem", value: json!({"command": "/b"}) },
        ]
    }

    #[test]
    fn entries_come_and_go_and_the_rest_stays() {
        for text in [
            "",
            "{}",
            "{\n}\n",
            "{\n  // mine\n  \"model\": \"opus\", /* a */\n  \"hooks\": {\n    \"Stop\": [],\n  },\n}\n",
            "{\"hooks\":{\"SessionStart\":[{\"hooks\":[{\"command\":\"other\"}]}]},\"mcpServers\":{\"x\":{}}}",
            "{\r\n\t\"a\": [1, 2],\r\n\t\"mcpServers\": {\r\n\t\t\"x\": {} // keep\r\n\t}\r\n}\r\n",
        ] {
            let with = with_entries(text, &entries()).unwrap();
            let value = jsonc_parser_value(&with);
            assert_eq!(value["mcpServers"]["ripplemem"], json!({"command": "/b"}), "{with}");
            let hooks = value["hooks"]["SessionStart"].as_array().unwrap();
            assert!(hooks.last().unwrap().to_string().contains("agents hook"), "{with}");
            assert_eq!(with_entries(&with, &entries()).unwrap(), with, "twice is once");
            for comment in ["// mine", "/* a */", "// keep"] {
                assert_eq!(text.contains(comment), with.contains(comment), "{with}");
            }
            let without = without_entries(&with, &entries()).unwrap();
            let (before, after) = (jsonc_parser_value(if text.is_empty() { "{}" } else { text }), &without);
            assert_eq!(jsonc_parser_value(after), before, "{without}");
            for comment in ["// mine", "/* a */", "// keep"] {
                assert_eq!(text.contains(comment), without.contains(comment), "{without}");
            }
        }
    }

    #[test]
    fn a_changed_entry_is_replaced_and_no_other_touched() {
        let with = with_entries("{\"hooks\": {\"SessionStart\": [\"mine\"]}}", &entries()).unwrap();
        let mut moved = entries();
        if let Some(JsonEntry::Element { value, .. }) = moved.first_mut() {
            *value = json!({"command": "/elsewhere agents hook claude-code SessionStart"});
        }
        let value = jsonc_parser_value(&with_entries(&with, &moved).unwrap());
        let hooks = value["hooks"]["SessionStart"].as_array().unwrap().clone();
        assert_eq!((hooks.len(), &hooks[0]), (2, &json!("mine")));
        assert!(hooks[1].to_string().contains("elsewhere"));
    }

    #[test]
    fn what_is_no_object_stays() {
        for text in ["[]", "7", "{\"hooks\": 7}", "{\"hooks\": {\"SessionStart\": {}}}", "{\"a\" 1}", "{"] {
            assert!(with_entries(text, &entries()).is_err(), "{text}");
        }
        assert_eq!(without_entries("[]", &entries()).unwrap(), "[]");
    }

    fn jsonc_parser_value(text: &str) -> Value {
        parse(text).unwrap().to_serde_value().unwrap()
    }
}
