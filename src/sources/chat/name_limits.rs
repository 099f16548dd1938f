//! Ids and names within the limits of a turn.
//!
//! In: any text of a platform. Out: a text of at most 256 bytes without control characters. Equal
//! texts give equal names, and different texts different ones.

use types::model::MAX_NAME_BYTES;

/// How many bytes stay readable of a text that must be changed.
const KEPT_BYTES: usize = 200;

/// The id of a turn: `CONVERSATION/MESSAGE`.
pub(super) fn turn_id(conversation: &str, message: &str) -> String {
    let conversation = conversation.replace('%', "%25").replace('/', "%2F");
    within_limits(&format!("{conversation}/{message}"))
}

/// The text itself if it is a valid name; else its printable beginning with a hash of the whole.
pub(super) fn within_limits(text: &str) -> String {
    let is_name = text.len() <= MAX_NAME_BYTES && !text.trim().is_empty() && !text.chars().any(char::is_control);
    if is_name {
        return text.to_owned();
    }
    let mut name: String = text.chars().map(|c| if c.is_control() { '_' } else { c }).collect();
    name.truncate(name.floor_char_boundary(KEPT_BYTES));
    let hash = blake3::hash(text.as_bytes()).to_hex();
    format!("{}~{}", name.trim(), hash.get(..16).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_short_printable_and_still_differ() {
        assert_eq!(turn_id("C1", "12.5"), "C1/12.5");
        assert_ne!(turn_id("a/b", "c"), turn_id("a", "b/c"));
        let long = |end: &str| turn_id(&"ü".repeat(200), end);
        for name in [long("1"), within_limits("a\nb"), within_limits(""), within_limits(" ")] {
            assert!(name.len() <= 256 && !name.trim().is_empty() && !name.chars().any(char::is_control), "{name:?}");
        }
        assert_ne!(long("1"), long("2"));
        assert_eq!(long("1"), long("1"));
        assert_ne!(within_limits("a\nb"), within_limits("a\tb"));
    }
}
