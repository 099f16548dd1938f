//! Where a sentence ends, and by which mark a question does, in every script.
//!
//! In: characters. Out: whether they end a sentence, or ask. `.`, `!` and `?` end one only before white space, which
//! is the caller's to see; the marks of scripts without such space always do. A Greek question mark is a `;`, which
//! ends nothing elsewhere and is left out unless it is Greek's own character.

/// Whether a mark ends a sentence whatever follows it.
#[must_use]
pub fn ends_sentence(mark: char) -> bool {
    matches!(mark, '。' | '！' | '？' | '｡' | '．' | '؟' | '۔' | '।' | '॥' | '\u{1362}' | '\u{37e}')
}

/// Whether a mark asks.
#[must_use]
pub fn is_asking_mark(mark: char) -> bool {
    matches!(mark, '?' | '？' | '؟' | '\u{37e}' | '⁇' | '⁈')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the sentence terminals of Unicode's `SentenceBreakProperty` (STerm), of the scripts of the table.
    #[test]
    fn each_script_has_its_marks() {
        assert!("。！？؟।॥۔".chars().all(ends_sentence));
        assert!("?？؟\u{37e}".chars().all(is_asking_mark));
        assert!(!".!?,，、;".chars().any(ends_sentence), "these need white space behind them, or end nothing");
        assert!(!"。！;।".chars().any(is_asking_mark));
    }
}
