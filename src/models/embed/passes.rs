//! Splits tokenised texts into passes of bounded length, and combines token vectors into span vectors.
//!
//! In: a text's tokens with their byte offsets, and its spans. Out: passes that each fit the
//! model, in which every token of a spanned text occurs once; then, from the rows that the
//! model returns, one unit vector for each span. Sums are kept in 64 bits, so that the order of
//! passes does not change a vector.
//!
//! A token belongs to the span [a, b) when it is not empty, starts at a or later and ends at b or earlier; the model's
//! special tokens (`[CLS]`, `[SEP]`) belong to no span.

use std::ops::Range;

use super::{SpanVectors, unit_vector::unit_vector};
use types::config::TokenPooling;
use types::model::Vector;

/// A tokenised text: special tokens, then the prefix's tokens, then the content's, then special tokens.
pub(super) struct TokenizedText {
    /// Token ids, in order.
    pub(super) ids: Vec<u32>,
    /// The bytes of the prefixed text that each token covers.
    pub(super) offsets: Vec<(usize, usize)>,
    /// The content's tokens.
    pub(super) content: Range<usize>,
    /// The index of the first closing special token.
    pub(super) tail: usize,
}

impl TokenizedText {
    /// Finds the parts of a text: `special` is 1 at special tokens; the prefix has `prefix` bytes.
    pub(super) fn new(ids: &[u32], offsets: &[(usize, usize)], special: &[u32], prefix: usize) -> Self {
        let head = special.iter().take_while(|m| **m == 1).count();
        let tail = ids.len() - special.iter().skip(head).rev().take_while(|m| **m == 1).count();
        let inside = offsets.get(head..tail).unwrap_or_default();
        let start = head + if prefix == 0 { 0 } else { inside.partition_point(|(_, end)| *end <= prefix) };
        Self { ids: ids.to_vec(), offsets: offsets.to_vec(), content: start..tail, tail }
    }

    fn offset(&self, i: usize) -> (usize, usize) {
        self.offsets.get(i).copied().unwrap_or_default()
    }

    /// The tokens of the bytes `span` of the prefixed text.
    fn of_span(&self, span: &Range<usize>) -> Range<usize> {
        let content = self.offsets.get(self.content.clone()).unwrap_or_default();
        let first = content.partition_point(|(start, _)| *start < span.start);
        let last = content.partition_point(|(_, end)| *end <= span.end);
        self.content.start + first..self.content.start + last.max(first)
    }
}

/// The tokens of one text in one run of the model.
#[derive(Debug, PartialEq)]
pub(super) struct ModelPass {
    /// The text's index.
    pub(super) text: usize,
    /// Token ids, special tokens included.
    pub(super) ids: Vec<i64>,
    /// Which of the text's tokens these are, not counting special tokens and the prefix.
    content: Range<usize>,
    /// The index in `ids` where they start.
    at: usize,
}

/// The sums of one text's rows.
pub(super) struct TextPooling {
    spans: Vec<Range<usize>>,
    sums: Vec<TokenVectorSum>,
    /// For each token of the text, whether it is in a span.
    covered: Vec<bool>,
    whole: TokenVectorSum,
    /// The sum of all rows, special tokens included: a plain text is pooled over these.
    all: TokenVectorSum,
    pooling: TokenPooling,
}

impl TextPooling {
    /// Cuts a text into passes of at most `limit` tokens, appended to `passes`.
    ///
    /// `spans` are byte ranges of the prefixed text. A text with spans is cut between words, at the place that splits
    /// the fewest spans; a plain text that is too long is truncated.
    pub(super) fn plan(
        text: usize,
        tokens: &TokenizedText,
        spans: &[Range<usize>],
        limit: usize,
        pooling: TokenPooling,
        passes: &mut Vec<ModelPass>,
    ) -> Self {
        let spans: Vec<Range<usize>> = spans.iter().map(|span| tokens.of_span(span)).collect();
        let fixed = tokens.content.start + (tokens.ids.len() - tokens.tail);
        let room = limit.saturating_sub(fixed).max(1);
        let mut start = tokens.content.start;
        let splits = split_counts(&spans, tokens.tail);
        loop {
            let end = if tokens.content.end - start <= room {
                tokens.content.end
            } else if spans.is_empty() {
                start + room
            } else {
                cut(tokens, &splits, start, room)
            };
            passes.push(pass(text, tokens, start..end));
            start = end;
            if start == tokens.content.end || spans.is_empty() {
                break;
            }
        }
        let mut covered = vec![false; tokens.tail];
        for i in spans.iter().flat_map(Range::clone) {
            let (from, to) = tokens.offset(i);
            if let Some(covered) = covered.get_mut(i) {
                *covered = to > from;
            }
        }
        let sums = spans.iter().map(|_| TokenVectorSum::default()).collect();
        Self { spans, sums, covered, whole: TokenVectorSum::default(), all: TokenVectorSum::default(), pooling }
    }

