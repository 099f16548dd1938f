//! Spans of a text: checked, or embedded as separate texts.
//!
//! In: texts with byte ranges. Out: an error for a range that splits a character; and, for a
//! model that pools a text as a whole, vectors from one pass for the text and one for each span.

use unicode_segmentation::UnicodeSegmentation;

use super::{EmbedError, SpanVectors};
use nouns::model::{SpannedText, Vector};

/// Fails for the first span that is not a range of whole characters of its text.
pub(super) fn check_spans(texts: &[SpannedText]) -> Result<(), EmbedError> {
    for (i, text) in texts.iter().enumerate() {
        for span in &text.spans {
            if text.text.get(span.clone()).is_none() {
                let length = text.text.len();
                return Err(EmbedError::Span { text: i, start: span.start, end: span.end, length });
            }
        }
    }
    Ok(())
}

/// Embeds each text, and each of its spans, as a plain text.
pub(super) fn embed_separately(
    texts: &[SpannedText],
    prefix: &str,
    embed: impl FnOnce(&[String]) -> Result<Vec<Vector>, EmbedError>,
) -> Result<Vec<SpanVectors>, EmbedError> {
    check_spans(texts)?;
    let (mut plain, mut text_of) = (Vec::with_capacity(texts.len()), Vec::with_capacity(texts.len()));
    for (index, text) in texts.iter().enumerate() {
        plain.push(format!("{prefix}{}", text.text));
        plain.extend(span_texts(text).map(|words| format!("{prefix}{words}")));
        text_of.resize(plain.len(), index);
    }
    let mut vectors = embed(&plain).map_err(|error| of_texts(error, &text_of))?.into_iter();
    let missing = || EmbedError::Model { model: String::new(), problem: "fewer vectors than texts".to_owned() };
    texts
        .iter()
        .map(|text| {
            let whole = vectors.next().ok_or_else(missing)?;
            let mut spans: Vec<Vector> = vectors.by_ref().take(span_texts(text).count()).collect();
            if spans.is_empty() {
                spans.extend(text.spans.iter().map(|_| whole.clone()));
            }
            if spans.len() != text.spans.len() {
                return Err(missing());
            }
            let words = |span: &std::ops::Range<usize>| text.text.get(span.clone()).map_or(0, word_count);
            let weights = text.spans.iter().map(|span| words(span) as f32).collect();
            Ok(SpanVectors { whole, spans, weights })
        })
        .collect()
}

/// Turns an error about plain texts into one about the texts that they were taken from.
fn of_texts(error: EmbedError, text_of: &[usize]) -> EmbedError {
    let EmbedError::Declined { model, texts } = error else { return error };
    let mut texts: Vec<(usize, String)> =
        texts.into_iter().filter_map(|(at, problem)| Some((*text_of.get(at)?, problem))).collect();
    texts.dedup_by_key(|(text, _)| *text);
    EmbedError::Declined { model, texts }
}

/// The spans' texts; none if the only span is the whole text, because the vector of the whole text serves for it.
fn span_texts(text: &SpannedText) -> impl Iterator<Item = &str> {
    let same = matches!(text.spans.as_slice(), [only] if *only == (0..text.text.len()));
    text.spans.iter().filter(move |_| !same).filter_map(|span| text.text.get(span.clone()))
}

fn word_count(text: &str) -> usize {
    text.unicode_words().count()
}

#[cfg(test)]
mod tests {
    // A text with one span is given as a range in a list, not as a list of its members.
    #![allow(clippy::single_range_in_vec_init)]
    use super::*;
    use crate::embed::tests::plain;

    #[test]
    fn a_span_outside_its_text_is_named() {
        let text = SpannedText { text: "naïve".to_owned(), spans: vec![0..3] };
        let error = check_spans(&[plain("x"), text]).expect_err("3 is inside the ï");
        assert!(error.to_string().starts_with("text 1: bytes 0 to 3 of its 6 split a character"), "{error}");
    }

    #[test]
    fn texts_embedded_separately_keep_their_order() {
        let texts = [
            SpannedText { text: "ab".to_owned(), spans: vec![0..1, 1..2] },
            plain("c"),
            SpannedText { text: "d".to_owned(), spans: vec![0..1] },
        ];
        let mut embedded = Vec::new();
        let found = embed_separately(&texts, ">", |plain| {
            embedded = plain.to_vec();
            Ok((0..plain.len()).map(|i| Vector::from([i as f32])).collect())
        })
        .expect("as many vectors as texts");
        assert_eq!(embedded, [">ab", ">a", ">b", ">c", ">d"]);
        let declined = |_: &[String]| {
            let texts = [1, 2, 4].map(|at| (at, "too long".to_owned())).to_vec();
            Err(EmbedError::Declined { model: String::new(), texts })
        };
        match embed_separately(&texts, ">", declined) {
            Err(EmbedError::Declined { texts, .. }) => {
                assert_eq!(texts.iter().map(|(text, _)| *text).collect::<Vec<_>>(), [0, 2]);
            }
            other => panic!("{other:?}"),
        }
        let shown: Vec<(f32, Vec<f32>)> =
            found.iter().map(|v| (v.whole.floats()[0], v.spans.iter().map(|s| s.floats()[0]).collect())).collect();
        assert_eq!(shown, [(0.0, vec![1.0, 2.0]), (3.0, vec![]), (4.0, vec![4.0])]);
        assert_eq!(found[0].weights, [1.0, 1.0]);
    }
}
