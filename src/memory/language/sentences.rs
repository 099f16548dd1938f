//! Sentences, questions and content words; the content words are those of English only.
//!
//! In: a text. Out: byte ranges of its sentences, whether it asks, and its content words in lower case. Greetings,
//! thanks, fillers and function words are not content. It never panics.

use std::{borrow::Cow, ops::Range};

use unicode_segmentation::UnicodeSegmentation;

use super::multilingual::is_asking_mark;

/// The sentences of a text, in order, without the space around them; none is empty.
#[must_use]
pub fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for (start, piece) in text.split_sentence_bound_indices() {
        // Symbols after a full stop belong to the previous sentence: "So nice! 🎉 Did you go?"
        let symbols = piece.len() - piece.trim_start_matches(|c: char| c.is_whitespace() || is_symbol(c)).len();
        if let Some((last, head)) = out.last_mut().zip(piece.get(..symbols)).filter(|(_, h)| h.contains(is_symbol)) {
            last.end = start + head.trim_end().len();
        }
        let (start, piece) =
            if out.is_empty() { (start, piece) } else { (start + symbols, piece.get(symbols..).unwrap_or_default()) };
        let trimmed = piece.trim();
        if trimmed.is_empty() {
            continue;
        }
        let start = start + (piece.len() - piece.trim_start().len());
        let range = start..start + trimmed.len();
        let before = out.last().and_then(|l| text.get(l.clone())).unwrap_or_default();
        // A piece without a letter (an emoji, a bracket) belongs to the piece before it, and the full stop of an
        // abbreviation does not end a sentence.
        let tail = !trimmed.chars().any(char::is_alphanumeric) || ends_in_abbreviation(before);
        match out.last_mut() {
            Some(last) if tail => last.end = range.end,
            _ => out.push(range),
        }
    }
    out
}

/// Whether a text ends with a question; emoji, quotes and brackets after the mark do not count.
#[must_use]
pub fn is_question(text: &str) -> bool {
    let end = text.trim_end_matches(|c: char| {
        !c.is_alphanumeric()
            && !is_asking_mark(c)
            && !matches!(c, '.' | '!' | '…' | ',' | ';' | ':' | '。' | '！' | '，' | '।')
    });
    // "What?!" is a question.
    end.trim_end_matches(['!', '！']).ends_with(is_asking_mark)
}

/// The words of a text that carry content, in lower case, in order, with repetition.
#[must_use]
pub fn content_words(text: &str) -> Vec<String> {
    iter_content_words(text).map(Cow::into_owned).collect()
}

/// [`content_words`], one at a time.
pub fn iter_content_words(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    words(text).filter(|w| !is_contentless_word(w))
}

/// Whether a text has at least this many content words; counting stops there.
#[must_use]
pub fn has_content(text: &str, least: usize) -> bool {
    iter_content_words(text).take(least).count() >= least
}

/// Whether a word, in lower case, carries no content.
#[must_use]
pub fn is_contentless_word(word: &str) -> bool {
    is_function_word(word) || FILLERS.binary_search(&word).is_ok()
}

/// Every word that carries no content, in lower case; contractions are listed as two halves.
pub fn contentless_words() -> impl Iterator<Item = &'static str> {
    FUNCTION_WORDS.iter().chain(FILLERS).copied()
}

/// Whether a word, in lower case, carries grammar rather than content. A contraction does if both its halves do.
#[must_use]
pub fn is_function_word(word: &str) -> bool {
    word.split('\'').all(|half| FUNCTION_WORDS.binary_search(&half).is_ok())
}

/// Whether a word, in lower case, is a function word or a filler that may open a sentence
/// with a capital.
#[must_use]
pub(super) fn is_common_opening(word: &str) -> bool {
    is_contentless_word(word) || OPENINGS.binary_search(&word).is_ok()
}

