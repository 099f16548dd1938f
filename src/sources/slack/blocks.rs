//! Extracts the text of Slack's blocks.
//!
//! In: the JSON of the blocks. Out: the words of every block that has any, in Slack's markup, each part on a line; and
//! the kinds of unknown blocks in which no words were found. A row of a table is one line. Buttons, and pictures next
//! to words, contribute nothing. A block from a later version of Slack is read by the field names that words have in
//! all blocks.

use serde_json::Value;

/// The deepest nesting that is read.
const MAX_DEPTH: usize = 16;
/// The maximum number of lines that are read from one message's blocks.
const MAX_LINES: usize = 10_000;

/// The words of blocks.
#[derive(Debug, Default, PartialEq)]
pub(super) struct SlackBlockWords {
    /// The text of each block that has any.
    pub(super) texts: Vec<SlackBlockText>,
    /// The kinds of blocks that are not known and have no words.
    pub(super) unknown: Vec<String>,
}

/// The text of a block.
#[derive(Debug, PartialEq)]
pub(super) struct SlackBlockText {
    pub(super) text: String,
    /// Whether a person typed it; then it is also the message's text.
    pub(super) is_typed: bool,
}

impl SlackBlockWords {
    /// All texts, each on lines of its own.
    pub(super) fn whole(&self) -> String {
        self.texts.iter().map(|block| block.text.as_str()).collect::<Vec<_>>().join("\n")
    }
}

/// Reads blocks.
pub(super) fn block_words(blocks: &[Value]) -> SlackBlockWords {
    let mut words = SlackBlockWords::default();
    for block in blocks {
        let mut lines = Vec::new();
        let is_known = block_lines(block, 0, &mut lines);
        lines.retain(|line| !line.trim().is_empty());
        if !lines.is_empty() {
            words.texts.push(SlackBlockText { text: lines.join("\n"), is_typed: text(block, "type") == "rich_text" });
        } else if !is_known {
            words.unknown.push(text(block, "type").to_owned());
        }
    }
    words
}

/// Adds the lines of a block; returns whether its kind is known.
fn block_lines(block: &Value, depth: usize, lines: &mut Vec<String>) -> bool {
    if depth > MAX_DEPTH || lines.len() > MAX_LINES {
        return true;
    }
    let list = |key: &str| block.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let kind = text(block, "type");
    match kind {
        "rich_text" => {
            for part in list("elements") {
                block_lines(part, depth + 1, lines);
            }
        }
        "rich_text_section" | "rich_text_preformatted" | "rich_text_quote" => {
            let line: String = list("elements").iter().map(inline).collect();
            let line = if kind == "rich_text_quote" { format!("&gt; {line}") } else { line };
            lines.push(line.trim_end().to_owned());
        }
        "rich_text_list" => {
            for item in list("elements") {
                let start = lines.len();
                block_lines(item, depth + 1, lines);
                if let Some(first) = lines.get_mut(start) {
                    *first = format!("- {first}");
                }
            }
        }
        "context" => list("elements").iter().for_each(|part| push(part, lines)),
        "section" | "header" | "markdown" => {
            block.get("text").into_iter().for_each(|part| push(part, lines));
            list("fields").iter().for_each(|part| push(part, lines));
        }
        // A picture, a video and an input field have words around them; the address does not count as words.
        "image" | "video" | "input" => {
            for key in ["title", "label", "description"] {
                block.get(key).into_iter().for_each(|part| push(part, lines));
            }
            if kind == "image" && lines.is_empty() {
                block.get("alt_text").into_iter().for_each(|part| push(part, lines));
            }
        }
        // Buttons, dividers, and blocks that are shown with the message's files hold no words.
        "actions" | "context_actions" | "divider" | "file" | "call" | "rich_text_input" => {}
        _ => {
            any_lines(block, depth, lines);
            return false;
        }
    }
    true
}

