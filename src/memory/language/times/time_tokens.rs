//! A text split for the time grammar: words and single marks, in lower case.
//!
//! In: a text and its ASCII lower case. Out: words by index, with their byte ranges; an index outside the text gets the
//! empty word, so that a rule may look anywhere.

use std::ops::Range;

use crate::language::{
    arrangements::is_arranged_date,
    tense::{Tense, tense_at},
};

/// The words of a text.
pub(super) struct TimeTokens<'t> {
    text: &'t str,
    lower: Vec<&'t str>,
    ranges: Vec<Range<usize>>,
}

impl<'t> TimeTokens<'t> {
    /// Splits a text; `lower` is its ASCII lower case, byte for byte.
    pub(super) fn of(text: &'t str, lower: &'t str) -> Self {
        let mut ranges: Vec<Range<usize>> = Vec::with_capacity(text.len() / 5);
        let mut open: Option<usize> = None;
        for (i, c) in text.char_indices() {
            if c.is_alphanumeric() {
                open.get_or_insert(i);
                continue;
            }
            if let Some(start) = open.take() {
                ranges.push(start..i);
            }
            if !c.is_whitespace() {
                ranges.push(i..i + c.len_utf8());
            }
        }
        if let Some(start) = open {
            ranges.push(start..text.len());
        }
        let lower = ranges.iter().map(|r| lower.get(r.clone()).unwrap_or_default()).collect();
        Self { text, lower, ranges }
    }

    pub(super) fn len(&self) -> usize {
        self.lower.len()
    }

    /// The word at an index, in lower case.
    pub(super) fn at(&self, i: usize) -> &'t str {
        self.lower.get(i).copied().unwrap_or_default()
    }

    /// The word `n` before an index.
    pub(super) fn before(&self, i: usize, n: usize) -> &'t str {
        i.checked_sub(n).map(|j| self.at(j)).unwrap_or_default()
    }

    /// Whether the word at an index begins with a capital.
    pub(super) fn is_capitalised(&self, i: usize) -> bool {
        let word = self.ranges.get(i).and_then(|r| self.text.get(r.clone())).unwrap_or_default();
        word.chars().next().is_some_and(char::is_uppercase)
    }

    /// Whether there is no space between a word and the one before it.
    pub(super) fn is_joined(&self, i: usize) -> bool {
        let (Some(before), Some(this)) = (i.checked_sub(1).and_then(|j| self.ranges.get(j)), self.ranges.get(i)) else {
            return false;
        };
        before.end == this.start
    }

    /// Bytes of the words from `first` to before `next`.
    pub(super) fn range(&self, first: usize, next: usize) -> Range<usize> {
        let start = self.ranges.get(first).map_or(self.text.len(), |r| r.start);
        let end = next.checked_sub(1).and_then(|i| self.ranges.get(i)).map_or(start, |r| r.end);
        start..end.max(start)
    }

    /// The word at an index as a whole number, if it has one of these numbers of digits.
    pub(super) fn number(&self, i: usize, digits: std::ops::RangeInclusive<usize>) -> Option<i16> {
        let word = self.at(i);
        let plain = digits.contains(&word.len()) && word.bytes().all(|b| b.is_ascii_digit());
        if plain { word.parse().ok() } else { None }
    }

    /// False for a number that is the end of a longer one ("1.5", "2-3", "1,000"), and for a word that is joined to a
    /// mark as in a name ("@today", "#friday", "year-last").
    pub(super) fn may_begin(&self, i: usize) -> bool {
        let number = self.at(i).starts_with(|c: char| c.is_ascii_digit());
        !self.is_joined(i)
            || match self.before(i, 1) {
                "." | "," | "/" | ":" => !number,
                "-" | "–" => !number && self.before(i, 2) == "mid",
                "$" | "€" | "£" | "@" | "#" | "_" => false,
                _ => true,
            }
    }

    /// The tense at a word of its sentence. What was arranged for a date is still to come.
    pub(super) fn tense(&self, at: usize) -> Tense {
        let (clause, at) = self.clause(at);
        if is_arranged_date(clause, at) { Tense::Future } else { tense_at(clause, at) }
    }

    /// Whether the date at a word is that of something that was arranged.
    pub(super) fn is_arranged(&self, at: usize) -> bool {
        let (clause, at) = self.clause(at);
        is_arranged_date(clause, at)
    }

    /// The words of the sentence of a word, and its place among them.
    fn clause(&self, at: usize) -> (&[&'t str], usize) {
        let ends = |w: &&str| matches!(*w, "." | "!" | "?" | ";");
        let (head, tail) = self.lower.split_at(at.min(self.lower.len()));
        let start = head.iter().rposition(&ends).map_or(0, |i| i + 1);
        let end = tail.iter().position(ends).map_or(self.lower.len(), |i| at + i);
        let clause = self.lower.get(start..end).unwrap_or_default();
        (clause, at.saturating_sub(start))
    }
}
