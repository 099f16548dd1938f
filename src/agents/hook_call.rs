//! What a program tells its hook.
//!
//! In: the program, the name of the moment, and the bytes on stdin, which may be anything. Out: the moment, the session
//! and its directory, and what the person typed, without what hooks gave before; or nothing, where the hook has nothing
//! to do. Never fails.

use serde_json::Value;

use types::recall_tag::without_tagged;

use crate::{given::StartCause, program::AgentProgram};

/// A call of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCall {
    /// What it is about.
    pub moment: HookMoment,
    /// The session, as the program names it.
    pub session: String,
    /// The directory in which the program works.
    pub directory: String,
}

/// What a hook is called for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookMoment {
    /// A session starts, goes on, or was compacted.
    Start(StartCause),
    /// The session will be compacted, or was, and nothing can be given at this moment.
    Compaction,
    /// A person typed this.
    Prompt(String),
}

impl HookCall {
    /// Reads a call; `None` if there is nothing to do.
    #[must_use]
    pub fn read(program: AgentProgram, event: &str, input: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(input).ok()?;
        let text = |names: &[&str]| names.iter().find_map(|name| value.get(name)?.as_str()).map(str::to_owned);
        // A subagent has its own orders, which no person wrote.
        if text(&["agent_id", "parentSessionId"]).is_some_and(|id| !id.is_empty()) {
            return None;
        }
        let session = text(&["session_id", "sessionId", "sessionID", "taskId", "conversation_id"])?;
        let workspace = value.get("workspaceRoots").or_else(|| value.get("workspace_roots"));
        let root = || workspace?.get(0)?.as_str().map(str::to_owned);
        let directory = text(&["cwd", "directory"]).or_else(root)?;
        let moment = match event {
            "SessionStart" | "sessionStart" => HookMoment::Start(StartCause::of_name(&text(&["source"])?)?),
            "TaskStart" => HookMoment::Start(StartCause::Startup),
            "session.compacted" | "session_compact" => HookMoment::Compaction,
            "UserPromptSubmit" | "BeforeAgent" | "userPromptSubmitted" | "chat.message" | "before_agent_start" => {
                let nested = |name: &str| value.get(name)?.get("prompt")?.as_str().map(str::to_owned);
                let prompt = text(&["prompt"]).or_else(|| nested("userPromptSubmit"));
                HookMoment::Prompt(typed(program, &prompt?)?)
            }
            _ => return None,
        };
        (!session.is_empty() && !directory.is_empty()).then_some(Self { moment, session, directory })
    }
}

/// What a person typed; `None` for a command to the program, and where nothing is left.
fn typed(program: AgentProgram, prompt: &str) -> Option<String> {
    let mut words = without_tagged(prompt).unwrap_or_else(|| prompt.to_owned());
    while let Some((before, rest)) = words.split_once("<hook_context>") {
        words = format!("{before}{}", rest.split_once("</hook_context>").map_or("", |(_, behind)| behind));
    }
    let mut words = words.trim();
    if program == AgentProgram::Opencode {
        // `opencode run` puts the prompt into quotes.
        words = words.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(words).trim();
    }
    (!words.is_empty() && !is_command(words)).then(|| words.to_owned())
}

