//! The whole words in a model's tokenizer.
//!
//! In: a pipeline's settings. Out: words in lower case, in the order of the tokenizer's numbers,
//! which is the commonest first. Word pieces, numbers and special tokens are left out.

use tokenizers::Tokenizer;

use super::{EmbedError, assets};
use crate::config::EmbedSettings;

/// Letters of the shortest word that counts.
const LEAST_LETTERS: usize = 3;

/// The words of the model that the settings name.
///
/// # Errors
/// [`EmbedError::Missing`] or [`EmbedError::Damaged`] that names the tokenizer's file.
pub fn vocabulary(settings: &EmbedSettings) -> Result<Vec<String>, EmbedError> {
    let path = assets::model_directory(settings, &settings.model)?.join(assets::TOKENIZER_FILE);
    let bytes = std::fs::read(&path).map_err(|source| EmbedError::Read { path: path.clone(), source })?;
    let tokenizer = Tokenizer::from_bytes(bytes)
        .map_err(|e| EmbedError::Damaged { path, problem: format!("is not a tokenizer ({e})") })?;
    let mut words: Vec<(u32, String)> =
        tokenizer.get_vocab(false).into_iter().filter(|(word, _)| is_word(word)).map(|(word, id)| (id, word)).collect();
    words.sort_unstable();
    Ok(words.into_iter().map(|(_, word)| word).collect())
}

fn is_word(entry: &str) -> bool {
    entry.len() >= LEAST_LETTERS && entry.bytes().all(|b| b.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_pieces_numbers_and_special_tokens_are_left_out() {
        let words = ["the", "doctor", "##ing", "of", "1999", "[CLS]", "café", "'s", "x-ray"];
        assert_eq!(words.iter().filter(|w| is_word(w)).collect::<Vec<_>>(), [&"the", &"doctor"]);
    }
}
