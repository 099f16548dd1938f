//! What a format of turns is.
//!
//! In: nothing. Out: the shape of the constant that each source file exports. `formats.rs` lists
//! them.

use super::{error::SourceError, turn_source::Source};
use crate::{config::SourceSettings, model::Bank};

/// A format of turns.
#[derive(Debug, Clone, Copy)]
pub struct SourceFormat {
    /// Its name, in `source.format` and on the command line.
    pub name: &'static str,
    /// One line of help: what the file holds.
    pub about: &'static str,
    /// Whether `-` as the path reads standard input.
    pub standard_input: bool,
    /// What `source.only` chooses, in the plural; none where a file cannot be divided.
    pub only: Option<&'static str>,
    /// Opens a source. The bank is as for [`super::open`].
    pub(super) open: Open,
}

/// Opens a source of one format.
pub(super) type Open = fn(&SourceSettings, Option<&Bank>) -> Result<Box<dyn Source>, SourceError>;
