//! Spans of a text: checked, or embedded as separate texts.
//!
//! In: texts with byte ranges. Out: an error for a range that splits a character; and, for a model that pools a text as
//! a whole, vectors from one pass for the text and one for each span. A piece that could not be embedded gets a vector
//! made of the others.

use unicode_segmentation::UnicodeSegmentation;

use super::{DeclinedPieces, EmbedError, EmbeddedText, SpanVectors, unit_vector::pool};
use types::model::{SpannedText, Vector};

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

/// Embeds each text, and each of its spans, as a plain text; `embed` returns for each its vector, or why it has none.
pub(super) fn embed_separately(
    texts: &[SpannedText],
    prefix: &str,
    embed: impl FnOnce(&[String]) -> Result<Vec<Result<Vector, String>>, EmbedError>,
) -> Result<Vec<EmbeddedText>, EmbedError> {
    check_spans(texts)?;
    let mut plain = Vec::with_capacity(texts.len());
    for text in texts {
        plain.push(format!("{prefix}{}", text.text));
        plain.extend(span_texts(text).map(|words| format!("{prefix}{words}")));
    }
    let mut pieces = embed(&plain)?.into_iter();
    let missing = || EmbedError::Model { model: String::new(), problem: "fewer vectors than texts".to_owned() };
    texts
        .iter()
        .map(|text| {
            let whole = pieces.next().ok_or_else(missing)?;
            let mut spans: Vec<Result<Vector, String>> = pieces.by_ref().take(span_texts(text).count()).collect();
            if spans.is_empty() {
                spans.extend(text.spans.iter().map(|_| whole.clone()));
            }
            if spans.len() != text.spans.len() {
                return Err(missing());
            }
            Ok(of_pieces(text, whole, &spans))
        })
        .collect()
}

/// The vector of a question, which was embedded alone.
pub(super) fn question_vector(model: &str, mut found: Vec<Result<Vector, String>>) -> Result<Vector, EmbedError> {
    match found.pop() {
        Some(Ok(vector)) => Ok(vector),
        Some(Err(problem)) => Err(EmbedError::Declined { model: model.to_owned(), texts: vec![(0, problem)] }),
        None => Err(EmbedError::Model { model: model.to_owned(), problem: "no vector for the question".to_owned() }),
    }
}

/// The result for a text, from the vector of the whole and those of its spans.
fn of_pieces(text: &SpannedText, whole: Result<Vector, String>, spans: &[Result<Vector, String>]) -> EmbeddedText {
    let words = |span: &std::ops::Range<usize>| text.text.get(span.clone()).map_or(0, word_count) as f32;
    let weights: Vec<f32> =
        text.spans.iter().zip(spans).map(|(span, made)| if made.is_ok() { words(span) } else { 0.0 }).collect();
    let taken = spans.iter().zip(&weights).filter_map(|(made, weight)| Some((made.as_ref().ok()?, *weight)));
    let of_spans = pool(&taken.collect::<Vec<_>>());
    let failed = |(at, made): (usize, &Result<Vector, String>)| made.is_err().then_some(at);
    let declined: Vec<usize> = spans.iter().enumerate().filter_map(failed).collect();
    let first = spans.iter().find_map(|made| made.as_ref().err());
    let problem = first.or(whole.as_ref().err().filter(|_| of_spans.is_none())).cloned();
    let vectors = whole.ok().or(of_spans).map(|whole| {
        let spans = spans.iter().map(|made| made.as_ref().unwrap_or(&whole).clone()).collect();
        SpanVectors { spans, weights, whole }
    });
    EmbeddedText { vectors, declined: problem.map(|problem| DeclinedPieces { problem, spans: declined }) }
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
            Ok((0..plain.len()).map(|i| Ok(Vector::from([i as f32]))).collect())
        })
        .expect("as many vectors as texts");
        assert_eq!(embedded, [">ab", ">a", ">b", ">c", ">d"]);
        let found: Vec<SpanVectors> = found.into_iter().map(|text| text.vectors.expect("taken")).collect();
        let shown: Vec<(f32, Vec<f32>)> =
            found.iter().map(|v| (v.whole.floats()[0], v.spans.iter().map(|s| s.floats()[0]).collect())).collect();
        assert_eq!(shown, [(0.0, vec![1.0, 2.0]), (3.0, vec![]), (4.0, vec![4.0])]);
        assert_eq!(found[0].weights, [1.0, 1.0]);
    }

    #[test]
    fn where_a_piece_is_not_taken_the_others_take_its_place() {
        let texts = [SpannedText { text: "one two".to_owned(), spans: vec![0..3, 4..7] }, plain("three")];
        // The vectors of the whole text, its two spans, and the second text, by which of them fail.
        let check = |failing: &[usize], vectors: Option<[Vec<f32>; 3]>, spans: Option<&[usize]>| {
            let made = [[1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [1.0, 0.0]].map(Vector::from);
            let made = made
                .iter()
                .enumerate()
                .map(|(at, vector)| if failing.contains(&at) { Err(format!("no {at}")) } else { Ok(vector.clone()) });
            let found = embed_separately(&texts, "", |_| Ok(made.collect())).expect("as many as texts").remove(0);
            let shown = found.vectors.map(|v| [&v.whole, &v.spans[0], &v.spans[1]].map(|v| v.floats().into_owned()));
            assert_eq!(shown, vectors, "{failing:?}");
            assert_eq!(found.declined.as_ref().map(|pieces| pieces.spans.as_slice()), spans, "{failing:?}");
        };
        check(&[], Some([vec![1.0, 0.0], vec![0.6, 0.8], vec![0.0, 1.0]]), None);
        check(&[1], Some([vec![1.0, 0.0], vec![1.0, 0.0], vec![0.0, 1.0]]), Some(&[0]));
        check(&[0, 1], Some([vec![0.0, 1.0], vec![0.0, 1.0], vec![0.0, 1.0]]), Some(&[0]));
        check(&[0, 1, 2], None, Some(&[0, 1]));
        check(&[3], Some([vec![1.0, 0.0], vec![0.6, 0.8], vec![0.0, 1.0]]), None);
        let alone = embed_separately(&[plain("x")], "", |_| Ok(vec![Err("no".to_owned())])).expect("one").remove(0);
        let declined = DeclinedPieces { problem: "no".to_owned(), spans: Vec::new() };
        assert_eq!(alone, EmbeddedText { vectors: None, declined: Some(declined) });
    }
}
