//! Models: embedders that run here or behind an endpoint, the reranker, and the language model.
//!
//! In: texts and requests. Out: vectors, logits, and replies that match their contract. What a model makes of a turn is
//! written to a log before the memory sees it, so nothing downstream of the log asks a model twice.
//!
//! | module | question |
//! |---|---|
//! | [`embed`] | Which vector does a text have? |
//! | [`llm`] | What may a language model be asked, and what has it already answered? |
//! | [`rerank`] | How well does a passage answer a question? |
//! | `unread_language_reporter` | Does the model read what is said? |

pub mod embed;
pub mod llm;
mod log_events;
pub mod rerank;
mod unread_language_reporter;

pub use endpoint::join_threads;
pub use unread_language_reporter::{LanguageCounts, UnreadLanguageReporter, notice as unread_notice};
