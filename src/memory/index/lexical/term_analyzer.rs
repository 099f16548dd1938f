//! Text to stems: the same for units and questions.
//!
//! In: text and its language. Out: its stems with their counts. Function words and fillers are left out; only a hash of
//! each stem is kept. Irregular forms of English verbs have the stem of their base form. English is split by the rules
//! of this file. Every other language, and text without spaces inside English text, is split by those of
//! `language::multilingual`.

use std::collections::BTreeMap;

use tantivy::tokenizer::{
    Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, StopWordFilter, TextAnalyzer, Token, TokenFilter,
    TokenStream, Tokenizer,
};

use crate::index::units::association_score::hash64;
use crate::language::{
    inflection::base_form,
    multilingual::{StemAnalyzer, is_unspaced},
    sentences::contentless_words,
};
use types::model::Language as TextLanguage;

/// A stem, as 64 bits of BLAKE3 with [`COUNT_BITS`] set to zero. Terms are compared only inside one bank.
pub(in crate::index) type TermKey = u64;

/// How far a count is shifted to the left in the number that it shares with a stem's key.
const COUNT_SHIFT: u32 = 40;
/// Largest count.
const MAX_COUNT: u64 = 0xff;
/// The bits of the count: in the middle, because a map with such keys uses their first and last bits.
const COUNT_BITS: u64 = MAX_COUNT << COUNT_SHIFT;

/// Splits text into lower-case stems, without function words.
pub struct TermAnalyzer {
    english: TextAnalyzer,
    others: StemAnalyzer,
}

/// Puts irregular forms of English verbs into their base form, as a stemmer does with regular ones.
#[derive(Clone)]
struct BaseForms;

impl TokenFilter for BaseForms {
    type Tokenizer<T: Tokenizer> = BaseFormTokenizer<T>;

    fn transform<T: Tokenizer>(self, tokenizer: T) -> BaseFormTokenizer<T> {
        BaseFormTokenizer { inner: tokenizer }
    }
}

#[derive(Clone)]
struct BaseFormTokenizer<T> {
    inner: T,
}

impl<T: Tokenizer> Tokenizer for BaseFormTokenizer<T> {
    type TokenStream<'a> = BaseFormStream<T::TokenStream<'a>>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Self::TokenStream<'a> {
        BaseFormStream { inner: self.inner.token_stream(text) }
    }
}

struct BaseFormStream<T> {
    inner: T,
}

impl<T: TokenStream> TokenStream for BaseFormStream<T> {
    fn advance(&mut self) -> bool {
        let advanced = self.inner.advance();
        if let Some(base) = base_form(&self.inner.token().text).filter(|_| advanced) {
            let token = self.inner.token_mut();
            token.text.clear();
            token.text.push_str(base);
        }
        advanced
    }

    fn token(&self) -> &Token {
        self.inner.token()
    }

    fn token_mut(&mut self) -> &mut Token {
        self.inner.token_mut()
    }
}

impl std::fmt::Debug for TermAnalyzer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Words")
    }
}

impl Default for TermAnalyzer {
    fn default() -> Self {
        let chain = TextAnalyzer::builder(SimpleTokenizer::default())
            .filter(RemoveLongFilter::limit(64))
            .filter(LowerCaser)
            .filter(StopWordFilter::remove(contentless_words().map(str::to_owned)))
            .filter(BaseForms)
            .filter(Stemmer::new(Language::English));
        Self { english: chain.build(), others: StemAnalyzer::default() }
    }
}

impl TermAnalyzer {
    /// The stems of an English text with their counts, and the number of words.
    pub fn count(&mut self, text: &str) -> TermBag {
        self.term_bag(text, TextLanguage::En)
    }

    /// The stems of a text with their counts, and the number of words.
    pub fn term_bag(&mut self, text: &str, language: TextLanguage) -> TermBag {
        let mut counts: BTreeMap<TermKey, u64> = BTreeMap::new();
        let mut length = 0;
        let mut add = |stem: &str, is_word: bool| {
            let count = counts.entry(hash64(stem.as_bytes()) & !COUNT_BITS).or_default();
            *count = MAX_COUNT.min(*count + 1);
            length += u32::from(is_word);
        };
        if !language.is_english() {
            self.others.for_each_stem(text, language, &mut add);
        } else if text.is_ascii() || !text.contains(is_unspaced) {
            let mut stream = self.english.token_stream(text);
            while let Some(token) = stream.next() {
                add(&token.text, true);
            }
        } else {
            for run in text.split(is_unspaced) {
                let mut stream = self.english.token_stream(run);
                while let Some(token) = stream.next() {
                    add(&token.text, true);
                }
            }
            for run in text.split(|c| !is_unspaced(c)) {
                self.others.for_each_stem(run, language, &mut add);
            }
        }
        TermBag { counts: counts.into_iter().map(|(term, count)| term | count << COUNT_SHIFT).collect(), length }
    }
}

