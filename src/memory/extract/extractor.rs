//! What every extractor does (decision 18).
//!
//! In: a window. Out: its drafts. No two drafts of a window are equal, and every draft names its
//! source turns, at least one of them outside the leading overlap (decision 6).

use super::DraftUnit;
use types::model::Window;

/// Turns a window into drafts of units.
pub trait Extractor: Send {
    /// Why no drafts were made from a window.
    type Error: std::error::Error;

    /// Name and version, recorded with every unit: `rules/6`.
    fn name(&self) -> &str;
    /// The drafts of a window.
    ///
    /// # Errors
    /// [`Extractor::Error`] if none can be made.
    fn extract(&self, window: &Window) -> Result<Vec<DraftUnit>, Self::Error>;
}
