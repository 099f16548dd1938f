//! Repairs texts whose UTF-8 bytes were each written as a separate character.
//!
//! In: a text. Out: the intended text, if the whole text shows the damage; else the text as it is. Exports contain
//! mostly damaged texts but also intact ones, so each text is judged by itself.

/// The intended text.
pub(super) fn repaired(text: String) -> String {
    if text.is_ascii() {
        return text;
    }
    let bytes: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
    // If the characters of a damaged text are taken as bytes, they are valid UTF-8. For an intact text this almost
    // never holds, because each accented letter would have to be followed by the right control character or sign.
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
