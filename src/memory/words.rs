//! Text to stems: the same for units and questions.
//!
//! In: English text. Out: its stems with their counts. Function words and fillers are left out; only a
//! hash of each stem is kept.

use std::collections::BTreeMap;

use tantivy::tokenizer::{
    Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, StopWordFilter, TextAnalyzer,
};

use super::score::hash64;
use crate::language::sentences::empty_words;

/// A stem, as 64 bits of BLAKE3. Compared inside one bank only.
pub(super) type TermKey = u64;

/// Splits text into lower-case English stems, without function words.
pub struct Words(TextAnalyzer);

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Words")
    }
}

impl Default for Words {
    fn default() -> Self {
        let chain = TextAnalyzer::builder(SimpleTokenizer::default())
            .filter(RemoveLongFilter::limit(64))
            .filter(LowerCaser)
            .filter(StopWordFilter::remove(empty_words().map(str::to_owned)))
            .filter(Stemmer::new(Language::English));
        Self(chain.build())
    }
}

impl Words {
    /// The stems of a text with their counts, and the number of words.
    pub fn count(&mut self, text: &str) -> Bag {
        let mut counts: BTreeMap<TermKey, u16> = BTreeMap::new();
        let mut length = 0;
        let mut stream = self.0.token_stream(text);
        while let Some(token) = stream.next() {
            let count = counts.entry(hash64(token.text.as_bytes())).or_default();
            *count = count.saturating_add(1);
            length += 1;
        }
        Bag { counts: counts.into_iter().collect(), length }
    }
}

/// The words of a unit: stems with counts, sorted by stem, and their number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bag {
    counts: Box<[(TermKey, u16)]>,
    length: u32,
}

impl Bag {
    /// The stems.
    pub fn terms(&self) -> impl Iterator<Item = (TermKey, u16)> + '_ {
        self.counts.iter().copied()
    }

    /// Bytes of its counts.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.counts)
    }

    /// The number of words.
    pub(super) fn length(&self) -> u32 {
        self.length
    }

    /// How often a stem occurs.
    pub(super) fn count(&self, term: TermKey) -> u16 {
        self.counts.binary_search_by_key(&term, |(t, _)| *t).map_or(0, |at| self.counts[at].1)
    }
}
