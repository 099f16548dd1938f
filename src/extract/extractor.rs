//! What every extractor does.
//!
//! In: a window. Out: its drafts. No two drafts of a window are equal, and every draft names its
//! source turns, at least one of them outside the leading overlap (decision 6).

use super::{DraftUnit, ExtractError};
use crate::model::Window;

/// Turns a window into drafts of units.
pub trait Extractor: Send {
    /// Name and version, recorded with every unit: `rules/3`.
    fn name(&self) -> &str;
    /// The drafts of a window.
    ///
    /// # Errors
    /// [`ExtractError`] when the window gives none.
    fn extract(&self, window: &Window) -> Result<Vec<DraftUnit>, ExtractError>;
}
