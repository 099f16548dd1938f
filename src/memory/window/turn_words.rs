//! What the words of a turn show about the conversation that it belongs to.
//!
//! In: a text. Out: whom it may address, the words that it may share with others, and whether it asks or greets.
//! Nothing is looked up here.

use std::collections::BTreeSet;

/// Words that do not show the topic.
const COMMON: [&str; 40] = [
    "about", "also", "been", "can't", "could", "does", "don't", "dont", "from", "have", "here", "i'm", "into", "it's",
    "just", "know", "like", "more", "much", "need", "only", "should", "some", "that", "that's", "them", "then",
    "there", "they", "think", "this", "very", "want", "well", "what", "when", "will", "with", "would", "your",
];
/// Words that begin a conversation.
const GREETINGS: [&str; 11] =
    ["anybody", "anyone", "evening", "greetings", "guys", "hallo", "hello", "hey", "hi", "morning", "yo"];
/// The least number of characters in a word that shows the topic.
const MIN_TOPIC: usize = 4;

/// The words of a turn, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TurnWords {
    /// The first word; if it is a name, the turn addresses that person.
    pub(super) first: Option<String>,
    pub(super) all: BTreeSet<String>,
    /// The words that show the topic.
    pub(super) topic: BTreeSet<String>,
    pub(super) asks: bool,
    pub(super) greets: bool,
}

impl TurnWords {
    /// The words of a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let lower = text.to_lowercase();
        // Characters that may be part of a nickname stay: `_|` and the like.
        let is_edge = |c: char| !c.is_alphanumeric() && !"_|[]^`{}\\".contains(c);
        let mut words = Self { asks: text.contains(['?', '？', '؟']), ..Self::default() };
        for (at, token) in lower.split_whitespace().enumerate() {
            let word = token.trim_matches(is_edge);
            if at == 0 {
                words.first = Some(word.to_owned());
                words.greets = GREETINGS.contains(&word);
            }
            if word.is_empty() {
                continue;
            }
            words.all.insert(word.to_owned());
            if word.chars().count() >= MIN_TOPIC && !COMMON.contains(&word) {
                words.topic.insert(word.to_owned());
            }
        }
        words
    }
}
