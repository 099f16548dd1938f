//! Cuts a long turn into the passages that are quoted (decision 50).
//!
//! In: the text of a turn. Out: consecutive byte ranges of about 100 tokens each that cover the whole text. It is cut
//! at the seams of its structure: sections, paragraphs, list items, table rows, and the edges of code; a longer block
//! is cut at sentences or words. The result depends on the text alone, and the time grows with its length; [`CUTTER`]
//! names the version of this function.

use std::ops::Range;

/// Name and version, recorded with every record that holds passages.
pub const CUTTER: &str = "passages/1";
/// The maximum number of bytes in a person's turn that is quoted whole: 240 tokens of English. What a person writes
/// into a chat is rarely longer, and quoting half of it is rarely enough.
pub const WHOLE_BYTES: usize = 1_000;
/// The maximum number of bytes in a passage, not counting the lines that are repeated in front of it: 100 tokens of
/// English. A longer turn of an assistant, a tool or a bot is cut.
pub const PASSAGE_BYTES: usize = 420;
/// Longer lines in front of a table or of code are not repeated.
const MAX_REPEATED_BYTES: usize = 200;
/// A passage is never cut within the first of this many equal parts of it.
const UNCUT_DIVISOR: usize = 3;

/// A passage of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Its byte range.
    pub range: Range<usize>,
    /// The lines that it repeats from further up: a table's header, or the line that opens code. Empty if it begins the
    /// table or the code, or is neither.
    pub repeats: Range<usize>,
}

impl Passage {
    /// Its text, after the lines that it repeats.
    #[must_use]
    pub fn of(&self, text: &str) -> String {
        [&self.repeats, &self.range].map(|range| text.get(range.clone()).unwrap_or_default()).concat()
    }
}

/// Whether a passage is fenced code, which is normally found only by its words.
#[must_use]
pub fn is_code(passage: &str) -> bool {
    fence(passage).is_some()
}

/// The passages of a text.
#[must_use]
pub fn cut_passages(text: &str) -> Vec<Passage> {
    let mut out: Vec<(BlockKind, Passage)> = Vec::new();
    for TextBlock { kind, range, header, .. } in blocks(text) {
        for (at, piece) in pieces(text, &range).into_iter().enumerate() {
            let repeats = if at == 0 { piece.start..piece.start } else { range.start..range.start + header };
            let is_blank = text.get(piece.clone()).is_none_or(|piece| piece.trim().is_empty());
            match out.last_mut() {
                Some((_, passage)) if is_blank => passage.range.end = piece.end,
                Some((last, passage))
                    if joins_passage(*last, kind) && piece.end - passage.range.start <= PASSAGE_BYTES =>
                {
                    passage.range.end = piece.end;
                    *last = kind;
                }
                _ => out.push((kind, Passage { range: piece, repeats })),
            }
        }
    }
    out.into_iter().map(|(_, passage)| passage).collect()
}

/// What a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Heading,
    /// A paragraph, or an item of a list.
    Text,
    Table,
    Code,
}

/// Whether a block is added to a passage whose last block is of a kind: a heading begins a passage and stays with what
/// follows it; tables and code are passages of their own.
fn joins_passage(last: BlockKind, next: BlockKind) -> bool {
    matches!(
        (last, next),
        (BlockKind::Heading, BlockKind::Heading | BlockKind::Text) | (BlockKind::Text, BlockKind::Text)
    )
}

/// A block of lines, including the empty lines after it.
struct TextBlock {
    kind: BlockKind,
    range: Range<usize>,
    /// Bytes of the lines at its start that each of its pieces repeats.
    header: usize,
    /// Its lines so far.
    lines: usize,
}

fn blocks(text: &str) -> Vec<TextBlock> {
    let mut blocks: Vec<TextBlock> = Vec::new();
    let mut end = 0;
    let mut open_fence: Option<CodeFence> = None;
    let mut after_empty = false;
    for line in text.split_inclusive('\n') {
        let start = end;
        end += line.len();
        let fence = fence(line);
        let is_empty = line.trim().is_empty();
        if let Some(open) = open_fence {
            if fence.is_some_and(|fence| fence.closes(open)) {
                open_fence = None;
            }
            extend(&mut blocks, end);
        } else if let Some(opening) = fence {
            open_fence = Some(opening);
            blocks.push(TextBlock { kind: BlockKind::Code, range: start..end, header: line.len(), lines: 1 });
        } else if is_empty {
            // Empty lines at the very beginning belong to the first block.
            extend(&mut blocks, end);
        } else {
            let kind = block_kind(line);
            let continues = blocks.last().is_some_and(|block| block.kind == kind && !after_empty);
            match blocks.last_mut() {
                Some(block) if continues && kind == BlockKind::Table => {
                    if is_ruler(line) && block.lines == 1 {
                        block.header = end - block.range.start;
                    }
                    block.lines += 1;
                    block.range.end = end;
                }
                Some(block) if continues && kind == BlockKind::Text && !is_item(line) => block.range.end = end,
                _ => blocks.push(TextBlock { kind, range: start..end, header: 0, lines: 1 }),
            }
        }
        after_empty = is_empty && open_fence.is_none();
    }
    if let Some(first) = blocks.first_mut() {
        let skipped = std::mem::take(&mut first.range.start);
        first.header += if first.header > 0 { skipped } else { 0 };
    }
    for block in blocks.iter_mut().filter(|block| block.header > MAX_REPEATED_BYTES) {
        block.header = 0;
    }
    blocks
}

