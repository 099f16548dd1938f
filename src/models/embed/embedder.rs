//! What every embedder does.
//!
//! In: texts with spans, or a question. Out: unit-length vectors in the order of the texts. A text that its model does
//! not take, even shortened, is reported by itself, and the others have their vectors; any other failure concerns all.

use super::EmbedError;
use types::model::{ModelRef, SpannedText, Vector};

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

/// What became of one text.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddedText {
    /// Its vectors; absent if no piece of it could be embedded. A span that could not be embedded has the vector of the
    /// whole text; a whole text that could not be embedded has the direction of its spans.
    pub vectors: Option<SpanVectors>,
    /// The pieces of it that could not be embedded, even shortened; absent if a vector was made of every piece.
    pub declined: Option<DeclinedPieces>,
}

/// The pieces of a text that its model does not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclinedPieces {
    /// Why the first of them was not taken.
    pub problem: String,
    /// Which of the text's spans; none if the text has no span.
    pub spans: Vec<usize>,
}

impl EmbeddedText {
    /// A text that was taken.
    pub(super) fn accepted(vectors: SpanVectors) -> Self {
        Self { vectors: Some(vectors), declined: None }
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
    /// the model fails whatever it reads; [`EmbedError::Unavailable`] from an endpoint.
    fn embed_each(&mut self, texts: &[SpannedText]) -> Result<Vec<EmbeddedText>, EmbedError>;
    /// The vectors of texts all of which have to be taken.
    ///
    /// # Errors
    /// Those of [`Self::embed_each`]; [`EmbedError::Declined`] if a text is not taken.
    fn embed(&mut self, texts: &[SpannedText]) -> Result<Vec<SpanVectors>, EmbedError> {
        let (mut found, mut declined) = (Vec::with_capacity(texts.len()), Vec::new());
        for (at, text) in self.embed_each(texts)?.into_iter().enumerate() {
            declined.extend(text.declined.map(|pieces| (at, pieces.problem)));
            found.extend(text.vectors);
        }
        if declined.is_empty() {
            return Ok(found);
        }
        Err(EmbedError::Declined { model: self.model().name.clone(), texts: declined })
    }
    /// The vector of a question, with the model's query prefix.
    ///
    /// # Errors
    /// [`EmbedError::Model`] when the model fails; [`EmbedError::Unavailable`] from an endpoint;
    /// [`EmbedError::Declined`] if the model does not take this question, even shortened.
    fn embed_query(&mut self, text: &str) -> Result<Vector, EmbedError>;
}
