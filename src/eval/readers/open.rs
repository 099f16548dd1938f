//! Opens a benchmark's file as a source of turns.
//!
//! In: settings whose format is a benchmark's, or one of the formats of `sources`. Out: the source, or an error
//! that names the key.

use sources::{SourceError, SourceFormat, TurnSource};

use super::{evermembench, locomo, longmemeval, realtalk};
use types::config::SourceSettings;

/// The formats of benchmarks.
pub const FORMATS: &[SourceFormat] = &[locomo::FORMAT, realtalk::FORMAT, longmemeval::FORMAT, evermembench::FORMAT];

/// Opens the source that the settings name, a benchmark's file or any other.
///
/// # Errors
/// Those of [`sources::open`].
pub fn open(settings: &SourceSettings) -> Result<Box<dyn TurnSource>, SourceError> {
    match FORMATS.iter().find(|format| format.name == settings.format) {
        Some(format) => sources::open_as(format, settings),
        None => sources::open(settings),
    }
}