fn extend(blocks: &mut [TextBlock], end: usize) {
    if let Some(block) = blocks.last_mut() {
        block.range.end = end;
    }
}

fn block_kind(line: &str) -> BlockKind {
    let line = line.trim();
    let level = line.chars().take_while(|c| *c == '#').count();
    let is_bold = || {
        let name = line.trim_end_matches(':').strip_prefix("**").and_then(|rest| rest.strip_suffix("**"));
        name.is_some_and(|name| !name.is_empty() && !name.contains("**"))
    };
    if (1..=6).contains(&level) && line.get(level..).is_some_and(|rest| rest.starts_with([' ', '\t'])) || is_bold() {
        BlockKind::Heading
    } else if line.starts_with('|') {
        BlockKind::Table
    } else {
        BlockKind::Text
    }
}

/// Whether a line separates a table's header from its rows.
fn is_ruler(line: &str) -> bool {
    line.contains('-') && line.trim().chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

/// Whether a line begins an item of a list.
fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    let rest = match line.strip_prefix(['-', '*', '+', '•']) {
        Some(rest) => Some(rest),
        None => line
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .strip_prefix(['.', ')'])
            .filter(|_| line.starts_with(|c: char| c.is_ascii_digit())),
    };
    rest.is_some_and(|rest| rest.starts_with(char::is_whitespace))
}

/// The line that opens or closes code: its character, and how often it is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CodeFence {
    character: char,
    count: usize,
    /// Whether nothing follows it in the line.
    is_bare: bool,
}

impl CodeFence {
    fn closes(self, open: Self) -> bool {
        self.is_bare && self.character == open.character && self.count >= open.count
    }
}

fn fence(text: &str) -> Option<CodeFence> {
    let line = text.trim_start().lines().next().unwrap_or_default().trim_end();
    let character = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let count = line.chars().take_while(|c| *c == character).count();
    let rest = line.get(count..).unwrap_or_default();
    // Backticks in the rest of the line make it inline code.
    (count >= 3 && !(character == '`' && rest.contains('`'))).then_some(CodeFence {
        character,
        count,
        is_bare: rest.is_empty(),
    })
}

/// Cuts a block into pieces that are short enough. A piece is cut at its last line break; without one, at its last end
/// of a sentence; without one, at its last space; otherwise at a character boundary.
fn pieces(text: &str, block: &Range<usize>) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut start = block.start;
    while block.end - start > PASSAGE_BYTES {
        let mut limit = start + PASSAGE_BYTES;
        while !text.is_char_boundary(limit) {
            limit -= 1;
        }
        let end = best_seam(text.get(start..limit).unwrap_or_default()).map_or(limit, |at| start + at);
        out.push(start..end);
        start = end;
    }
    if start < block.end {
        out.push(start..block.end);
    }
    out
}

