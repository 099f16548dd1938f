//! Benchmark files to questions, one file per format.
//!
//! In: a file in its published form, and the turns that the memory was given. Out: questions
//! with the turns that hold their evidence, and counts of everything that was damaged. A file
//! that is not one whole JSON value is an error that names the place; smaller damage is repaired
//! where that is documented, otherwise counted. Nothing is dropped silently.

mod directory;
mod error;
mod evermembench;
mod evidence;
mod format;
pub(crate) mod json;
mod locomo;
mod longmemeval;
mod question;
mod read;
mod realtalk;

pub(crate) use directory::{check_only, entries};
pub use error::DatasetError;
pub use format::BenchmarkFormat;
pub(crate) use question::{Answerability, Dataset, DatasetQuestion};
pub(crate) use read::read;
