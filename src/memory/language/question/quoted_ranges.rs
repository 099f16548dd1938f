//! Quotations in a question: titles and other words between quotation marks.
//!
//! In: a question's text. Out: the ranges of its quotations, or the text without them. An apostrophe inside or after a
//! word does not open a quotation.

use std::ops::Range;

/// Byte ranges of the text between quotation marks, without the marks.
pub(super) fn quoted_ranges(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open: Option<(usize, char)> = None;
    let mut before = ' ';
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map_or(' ', |&(_, n)| n);
        match open {
            Some((start, close)) if c == close && (c != '\'' || !next.is_alphanumeric()) => {
                if start < at {
                    found.push(start..at);
                }
                open = None;
            }
            Some(_) => {}
            None => {
                let close = match c {
                    '"' => Some('"'),
                    '\u{201c}' => Some('\u{201d}'),
                    '\u{ab}' => Some('\u{bb}'),
                    // An apostrophe inside or after a word does not open a quotation.
                    '\'' if !before.is_alphanumeric() && next.is_alphanumeric() => Some('\''),
                    _ => None,
                };
                open = close.map(|close| (at + c.len_utf8(), close));
            }
        }
        before = c;
    }
    found
}

/// The text without what is between double quotation marks; after a mark that is never closed, the rest is left out.
/// Single marks stay: a question's type reads the apostrophes of contractions.
pub(super) fn without_quotes(text: &str) -> String {
    let mut inside = false;
    text.chars()
        .filter(|&c| match c {
            '"' => {
                inside = !inside;
                false
            }
            '\u{201c}' => {
                inside = true;
                false
            }
            '\u{201d}' => {
                inside = false;
                false
            }
            _ => !inside,
        })
        .collect()
}
