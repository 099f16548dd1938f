//! Turns texts with spans into vectors.
//!
//! In: texts, each with the byte ranges that need a vector. Out: unit-length vectors of 32-bit floats. The vectors are
//! written to the memory log, and nothing downstream embeds a remembered text again. Nothing here ever prints or reads
//! the clock, and only `endpoint_embedder` uses a network.
//!
//! The files:
//! - `embedder`: the trait; `open`: the embedder that the pipeline names; `model_identity`: its hash; `embedder_pool`:
//!   sessions that all questions share; `question_vector_cache`: the vectors of a question that is asked again.
//! - Embedders: `onnx` (the default model, one pass for all spans), `catalogue` (fastembed's
//!   models), `qwen3` (a build feature), `endpoint_embedder` (an endpoint), `fixed_embedder` (hashes, for tests).
//! - `endpoint_health`: what all clients of one endpoint in this process know of it; `local_texts`: keeps a text that a
//!   model on this machine cannot read from stopping others; `truncated_texts`: the shorter forms of a text.
//! - What they share: `asset_paths` and `model_files` (where files are), `onnx_runtime` (ONNX Runtime), `passes` (texts
//!   cut to a model's length), `pass_runner` (runs the passes), `spans`, `unit_vector`.
//! - `session_inputs`: what a pass of `onnx`, or of a reranker, reads.
//! - `setup` installs the files of the default model where `asset_paths` looks for them.
//! - `render`: makes a text with spans from a unit's parts; `vector_cache`: vectors that have already been computed.

pub mod asset_paths;
mod catalogue;
mod embedder;
mod embedder_pool;
mod endpoint_embedder;
mod endpoint_health;
mod error;
mod fixed_embedder;
mod local_texts;
mod model_files;
mod model_identity;
mod onnx;
mod onnx_runtime;
mod open;
mod pass_runner;
mod passes;
mod question_vector_cache;
#[cfg(feature = "qwen3")]
mod qwen3;
mod render;
mod session_inputs;
pub mod setup;
mod spans;
mod truncated_texts;
mod unit_vector;
mod vector_cache;

pub use embedder::{DeclinedPieces, EmbeddedText, Embedder, SpanVectors};
pub use embedder_pool::EmbedderPool;
pub use error::EmbedError;
pub use open::open;
pub use question_vector_cache::QuestionVectorCache;
pub use render::render_parts;
pub use truncated_texts::shortened_texts;
pub use unit_vector::pool;
pub use vector_cache::{VectorCache, cached_vectors, remove_cache};

pub(crate) use asset_paths::TOKENIZER_FILE;
pub(crate) use onnx::{MODEL_FILE, load_session, read_tokenizer, sha256};
pub(crate) use onnx_runtime::environment;
pub(crate) use session_inputs::session_inputs;
pub(crate) use truncated_texts::{TruncationKind, truncated_text};

/// The text that shows whether a model works at all: one of ordinary words, as long as the shortest form of another.
const PROBE: &str = "The ferry leaves at noon, and Ana waits on the pier for a friend.";

#[cfg(test)]
mod tests;
