//! What a hook answers.
//!
//! In: the program, the moment by its name, and a text to give, if any. Out: the bytes for stdout, with no key that the
//! program does not know, since Codex takes none of an answer with an unknown one. Nothing to give is no output, but
//! where a program asks for some.

use serde_json::json;

use crate::program::AgentProgram;

/// The bytes for stdout.
pub type HookAnswer = String;

/// The answer of a hook.
#[must_use]
pub fn hook_answer(program: AgentProgram, event: &str, given: Option<&str>) -> HookAnswer {
    let answer = match (program, given) {
        (AgentProgram::Cline, text) => json!({"cancel": false, "contextModification": text.unwrap_or_default()}),
        (AgentProgram::Gemini, None) => json!({}),
        (_, None) => return String::new(),
        (AgentProgram::Copilot, Some(text)) => json!({"additionalContext": text}),
        (AgentProgram::Opencode | AgentProgram::Pi, Some(text)) => json!({"text": text}),
        (_, Some(text)) => json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}),
    };
    format!("{answer}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_the_keys_that_a_program_knows() {
        for (program, given, expected) in [
            (
                AgentProgram::Codex,
                Some("a"),
                "{\"hookSpecificOutput\":{\"additionalContext\":\"a\",\"hookEventName\":\"E\"}}\n",
            ),
            (AgentProgram::Codex, None, ""),
            (AgentProgram::Gemini, None, "{}\n"),
            (AgentProgram::Copilot, Some("a"), "{\"additionalContext\":\"a\"}\n"),
            (AgentProgram::Pi, Some("a"), "{\"text\":\"a\"}\n"),
            (AgentProgram::Cline, None, "{\"cancel\":false,\"contextModification\":\"\"}\n"),
        ] {
            assert_eq!(hook_answer(program, "E", given), expected);
        }
    }
}