/// The words of an unknown block, found by field names, in the order in which Slack shows them: titles first, then rows
/// and parts.
fn any_lines(block: &Value, depth: usize, lines: &mut Vec<String>) {
    const SHOWN: [&str; 11] = [
        "title",
        "name",
        "subtitle",
        "label",
        "caption",
        "text",
        "body",
        "description",
        "details",
        "output",
        "subtext",
    ];
    const WITHIN: [&str; 8] = ["fields", "columns", "rows", "cells", "elements", "items", "tasks", "blocks"];
    if depth > MAX_DEPTH || lines.len() > MAX_LINES {
        return;
    }
    for key in SHOWN {
        match block.get(key) {
            Some(Value::Array(parts)) => parts.iter().for_each(|part| part_lines(part, depth + 1, lines)),
            Some(part) => part_lines(part, depth + 1, lines),
            None => {}
        }
    }
    for key in WITHIN {
        let parts = block.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        match key {
            // The headings of a table's columns form a row.
            "columns" => row(parts, depth + 1, lines),
            "rows" => {
                for part in parts {
                    match part.as_array().or_else(|| part.get("cells")?.as_array()) {
                        Some(cells) => row(cells, depth + 1, lines),
                        None => part_lines(part, depth + 1, lines),
                    }
                }
            }
            _ => parts.iter().for_each(|part| part_lines(part, depth + 1, lines)),
        }
    }
}

/// The lines of a value inside a block: a text, an object with a text, or a block.
fn part_lines(part: &Value, depth: usize, lines: &mut Vec<String>) {
    match part {
        Value::String(_) => push(part, lines),
        Value::Object(_) if is_text_object(part) => push(part, lines),
        Value::Object(_) if matches!(text(part, "type"), "button" | "image") => {}
        Value::Object(_) => {
            block_lines(part, depth, lines);
        }
        Value::Array(parts) if depth <= MAX_DEPTH => parts.iter().for_each(|part| part_lines(part, depth + 1, lines)),
        _ => {}
    }
}

