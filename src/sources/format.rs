//! Defines what a format of turns is.
//!
//! In: nothing. Out: the shape of the constant that each source file exports. `formats.rs` lists
//! them.

use super::{
    chat::{ChatReader, FileSample},
    error::SourceError,
    turn_source::TurnSource,
};
use types::{config::SourceSettings, model::Bank};

/// A format of turns.
#[derive(Debug, Clone, Copy)]
pub struct SourceFormat {
    /// Its name, in `source.format` and on the command line.
    pub name: &'static str,
    /// One line of help: what the file holds.
    pub about: &'static str,
    /// Whether `-` as the path reads standard input.
    pub standard_input: bool,
    /// What `source.only` chooses, as a plural noun; `None` if a file cannot be divided.
    pub only: Option<&'static str>,
    /// Whether a file, directory or archive has this format, as far as its sample shows.
    pub looks_like: fn(&FileSample) -> bool,
    /// How it is opened.
    pub open: FormatOpener,
}

impl SourceFormat {
    /// A format that is not in [`super::FORMATS`], for [`super::open_as`]: its source makes its own turns. `only` is
    /// what `source.only` chooses, as a plural noun.
    #[must_use]
    pub const fn of_turns(
        (name, about): (&'static str, &'static str),
        only: Option<&'static str>,
        looks_like: fn(&FileSample) -> bool,
        open: TurnSourceOpener,
    ) -> Self {
        Self { name, about, standard_input: false, only, looks_like, open: FormatOpener::Turns(open) }
    }
}

/// Opens a source that makes its own turns.
pub type TurnSourceOpener = fn(&SourceSettings, Option<&Bank>) -> Result<Box<dyn TurnSource>, SourceError>;

/// How a format is opened.
#[derive(Debug, Clone, Copy)]
pub enum FormatOpener {
    /// The source makes its own turns. The bank is the one in the settings, as for [`super::open`].
    Turns(TurnSourceOpener),
    /// A chat platform's export: the reader finds messages; [`super::chat::ChatSource`] makes turns from them and
    /// applies banks, privacy, names and redaction.
    Chat(fn(&SourceSettings) -> Result<Box<dyn ChatReader>, SourceError>),
}
