//! Text with spans to vectors.
//!
//! In: texts, each with the byte ranges that want a vector of their own. Out: unit-length
//! vectors of 32-bit floats. What it returns is written to the memory log; nothing
//! downstream embeds a remembered text again.

use crate::model::{ModelRef, SpannedText, Vector};

/// The vectors of one text.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanVectors {
    /// Of the whole: all spans' tokens pooled together; of the plain text when it has no spans.
    pub whole: Vector,
    /// One a span, in order.
    pub spans: Vec<Vector>,
}

/// A model that turns texts into vectors.
pub trait Embedder: Send {
    /// Name and hash of the model; the hash covers every setting that changes a vector.
    fn model(&self) -> &ModelRef;
    /// Components of a vector.
    fn dimensions(&self) -> usize;
    /// One result a text, in order; batched by length inside.
    fn embed(&mut self, texts: &[SpannedText]) -> Result<Vec<SpanVectors>, EmbedError>;
    /// The vector of a question (the model's query prefix applies).
    fn embed_query(&mut self, text: &str) -> Result<Vector, EmbedError>;
}