/// The words of a unit: stems with counts, sorted by stem, and their number. No stem counts more than
/// 255 times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TermBag {
    /// The key of a stem, and its count.
    counts: Box<[u64]>,
    length: u32,
}

/// A borrowed [`TermBag`].
#[derive(Debug, Clone, Copy)]
pub(in crate::index) struct TermBagSlice<'b> {
    counts: &'b [u64],
    length: u32,
}

impl TermBag {
    /// The stems.
    pub fn terms(&self) -> impl Iterator<Item = (TermKey, u16)> + '_ {
        self.slice().terms()
    }

    /// The same, borrowed.
    pub(in crate::index) fn slice(&self) -> TermBagSlice<'_> {
        TermBagSlice { counts: &self.counts, length: self.length }
    }

    /// The keys of its stems with their counts, from which [`TermBagSlice::new`] makes the bag again.
    pub(in crate::index) fn counts(&self) -> &[u64] {
        &self.counts
    }
}

impl<'b> TermBagSlice<'b> {
    /// The bag with these [counts](TermBag::counts) and `length` words.
    pub(in crate::index) fn new(counts: &'b [u64], length: u32) -> Self {
        Self { counts, length }
    }

    /// The stems.
    pub(in crate::index) fn terms(self) -> impl Iterator<Item = (TermKey, u16)> + 'b {
        self.counts.iter().map(|both| (both & !COUNT_BITS, count_of(*both)))
    }

    /// The number of words.
    pub(in crate::index) fn length(self) -> u32 {
        self.length
    }

    /// How often a stem occurs.
    pub(in crate::index) fn count(self, term: TermKey) -> u16 {
        self.counts.binary_search_by_key(&term, |both| both & !COUNT_BITS).map_or(0, |at| count_of(self.counts[at]))
    }
}

fn count_of(both: u64) -> u16 {
    ((both & COUNT_BITS) >> COUNT_SHIFT) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A question in Chinese finds what was said in English about the same name, and the other way round.
    #[test]
    fn a_name_without_spaces_is_one_term_in_every_language() {
        let mut words = TermAnalyzer::default();
        let mut terms =
            |text: &str, language| words.term_bag(text, language).terms().map(|(t, _)| t).collect::<Vec<_>>();
        let (english, chinese) =
            (terms("I ate 火锅 with 王小明", TextLanguage::En), terms("王小明喜欢吃火锅吗？", TextLanguage::Zh));
        assert!(english.iter().filter(|term| chinese.contains(term)).count() >= 3, "{english:?} {chinese:?}");
        let mut words = TermAnalyzer::default();
        assert_eq!(words.count("we sailed to Zoë's café"), words.term_bag("we sailed to Zoë's café", TextLanguage::En));
        assert_eq!(words.term_bag("我们昨天去了北京大学", TextLanguage::Zh).slice().length(), 4);
    }

    #[test]
    fn irregular_forms_of_a_verb_are_one_term() {
        let mut words = TermAnalyzer::default();
        assert_eq!(words.count("Ann bought a flute"), words.count("What does Ann buy? Flutes"));
        assert_ne!(words.count("a rose"), words.count("a rise"), "a noun stays what it is");
    }

    #[test]
    fn a_bag_holds_each_stem_with_its_count() {
        let mut words = TermAnalyzer::default();
        let counted = words.count(&format!("Kayaks: a kayak, and a canoe. {}", "tents ".repeat(300)));
        let bag = counted.slice();
        let terms: Vec<(TermKey, u16)> = bag.terms().collect();
        assert!(terms.is_sorted() && terms.iter().all(|(term, count)| bag.count(*term) == *count));
        let mut counts: Vec<u16> = terms.iter().map(|(_, count)| *count).collect();
        counts.sort_unstable();
        assert_eq!((counts, bag.length()), (vec![1, 2, 255], 303));
        let other = words.count("canoe").terms().next().expect("a stem").0;
        assert_eq!([bag.count(other), bag.count(other + 1), bag.count(0)], [1, 0, 0]);
    }
}
