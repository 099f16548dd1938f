//! Decodes the bytes of a log line as text.
//!
//! In: one line of a log. Out: its text, read as UTF-8 if the line is valid UTF-8, else as Windows-1252, because logs
//! mix both line by line. Codes for colours and styles are removed. Never fails.

use std::borrow::Cow;

use encoding_rs::WINDOWS_1252;

/// The characters that the WHATWG's table assigns to the five bytes that Windows-1252 leaves undefined.
const UNASSIGNED: [char; 5] = ['\u{81}', '\u{8d}', '\u{8f}', '\u{90}', '\u{9d}'];

/// The text of a line, without its line end.
pub(super) fn decode(line: &[u8]) -> Cow<'_, str> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match std::str::from_utf8(line) {
        Ok(text) if text.bytes().all(|b| b == b'\t' || !b.is_ascii_control()) => Cow::Borrowed(text),
        Ok(text) => Cow::Owned(without_codes(text)),
        Err(_) => {
            let text = WINDOWS_1252.decode_without_bom_handling(line).0;
            Cow::Owned(without_codes(&text.replace(UNASSIGNED, "\u{fffd}")))
        }
    }
}

/// A text without control characters and without the digits of colour codes.
fn without_codes(text: &str) -> String {
    const COLOUR: char = '\u{3}';
    const HEX_COLOUR: char = '\u{4}';
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let digits = match c {
            COLOUR => 2,
            HEX_COLOUR => 6,
            c => {
                if c == '\t' || !c.is_control() {
                    plain.push(c);
                }
                continue;
            }
        };
        let is_digit = |c: &char| if digits == 2 { c.is_ascii_digit() } else { c.is_ascii_hexdigit() };
        let mut count = 0;
        while count < digits && chars.next_if(is_digit).is_some() {
            count += 1;
        }
        let mut ahead = chars.clone();
        if count > 0 && ahead.next() == Some(',') && ahead.next().as_ref().is_some_and(is_digit) {
            chars.next();
            for _ in 0..digits {
                chars.next_if(is_digit);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_read_as_utf8_or_else_as_windows_1252() {
        for (line, expected) in [
            ("<zoë> grüß dich\r\n".as_bytes(), "<zoë> grüß dich"),
            (b"<zo\xeb> gr\xfc\xdf dich\n", "<zoë> grüß dich"),
            (b"<a> \x93quoted\x94 \x96 5 \x80", "<a> “quoted” – 5 €"),
            (b"<a> \x81", "<a> \u{fffd}"),
            (b"", ""),
        ] {
            assert_eq!(decode(line), expected);
        }
    }

    #[test]
    fn colours_and_styles_are_removed_and_tabs_stay() {
        for (line, expected) in [
            ("\u{3}04red\u{3} and \u{2}bold\u{f}", "red and bold"),
            ("\u{3}4,12both\u{3}, then a comma", "both, then a comma"),
            ("\u{3}1212 pieces", "12 pieces"),
            ("\u{4}ff0000hex\u{1d}italic\u{1f}", "hexitalic"),
            ("a\tb", "a\tb"),
        ] {
            assert_eq!(decode(line.as_bytes()), expected, "{line:?}");
        }
    }
}
