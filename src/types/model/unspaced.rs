//! Scripts without spaces between words.
//!
//! In: a character. Out: whether it counts as a word where words are looked for. How the memory divides texts into
//! words is in the module `language` of the crate `memory`.

/// Whether a character is a word: those of scripts without spaces (Thai to Myanmar, Khmer, Chinese, Japanese).
#[must_use]
pub fn is_word_by_itself(letter: char) -> bool {
    matches!(letter, '\u{0e00}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{2e80}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}
