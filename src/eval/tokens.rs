//! Tokens of a text, as the o200k vocabulary counts them.
//!
//! In: a text. Out: the number of its tokens. The vocabulary is part of the program and is
//! laid out once a process; nothing is fetched.

use bpe_openai::{Tokenizer, o200k_base};

/// How many o200k tokens a text has.
#[must_use]
pub fn count(text: &str) -> usize {
    vocabulary().count(text)
}

fn vocabulary() -> &'static Tokenizer {
    o200k_base()
}

#[cfg(test)]
mod tests {
    use super::count;

    /// Counts of OpenAI's own tokenizer.
    #[test]
    fn counts() {
        for (text, expected) in [("", 0), ("hello world", 2), ("tiktoken is great!", 6)] {
            assert_eq!(count(text), expected, "{text}");
        }
    }
}
