//! The types that all crates share, and what a pipeline file may say.
//!
//! In: plain values, and the text of a pipeline file. Out: types with one JSON form each, and settings whose every
//! number is checked. Never imports another of our crates, opens a file or reads a clock.
//!
//! | module | question |
//! |---|---|
//! | [`model`] | What are a turn, a window, a unit, an edge, a question, its evidence? |
//! | [`config`] | What may a pipeline file say? |
//! | [`schema`] | Which JSON Schema does each record have? |
//! | [`backoff`] | How long does a caller wait before it tries again? |
//! | [`sync`] | What happens to a lock whose holder panicked? |
//! | [`wake_signal`] | What wakes a thread that waits? |
//! | [`logged_bank`] | How do log lines name a bank? |
//! | [`trace_parent`] | Which trace does a request belong to? |
//! | [`month_names`] | Which month does an English word name? |
//! | [`lone_surrogates`] | What happens to a lone surrogate in JSON? |
//! | [`record_value`] | What does the value of a memory record say, or why can it not be read? |
//! | [`recall_tag`] | How is what a coding agent was given told from what was said? |
//! | [`null_fields`] | What does null mean in an optional field? |
//! | [`chunked_map`] | How are many entries kept in order in little memory? |
//! | [`shrinkable_collection`] | How does a collection avoid taking much more memory than it needs? |

pub mod backoff;
pub mod chunked_map;
pub mod config;
pub mod logged_bank;
pub mod lone_surrogates;
pub mod model;
pub mod month_names;
pub mod null_fields;
pub mod recall_tag;
pub mod record_value;
pub mod schema;
pub mod shrinkable_collection;
pub mod sync;
pub mod trace_parent;
pub mod wake_signal;
