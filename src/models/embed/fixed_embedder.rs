//! Vectors made from hashes of words, without a model, for tests.
//!
//! In: texts with spans. Out: vectors that are the same on every machine. A word's vector is 384 signs taken from the
//! hash of its lower-cased letters. A text's vector is the sum of its words' vectors, so that texts with words in
//! common are close. All arithmetic except the last step is on integers.

use unicode_segmentation::UnicodeSegmentation;

use super::{
    EmbedError, EmbeddedText, Embedder, SpanVectors, model_identity::model_ref, spans::check_spans,
    unit_vector::unit_vector,
};
use types::config::{EmbedSettings, ModelSettings};
use types::model::{ModelRef, SpannedText, Vector};

const DIMENSIONS: usize = 384;

/// The deterministic embedder.
pub(super) struct FixedEmbedder {
    model: ModelRef,
}

impl FixedEmbedder {
    /// Loads nothing.
    pub(super) fn open(settings: &EmbedSettings, model: &ModelSettings) -> Self {
        Self { model: model_ref(&settings.model, "fixed/1", &[], model) }
    }
}

impl Embedder for FixedEmbedder {
    fn model(&self) -> &ModelRef {
        &self.model
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn embed_each(&mut self, texts: &[SpannedText]) -> Result<Vec<EmbeddedText>, EmbedError> {
        check_spans(texts)?;
        Ok(texts.iter().map(|text| EmbeddedText::accepted(embed_one(text))).collect())
    }

    fn embed_query(&mut self, text: &str) -> Result<Vector, EmbedError> {
        let mut sum = [0; DIMENSIONS];
        add_words(text, &mut sum);
        Ok(normalised(&sum))
    }
}

fn embed_one(text: &SpannedText) -> SpanVectors {
    let mut whole = [0; DIMENSIONS];
    let mut spans = Vec::with_capacity(text.spans.len());
    let mut weights = Vec::with_capacity(text.spans.len());
    for span in &text.spans {
        let mut sum = [0; DIMENSIONS];
        add_words(text.text.get(span.clone()).unwrap_or_default(), &mut sum);
        for (total, one) in whole.iter_mut().zip(sum) {
            *total += one;
        }
        spans.push(normalised(&sum));
        weights.push(sum.iter().map(|x| f64::from(x * x)).sum::<f64>().sqrt() as f32);
    }
    if text.spans.is_empty() {
        add_words(&text.text, &mut whole);
    }
    SpanVectors { whole: normalised(&whole), spans, weights }
}

fn add_words(text: &str, sum: &mut [i32; DIMENSIONS]) {
    for word in text.unicode_words() {
        add_word(&word.to_lowercase(), sum);
    }
}

fn add_word(word: &str, sum: &mut [i32; DIMENSIONS]) {
    let mut signs = [0u8; DIMENSIONS / 8];
    blake3::Hasher::new().update(word.as_bytes()).finalize_xof().fill(&mut signs);
    let bits = signs.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1));
    for (total, bit) in sum.iter_mut().zip(bits) {
        *total += if bit == 1 { 1 } else { -1 };
    }
}

/// A text without words has the direction of the empty word.
fn normalised(sum: &[i32; DIMENSIONS]) -> Vector {
    let mut sum = *sum;
    if sum.iter().all(|x| *x == 0) {
        add_word("", &mut sum);
    }
    unit_vector(&sum.map(f64::from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embed::tests::{cosine, plain, settings};

    fn fixed() -> FixedEmbedder {
        let (settings, model) = settings("fixed");
        FixedEmbedder::open(&settings, &model)
    }

    #[test]
    fn vectors_never_change() {
        let vector = fixed().embed_query("Hello, world").expect("no model to fail");
        let mut bytes = Vec::new();
        for x in vector.floats().iter() {
            bytes.extend_from_slice(&x.to_le_bytes());
        }
        assert_eq!(vector.len(), DIMENSIONS);
        assert_eq!(&blake3::hash(&bytes).to_hex()[..16], "b86d39fadb1276b4");
    }

    #[test]
    fn texts_with_common_words_are_near() {
        let mut fixed = fixed();
        let mut near = |a: &str, b: &str| {
            let a = fixed.embed_query(a).expect("no model to fail");
            cosine(&a, &fixed.embed_query(b).expect("no model to fail"))
        };
        assert!((near("the red bicycle", "The RED bicycle!") - 1.0).abs() < 1e-6);
        assert!((near("the red bicycle", "the red boat") - 2.0 / 3.0).abs() < 0.15);
        assert!(near("the red bicycle", "entirely other words").abs() < 0.15);
        assert!((near("", "…") - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_span_has_the_vector_of_its_text_alone() {
        let mut fixed = fixed();
        let spanned = SpannedText { text: "Ana sings. Bo paints.".to_owned(), spans: vec![0..10, 11..21] };
        let found = fixed.embed(&[spanned]).expect("valid spans");
        let alone =
            fixed.embed(&[plain("Ana sings."), plain("Bo paints."), plain("Ana sings. Bo paints.")]).expect("no spans");
        assert_eq!(found[0].spans, [alone[0].whole.clone(), alone[1].whole.clone()]);
        assert_eq!(found[0].whole, alone[2].whole);
    }
}
