//! Reads a rich message: words in blocks, which Telegram writes in place of a text since 2026.
//!
//! In: the value of `rich_message`. Out: plain text, each paragraph, item and row on a line of its own. Words are found
//! by the field names that all blocks share, so that a block of a later version is read too; other fields are reported
//! with the unknown ones.

use serde_json::Value;

/// The deepest nesting that is read.
const MAX_DEPTH: usize = 24;
/// How much text is read.
const MAX_BYTES: usize = 1 << 20;
/// The fields of a block that hold words, in the order in which Telegram shows them.
const SHOWN: [&str; 10] =
    ["title", "header", "author", "text", "summary", "question", "credit", "caption", "footer", "description"];
/// The fields that hold blocks, items or rows.
const WITHIN: [&str; 7] = ["blocks", "items", "rows", "cells", "columns", "messages", "children"];

/// The words of a rich message.
pub(super) fn rich_words(message: &Value) -> String {
    let mut lines = Vec::new();
    block(message, 0, &mut lines);
    lines.retain(|line| !line.trim().is_empty());
    lines.join("\n")
}

/// Adds the lines of a block, an item or a list of them.
fn block(value: &Value, depth: usize, lines: &mut Vec<String>) {
    if depth > MAX_DEPTH || lines.iter().map(String::len).sum::<usize>() > MAX_BYTES {
        return;
    }
    match value {
        Value::Array(blocks) => blocks.iter().for_each(|inner| block(inner, depth + 1, lines)),
        Value::Object(_) => {
            let begins = lines.len();
            for name in SHOWN {
                let words = value.get(name).map(|words| inline(words, depth + 1)).unwrap_or_default();
                lines.extend(words.lines().map(str::to_owned));
            }
            for name in WITHIN {
                match (name, value.get(name)) {
                    ("rows", Some(Value::Array(rows))) => {
                        rows.iter().for_each(|row| lines.extend(cells(row, depth + 1)))
                    }
                    (_, Some(inner)) => block(inner, depth + 1, lines),
                    (_, None) => {}
                }
            }
            if let Some(first) = lines.get_mut(begins) {
                let mark = mark(value);
                first.insert_str(0, mark);
            }
        }
        Value::String(text) => lines.push(text.clone()),
        _ => {}
    }
}

/// The mark before the first line of a task or a quotation; empty for other blocks.
fn mark(value: &Value) -> &'static str {
    match (value.get("task_state").and_then(Value::as_str), value.get("type").and_then(Value::as_str)) {
        (Some("checked"), _) => "- [x] ",
        (Some("unchecked"), _) => "- [ ] ",
        (Some(_), _) => "- ",
        (None, Some("quote" | "blockquote" | "pullquote")) => "> ",
        (None, _) => "",
    }
}

/// The cells of a row on one line.
fn cells(row: &Value, depth: usize) -> Option<String> {
    let cells = row.as_array().or_else(|| row.get("cells")?.as_array())?;
    let cell = |cell: &Value| {
        let mut lines = Vec::new();
        block(cell, depth + 1, &mut lines);
        lines.join(" ")
    };
    Some(cells.iter().map(cell).collect::<Vec<_>>().join(" | "))
}

/// Text with styles inside each other: a text, a list of parts, or an object with its own `text`.
fn inline(value: &Value, depth: usize) -> String {
    if depth > MAX_DEPTH {
        return String::new();
    }
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(|part| inline(part, depth + 1)).collect(),
        Value::Object(fields) => {
            let inner = ["text", "texts", "parts", "children"].iter().find_map(|name| fields.get(*name));
            let words = inner.map(|inner| inline(inner, depth + 1)).unwrap_or_default();
            let field = |name: &str| fields.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
            let words = if words.is_empty() {
                field("alt").or_else(|| field("emoji")).unwrap_or_default().to_owned()
            } else {
                words
            };
            match field("url").or_else(|| field("href")) {
                Some(url) if url != words => format!("{words} ({url})"),
                _ => words,
            }
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_block_is_read() {
        let plain = |text: &str| json!({"type": "plain", "text": text});
        let message = json!({"rtl": false, "blocks": [
            {"type": "heading", "level": 2, "text": plain("Packing")},
            {"type": "paragraph", "text": {"type": "concat", "text": [plain("At "), {"type": "bold", "text": plain("06:40")},
                {"type": "url", "url": "https://a.example", "text": plain(" from here")}]}},
            {"type": "list", "items": [
                {"task_state": "checked", "content": "text", "text": plain("lanterns")},
                {"task_state": "unchecked", "text": plain("tarpaulin")},
                {"task_state": "none", "content": "blocks", "blocks": [{"type": "paragraph", "text": plain("a pin")}]}]},
            {"type": "table", "title": {"type": "empty"}, "rows": [{"cells": [{"text": plain("Tent")}, {"text": plain("Odo")}]}]},
            {"type": "quote", "text": plain("Nobody swims."), "caption": plain("Runa")},
            {"type": "code", "text": plain("tide --port"), "language": "sh"},
            {"type": "divider"},
            {"type": "details", "summary": plain("More"), "blocks": [{"type": "new_kind", "text": "at nine"}]},
            {"type": "photo", "photo": "photos/a.jpg", "caption": {"text": plain("the quay")}},
        ]});
        let expected = "Packing\nAt 06:40 from here (https://a.example)\n- [x] lanterns\n- [ ] tarpaulin\n- a pin\n\
                        Tent | Odo\n> Nobody swims.\nRuna\ntide --port\nMore\nat nine\nthe quay";
        assert_eq!(rich_words(&message), expected);
        for nothing in [json!(null), json!(5), json!({}), json!({"blocks": [{"type": "divider"}, []]})] {
            assert_eq!(rich_words(&nothing), "");
        }
    }
}