/// Whether words are a command to the program: `!ls`, `/compact`, and not a path such as `/home/x`.
fn is_command(words: &str) -> bool {
    let first = words.split_whitespace().next().unwrap_or_default();
    let is_slash_command = first.strip_prefix('/').is_some_and(|name| !name.contains('/'));
    (is_slash_command || first.starts_with('!')) && !words.contains('\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(program: &str, event: &str, input: &str) -> Option<HookCall> {
        HookCall::read(AgentProgram::of_name(program).unwrap(), event, input.as_bytes())
    }

    #[test]
    fn a_path_and_a_tag_are_no_commands() {
        let prompt = |text: &str| {
            let input = serde_json::json!({"session_id": "s", "cwd": "/k", "prompt": text}).to_string();
            read("codex", "UserPromptSubmit", &input)
        };
        for command in ["/compact", "/model opus", "!ls -l"] {
            assert_eq!(prompt(command), None, "{command}");
        }
        for asked in ["/home/x/kite fails to build, why?", "<div> is wrong here", "/clear\nand then?"] {
            assert_eq!(prompt(asked).map(|call| call.moment), Some(HookMoment::Prompt(asked.to_owned())), "{asked}");
        }
    }

    #[test]
    fn each_program_is_understood() {
        let prompt = |text: &str| HookMoment::Prompt(text.to_owned());
        let start = HookMoment::Start;
        for (program, event, input, moment) in [
            (
                "claude-code",
                "SessionStart",
                r#"{"session_id":"s","cwd":"/k","source":"startup","hook_event_name":"SessionStart"}"#,
                start(StartCause::Startup),
            ),
            (
                "claude-code",
                "SessionStart",
                r#"{"session_id":"s","cwd":"/k","source":"compact","model":"m"}"#,
                start(StartCause::Compaction),
            ),
            ("codex", "SessionStart", r#"{"session_id":"s","cwd":"/k","source":"resume"}"#, start(StartCause::Resume)),
            (
                "codex",
                "UserPromptSubmit",
                r#"{"session_id":"s","turn_id":"t","cwd":"/k","prompt":"Who owns the sensor?"}"#,
                prompt("Who owns the sensor?"),
            ),
            (
                "gemini",
                "BeforeAgent",
                r#"{"session_id":"s","cwd":"/k","prompt":"<hook_context><ripplemem>a</ripplemem></hook_context>\n\nWho?"}"#,
                prompt("Who?"),
            ),
            (
                "copilot",
                "sessionStart",
                r#"{"sessionId":"s","timestamp":1,"cwd":"/k","source":"new","initialPrompt":"Who?"}"#,
                start(StartCause::Startup),
            ),
            ("copilot", "userPromptSubmitted", r#"{"sessionId":"s","cwd":"/k","prompt":"Who?"}"#, prompt("Who?")),
            ("opencode", "chat.message", r#"{"sessionID":"s","directory":"/k","prompt":"\"Who?\""}"#, prompt("Who?")),
            ("opencode", "session.compacted", r#"{"sessionID":"s","directory":"/k"}"#, HookMoment::Compaction),
            (
                "cline",
                "UserPromptSubmit",
                r#"{"taskId":"s","workspaceRoots":["/k"],"userPromptSubmit":{"prompt":"Who?"}}"#,
                prompt("Who?"),
            ),
        ] {
            let expected = HookCall { moment, session: "s".to_owned(), directory: "/k".to_owned() };
            assert_eq!(read(program, event, input), Some(expected), "{program} {event} {input}");
        }
    }

    #[test]
    fn what_is_nothing_to_do_is_left() {
        for (event, input) in [
            ("UserPromptSubmit", ""),
            ("UserPromptSubmit", "{"),
            ("UserPromptSubmit", "[1]"),
            ("UserPromptSubmit", "\u{0}"),
            ("UserPromptSubmit", r#"{"session_id":"s","cwd":"/k"}"#),
            ("UserPromptSubmit", r#"{"session_id":7,"cwd":"/k","prompt":"Who?"}"#),
            ("UserPromptSubmit", r#"{"session_id":"s","cwd":"/k","prompt":"/compact now"}"#),
            ("UserPromptSubmit", r#"{"session_id":"s","cwd":"/k","prompt":"<ripplemem>only this"}"#),
            ("UserPromptSubmit", r#"{"session_id":"s","cwd":"/k","prompt":"Who?","agent_id":"a1"}"#),
            ("SessionStart", r#"{"session_id":"s","cwd":"/k","source":"teapot"}"#),
            ("Stop", r#"{"session_id":"s","cwd":"/k"}"#),
        ] {
            assert_eq!(read("claude-code", event, input), None, "{event} {input}");
        }
    }
}
