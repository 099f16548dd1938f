//! A text split for the search for names: words with their capitals, possessives and gaps.
//!
//! In: a text. Out: its words in order. A caller that looks for several things splits a text once.
//! Days, months and "I" are not part of a name.

use std::{borrow::Cow, ops::Range};

use super::{
    calendar::{month_number, weekday_number},
    sentences::is_common_opening,
};

/// A text split once, for a caller that looks for several things in it.
pub struct NameText<'t> {
    pub(super) text: &'t str,
    pub(super) words: Vec<NameWord<'t>>,
}

impl<'t> NameText<'t> {
    /// Splits a text.
    #[must_use]
    pub fn of(text: &'t str) -> Self {
        Self { text, words: name_words(text) }
    }
}

/// A word of a text: apostrophes inside it are kept, a possessive ending is left out.
pub(super) struct NameWord<'t> {
    pub(super) range: Range<usize>,
    pub(super) lower: Cow<'t, str>,
    pub(super) capital: bool,
    pub(super) possessive: bool,
    /// Whether it opens a sentence or a quotation.
    pub(super) opens: bool,
    /// Whether only one space is between it and the word before it.
    pub(super) follows: bool,
}

impl NameWord<'_> {
    pub(super) fn text<'a>(&self, text: &'a str) -> &'a str {
        text.get(self.range.clone()).unwrap_or_default()
    }
}

fn name_words(text: &str) -> Vec<NameWord<'_>> {
    let mut out: Vec<NameWord<'_>> = Vec::with_capacity(text.len() / 5);
    let mut end_before = 0;
    let mut rest = text.char_indices().peekable();
    while let Some((start, c)) = rest.next() {
        if !c.is_alphanumeric() {
            continue;
        }
        let mut end = start + c.len_utf8();
        while let Some(&(i, c)) = rest.peek() {
            let inner = matches!(c, '\'' | '’' | '-' | '.')
                && text.get(i + c.len_utf8()..).and_then(|t| t.chars().next()).is_some_and(char::is_alphabetic)
                && !(c == '.' && end - start > 1);
            if !c.is_alphanumeric() && !inner {
                break;
            }
            end = i + c.len_utf8();
            rest.next();
        }
        let whole = text.get(start..end).unwrap_or_default();
        let bare = ["'s", "’s", "'S"].iter().find_map(|s| whole.strip_suffix(s)).unwrap_or(whole);
        let gap = text.get(end_before..start).unwrap_or_default();
        let opens = out.is_empty()
            || gap != " "
                && (gap.contains(['.', '!', '?', '…', '\n', '"', '“', ':', '*'])
                    || gap.chars().any(|c| c as u32 > 0x2fff));
        out.push(NameWord {
            range: start..start + bare.len(),
            lower: lower_case(bare),
            capital: c.is_uppercase(),
            possessive: bare.len() < whole.len(),
            opens,
            follows: gap == " ",
        });
        end_before = end;
    }
    out
}

fn lower_case(word: &str) -> Cow<'_, str> {
    if word.bytes().all(|b| b.is_ascii() && !b.is_ascii_uppercase()) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(word.to_lowercase())
    }
}

/// Whether a word looks like a part of a name.
pub(super) fn is_name_word(word: &NameWord<'_>) -> bool {
    if !word.capital {
        return false;
    }
    let lower = &*word.lower;
    let pronoun = lower == "i" || lower.starts_with("i'") || lower.starts_with("i’");
    !pronoun
        && weekday_number(lower).is_none()
        && (month_number(lower).is_none() || lower == "may")
        && !(word.opens && is_common_opening(lower))
}
