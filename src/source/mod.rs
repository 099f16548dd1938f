//! Turns in, one file per origin.
//!
//! In: a file or a stream. Out: turn events in the origin's order, and dead letters for
//! records that were rejected; both in batches. A bad record never ends a source, never panics,
//! and its dead letter names its place; only an origin that cannot be read at all is an error.
//! Reads no clock.
//!
//! `jsonl`, `locomo`, `longmemeval` and `evermembench` each read one format and describe it in a
//! constant `FORMAT`; `formats` lists these constants. `turn_source` is the interface, `queue`
//! holds a file that is read whole, `end_mark` closes a finished origin, `zone` reads times that
//! name no zone.

mod end_mark;
mod error;
mod format;
mod formats;
mod queue;
mod turn_source;
mod zone;

pub mod evermembench;
mod jsonl;
mod locomo;
pub mod longmemeval;

#[cfg(test)]
mod tests;

pub use error::SourceError;
pub use evermembench::EverMemBench;
pub use format::SourceFormat;
pub use formats::{FORMATS, format, format_names, open};
pub use jsonl::Jsonl;
pub use locomo::Locomo;
pub use longmemeval::LongMemEval;
pub use turn_source::{Source, SourceBatch, SourceProgress};
