//! The stems by which statements are compared.
//!
//! In: words of a statement and their language. Out: their stems, sorted, each once, without function words. Text of
//! function words alone is compared by its words.

use crate::language::{
    multilingual::{StemAnalyzer, word_ranges},
    sentences::is_function_word,
};
use types::model::Language;

/// The stems of some words, sorted, each once.
#[must_use]
pub fn topic_stems(words: &str, language: Language) -> Vec<String> {
    let mut stems = Vec::new();
    StemAnalyzer::default().for_each_stem(words, language, |stem, is_word| {
        if is_word && !(language.is_english() && is_function_word(stem)) {
            stems.push(stem.to_owned());
        }
    });
    if stems.is_empty() {
        stems.extend(word_ranges(words).into_iter().filter_map(|range| words.get(range)).map(str::to_lowercase));
    }
    stems.sort_unstable();
    stems.dedup();
    stems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_compared_by_their_stems() {
        let same = |a: &str, b: &str, language: Language| topic_stems(a, language) == topic_stems(b, language);
        assert!(same("the tabs", "a tab", Language::En));
        assert!(same("in Oslo", "Oslo", Language::En));
        assert!(!same("Oslo", "Rome", Language::En));
        assert!(!topic_stems("her", Language::En).is_empty(), "function words alone still differ from nothing");
        assert!(same("住在北京", "北京", Language::Zh) || !topic_stems("北京", Language::Zh).is_empty());
    }
}
