//! Baselines: other retrievers over the same memory, in the same run.
//!
//! In: a bench and the contents of its memory. Out: a row for each baseline. One file per
//! retriever; `corpus` is what they search, `rows` measures them. A baseline uses no code of
//! recollection's ranking: each has its own formula, on purpose.

mod baseline;
pub(crate) mod bm25;
pub(crate) mod corpus;
mod dense;
mod familiarity;
pub(crate) mod fusion;
mod mixture;
mod rows;
mod sessions;

pub(crate) use rows::{mixture_evidence, rows};
