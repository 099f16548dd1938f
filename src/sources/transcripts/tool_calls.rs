//! Calls of tools in few words.
//!
//! In: the calls of an answer, in the forms in which programs write them. Out: the name of each tool and the first line
//! of what it was asked, such as `Bash cargo test`; `chat::call_line` masks them and makes one line of them. Never what
//! a tool gave back, and never a whole file: of the arguments, only a short one that says what the call is about.

use serde_json::Value;

/// The arguments that say what a call is about, the most telling first.
const TELLING: [&str; 14] = [
    "command",
    "cmd",
    "file_path",
    "filePath",
    "absolute_path",
    "path",
    "dir_path",
    "pattern",
    "query",
    "url",
    "uri",
    "description",
    "task",
    "name",
];
/// The most characters of a call. It is masked before it is cut to what is stored, so that no part of a key is left.
const CALL_CHARACTERS: usize = 1_000;
/// The most calls of an answer: more than a line has room for.
pub(super) const MOST_CALLS: usize = 300;
/// The end of what was cut.
const CUT: &str = "…";

/// A call in few words; `None` if it names no tool.
pub(super) fn of_call(call: &Value) -> Option<String> {
    let function = ["function", "functionCall", "toolCall", "tool_call"].into_iter().find_map(|name| call.get(name));
    let call = function.filter(|function| function.is_object()).unwrap_or(call);
    let value = call.get("value").unwrap_or(call);
    let name = ["tool", "toolName", "tool_name", "name"].into_iter().find_map(|name| value.get(name)?.as_str())?;
    let state = value.get("state").unwrap_or(value);
    let arguments = ["input", "args", "arguments", "parameters", "action"].into_iter().find_map(|name| state.get(name));
    let parsed = match arguments {
        Some(Value::String(json)) => serde_json::from_str(json).unwrap_or(Value::Null),
        Some(other) => other.clone(),
        None => Value::Null,
    };
    let about = TELLING.into_iter().find_map(|name| said(parsed.get(name)?)).unwrap_or_default();
    let whole = format!("{name} {about}");
    let line = whole.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(match line.char_indices().nth(CALL_CHARACTERS) {
        Some((at, _)) => {
            // Not inside a word, which may be a key.
            let kept = line.get(..at).unwrap_or_default();
            format!("{} {CUT}", kept.rsplit_once(' ').map_or(name, |(whole, _)| whole))
        }
        None => line,
    })
}

/// An argument as words: a text's first line, or a list of texts.
fn said(argument: &Value) -> Option<String> {
    match argument {
        Value::String(text) => {
            let mut lines = text.trim().lines();
            let first = lines.next()?;
            Some(if lines.next().is_some() { format!("{first} {CUT}") } else { first.to_owned() })
        }
        Value::Array(words) => Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")),
        _ => None,
    }
    .filter(|words| !words.is_empty())
}

/// Adds calls to those of an answer.
pub(super) fn keep(all: &mut Vec<String>, calls: Vec<String>) {
    let room = MOST_CALLS.saturating_sub(all.len());
    all.extend(calls.into_iter().take(room));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_its_tool_and_what_it_is_about() {
        for (call, line) in [
            (
                json!({"type": "tool_use", "name": "Bash", "input": {"description": "d", "command": "ls -1\ncat x"}}),
                "Bash ls -1 …",
            ),
            (json!({"name": "Write", "input": {"content": "long", "file_path": "notes.md"}}), "Write notes.md"),
            (
                json!({"type": "function_call", "name": "shell", "arguments": "{\"command\":[\"bash\",\"-lc\",\"ls\"]}"}),
                "shell bash -lc ls",
            ),
            (json!({"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch"}), "apply_patch"),
            (json!({"functionCall": {"name": "glob", "args": {"pattern": "*.rs"}}}), "glob *.rs"),
            (json!({"function": {"name": "Read", "arguments": "{\"path\":\"a\"}"}}), "Read a"),
            (
                json!({"type": "tool", "tool": "bash", "state": {"input": {"command": "ls"}, "output": "secret"}}),
                "bash ls",
            ),
            (json!({"toolCall": {"value": {"name": "edit", "arguments": {"path": "b"}}}}), "edit b"),
        ] {
            assert_eq!(of_call(&call).as_deref(), Some(line), "{call}");
        }
        assert_eq!(of_call(&json!({"input": {}})), None);
        let command = format!("curl -H {}", "x".repeat(5_000));
        let long = of_call(&json!({"name": "Bash", "input": {"command": command}})).unwrap();
        assert_eq!(long, "Bash curl -H …", "a word that has no room is left out whole");
    }
}