/// The place of the best seam in a full piece.
fn best_seam(piece: &str) -> Option<usize> {
    let least = piece.len() / UNCUT_DIVISOR;
    let mut found: [Option<usize>; 3] = [None; 3];
    let mut ends_sentence = false;
    let mut characters = piece.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let end = at + c.len_utf8();
        let next = characters.peek().map(|(_, c)| *c);
        let level = match c {
            '\n' => Some(0),
            // These marks end a sentence without a space after them.
            '。' | '！' | '？' | '；' => Some(1),
            c if c.is_whitespace() && next.is_some_and(|next| !next.is_whitespace()) => {
                Some(if ends_sentence && next.is_some_and(|next| !next.is_lowercase()) { 1 } else { 2 })
            }
            _ => None,
        };
        if let Some(level) = level.filter(|_| end > least)
            && let Some(found) = found.get_mut(level)
        {
            *found = Some(end);
        }
        ends_sentence = match c {
            '.' | '!' | '?' | '…' => true,
            '"' | '\'' | ')' | ']' | '”' | '’' | '*' => ends_sentence,
            c => c.is_whitespace() && ends_sentence,
        };
    }
    found.into_iter().flatten().next()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(text: &str) -> Vec<String> {
        cut_passages(text).iter().map(|passage| passage.of(text)).collect()
    }

    fn sentence(n: usize) -> String {
        format!("Sentence {n} of a plan for the garden, the shed and the two old apple trees. ")
    }

    #[test]
    fn sections_paragraphs_and_items_are_packed_and_code_and_tables_stand_apart() {
        let (one, many) = (sentence(1), |n: usize| (0..n).map(sentence).collect::<String>());
        let text = format!(
            "\n{one}\n\n# Plan\n{}\n- {one}\n- {one}\n- {one}\n\n```rust\nfn main() {{}}\n\n# no heading\n```\n\n## Costs\n| a | b |\n|---|---|\n| 1 | 2 |\nDone.\n",
            many(3)
        );
        let expected = [
            format!("\n{one}\n\n"),
            format!("# Plan\n{}\n- {one}\n- {one}\n", many(3)),
            format!("- {one}\n\n"),
            "```rust\nfn main() {}\n\n# no heading\n```\n\n".to_owned(),
            "## Costs\n".to_owned(),
            "| a | b |\n|---|---|\n| 1 | 2 |\n".to_owned(),
            "Done.\n".to_owned(),
        ];
        assert_eq!(texts(&text), expected);
        assert_eq!(texts(&text).iter().map(|passage| is_code(passage)).filter(|code| *code).count(), 1);
    }

    #[test]
    fn pieces_of_tables_and_code_repeat_the_lines_that_say_what_they_are() {
        let rows: String = (0..60).map(|n| format!("| {n} | boat number {n} |\n")).collect();
        let header = "| no | name |\n|:--|--:|\n";
        let text = format!("{header}{rows}");
        let pieces = cut_passages(&text);
        assert!(pieces.len() > 2);
        assert!(pieces.iter().all(|piece| piece.of(&text).starts_with(header)));
        assert!(pieces.iter().all(|piece| text[piece.range.clone()].ends_with("|\n")));
        let lines: String = (0..40).map(|n| format!("    step({n}); // and on\n")).collect();
        let text = format!("  ~~~py\n{lines}  ~~~\n");
        assert!(cut_passages(&text).len() > 2);
        assert!(texts(&text).iter().all(|piece| piece.starts_with("  ~~~py\n") && is_code(piece)));
    }

    #[test]
    fn a_long_paragraph_is_cut_at_sentences_then_words_then_characters() {
        let text: String = (0..20).map(sentence).collect();
        assert!(texts(&text).iter().all(|piece| piece.starts_with("Sentence")));
        let words = "word ".repeat(300);
        assert!(texts(&words).iter().all(|piece| piece.starts_with("word ")));
        let chinese = "我们明天去北京看我的姐姐和她的孩子。".repeat(30);
        assert!(texts(&chinese).iter().all(|piece| piece.starts_with('我') && piece.ends_with('。')));
        assert!(texts(&"ä".repeat(999)).iter().all(|piece| piece.len() <= PASSAGE_BYTES));
    }

    #[test]
    fn a_text_of_a_mebibyte_is_cut_in_time_that_grows_with_its_length() {
        for line in ["|-|\n", "```\n", "# a\n", "\n", "- a\n", "a", " a", "| a |\n"] {
            let text = format!("x{}x", line.repeat((1 << 20) / line.len()));
            let cut = cut_passages(&text);
            assert_eq!(cut.last().map_or(0, |passage| passage.range.end), text.len(), "{line:?}");
        }
    }

    proptest! {
        /// The passages are consecutive and cover the whole text; apart from white space, none is longer than allowed.
        #[test]
        fn passages_are_the_text(
            text in "(# |## |\\*\\*b\\*\\*\n|- |1\\. |\n|\n\n|```\n|~~~rs\n|\\| a \\| b\\|\n|\\|--\\|\n|[ -~äü李。]{1,90}| ){0,60}",
        ) {
            prop_assume!(!text.trim().is_empty());
            let cut = cut_passages(&text);
            let mut end = 0;
            for Passage { range, repeats } in &cut {
                prop_assert_eq!(range.start, end);
                prop_assert!(repeats.end <= range.start && repeats.len() <= MAX_REPEATED_BYTES);
                prop_assert!(text[range.clone()].trim().len() <= PASSAGE_BYTES);
                end = range.end;
            }
            prop_assert!(cut.is_empty() || end == text.len());
            let filled = |passage: &&Passage| !text[passage.range.clone()].trim().is_empty();
            prop_assert_eq!(cut.iter().filter(filled).count(), cut.len());
        }
    }
}
