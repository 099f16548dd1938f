//! A cross-encoder: a model that reads a question together with a passage.
//!
//! In: a question and passages. Out: for each passage a logit, which is higher the better the passage answers the
//! question. Either every passage has its logit, or there is an error. A logit depends on its pair alone, except that
//! of a passage that the model cannot read. Downloads nothing.
//!
//! - `reranker_pool`: sessions that all questions share, and their deadlines; `cross_encoder`: the model in a session;
//!   `error`: why there are no logits.

mod cross_encoder;
mod error;
mod reranker_pool;

pub use error::RerankError;
pub use reranker_pool::RerankerPool;
