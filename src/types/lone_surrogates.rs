//! Lone surrogates in JSON: escapes such as `\ud83d` without their other half.
//!
//! In: bytes of JSON. Out: the same number of bytes, in which each lone surrogate is the replacement character U+FFFD.
//! Programs that cut a text after a number of UTF-16 units write them, and no JSON parser here accepts them: one such
//! escape would cost a whole message, or a request with many. Byte positions and line numbers stay the same. Never
//! fails, and never changes a complete escape.

use std::borrow::Cow;

/// The escape of the replacement character, which is as long as any other escape with four digits.
const REPLACEMENT: &[u8; 6] = b"\\ufffd";

/// The bytes without lone surrogates.
#[must_use]
pub fn replace_lone_surrogates(json: &[u8]) -> Cow<'_, [u8]> {
    let mut whole = Cow::Borrowed(json);
    let mut at = 0;
    while let Some(found) = json.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == b'\\')) {
        at += found;
        let Some(unit) = escaped_unit(json, at) else {
            // An escape with one letter. The second of two backslashes does not begin an escape.
            at += 2;
            continue;
        };
        let is_pair = matches!(unit, 0xd800..=0xdbff) && matches!(escaped_unit(json, at + 6), Some(0xdc00..=0xdfff));
        if is_pair {
            at += 12;
            continue;
        }
        if matches!(unit, 0xd800..=0xdfff)
            && let Some(escape) = whole.to_mut().get_mut(at..at + 6)
        {
            escape.copy_from_slice(REPLACEMENT);
        }
        at += 6;
    }
    whole
}

/// The UTF-16 unit of an escape `\uXXXX` at this position.
fn escaped_unit(json: &[u8], at: usize) -> Option<u32> {
    let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, digit| Some(unit * 16 + char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn halves_are_replaced_and_whole_characters_stay() {
        for (json, expected) in [
            (r#""Olive \ud83d""#, "Olive \u{fffd}"),
            (r#""cut \udc4d here""#, "cut \u{fffd} here"),
            (r#""whole \ud83d\udc4d pair""#, "whole 👍 pair"),
            (r#""\ud83d\ud83d\udc4d""#, "\u{fffd}👍"),
            (r#""\udc4d\ud83d""#, "\u{fffd}\u{fffd}"),
            (r#""\uD83D\u0041""#, "\u{fffd}A"),
            (r#""\\ud83d""#, "\\ud83d"),
            (r#""\\\ud83d""#, "\\\u{fffd}"),
            (r#""\ud83d\\udc4d""#, "\u{fffd}\\udc4d"),
            (r#""plain é \u00e9 \n""#, "plain é é \n"),
        ] {
            let whole = replace_lone_surrogates(json.as_bytes());
            assert_eq!(serde_json::from_slice::<String>(&whole).unwrap(), expected, "{json}");
            assert_eq!(whole.len(), json.len(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn any_run_of_escapes_is_a_text_afterwards(units in prop::collection::vec(any::<u16>(), 0..8), tail in "[a-z\\\\]{0,3}") {
            let escapes: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let json = format!("\"{escapes}\"");
            let text: String = serde_json::from_slice(&replace_lone_surrogates(json.as_bytes())).unwrap();
            prop_assert_eq!(text, String::from_utf16_lossy(&units));
            let cut = format!("{json}{tail}\\u12");
            prop_assert_eq!(replace_lone_surrogates(cut.as_bytes()).len(), cut.len());
        }
    }
}
