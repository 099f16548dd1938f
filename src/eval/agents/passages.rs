//! Cuts turns into passages, in the ways in which people usually do it.
//!
//! In: a chat. Out: its passages in order, with the turn of each and its cost in a context. Windows overlap by a
//! quarter and end at word boundaries; every word of a turn is in at least one of them.

use super::chats::AgentChat;
use memory::language::token_count;

/// How turns become passages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PassageSplit {
    /// Each turn whole.
    Messages,
    /// Windows of about this number of tokens.
    Chunks(usize),
}

/// A passage of a turn.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChatPassage {
    pub(super) turn: usize,
    pub(super) text: String,
    /// o200k tokens, with the line break after it.
    pub(super) tokens: usize,
}

impl PassageSplit {
    pub(super) const ALL: [Self; 3] = [Self::Messages, Self::Chunks(128), Self::Chunks(256)];

    /// Its name in the results.
    pub(super) fn name(self) -> String {
        match self {
            Self::Messages => "whole messages".to_owned(),
            Self::Chunks(size) => format!("chunks of {size} tokens"),
        }
    }

    /// The passages of a chat.
    pub(super) fn of(self, chat: &AgentChat) -> Vec<ChatPassage> {
        let passages = |text: &str| match self {
            Self::Messages => vec![text.to_owned()],
            Self::Chunks(size) => windows(text, size, size / 4),
        };
        let of_turn = |(turn, text): (usize, &str)| {
            passages(text).into_iter().map(move |text| {
                let tokens = token_count::count_tokens(&text) + 1;
                ChatPassage { turn, text, tokens }
            })
        };
        chat.turns.iter().map(|turn| turn.text.as_str()).enumerate().flat_map(of_turn).collect()
    }
}

/// A text in windows of about `size` tokens that overlap by about `overlap`. A word costs a quarter of a token per
/// letter, scaled to the number of tokens in the whole text.
fn windows(text: &str, size: usize, overlap: usize) -> Vec<String> {
    let words: Vec<&str> = words(text);
    let costs: Vec<f64> =
        words.iter().map(|word| (word.chars().count() as f64 / 4.0 + 0.3).round_ties_even().max(1.0)).collect();
    let scale = token_count::count_tokens(text) as f64 / costs.iter().sum::<f64>().max(1.0);
    let cost = |at: usize| costs.get(at).copied().unwrap_or_default() * scale;
    let (size, overlap) = (size as f64, overlap as f64);
    let mut found = Vec::new();
    let mut from = 0;
    loop {
        let (mut to, mut spent) = (from, 0.0);
        while to < words.len() && spent < size {
            spent += cost(to);
            to += 1;
        }
        found.push(words.get(from..to).unwrap_or_default().concat().trim().to_owned());
        if to >= words.len() {
            return found;
        }
        let (mut next, mut back) = (to, 0.0);
        while next > from + 1 && back < overlap {
            next -= 1;
            back += cost(next);
        }
        from = next;
    }
}

/// Words, each with the white space after it.
fn words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let space = rest.get(word..).and_then(|after| after.find(|c: char| !c.is_whitespace()));
        let (with_space, after) = rest.split_at(space.map_or(rest.len(), |space| word + space));
        found.push(with_space);
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_the_space_behind_them() {
        assert_eq!(words("  a bc\n\n d "), ["a ", "bc\n\n ", "d "]);
    }

    #[test]
    fn windows_overlap_and_hold_every_word() {
        // Each word is one token and costs one: "go " has 3 letters, and 3 / 4 + 0.3 rounds to 1.
        let text = "go ".repeat(20).trim().to_owned();
        assert_eq!(token_count::count_tokens(&text), 20);
        let lengths: Vec<usize> = windows(&text, 8, 2).iter().map(|w| w.split_whitespace().count()).collect();
        assert_eq!(lengths, [8, 8, 8], "from 0, 6 and 12");
        assert_eq!(windows("short", 8, 2), ["short"]);
    }
}
