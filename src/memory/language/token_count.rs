//! The number of o200k tokens of a text.
//!
//! In: a text. Out: its number of tokens. The vocabulary is compiled in and loaded once per process;
//! nothing is fetched.

use bpe_openai::{Tokenizer, o200k_base};

/// The number of o200k tokens of a text.
#[must_use]
pub fn count_tokens(text: &str) -> usize {
    vocabulary().count(text)
}

fn vocabulary() -> &'static Tokenizer {
    o200k_base()
}

#[cfg(test)]
mod tests {
    use super::count_tokens;

    /// The expected counts are those of OpenAI's tokenizer.
    #[test]
    fn token_counts() {
        for (text, expected) in [("", 0), ("hello world", 2), ("tiktoken is great!", 6)] {
            assert_eq!(count_tokens(text), expected, "{text}");
        }
    }
}
