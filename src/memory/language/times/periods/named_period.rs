//! A time that a question names.
//!
//! Only the type.

use std::ops::Range;

use jiff::civil::DateTime;

/// A time that a question names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPeriod {
    /// The bytes of the text that name it.
    pub range: Range<usize>,
    /// Its first moment, in the asker's zone; `None` if it has no beginning ("before May").
    pub first: Option<DateTime>,
    /// Its last moment; `None` if it has no end ("after 5 May").
    pub last: Option<DateTime>,
    /// False if a part of it was inferred.
    pub certain: bool,
    /// Whether its words also name what is asked about, such as those of a holiday.
    pub is_name: bool,
}
