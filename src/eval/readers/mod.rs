//! Readers of benchmark files: the dialogues in their published forms.
//!
//! In: the file of a benchmark. Out: its turns, as from any other source. Each file describes its format in a constant
//! `FORMAT`; `open` opens a format by its name.

pub mod evermembench;
pub mod locomo;
pub mod longmemeval;
mod open;
pub mod realtalk;
#[cfg(test)]
mod tests;

pub use evermembench::EverMemBenchSource;
pub use locomo::LocomoSource;
pub use longmemeval::LongMemEvalSource;
pub use open::{FORMATS, open};
pub use realtalk::RealTalkSource;
