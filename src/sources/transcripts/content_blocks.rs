//! The words of a message that consists of blocks, as the interfaces of models have them.
//!
//! In: a text, or a list of blocks, each with a `type`. Out: the words of the blocks with text; every other block is
//! counted by its kind, and one of a kind that is not known by its name.

use serde_json::Value;
use types::recall_tag::without_tagged;

use super::{
    findings::{Findings, kind},
    injected_text::typed,
    transcript_file::text,
};
use crate::chat::TranscriptRole;

/// The words of a content. What programs put into a person's words is left out and counted.
pub(super) fn words(content: &Value, role: TranscriptRole, found: &mut Findings) -> String {
    let mut words = String::new();
    match content {
        Value::String(text) => add(&mut words, text, role, found),
        Value::Array(blocks) => blocks.iter().for_each(|block| match block {
            Value::String(text) => add(&mut words, text, role, found),
            block => of_block(&mut words, block, role, found),
        }),
        _ => {}
    }
    words
}

fn of_block(words: &mut String, block: &Value, role: TranscriptRole, found: &mut Findings) {
    match text(block, "type").unwrap_or_default() {
        "text" | "Text" | "input_text" | "output_text" | "voice_note" => {
            add(words, text(block, "text").unwrap_or_default(), role, found);
        }
        "thinking" | "redacted_thinking" | "reasoning" | "think" => found.not_talk(kind::THINKING),
        "tool_use" | "server_tool_use" | "mcp_tool_use" | "toolCall" | "tool_call" | "toolRequest" => {
            found.call(block);
        }
        name if name.ends_with("tool_result") || name == "toolResponse" => found.not_talk(kind::TOOL_OUTPUT),
        "image" | "image_url" | "image_file" | "document" | "file" | "input_image" | "local_image" => {
            found.not_talk(kind::IMAGE);
        }
        "token_budget" | "error" | "flag" => found.not_talk(kind::NOTE),
        name => found.unsupported(name),
    }
}

/// Adds a text to the words, without what a program put into a person's.
pub(super) fn add(words: &mut String, text: &str, role: TranscriptRole, found: &mut Findings) {
    match role {
        TranscriptRole::Assistant => match without_tagged(text) {
            // It repeats what a hook gave it: that is remembered already.
            Some(rest) => {
                found.not_talk(kind::HOOK);
                join(words, rest.trim());
            }
            None => join(words, text.trim()),
        },
        TranscriptRole::Person => {
            let typed = typed(text);
            typed.injected.into_iter().for_each(|kind| found.not_talk(kind));
            join(words, &typed.words);
        }
    }
}

/// Adds a further block to a text. While an answer is streamed, a block stands in several lines, each longer than the
/// last: the longest counts.
pub(super) fn join(words: &mut String, more: &str) {
    if more.is_empty() || words.ends_with(more) {
        return;
    }
    let last = words.rfind("\n\n").map_or(0, |at| at + 2);
    if words.get(last..).is_some_and(|last| !last.is_empty() && more.starts_with(last)) {
        words.truncate(last);
    } else if !words.is_empty() {
        words.push_str("\n\n");
    }
    words.push_str(more);
}