    /// Adds the model's rows for one pass: `dimensions` floats for each token.
    pub(super) fn add(&mut self, pass: &ModelPass, rows: &[f32], dimensions: usize) {
        let rows: Vec<&[f32]> = rows.chunks_exact(dimensions).take(pass.ids.len()).collect();
        match self.pooling {
            TokenPooling::Mean => rows.iter().for_each(|row| self.all.add(row)),
            TokenPooling::Cls => rows.iter().take(1).for_each(|row| self.all.add(row)),
        }
        let content = rows.get(pass.at..pass.at + pass.content.len()).unwrap_or_default();
        let row = |i: usize| content.get(i - pass.content.start).filter(|_| self.covered.get(i) == Some(&true));
        for (span, sum) in self.spans.iter().zip(&mut self.sums) {
            let inside = span.start.max(pass.content.start)..span.end.min(pass.content.end);
            inside.filter_map(row).for_each(|row| sum.add(row));
        }
        pass.content.clone().filter_map(row).for_each(|row| self.whole.add(row));
    }

    /// The vectors. A span without a token, such as one of blanks, gets the vector of the whole text.
    pub(super) fn finish(self) -> SpanVectors {
        let all = self.all.vector();
        let whole = self.whole.vector().or(all).unwrap_or_else(|| Vector::from([]));
        let spans = self.sums.iter().map(|sum| sum.vector().unwrap_or_else(|| whole.clone())).collect();
        let weights = self.sums.iter().map(TokenVectorSum::length).collect();
        SpanVectors { whole, spans, weights }
    }
}

/// A sum of token vectors. It needs no count, because the mean has the same direction.
#[derive(Default)]
struct TokenVectorSum(Vec<f64>);

impl TokenVectorSum {
    fn add(&mut self, row: &[f32]) {
        self.0.resize(row.len(), 0.0);
        for (total, x) in self.0.iter_mut().zip(row) {
            *total += f64::from(*x);
        }
    }

    fn vector(&self) -> Option<Vector> {
        (!self.0.is_empty()).then(|| unit_vector(&self.0))
    }

    fn length(&self) -> f32 {
        self.0.iter().map(|x| x * x).sum::<f64>().sqrt() as f32
    }
}

/// For every position between two tokens, how many spans a cut there would split.
fn split_counts(spans: &[Range<usize>], length: usize) -> Vec<usize> {
    let mut change = vec![0isize; length + 2];
    for span in spans.iter().filter(|span| span.len() > 1) {
        for (at, by) in [(span.start + 1, 1), (span.end, -1)] {
            if let Some(change) = change.get_mut(at) {
                *change += by;
            }
        }
    }
    let mut open = 0isize;
    change
        .iter()
        .map(|by| {
            open += by;
            open.unsigned_abs()
        })
        .collect()
}

/// The last index within `room` tokens where a cut splits the fewest spans, between words if possible.
fn cut(tokens: &TokenizedText, splits: &[usize], start: usize, room: usize) -> usize {
    let cost = |at: usize| {
        let inside_a_word = tokens.offset(at).0 <= tokens.offset(at - 1).1;
        (splits.get(at).copied().unwrap_or(0), inside_a_word)
    };
    (start + 1..=start + room).rev().min_by_key(|at| cost(*at)).unwrap_or(start + room)
}

fn pass(text: usize, tokens: &TokenizedText, content: Range<usize>) -> ModelPass {
    let part = |range: Range<usize>| tokens.ids.get(range).unwrap_or_default().iter();
    let head = part(0..tokens.content.start);
    let tail = part(tokens.tail..tokens.ids.len());
    let ids = head.chain(part(content.clone())).chain(tail).map(|id| i64::from(*id)).collect();
    ModelPass { text, ids, content, at: tokens.content.start }
}

#[cfg(test)]
mod tests {
    // A text with one span is given as a range in a list, not as a list of its members.
    #![allow(clippy::single_range_in_vec_init)]
    use super::*;
    use proptest::prelude::*;

    const CLS: u32 = 101;
    const SEP: u32 = 102;

    /// One token for each letter and none for a blank: `ab c` is [CLS] a b c [SEP].
    fn tokens(text: &str, prefix: usize) -> TokenizedText {
        let letters: Vec<(usize, char)> = text.char_indices().filter(|(_, c)| *c != ' ').collect();
        let ids: Vec<u32> = [CLS].into_iter().chain(letters.iter().map(|(_, c)| *c as u32)).chain([SEP]).collect();
        let offsets: Vec<(usize, usize)> =
            [(0, 0)].into_iter().chain(letters.iter().map(|(i, c)| (*i, i + c.len_utf8()))).chain([(0, 0)]).collect();
        let marks: Vec<u32> = ids.iter().map(|id| u32::from(*id == CLS || *id == SEP)).collect();
        TokenizedText::new(&ids, &offsets, &marks, prefix)
    }

    fn letters(pass: &ModelPass) -> String {
        pass.ids.iter().filter_map(|id| char::from_u32(*id as u32)).filter(|c| !matches!(c, 'e' | 'f')).collect()
    }