/// Adds the cells of a table's row as one line.
fn row(cells: &[Value], depth: usize, lines: &mut Vec<String>) {
    let cell = |cell: &Value| {
        let mut lines = Vec::new();
        match cell {
            Value::Number(number) => lines.push(number.to_string()),
            cell => part_lines(cell, depth + 1, &mut lines),
        }
        lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let cells: Vec<String> = cells.iter().map(cell).collect();
    if cells.iter().any(|cell| !cell.is_empty()) {
        lines.push(cells.join(" | "));
    }
}

/// Whether a value is one of Slack's text objects.
fn is_text_object(value: &Value) -> bool {
    matches!(text(value, "type"), "plain_text" | "mrkdwn" | "raw_text" | "markdown") && value.get("text").is_some()
}

/// Adds a text, or the text of a text object.
fn push(part: &Value, lines: &mut Vec<String>) {
    let found = part.as_str().unwrap_or_else(|| text(part, "text"));
    if !found.trim().is_empty() {
        lines.push(found.to_owned());
    }
}

/// A part of a line, in Slack's markup.
fn inline(part: &Value) -> String {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    match text(part, "type") {
        "user" => format!("<@{}>", text(part, "user_id")),
        "channel" => format!("<#{}>", text(part, "channel_id")),
        "usergroup" => format!("<!subteam^{}>", text(part, "usergroup_id")),
        "broadcast" => format!("<!{}>", text(part, "range")),
        "emoji" => format!(":{}:", text(part, "name")),
        "link" => match text(part, "text") {
            "" => format!("<{}>", text(part, "url")),
            label => format!("<{}|{}>", text(part, "url"), escaped(label)),
        },
        "date" => escaped(text(part, "fallback")),
        // A plain text, and any element with a text from a later version of Slack.
        _ => escaped(text(part, "text")),
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(blocks: &Value, text: &str, unknown: &[&str]) {
        let words = block_words(blocks.as_array().unwrap());
        assert_eq!(words.whole(), text, "{blocks}");
        assert_eq!(words.unknown, unknown, "{blocks}");
    }

    #[test]
    fn blocks_become_lines_in_slacks_markup() {
        let section = |text: &str| json!({"type": "rich_text_section", "elements": [{"type": "text", "text": text}]});
        let blocks = json!([
            {"type": "header", "text": {"type": "plain_text", "text": "Release"}},
            {"type": "rich_text", "elements": [
                {"type": "rich_text_section", "elements": [
                    {"type": "text", "text": "Hi <"}, {"type": "user", "user_id": "U1"}, {"type": "text", "text": " see "},
                    {"type": "link", "url": "https://a.example", "text": "this"}, {"type": "emoji", "name": "wave"}
                ]},
                {"type": "rich_text_list", "elements": [section("one"), section("two")]},
                {"type": "rich_text_quote", "elements": [{"type": "text", "text": "said"}]}
            ]},
            {"type": "section", "text": {"type": "mrkdwn", "text": "*Status*"}, "fields": [{"type": "mrkdwn", "text": "ok"}]},
            {"type": "actions", "elements": [{"type": "button", "text": {"type": "plain_text", "text": "Go"}}]},
            {"type": "context", "elements": [{"type": "mrkdwn", "text": "by CI"}, {"type": "image", "image_url": "x"}]}
        ]);
        let expected =
            "Release\nHi &lt;<@U1> see <https://a.example|this>:wave:\n- one\n- two\n&gt; said\n*Status*\nok\nby CI";
        check(&blocks, expected, &[]);
    }

    #[test]
    fn a_table_is_a_line_for_each_row() {
        let raw = |text: &str| json!({"type": "raw_text", "text": text});
        let rich = json!({"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [
            {"type": "text", "text": "Oak "}, {"type": "user", "user_id": "U1"}]}]});
        check(
            &json!([{"type": "table", "block_id": "t", "rows": [[raw("Tree"), raw("Metres")], [rich, raw("21")], [raw(""), {"type": "number", "text": "4"}]]}]),
            "Tree | Metres\nOak <@U1> | 21\n | 4",
            &[],
        );
        check(
            &json!([{"type": "data_table", "title": {"type": "plain_text", "text": "Orchard"},
                "columns": [{"id": "a", "title": "Tree"}, {"id": "b", "title": {"type": "plain_text", "text": "Rows"}}],
                "rows": [[raw("Pear"), 7], {"cells": [raw("Plum"), raw("9")]}]}]),
            "Orchard\nTree | Rows\nPear | 7\nPlum | 9",
            &[],
        );
    }

    #[test]
    fn words_of_blocks_that_are_not_known_are_read_and_others_are_told() {
        check(
            &json!([
                {"type": "card", "title": {"type": "mrkdwn", "text": "Pear tree"}, "subtitle": {"type": "plain_text", "text": "row 7"},
                    "body": {"type": "mrkdwn", "text": "Planted in 1998"}, "hero_image": {"image_url": "x", "alt_text": "a tree"},
                    "actions": [{"type": "button", "text": {"type": "plain_text", "text": "Prune"}}]},
                {"type": "carousel", "elements": [{"type": "card", "title": {"type": "plain_text", "text": "Plum tree"}}]},
                {"type": "plan", "title": "Autumn", "tasks": [{"type": "task_card", "title": "Rake", "details": {"type": "rich_text",
                    "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": "under the pears"}]}]}}]},
                {"type": "image", "image_url": "x", "alt_text": "the orchard in May"},
                {"type": "hologram", "payload": {"depth": 3}},
                {"type": "divider"}
            ]),
            "Pear tree\nrow 7\nPlanted in 1998\nPlum tree\nAutumn\nRake\nunder the pears\nthe orchard in May",
            &["hologram"],
        );
    }
}
