//! BM25 as the memory scores words: its constants and formula are only in this file.
//!
//! In: counts, lengths and their mean. Out: `f64` terms of the score; each caller rounds them to its own fixed point
//! (`scoring` for parts, `lexical_index` for units). tantivy searches with the same constants, which are built into it.
//! The baselines of `eval` and the oracle in `tests/` write the formula out on purpose: code that checks this file must
//! not share its mistakes.

/// How slowly the gain of a repeated word saturates.
const K1: f64 = 1.2;
/// How much a long text is damped: 0 not at all, 1 fully.
const B: f64 = 0.75;

/// How rare a word is if `with` out of `all` texts hold it: ln(1 + (all − with + 0.5) / (with + 0.5)).
pub(in crate::index) fn rarity(all: f64, with: f64) -> f64 {
    (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
}

/// The damping of a text of `length` words when the mean length is `mean`.
pub(in crate::index) fn damping(length: f64, mean: f64) -> f64 {
    K1 * (1.0 - B + B * length / mean)
}

/// What `count` occurrences of a word add to a score. A fixed-point caller passes the rarity 1
/// and multiplies by its own; the order of operations is part of the result.
pub(in crate::index) fn gain(rarity: f64, count: f64, damping: f64) -> f64 {
    rarity * count * (K1 + 1.0) / (count + damping)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_mean_length_with_the_word_once_gains_its_rarity() {
        let once = gain(rarity(10.0, 2.0), 1.0, damping(7.0, 7.0));
        assert!((once - rarity(10.0, 2.0)).abs() < 1e-12, "{once}");
        assert!(gain(1.0, 1.0, damping(14.0, 7.0)) < 1.0, "a longer text gains less");
        assert!(gain(1.0, 1e9, damping(7.0, 7.0)) < K1 + 1.0, "repetition has a bound");
    }
}
