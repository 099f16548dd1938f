//! Where a sentence ends, and by which mark a question does, in every script.
//!
//! In: characters. Out: whether they end a sentence, or ask. `.`, `!` and `?` end one only before white space, which
//! is the caller's to see; the marks of scripts without such space always do. A Greek question mark is a `;`, which
//! ends nothing elsewhere and is left out unless it is Greek's own character.

/// Whether a mark ends a sentence whatever follows it.
#[must_use]
pub fn ends_sentence(mark: char) -> bool {
    matches!(mark, '。' | '！' | '？' | '｡' | '．' | '؟' | '۔' | '।' | '॥' | '።' | '។' | '။' | '\u{37e}')
}

/// Whether a mark asks.
#[must_use]
pub fn is_asking_mark(mark: char) -> bool {
    matches!(mark, '?' | '？' | '؟' | '\u{37e}' | '⁇' | '⁈')
}
