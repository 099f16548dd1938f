//! Splits a question's text into words, and knows which words are too common to be selective.
//!
//! In: text. Out: words with their byte ranges, capitals and possessive endings. The lists are general English; they
//! contain no person, place or topic.

use std::ops::Range;

use crate::language::multilingual::word_ranges;

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QuestionWord<'t> {
    /// As written, without the possessive ending.
    pub(super) text: &'t str,
    /// In lower case.
    pub(super) lower: String,
    /// Its byte range in the text, including the possessive ending.
    pub(super) range: Range<usize>,
    /// Whether it ended in `'s`, or in `s'`.
    pub(super) possessive: bool,
}

impl QuestionWord<'_> {
    /// Whether it begins with a capital letter.
    pub(super) fn capitalised(&self) -> bool {
        self.text.chars().next().is_some_and(char::is_uppercase)
    }
}

/// The words of a text, in order. Words joined by a hyphen are one word.
pub(super) fn words(text: &str) -> Vec<QuestionWord<'_>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for Range { start, end } in word_ranges(text) {
        match ranges.last_mut() {
            Some(last) if text.get(last.end..start) == Some("-") => last.end = end,
            _ => ranges.push(start..end),
        }
    }
    ranges.into_iter().filter_map(|range| word(text, range)).collect()
}

fn word(text: &str, range: Range<usize>) -> Option<QuestionWord<'_>> {
    let whole = text.get(range.clone())?;
    let bare = ["'s", "\u{2019}s", "'S", "\u{2019}S"].iter().find_map(|ending| whole.strip_suffix(ending));
    let plural_owner = whole.ends_with('s') && text.get(range.end..).is_some_and(opens_with_lone_apostrophe);
    let bare_text = bare.unwrap_or(whole);
    Some(QuestionWord {
        text: bare_text,
        lower: bare_text.to_lowercase().replace('\u{2019}', "'"),
        range,
        possessive: bare.is_some() || plural_owner,
    })
}

fn opens_with_lone_apostrophe(rest: &str) -> bool {
    let mut chars = rest.chars();
    matches!(chars.next(), Some('\'' | '\u{2019}')) && chars.next() == Some(' ')
}

/// Verbs and nouns so common that they hardly select anything; lower case, sorted.
const WEAK_WORDS: &[&str] = &[
    "able",
    "come",
    "came",
    "describe",
    "discuss",
    "discussed",
    "done",
    "explain",
    "feel",
    "feels",
    "felt",
    "gave",
    "get",
    "gets",
    "getting",
    "give",
    "given",
    "gives",
    "go",
    "goes",
    "going",
    "gone",
    "got",
    "happen",
    "happened",
    "happens",
    "kind",
    "kinds",
    "know",
    "known",
    "knows",
    "like",
    "likely",
    "list",
    "long",
    "made",
    "make",
    "makes",
    "making",
    "many",
    "mention",
    "mentioned",
    "mentions",
    "name",
    "named",
    "names",
    "often",
    "recent",
    "recently",
    "remember",
    "remind",
    "repeat",
    "said",
    "say",
    "says",
    "sort",
    "sorts",
    "take",
    "taken",
    "takes",
    "taking",
    "talk",
    "talked",
    "tell",
    "tells",
    "thing",
    "things",
    "think",
    "thinks",
    "thought",
    "time",
    "times",
    "told",
    "took",
    "type",
    "types",
    "use",
    "used",
    "want",
    "wanted",
    "wants",
    "way",
    "ways",
    "went",
];

/// Auxiliary verbs with which a question or its predicate begins; lower case.
const AUXILIARIES: &[&str] = &[
    "did", "does", "do", "has", "have", "had", "is", "are", "was", "were", "will", "would", "can", "could", "should",
    "might", "may", "must", "shall",
];

/// Whether a lower-case word is too common to be selective by itself.
pub(super) fn is_weak_word(lower: &str) -> bool {
    WEAK_WORDS.contains(&lower)
}

/// Whether a lower-case word is an auxiliary verb.
pub(super) fn is_auxiliary(lower: &str) -> bool {
    AUXILIARIES.contains(&lower)
}

/// Whether a range is inside one of several ranges.
pub(super) fn is_within(range: &Range<usize>, ranges: &[Range<usize>]) -> bool {
    ranges.iter().any(|r| r.start <= range.start && range.end <= r.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn possessives_and_hyphens_belong_to_their_word() {
        let found: Vec<(String, bool)> = words("Anna's well-known dog, the Smiths' cat and Leo\u{2019}s")
            .into_iter()
            .map(|w| (w.lower, w.possessive))
            .collect();
        let expected = [
            ("anna", true),
            ("well-known", false),
            ("dog", false),
            ("the", false),
            ("smiths", true),
            ("cat", false),
            ("and", false),
            ("leo", true),
        ];
        assert_eq!(found, expected.map(|(w, p)| (w.to_owned(), p)));
    }
}
