//! The text of Slack's blocks, for messages whose `text` is empty.
//!
//! In: the JSON of the blocks. Out: their texts in Slack's markup, a line for each. Buttons and images
//! are left out.

use serde_json::Value;

/// Deepest nesting that is read.
const MAX_DEPTH: usize = 16;

/// The text of blocks, in Slack's markup.
pub(super) fn blocks_text(blocks: &[Value]) -> String {
    let mut lines = Vec::new();
    for block in blocks {
        block_lines(block, 0, &mut lines);
    }
    lines.join("\n")
}

fn block_lines(block: &Value, depth: usize, lines: &mut Vec<String>) {
    if depth > MAX_DEPTH {
        return;
    }
    let kind = text(block, "type");
    let elements = || block.get("elements").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    match kind {
        "rich_text" => elements().iter().for_each(|part| block_lines(part, depth + 1, lines)),
        "rich_text_section" | "rich_text_preformatted" | "rich_text_quote" => {
            let line: String = elements().iter().map(inline).collect();
            let line = if kind == "rich_text_quote" { format!("&gt; {line}") } else { line };
            lines.push(line.trim_end().to_owned());
        }
        "rich_text_list" => {
            for item in elements() {
                let start = lines.len();
                block_lines(item, depth + 1, lines);
                if let Some(first) = lines.get_mut(start) {
                    *first = format!("- {first}");
                }
            }
        }
        "context" => elements().iter().for_each(|part| push(part, lines)),
        "section" | "header" | "markdown" => {
            block.get("text").into_iter().for_each(|part| push(part, lines));
            let fields = block.get("fields").and_then(Value::as_array);
            fields.into_iter().flatten().for_each(|part| push(part, lines));
        }
        _ => {}
    }
}

/// Adds the text of an object of a block, or a text.
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
        "text" => escaped(text(part, "text")),
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
        _ => String::new(),
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        assert_eq!(blocks_text(blocks.as_array().unwrap()), expected);
    }
}
