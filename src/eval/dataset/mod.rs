//! Reads the questions of benchmark files, with one module per format.
//!
//! In: a file in its published form, and the turns that the memory was given. Out: questions with the turns that hold
//! their evidence, and counts of everything that was damaged. A file that is not one whole JSON value is an error that
//! names the place. Smaller damage is repaired if that is documented, and otherwise counted. Nothing is ever dropped
//! silently.

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
