//! How much the words of an answer agree with those of the reference.
//!
//! In: an answer and a reference. Out: shares from 0 to 1. Both texts are normalised as in
//! LoCoMo: lower case, no punctuation, no "a", "an", "the" or "and", single spaces. F1 compares
//! English stems (Snowball), BLEU-1 words. Two texts without words agree fully; a text without
//! words and one with words do not agree at all.

use std::collections::HashMap;

use tantivy::tokenizer::{Language, Stemmer, TextAnalyzer, WhitespaceTokenizer};

/// Token F1: the harmonic mean of precision and recall over stems.
#[must_use]
pub fn f1(answer: &str, reference: &str) -> f64 {
    let (answer, reference) = (stems(answer), stems(reference));
    if answer.is_empty() || reference.is_empty() {
        return f64::from(u8::from(answer.is_empty() && reference.is_empty()));
    }
    let common = common(&answer, &reference) as f64;
    2.0 * common / (answer.len() + reference.len()) as f64
}

/// F1 of lists, as LoCoMo scores its multi-hop questions: the mean over the reference's items,
/// separated by commas, of the best F1 among the answer's items.
#[must_use]
pub fn f1_of_lists(answer: &str, reference: &str) -> f64 {
    let answers: Vec<&str> = answer.split(',').collect();
    let best = |item: &str| answers.iter().map(|a| f1(a, item)).fold(0.0, f64::max);
    let all: Vec<f64> = reference.split(',').map(best).collect();
    all.iter().sum::<f64>() / all.len().max(1) as f64
}

/// BLEU-1 without smoothing: the share of the answer's words that occur in the reference, each
/// counted at most as often as there, times the penalty exp(1 − r/c) when the answer's c words are
/// fewer than the reference's r (Papineni and others, ACL 2002).
#[must_use]
pub fn bleu1(answer: &str, reference: &str) -> f64 {
    let (answer, reference) = (words(answer), words(reference));
    if answer.is_empty() || reference.is_empty() {
        return f64::from(u8::from(answer.is_empty() && reference.is_empty()));
    }
    let precision = common(&answer, &reference) as f64 / answer.len() as f64;
    let (c, r) = (answer.len() as f64, reference.len() as f64);
    precision * if c < r { (1.0 - r / c).exp() } else { 1.0 }
}

fn words(text: &str) -> Vec<String> {
    let plain: String = text.to_lowercase().chars().filter(|c| c.is_alphanumeric() || c.is_whitespace()).collect();
    plain.split_whitespace().filter(|w| !matches!(*w, "a" | "an" | "the" | "and")).map(str::to_owned).collect()
}

fn stems(text: &str) -> Vec<String> {
    let mut chain =
        TextAnalyzer::builder(WhitespaceTokenizer::default()).filter(Stemmer::new(Language::English)).build();
    let plain = words(text).join(" ");
    let mut stream = chain.token_stream(&plain);
    let mut stems = Vec::new();
    while let Some(token) = stream.next() {
        stems.push(token.text.clone());
    }
    stems
}

/// The number of words that two lists share, each counted as often as it occurs in both.
fn common(a: &[String], b: &[String]) -> usize {
    let mut left: HashMap<&str, usize> = HashMap::new();
    for word in b {
        *left.entry(word).or_default() += 1;
    }
    let mut met = 0;
    for word in a {
        if let Some(n) = left.get_mut(word.as_str()).filter(|n| **n > 0) {
            *n -= 1;
            met += 1;
        }
    }
    met
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
    }

    #[test]
    fn f1_by_hand() {
        check(f1("The red kayaks.", "a red kayak"), 1.0);
        // "red" is shared, of 2 and 3 words.
        check(f1("red boat", "big red kayak"), 0.4);
        check(f1("red red", "red kayak"), 0.5);
        check(f1("", ""), 1.0);
        check(f1("", "kayak"), 0.0);
        check(f1("the", "!"), 1.0);
        check(f1("7 May 2023", "7 May, 2023"), 1.0);
    }

    #[test]
    fn lists_are_compared_item_by_item() {
        check(f1_of_lists("swimming, pottery", "pottery, camping"), 0.5);
        check(f1_of_lists("camping", "camping"), 1.0);
    }

    #[test]
    fn bleu1_by_hand() {
        check(bleu1("a red kayak", "the red kayak"), 1.0);
        // One of two words, and two words for three: e^(1 - 3/2).
        check(bleu1("red boat", "big red kayak"), 0.5 * (-0.5f64).exp());
        // Clipped: "red" counts once.
        check(bleu1("red red red", "red kayak"), 1.0 / 3.0);
        check(bleu1("kayaks", "kayak"), 0.0);
        check(bleu1("", "kayak"), 0.0);
    }
}
