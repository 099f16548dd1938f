//! Cuts a sentence into the words that patterns are made of.
//!
//! In: a text and its language. Out: tokens with their byte ranges: words in lower case, each letter of a script
//! without spaces, each mark. French articles and pronouns with an apostrophe are tokens of their own.

use std::ops::Range;

use crate::language::multilingual::is_unspaced;
use types::model::Language;

/// A word, a letter of a script without spaces, or a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextToken {
    /// Its byte range in the text.
    pub range: Range<usize>,
    /// In lower case, with straight apostrophes.
    pub lower: String,
    /// Whether it begins with a capital.
    pub is_capital: bool,
    /// Whether it is a mark, neither letter nor digit.
    pub is_mark: bool,
}

/// The tokens of a text, in order.
pub(super) fn text_tokens(text: &str, language: Language) -> Vec<TextToken> {
    let mut tokens: Vec<TextToken> = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        if c.is_whitespace() {
            continue;
        }
        let mut end = start + c.len_utf8();
        let is_word = c.is_alphanumeric() || is_amount_sign(c) && chars.peek().is_some_and(|(_, n)| n.is_ascii_digit());
        if is_word && !is_unspaced(c) {
            while let Some(&(at, next)) = chars.peek() {
                let after = text.get(at + next.len_utf8()..).and_then(|rest| rest.chars().next());
                let joins = matches!(next, '\'' | '’' | '-' | '.' | ',' | '/' | ':' | '@' | '_')
                    && after.is_some_and(|after| joins_words(next, after, text.get(start..at).unwrap_or_default()));
                let elides = language == Language::Fr && matches!(next, '\'' | '’');
                if !(next.is_alphanumeric() && !is_unspaced(next) || joins || elides || next == '%') {
                    break;
                }
                chars.next();
                end = at + next.len_utf8();
                if elides {
                    break;
                }
            }
        }
        let word = text.get(start..end).unwrap_or_default();
        tokens.push(TextToken {
            range: start..end,
            lower: word.to_lowercase().replace('’', "'"),
            is_capital: c.is_uppercase(),
            is_mark: !is_word,
        });
    }
    tokens
}

/// Whether a mark between `before` and `after` belongs to a word: `don't`, `step-by-step`, `1,200.50`, `a@b.c`.
fn joins_words(mark: char, after: char, before: &str) -> bool {
    let digits = before.ends_with(|c: char| c.is_ascii_digit()) && after.is_ascii_digit();
    match mark {
        ',' | ':' => digits,
        '.' => after.is_alphanumeric() && !after.is_uppercase(),
        _ => after.is_alphanumeric() && !is_unspaced(after),
    }
}

fn is_amount_sign(c: char) -> bool {
    matches!(c, '$' | '€' | '£' | '¥' | '#' | '@' | '+')
}

/// The tokens of a phrase whose words stand between `_`.
pub(super) fn phrase_words(phrase: &str, language: Language) -> Vec<String> {
    let spaced = phrase.replace('_', " ");
    text_tokens(&spaced, language).into_iter().map(|token| token.lower).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_numbers_and_letters_without_spaces_are_tokens() {
        let check = |text: &str, language: Language, expected: &[&str]| {
            let found: Vec<String> = text_tokens(text, language).into_iter().map(|token| token.lower).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("I don’t pay $1,200.50.", Language::En, &["i", "don't", "pay", "$1,200.50", "."]);
        check("Step-by-step, at 7:30!", Language::En, &["step-by-step", ",", "at", "7:30", "!"]);
        check("J’habite à Lyon", Language::Fr, &["j'", "habite", "à", "lyon"]);
        check("我叫Ann。", Language::Zh, &["我", "叫", "ann", "。"]);
        check("It ends.Next a@b.org", Language::En, &["it", "ends", ".", "next", "a@b.org"]);
    }
}
