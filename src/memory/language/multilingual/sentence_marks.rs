//! The marks that end a sentence, and those that end a question, in every script.
//!
//! In: characters. Out: whether they end a sentence, or a question. `.`, `!` and `?` end a sentence only before white
//! space, which the caller checks; the marks of scripts without such space always end one. The Greek question mark
//! looks like `;`, which ends nothing in other languages. So only Greek's own character for it counts.

/// Whether a mark ends a sentence whatever follows it.
#[must_use]
pub fn ends_sentence(mark: char) -> bool {
    matches!(mark, '。' | '！' | '？' | '｡' | '．' | '؟' | '۔' | '।' | '॥' | '\u{1362}' | '\u{37e}')
}

/// Whether a mark ends a question.
#[must_use]
pub fn is_asking_mark(mark: char) -> bool {
    matches!(mark, '?' | '？' | '؟' | '\u{37e}' | '⁇' | '⁈')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows the sentence terminals of Unicode's `SentenceBreakProperty` (STerm) for the scripts of the table.
    #[test]
    fn each_script_has_its_marks() {
        assert!("。！？؟।॥۔".chars().all(ends_sentence));
        assert!("?？؟\u{37e}".chars().all(is_asking_mark));
        assert!(!".!?,，、;".chars().any(ends_sentence), "these need white space behind them, or end nothing");
        assert!(!"。！;।".chars().any(is_asking_mark));
    }
}
