//! Turns texts with spans into vectors.
//!
//! In: texts, each with the byte ranges that need a vector. Out: unit-length vectors of 32-bit floats. The vectors are
//! written to the memory log, and nothing downstream embeds a remembered text again. Nothing here ever prints or reads
//! the clock, and only `served` uses a network.
//!
//! The files:
//! - `embedder`: the trait; `open`: the embedder that the pipeline names; `identity`: its hash;
//!   `pool`: sessions that all questions share; `kept`: the vectors of a question that is asked again.
//! - Embedders: `onnx` (the default model, one pass for all spans), `catalogue` (fastembed's
//!   models), `qwen3` (a build feature), `served` (an endpoint), `fixed` (hashes, for tests).
//! - `endpoint_health`: what all clients of one endpoint in this process know of it; `by_text`: a text that a model on
//!   this machine cannot read never stops others; `forms`: the shorter forms of a text.
//! - What they share: `assets` and `model_files` (where files are), `runtime` (ONNX Runtime), `passes` (texts cut to a
//!   model's length), `worker_pool` (runs the passes), `spans`, `unit_vector`.
//! - `session_inputs`: what a pass of `onnx`, or of a reranker, reads.
//! - `setup` installs the files of the default model where `assets` looks for them.
//! - `render`: makes a text with spans from a unit's parts; `cache`: vectors that have already been computed.

pub mod assets;
mod by_text;
mod cache;
mod catalogue;
mod embedder;
mod endpoint_health;
mod error;
mod fixed;
mod forms;
mod identity;
mod kept;
mod model_files;
mod onnx;
mod open;
mod passes;
mod pool;
#[cfg(feature = "qwen3")]
mod qwen3;
mod render;
mod runtime;
mod served;
mod session_inputs;
pub mod setup;
mod spans;
mod unit_vector;
mod worker_pool;

pub use cache::{VectorCache, cached_vectors, remove_cache};
pub use embedder::{DeclinedPieces, EmbeddedText, Embedder, SpanVectors};
pub use error::EmbedError;
pub use forms::shortened_texts;
pub use kept::KeptVectors;
pub use open::open;
pub use pool::EmbedderPool;
pub use render::render_parts;
pub use unit_vector::pool;

pub(crate) use assets::TOKENIZER_FILE;
pub(crate) use forms::{Keeps, form};
pub(crate) use onnx::{MODEL_FILE, load_session, read_tokenizer, sha256};
pub(crate) use runtime::environment;
pub(crate) use session_inputs::session_inputs;

/// The text that shows whether a model works at all: one of ordinary words, as long as the shortest form of another.
const PROBE: &str = "The ferry leaves at noon, and Ana waits on the pier for a friend.";

#[cfg(test)]
mod tests;
