//! Words that mean nearly the same, by a fixed table.
//!
//! In: a word in lower case, in any form. Out: the words that an embedding model places nearest,
//! nearest first, each with its cosine. No two of them share a stem, nor does any with the word.
//! The table is not parsed: a lookup reads one line. `ripplemem synonyms --write` makes the table.

use tantivy::tokenizer::{Language, RawTokenizer, Stemmer, TextAnalyzer, TokenStream};

/// One line for each stem, in byte order: the stem, a tab, `word:cosine` with spaces between.
pub const TABLE: &str = include_str!("synonyms.txt");

/// The neighbours of a word in lower case; none for function words and rare words.
pub fn synonyms(word: &str) -> impl Iterator<Item = (&'static str, f32)> {
    line(TABLE, &stem(word)).unwrap_or_default().split(' ').filter_map(|pair| {
        let (word, cosine) = pair.split_once(':')?;
        Some((word, cosine.parse().ok()?))
    })
}

/// The stem of an English word, as in the lexical channel.
#[must_use]
pub fn stem(word: &str) -> String {
    let mut analyzer = TextAnalyzer::builder(RawTokenizer::default()).filter(Stemmer::new(Language::English)).build();
    let mut tokens = analyzer.token_stream(word);
    if tokens.advance() { tokens.token().text.clone() } else { String::new() }
}

/// What follows `stem` and a tab at the beginning of a line of `table`.
fn line<'t>(table: &'t str, stem: &str) -> Option<&'t str> {
    let bytes = table.as_bytes();
    // Every line that begins before `low` is smaller, every one at `high` or later is greater.
    let (mut low, mut high) = (0, bytes.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let start = bytes.get(..middle)?.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let rest = table.get(start..)?;
        let line = rest.split('\n').next()?;
        let (key, found) = line.split_once('\t')?;
        match key.cmp(stem) {
            std::cmp::Ordering::Equal => return Some(found),
            std::cmp::Ordering::Less => low = start + line.len() + 1,
            std::cmp::Ordering::Greater => high = start,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::sentences::is_function_word;

    #[test]
    fn a_line_is_found_by_its_beginning() {
        let table = "a\tx:0.50\nab\ty:0.60 z:0.55\nb\tw:0.90\n";
        let check = |stem: &str, expected: Option<&str>| assert_eq!(line(table, stem), expected, "{stem}");
        check("a", Some("x:0.50"));
        check("ab", Some("y:0.60 z:0.55"));
        check("b", Some("w:0.90"));
        for absent in ["", "aa", "c", "x:0.50", "ab\ty:0.60"] {
            check(absent, None);
        }
        assert_eq!(line("", "a"), None);
    }

    #[test]
    fn every_line_is_well_formed_and_in_order() {
        let mut before = "";
        for line in TABLE.lines() {
            let (key, rest) = line.split_once('\t').expect("a tab");
            assert!(before < key, "{before} stands before {key}");
            before = key;
            assert!(!is_function_word(key), "{key}");
            let pairs: Vec<(&str, &str)> = rest.split(' ').map(|p| p.split_once(':').expect("a colon")).collect();
            assert!((1..=32).contains(&pairs.len()), "{line}");
            let mut stems = vec![key.to_owned()];
            let mut least = 1.0;
            for (word, cosine) in pairs {
                assert!(word.len() >= 3 && word.bytes().all(|b| b.is_ascii_lowercase()), "{line}");
                let value: f32 = cosine.parse().expect("a number");
                assert!(cosine.len() == 4 && (0.5..=least).contains(&value), "{line}");
                least = value;
                stems.push(stem(word));
            }
            let count = stems.len();
            stems.sort_unstable();
            stems.dedup();
            assert_eq!(stems.len(), count, "{line}");
        }
        assert!(TABLE.lines().count() > 5_000 && TABLE.len() < 2_000_000 && TABLE.ends_with('\n'));
    }

    #[test]
    fn synonyms_are_found_for_every_form_of_a_word() {
        let check = |word: &str, expected: &str, least: f32| {
            let found = synonyms(word).find(|(w, _)| stem(w) == stem(expected));
            assert!(found.is_some_and(|(_, cosine)| cosine >= least), "{word} {expected}: {found:?}");
        };
        check("doctor", "physician", 0.8);
        check("doctors", "physicians", 0.8);
        check("car", "automobile", 0.8);
        check("dog", "puppy", 0.7);
        check("kids", "children", 0.6);
        check("vacation", "holiday", 0.6);
        check("mom", "mother", 0.8);
        assert_eq!(synonyms("the").count(), 0);
        assert_eq!(synonyms("qzxv").count(), 0);
        assert!(synonyms("doctor").all(|(word, _)| stem(word) != stem("doctor")));
    }
}
