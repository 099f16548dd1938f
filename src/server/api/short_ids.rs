//! Short ids of turns: what a model can repeat.
//!
//! In: the id of a turn, of up to 128 characters. Out: itself where it is short, otherwise `~` and six characters of
//! its hash. A function of the id alone, so that a short id holds across processes; which turn of a bank it means is
//! looked up, and may be ambiguous.

use std::borrow::Cow;

/// Longer ids are shortened.
const LONGEST: usize = 8;
/// What a shortened id begins with.
const MARK: char = '~';
/// Letters and digits that are not mistaken for one another (Crockford's base 32).
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Digits of a shortened id: 30 bits.
const LENGTH: usize = 6;

/// The short id of a turn.
#[must_use]
pub fn short_id(turn: &str) -> Cow<'_, str> {
    if turn.len() <= LONGEST && turn.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte)) {
        return Cow::Borrowed(turn);
    }
    let hash = blake3::hash(turn.as_bytes());
    let digit = |byte: &u8| DIGITS.get(usize::from(byte % 32)).copied().map_or('0', char::from);
    Cow::Owned(std::iter::once(MARK).chain(hash.as_bytes().iter().take(LENGTH).map(digit)).collect())
}

/// Whether an id may be a shortened one.
pub(super) fn is_shortened(id: &str) -> bool {
    id.strip_prefix(MARK).is_some_and(|digits| digits.len() == LENGTH && digits.bytes().all(|d| DIGITS.contains(&d)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_odd_ids_are_shortened_and_short_ones_stay() {
        for id in ["1", "t-17", "D1:3", "a.b_c"] {
            assert_eq!(short_id(id), id);
        }
        let long = ["mcp-0123456789abcdef0123", "a b", "~", "[a]", "李"];
        let short: std::collections::BTreeSet<String> = long.iter().map(|id| short_id(id).into_owned()).collect();
        assert_eq!(short.len(), long.len());
        assert!(short.iter().all(|id| is_shortened(id)), "{short:?}");
        assert!(!["~0123", "~01234u", "0123456", "~0123456"].into_iter().any(is_shortened));
    }
}
