//! Renders Discord's Markdown as a person reads it.
//!
//! In: the content of a message. Out: its words. The marks for bold, italic, underlined, struck and hidden text, for
//! headings, for code and for links without a preview are removed. A link with a label keeps its address in
//! parentheses. Quotes and lists keep their marks. Text in code is kept character by character. A mark without its
//! partner is text, and so is a single mark inside a word.

/// The longest text whose marks are removed; Discord's own limit is 6,000 characters.
const MAX_BYTES: usize = 32_768;
/// How deeply marks may be nested.
const MAX_DEPTH: u8 = 8;

/// The text without its marks.
pub(super) fn plain(text: &str) -> String {
    if text.len() > MAX_BYTES {
        return text.trim().to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((code, before, after)) = next_code(rest) {
        prose(before, &mut out);
        out.push_str(code);
        rest = after;
    }
    prose(rest, &mut out);
    out.trim().to_owned()
}

/// The first piece of code, with the text before it and the text after it.
fn next_code(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let start = from + text.get(from..)?.find('`')?;
        let is_escaped = text.get(..start)?.ends_with('\\');
        let ticks = text.get(start..)?.bytes().take_while(|b| *b == b'`').count();
        let mark = text.get(start..start + ticks)?;
        let inner_start = start + ticks;
        let end = text.get(inner_start..)?.find(mark);
        match end {
            Some(length) if !is_escaped && length > 0 => {
                let code = text.get(inner_start..inner_start + length)?;
                let code = if ticks >= 3 { without_language(code) } else { code };
                return Some((code, text.get(..start)?, text.get(inner_start + length + ticks..)?));
            }
            _ => from = inner_start,
        }
    }
}

/// A block of code without the name of its language on the first line.
fn without_language(code: &str) -> &str {
    let is_language = |line: &str| line.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-_#.".contains(&b));
    match code.split_once('\n') {
        Some((first, rest)) if is_language(first) => rest.strip_suffix('\n').unwrap_or(rest),
        _ => code,
    }
}

fn prose(text: &str, out: &mut String) {
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            out.push('\n');
        }
        inline(if out.is_empty() || out.ends_with('\n') { without_heading(line) } else { line }, MAX_DEPTH, out);
    }
}

/// A line without the mark of a heading or of small print.
fn without_heading(line: &str) -> &str {
    ["# ", "## ", "### ", "-# "].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line)
}

const MARKS: [&str; 9] = ["***", "___", "**", "__", "~~", "||", "*", "_", "<"];

fn inline(text: &str, depth: u8, out: &mut String) {
    let Some(depth) = depth.checked_sub(1) else { return out.push_str(text) };
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let before = out.chars().next_back();
        if let Some((inner, after)) = marked(rest, before) {
            inline(inner, depth, out);
            rest = after;
        } else if let Some((label, address, after)) = link(rest) {
            inline(label, depth, out);
            if label != address {
                out.push_str(&format!(" ({address})"));
            }
            rest = after;
        } else if let Some(after) = address(rest) {
            // An address is copied whole, since it may hold underscores and asterisks.
            let (whole, behind) = rest.split_at(rest.len() - after.len());
            out.push_str(whole);
            rest = behind;
        } else if let Some(mark) =
            rest.strip_prefix('\\').and_then(|r| r.chars().next()).filter(char::is_ascii_punctuation)
        {
            out.push(mark);
            rest = rest.get(2..).unwrap_or_default();
        } else {
            out.push(first);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        }
    }
}

/// The text between a mark at the beginning and its partner, and the text after the partner.
fn marked(text: &str, before: Option<char>) -> Option<(&str, &str)> {
    let mark = MARKS.into_iter().find(|mark| text.starts_with(mark))?;
    let rest = text.get(mark.len()..)?;
    if mark == "<" {
        let end = rest.find('>')?;
        let inner = rest.get(..end).filter(|inner| address(inner).is_some_and(str::is_empty))?;
        return Some((inner, rest.get(end + 1..)?));
    }
    let symbol = mark.chars().next()?;
    let is_single = mark.len() == 1;
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    if rest.starts_with(char::is_whitespace) || ((is_single || symbol == '_') && is_word(before)) {
        return None;
    }
    let mut from = 0;
    loop {
        let end = from + rest.get(from..)?.find(mark)?;
        let (inner, after) = (rest.get(..end)?, rest.get(end + mark.len()..)?);
        let is_part_of_longer = is_single && (after.starts_with(symbol) || inner.ends_with(symbol));
        let closes = !inner.trim().is_empty()
            && !inner.ends_with('\\')
            && (!is_single || !inner.ends_with(char::is_whitespace))
            && !is_part_of_longer
            && !((is_single || symbol == '_') && is_word(after.chars().next()));
        if closes {
            return Some((inner, after));
        }
        // Skips the whole run of the symbol, so that `**` is not taken for two single `*`.
        let run = rest.get(end..)?.chars().take_while(|c| *c == symbol).count();
        from = end + run.max(mark.len());
    }
}

/// The label and the address of `[label](address)` at the beginning, and the text after it.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let (label, rest) = text.strip_prefix('[')?.split_once("](")?;
    let (target, after) = rest.split_once(')')?;
    // `[label](address "title")`, and `[label](<address>)`.
    let target = target.split(" \"").next()?.trim_start_matches('<').trim_end_matches('>');
    let is_label = !label.is_empty() && !label.contains(['[', '\n']);
    (is_label && address(target).is_some_and(str::is_empty)).then_some((label, target, after))
}

/// The text after an address at the beginning.
fn address(text: &str) -> Option<&str> {
    let scheme = ["https://", "http://"].iter().find(|scheme| text.starts_with(**scheme))?;
    let end = text.find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | ')' | '|')).unwrap_or(text.len());
    (end > scheme.len()).then(|| text.get(end..)).flatten()
}