    /// Checks the passes' letters, without special tokens (`e` is 101 and `f` is 102, so the texts use neither).
    fn check(text: &str, spans: &[Range<usize>], limit: usize, expected: &[&str]) {
        let mut passes = Vec::new();
        TextPooling::plan(0, &tokens(text, 0), spans, limit, TokenPooling::Mean, &mut passes);
        assert_eq!(passes.iter().map(letters).collect::<Vec<_>>(), expected);
        assert!(passes.iter().all(|p| p.ids.len() <= limit.max(3)));
        assert!(passes.iter().all(|p| p.ids.first() == Some(&101) && p.ids.last() == Some(&102)));
    }

    #[test]
    fn long_texts_are_cut_where_the_fewest_spans_are_split() {
        check("abc hij", &[0..3, 4..7], 8, &["abchij"]);
        check("abc hij", &[0..3, 4..7], 7, &["abc", "hij"]);
        check("abc hij kl", &[0..3, 4..7, 8..10], 8, &["abchij", "kl"]);
        // A single span that is too long is cut between words.
        check("abc hij kl", &[0..10], 7, &["abc", "hijkl"]);
        check("abchijkl", &[0..8], 7, &["abchi", "jkl"]);
        // With sentences inside a turn, the turn is split but the sentences are not.
        check("abc hij kl", &[0..10, 0..3, 4..10], 7, &["abc", "hijkl"]);
    }

    #[test]
    fn a_plain_text_is_truncated() {
        check("abc hij kl", &[], 6, &["abch"]);
        check("", &[], 6, &[""]);
        check("abc", &[], 0, &["a"]);
    }

    #[test]
    fn every_pass_has_the_prefix() {
        let mut passes = Vec::new();
        let tokens = tokens("q: abc hij", 3);
        TextPooling::plan(0, &tokens, &[3..6, 7..10], 7, TokenPooling::Mean, &mut passes);
        assert_eq!(passes.iter().map(letters).collect::<Vec<_>>(), ["q:abc", "q:hij"]);
    }

    /// Rows as a model would return them: a function of the token alone.
    fn rows(pass: &ModelPass) -> Vec<f32> {
        pass.ids.iter().flat_map(|id| [*id as f32, (*id * *id % 97) as f32, 1.0]).collect()
    }

    fn pooled(text: &str, spans: &[Range<usize>], limit: usize, prefix: usize) -> SpanVectors {
        let mut passes = Vec::new();
        let tokens = tokens(text, prefix);
        let mut pooled = TextPooling::plan(0, &tokens, spans, limit, TokenPooling::Mean, &mut passes);
        for pass in &passes {
            // Rows of padding follow a pass that is shorter than its batch.
            let padded: Vec<f32> = rows(pass).into_iter().chain([9.0; 6]).collect();
            pooled.add(pass, &padded, 3);
        }
        pooled.finish()
    }

    fn expected(ids: &[u32]) -> Vector {
        let mut sum = [0.0; 3];
        for id in ids {
            for (total, x) in sum.iter_mut().zip([*id as f32, (id * id % 97) as f32, 1.0]) {
                *total += f64::from(x);
            }
        }
        unit_vector(&sum)
    }

    #[test]
    fn a_span_pools_its_tokens_without_special_tokens() {
        let found = pooled("ab cd", &[0..2, 3..5], 256, 0);
        let of = |s: &str| expected(&s.chars().map(|c| c as u32).collect::<Vec<_>>());
        assert_eq!(found.spans, [of("ab"), of("cd")]);
        assert_eq!(found.whole, of("abcd"));
        let parts: Vec<(&Vector, f32)> = found.spans.iter().zip(found.weights.iter().copied()).collect();
        let sum = crate::embed::pool(&parts).expect("two spans");
        assert!(sum.floats().iter().zip(found.whole.floats().iter()).all(|(a, b)| (a - b).abs() < 1e-6));
        assert_eq!(pooled("ab", &[], 256, 0).whole, expected(&[CLS, 'a' as u32, 'b' as u32, SEP]));
    }

    #[test]
    fn a_span_without_tokens_gets_the_whole_texts_vector() {
        let found = pooled("ab  cd", &[0..2, 2..4], 256, 0);
        assert_eq!(found.spans[1], found.whole);
        assert_eq!(found.weights[1], 0.0);
        let blank = pooled("  ", &[0..2], 256, 0);
        assert_eq!(blank.spans, [expected(&[CLS, SEP])]);
    }

    proptest! {
        #[test]
        fn no_token_of_a_span_is_lost_or_counted_twice(
            words in prop::collection::vec("[a-dg-z]{1,9}", 1..12), limit in 3usize..20, prefix in 0usize..3
        ) {
            let mut text = "p".repeat(prefix);
            let mut spans = Vec::new();
            for word in &words {
                text.push(' ');
                spans.push(text.len()..text.len() + word.len());
                text.push_str(word);
            }
            let found = pooled(&text, &spans, limit + prefix, prefix);
            for (word, vector) in words.iter().zip(&found.spans) {
                prop_assert_eq!(vector, &expected(&word.chars().map(|c| c as u32).collect::<Vec<_>>()));
            }
            let all: Vec<u32> = words.concat().chars().map(|c| c as u32).collect();
            prop_assert_eq!(found.whole, expected(&all));
        }
    }
}
