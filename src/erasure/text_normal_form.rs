//! Reads text from bytes, in the normal form of words, whatever the bytes are part of: text, JSON, a page of a table.
//!
//! In: bytes. Out: their characters in normal form, each with its offset. Invalid UTF-8 becomes the replacement
//! character. Escapes of JSON, and those with which our own errors quote names, are read as the characters that they
//! stand for, however many backslashes JSON inside JSON puts before them; or backslashes are read as they are.

use types::model::NormalFormReader;

/// How backslashes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BackslashReading {
    /// As escapes.
    Escape,
    /// As plain characters.
    Stand,
}

/// Calls `each` with the characters of some bytes in normal form, and their offsets.
pub(super) fn each_normal(bytes: &[u8], backslashes: BackslashReading, each: &mut impl FnMut(usize, char)) {
    let (mut reader, mut at) = (NormalFormReader::default(), 0);
    while let Some(first) = bytes.get(at) {
        let (letter, length) = match *first {
            b'\\' if backslashes == BackslashReading::Escape => escaped(&bytes[at..]),
            byte if byte.is_ascii() => (Some(char::from(byte)), 1),
            _ => beyond_ascii(&bytes[at..]),
        };
        if let Some(letter) = letter {
            reader.push(at, letter, each);
        }
        at += length;
    }
    reader.end(each);
}

/// The escaped character at backslashes, if any, and how many bytes it takes.
fn escaped(bytes: &[u8]) -> (Option<char>, usize) {
    let slashes = bytes.iter().take_while(|byte| **byte == b'\\').count();
    match bytes.get(slashes) {
        Some(b'n' | b'r' | b't' | b'b' | b'f') => (Some(' '), slashes + 1),
        Some(b'u') => match code_of(bytes.get(slashes..).unwrap_or_default()) {
            Some((code, length)) => {
                let after = bytes.get(slashes + length..).unwrap_or_default();
                let more = after.iter().take_while(|byte| **byte == b'\\').count();
                // A character beyond the first 65,536 is a pair of escapes.
                match (code, after.get(more..).and_then(code_of)) {
                    (0xd800..=0xdbff, Some((low @ 0xdc00..=0xdfff, of_low))) if more > 0 => {
                        let code = 0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                        (char::from_u32(code), slashes + length + more + of_low)
                    }
                    _ => (Some(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)), slashes + length),
                }
            }
            None => (Some('\\'), slashes),
        },
        // The next character is the escaped one.
        Some(b'"' | b'\'' | b'/') => (None, slashes),
        _ => (Some('\\'), slashes),
    }
}

/// The code of an escape after its backslashes, and how many bytes it takes: `u` with four digits, or with digits in
/// braces.
fn code_of(bytes: &[u8]) -> Option<(u32, usize)> {
    let digits = bytes.strip_prefix(b"u")?;
    let code = |digits: &[u8]| {
        let digits = digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    if let Some(digits) = digits.strip_prefix(b"{") {
        let length = digits.iter().take(7).position(|byte| *byte == b'}')?;
        return Some((code(&digits[..length])?, length + 3));
    }
    Some((code(digits.get(..4)?)?, 5))
}

/// The multi-byte character at the start of these bytes, and how many bytes it takes.
fn beyond_ascii(bytes: &[u8]) -> (Option<char>, usize) {
    let length = match bytes[0] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return (Some(char::REPLACEMENT_CHARACTER), 1),
    };
    let text = bytes.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok());
    match text.and_then(|text| text.chars().next()) {
        Some(letter) => (Some(letter), length),
        None => (Some(char::REPLACEMENT_CHARACTER), 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], backslashes: BackslashReading) -> String {
        let mut read = String::new();
        each_normal(bytes, backslashes, &mut |_, letter| read.push(letter));
        read
    }

    #[test]
    fn escapes_are_what_they_stand_for_however_often_json_escapes_them() {
        let text = "She said:\n\"Über 𠀀\", C:\\x/y ok\u{301}";
        let expected = "she said: \"u\u{308}ber 𠀀\", c:\\x/y ok\u{301}";
        let once = serde_json::Value::from(text).to_string();
        let twice = serde_json::Value::from(once.as_str()).to_string();
        for bytes in [text, &once[1..once.len() - 1], &twice[3..twice.len() - 3]] {
            assert_eq!(read(bytes.as_bytes(), BackslashReading::Escape).replace('\n', " "), expected, "{bytes}");
        }
        assert_eq!(
            read(br"\u00dc\\u0308 \u{e9} \ud840\udc00 \ud840 \/", BackslashReading::Escape),
            "u\u{308}\u{308} e\u{301} 𠀀 \u{fffd} /"
        );
        let quoted = format!("{:?}", "e\u{301}");
        assert_eq!(read(quoted.as_bytes(), BackslashReading::Escape), "\"e\u{301}\"");
        assert_eq!(read(br"C:\new\\u12", BackslashReading::Stand), r"c:\new\\u12");
        assert_eq!(
            read(b"\xff\xfeAB\xc3 \xe4\xbd", BackslashReading::Escape),
            "\u{fffd}\u{fffd}ab\u{fffd} \u{fffd}\u{fffd}"
        );
    }
}
