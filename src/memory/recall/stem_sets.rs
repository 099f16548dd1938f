//! The set of a text's stems. A plan compares keywords and units by it.
//!
//! In: text and its language. Out: the stems of its words without function words. The lexical channel (`TermAnalyzer`)
//! has hashes of stems with counts, and drops fillers such as "right". This set has the stems themselves, fillers
//! included, and no counts: a plan only needs subsets and unions.

use std::collections::BTreeSet;

use tantivy::tokenizer::{Language, LowerCaser, SimpleTokenizer, Stemmer, TextAnalyzer, TokenStream};

use crate::language::{multilingual::StemAnalyzer, sentences::is_function_word};
use types::model::Language as TextLanguage;

/// Reduces texts to sets of stems.
pub(super) struct StemSetAnalyzer {
    analyzer: TextAnalyzer,
    others: StemAnalyzer,
}

impl StemSetAnalyzer {
    /// The stemmers are those of the lexical channel; irregular forms of verbs stay words of their own.
    pub(super) fn new() -> Self {
        let analyzer = TextAnalyzer::builder(SimpleTokenizer::default())
            .filter(LowerCaser)
            .filter(Stemmer::new(Language::English))
            .build();
        Self { analyzer, others: StemAnalyzer::default() }
    }

    /// The stems of a text's words, without function words.
    pub(super) fn of(&mut self, text: &str, language: TextLanguage) -> BTreeSet<String> {
        if !language.is_english() {
            return self.others.stems(text, language).into_iter().collect();
        }
        let mut stems = BTreeSet::new();
        let lower = text.to_lowercase();
        let mut stream = self.analyzer.token_stream(&lower);
        while let Some(token) = stream.next() {
            let word = lower.get(token.offset_from..token.offset_to).unwrap_or_default();
            if !is_function_word(word) && word != "s" {
                stems.insert(token.text.clone());
            }
        }
        stems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stems_join_the_forms_of_a_word_and_drop_grammar() {
        let mut stems = StemSetAnalyzer::new();
        let mut of = |text| stems.of(text, TextLanguage::En);
        assert_eq!(of("She recommended the books"), of("recommending a book"));
        assert_eq!(of("what did they do with it"), BTreeSet::new());
        assert_eq!(of("Leo's garden").len(), 2);
        assert_eq!(stems.of("die Hunde", TextLanguage::De), stems.of("ein Hund", TextLanguage::De));
    }
}
