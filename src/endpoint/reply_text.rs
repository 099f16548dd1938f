//! The text of a reply, or of one line of it.
//!
//! In: bytes. Out: text without a byte order mark in front. A byte that is no UTF-8 becomes the replacement character,
//! so that one of them does not cost a whole reply. Never fails.

use std::borrow::Cow;

/// The byte order mark of UTF-8, which some servers write and no JSON parser here accepts.
const BYTE_ORDER_MARK: &[u8; 3] = b"\xef\xbb\xbf";

/// The text of these bytes.
#[must_use]
pub fn reply_text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_in_front_is_left_out_and_a_bad_byte_replaced() {
        assert_eq!(reply_text(b"\xef\xbb\xbf{}"), "{}");
        assert_eq!(reply_text(b"a \xff b"), "a \u{fffd} b");
        assert_eq!(reply_text("é".as_bytes()), "é");
    }
}
