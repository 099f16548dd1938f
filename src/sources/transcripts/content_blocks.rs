//! The words of a message that consists of blocks, as the interfaces of models have them.
//!
//! In: a text, or a list of blocks, each with a `type`. Out: the words of the blocks with text, each block whole and in
//! its place; every other block is counted by its kind, and one of a kind that is not known by its name.

use serde_json::Value;
use types::recall_tag::without_tagged;

use super::{
    findings::{Findings, kind},
    injected_text::{typed, without_files},
    transcript_file::text,
};
use crate::chat::TranscriptRole;

/// A block of a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ContentPart {
    /// Words, never none.
    Words(String),
    /// A call of a tool, by its id.
    Call(String),
    /// Something else, by its kind and its id.
    Other(String),
}

/// The words of a content. What programs put into a person's words is left out and counted.
pub(super) fn words(content: &Value, role: TranscriptRole, found: &mut Findings) -> String {
    joined(&parts(content, role, found))
}

/// The blocks of a content, as [`words`] has them.
pub(super) fn parts(content: &Value, role: TranscriptRole, found: &mut Findings) -> Vec<ContentPart> {
    let parts: Vec<ContentPart> = match content {
        Value::String(text) => vec![ContentPart::Words(said(text, role, found))],
        Value::Array(blocks) => blocks.iter().map(|block| of_block(block, role, found)).collect(),
        _ => Vec::new(),
    };
    parts.into_iter().filter(|part| !matches!(part, ContentPart::Words(words) if words.is_empty())).collect()
}

/// The words of blocks, each a paragraph of its own.
pub(super) fn joined(parts: &[ContentPart]) -> String {
    let mut all = String::new();
    for part in parts {
        if let ContentPart::Words(words) = part {
            join(&mut all, words);
        }
    }
    all
}

fn of_block(block: &Value, role: TranscriptRole, found: &mut Findings) -> ContentPart {
    if let Value::String(text) = block {
        return ContentPart::Words(said(text, role, found));
    }
    let name = text(block, "type").unwrap_or_default();
    match name {
        "text" | "Text" | "input_text" | "output_text" | "voice_note" => {
            return ContentPart::Words(said(text(block, "text").unwrap_or_default(), role, found));
        }
        "thinking" | "redacted_thinking" | "reasoning" | "think" => found.not_talk(kind::THINKING),
        "tool_use" | "server_tool_use" | "mcp_tool_use" | "toolCall" | "tool_call" | "toolRequest" => {
            found.call(block);
            return ContentPart::Call(text(block, "id").unwrap_or_default().to_owned());
        }
        name if name.ends_with("tool_result") || name == "toolResponse" => found.not_talk(kind::TOOL_OUTPUT),
        "image" | "image_url" | "imageUrl" | "image_file" | "document" | "file" | "input_image" | "local_image" => {
            found.not_talk(kind::IMAGE);
        }
        "token_budget" | "error" | "flag" => found.not_talk(kind::NOTE),
        name => found.unsupported(name),
    }
    ContentPart::Other(format!("{name} {}", text(block, "id").unwrap_or_default()))
}

/// Adds a text to the words, without what a program put into a person's.
pub(super) fn add(words: &mut String, text: &str, role: TranscriptRole, found: &mut Findings) {
    join(words, &said(text, role, found));
}

/// The words of the parts of a person's message, of a program that puts files behind them which they name.
pub(super) fn words_before_files(texts: &[&str], found: &mut Findings) -> String {
    let mut words = String::new();
    texts.iter().for_each(|text| add(&mut words, text, TranscriptRole::Person, found));
    match without_files(&words) {
        Some(rest) => {
            found.not_talk(kind::IMAGE);
            rest
        }
        None => words,
    }
}

fn said(text: &str, role: TranscriptRole, found: &mut Findings) -> String {
    match role {
        TranscriptRole::Assistant => match without_tagged(text) {
            // It repeats what a hook gave it: that is remembered already.
            Some(rest) => {
                found.not_talk(kind::HOOK);
                rest.trim().to_owned()
            }
            None => text.trim().to_owned(),
        },
        TranscriptRole::Person => {
            let typed = typed(text);
            typed.injected.into_iter().for_each(|kind| found.not_talk(kind));
            typed.words
        }
    }
}

/// Adds a further text as a paragraph of its own.
pub(super) fn join(words: &mut String, more: &str) {
    if more.is_empty() {
        return;
    }
    if !words.is_empty() {
        words.push_str("\n\n");
    }
    words.push_str(more);
}
