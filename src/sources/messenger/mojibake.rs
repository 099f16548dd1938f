//! Texts whose UTF-8 bytes were written as if each were a character of its own.
//!
//! In: a text. Out: the text that was meant, where all of it shows the damage; else the text as it
//! is. Exports write most texts damaged and some not, so that each is judged by itself.

/// The text that was meant.
pub(super) fn repaired(text: String) -> String {
    if text.is_ascii() {
        return text;
    }
    let bytes: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
    // Damaged text is valid UTF-8 under its disguise; what was written well almost never is, because
    // each of its letters would have to be followed by the right control character or sign.
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn damaged(text: &str) -> String {
        text.bytes().map(char::from).collect()
    }

    #[test]
    fn only_damaged_texts_are_changed() {
        for (text, expected) in [
            ("plain", "plain"),
            ("caf\u{c3}\u{a9}", "café"),
            ("\u{f0}\u{9f}\u{91}\u{8d}", "👍"),
            ("café", "café"),
            ("日本", "日本"),
            ("👍 caf\u{c3}\u{a9}", "👍 caf\u{c3}\u{a9}"),
            ("Ã", "Ã"),
            ("naïve «ça»", "naïve «ça»"),
            ("", ""),
        ] {
            assert_eq!(repaired(text.to_owned()), expected);
        }
    }

    proptest! {
        #[test]
        fn every_damaged_text_is_repaired(text in ".*") {
            prop_assert_eq!(repaired(damaged(&text)), text);
        }
    }
}
