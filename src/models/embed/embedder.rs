//! What every embedder does.
//!
//! In: texts with spans, or a question. Out: unit-length vectors in the order of the texts. Never returns only a part
//! of them: either every text has its vectors, or there is an error.

use super::EmbedError;
use nouns::model::{ModelRef, SpannedText, Vector};

/// The vectors of one text.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanVectors {
    /// The vector of the whole text: the tokens of all spans pooled together, or those of a plain text without spans.
    pub whole: Vector,
    /// One for each span, in order.
    pub spans: Vec<Vector>,
    /// The weight of each span in [`super::pool`]: the length of the sum of its tokens' states, so that weight times
    /// vector is that sum. For a model that pools a text itself, the weight is the number of words instead. 0 for a
    /// span without a token.
    pub weights: Vec<f32>,
}

impl SpanVectors {
    /// The same vectors times `factor`, each in steps ([`Vector::in_steps_times`]).
    #[must_use]
    pub fn in_steps_times(&self, factor: f64) -> Self {
        let spans = self.spans.iter().map(|vector| vector.in_steps_times(factor)).collect();
        Self { whole: self.whole.in_steps_times(factor), spans, weights: self.weights.clone() }
    }
}

/// A model that turns texts into vectors.
pub trait Embedder: Send {
    /// Name and hash of the model; the hash covers every setting that changes a vector.
    fn model(&self) -> &ModelRef;
    /// The number of components in a vector.
    fn dimensions(&self) -> usize;
    /// One result for each text, in order. Batching by length happens inside.
    ///
    /// # Errors
    /// [`EmbedError::Span`] for a range that is not inside its text; [`EmbedError::Model`] when
    /// the model fails; [`EmbedError::Unavailable`] and [`EmbedError::Declined`] from an endpoint.
    fn embed(&mut self, texts: &[SpannedText]) -> Result<Vec<SpanVectors>, EmbedError>;
    /// The vector of a question, with the model's query prefix.
    ///
    /// # Errors
    /// [`EmbedError::Model`] when the model fails.
    fn embed_query(&mut self, text: &str) -> Result<Vector, EmbedError>;
}