/// A text with a capital at its beginning.
#[must_use]
pub fn sentence_case(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Alphanumeric words in lower case, a contraction split at its apostrophe: "don't" is
/// "don" and "t", both function words.
fn words(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(|w| {
        let lower = w.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if lower { Cow::Borrowed(w) } else { Cow::Owned(w.to_lowercase()) }
    })
}

/// Arrows, pictures and emoji with their joiners, but no letters or quotation marks.
fn is_symbol(c: char) -> bool {
    matches!(c, '\u{200d}' | '\u{2190}'..='\u{2bff}' | '\u{fe00}'..='\u{fe0f}' | '\u{1f000}'..='\u{1faff}')
}

fn ends_in_abbreviation(text: &str) -> bool {
    let last = text.rsplit(|c: char| c.is_whitespace()).next().unwrap_or_default();
    matches!(last, "Mr." | "Mrs." | "Ms." | "Dr." | "St." | "Prof." | "vs." | "e.g." | "i.e." | "etc.," | "No." | "Mt.")
}

/// Determiners, pronouns, prepositions, conjunctions, auxiliaries and the tails of
/// contractions, sorted.
const FUNCTION_WORDS: &[&str] = &[
    "a",
    "about",
    "above",
    "after",
    "again",
    "against",
    "ain",
    "all",
    "also",
    "although",
    "am",
    "an",
    "and",
    "another",
    "any",
    "anybody",
    "anyone",
    "anything",
    "are",
    "aren",
    "around",
    "as",
    "at",
    "be",
    "because",
    "been",
    "before",
    "being",
    "below",
    "between",
    "both",
    "but",
    "by",
    "can",
    "cannot",
    "could",
    "couldn",
    "d",
    "did",
    "didn",
    "do",
    "does",
    "doesn",
    "doing",
    "don",
    "down",
    "during",
    "each",
    "either",
    "else",
    "even",
    "ever",
    "every",
    "everybody",
    "everyone",
    "everything",
    "few",
    "for",
    "from",
    "further",
    "had",
    "hadn",
    "has",
    "hasn",
    "have",
    "haven",
    "having",
    "he",
    "her",
    "here",
    "hers",
    "herself",
    "him",
    "himself",
    "his",
    "how",
    "however",
    "i",
    "if",
    "in",
    "into",
    "is",
    "isn",
    "it",
    "its",
    "itself",
    "just",
    "let",
    "ll",
    "m",
    "many",
    "may",
    "maybe",
    "me",
    "might",
    "mine",
    "more",
    "most",
    "much",
    "must",
    "mustn",
    "my",
    "myself",
    "neither",
    "no",
    "nobody",
    "none",
    "nor",
    "not",
    "nothing",
    "now",
    "of",
    "off",
    "on",
    "once",
    "only",
    "onto",
    "or",
    "other",
    "others",
    "our",
    "ours",
    "ourselves",
    "out",
    "over",
    "own",
    "perhaps",
    "please",
    "quite",
    "rather",
    "re",
    "s",
    "same",
    "shall",
    "shan",
    "she",
    "should",
    "shouldn",
    "since",
    "so",
    "some",
    "somebody",
    "someone",
    "something",
    "still",
    "such",
    "t",
    "than",
    "that",
    "the",
    "their",
    "theirs",
    "them",
    "themselves",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "though",
    "through",
    "to",
    "too",
    "toward",
    "towards",
    "under",
    "until",
    "up",
    "upon",
    "us",
    "ve",
    "very",
    "was",
    "wasn",
    "we",
    "were",
    "weren",
    "what",
    "whatever",
    "when",
    "where",
    "whether",
    "which",
    "while",
    "who",
    "whoever",
    "whom",
    "whose",
    "why",
    "will",
    "with",
    "within",
    "without",
    "won",
    "would",
    "wouldn",
    "yet",
    "you",
    "your",
    "yours",
    "yourself",
    "yourselves",
];

/// Greetings, thanks, assent and noises, sorted.
const FILLERS: &[&str] = &[
    "absolutely",
    "ah",
    "aha",
    "alright",
    "anyway",
    "aw",
    "aww",
    "awww",
    "bye",
    "cool",
    "definitely",
    "ew",
    "exactly",
    "ha",
    "haha",
    "hahaha",
    "hello",
    "hey",
    "hi",
    "hm",
    "hmm",
    "hooray",
    "huh",
    "lol",
    "mhm",
    "mm",
    "mmm",
    "nah",
    "nope",
    "oh",
    "ok",
    "okay",
    "omg",
    "ooh",
    "oops",
    "ow",
    "phew",
    "really",
    "right",
    "sure",
    "thank",
    "thanks",
    "thx",
    "totally",
    "ugh",
    "uh",
    "um",
    "well",
    "whoa",
    "woah",
    "woo",
    "wow",
    "ya",
    "yay",
    "yeah",
    "yep",
    "yes",
    "yo",
    "yup",
];

/// Further words that often open a sentence with a capital and are not names, sorted.
const OPENINGS: &[&str] = &[
    "always",
    "amazing",
    "awesome",
    "been",
    "believe",
    "best",
    "check",
    "come",
    "congrats",
    "congratulations",
    "dear",
    "enjoy",
    "excited",
    "fantastic",
    "finally",
    "first",
    "gave",
    "get",
    "getting",
    "give",
    "glad",
    "go",
    "going",
    "good",
    "got",
    "great",
    "guess",
    "happy",
    "hope",
    "hopefully",
    "incredible",
    "keep",
    "last",
    "later",
    "like",
    "look",
    "looking",
    "looks",
    "lots",
    "love",
    "lovely",
    "made",
    "make",
    "meet",
    "morning",
    "need",
    "never",
    "new",
    "next",
    "nice",
    "night",
    "one",
    "people",
    "perfect",
    "recently",
    "remember",
    "said",
    "say",
    "see",
    "seeing",
    "seriously",
    "sometimes",
    "soon",
    "sorry",
    "sounds",
    "speaking",
    "stay",
    "super",
    "take",
    "talk",
    "tell",
    "think",
    "time",
    "today",
    "tomorrow",
    "tonight",
    "true",
    "try",
    "two",
    "unfortunately",
    "usually",
    "wait",
    "welcome",
    "went",
    "wish",
    "wonderful",
    "work",
    "yesterday",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check_sentences(text: &str, expected: &[&str]) {
        let found: Vec<&str> = sentences(text).into_iter().map(|r| &text[r]).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn sentences_are_split_and_trimmed() {
        check_sentences("Hi! How are you?  I ran.", &["Hi!", "How are you?", "I ran."]);
        check_sentences("Wow 😀 so nice! 🎉 Did you go?", &["Wow 😀 so nice! 🎉", "Did you go?"]);
        check_sentences("I met Dr. Smith. He left.", &["I met Dr. Smith.", "He left."]);
        check_sentences("  ", &[]);
        check_sentences("", &[]);
        check_sentences("no stop at all", &["no stop at all"]);
    }

    #[test]
    fn a_question_may_have_something_after_its_mark() {
        for text in ["How?", "How are you? 😊", "“Really?”", "What?!", "And you? :)", "ok (why?)"] {
            let asks = !text.ends_with(":)");
            assert_eq!(is_question(text), asks, "{text}");
        }
        for text in ["你去哪里了？", "هل أنت هنا؟", "「元気？」"] {
            assert!(is_question(text), "{text}");
        }
        for text in ["How? Fine.", "", "?x", "I wonder.", "我去了。"] {
            assert!(!is_question(text), "{text}");
        }
    }

    #[test]
    fn content_words_are_neither_function_words_nor_fillers() {
        let check = |text: &str, expected: &[&str]| assert_eq!(content_words(text), expected, "{text}");
        check("Wow, thanks! Yeah, I really don't.", &[]);
        check("I've been painting a Sunrise", &["painting", "sunrise"]);
        check("It’s 2 cats", &["2", "cats"]);
        assert!(has_content("I paint", 1) && !has_content("I paint", 2) && has_content("", 0));
    }

    #[test]
    fn the_word_lists_are_sorted_for_searching() {
        for list in [FUNCTION_WORDS, FILLERS, OPENINGS] {
            assert!(list.windows(2).all(|w| w[0] < w[1]), "{:?}", list.windows(2).find(|w| w[0] >= w[1]));
        }
    }
}
